// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"fmt"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/versions"
)

// Refusing says which of the layers of a cluster would not be deployed with a version of
// Kubernetes, in order. Those that belong on another cluster do not matter.
func Refusing(layers []v1alpha1.AddonsLayer, version string) []string {
	var found []string
	for i := range layers {
		spec := layers[i].Spec
		if spec.Cluster != nil || !layers[i].DeletionTimestamp.IsZero() {
			continue
		}
		if met, err := versions.KubernetesSatisfied(spec.Prereqs.K8sVersion, version); err == nil && !met {
			found = append(found, fmt.Sprintf("layer %s is for Kubernetes %s, and %s is not: change spec.prereqs.k8sVersion of the layer first",
				layers[i].Name, spec.Prereqs.K8sVersion, version))
		}
	}
	slices.Sort(found)
	return found
}
