// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/builtin"
	"github.com/strata-project/strata/internal/versions"
)

// refuses says what the cluster's API server would refuse of an object of Kubernetes' own
// kinds. A later one may have fields that are not known here.
func (g *Plan) refuses(object *unstructured.Unstructured) error {
	later, err := versions.KubernetesSatisfied(">"+builtin.Version+".999", g.Version)
	for _, found := range builtin.Check(object) {
		if !found.Unknown || err == nil && !later {
			return found
		}
	}
	return nil
}
