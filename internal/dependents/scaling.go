// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// standing says how a live object fares that has the content that is wanted. A scaling is no
// roll-out: where nobody says in git how many replicas there are, others do.
func (d *Dependent) standing(entry Entry, live *unstructured.Unstructured, judge func(*unstructured.Unstructured) objects.Standing) objects.Standing {
	standing := judge(live)
	if standing.Health == objects.Progressing && d.isScaledByOthers() && objects.IsScaling(live, entry.Generation) {
		return objects.Standing{Health: objects.Ready, Status: objects.StatusReady, Message: objects.Scaling}
	}
	return standing
}

// isScaledByOthers tells whether how many replicas an object has is nothing that it is wanted
// with, and how it fares is told by nothing but its own status.
func (d *Dependent) isScaledByOthers() bool {
	content, written := d.Object.Get()
	if !written || d.Judge != nil || d.Ready != nil || d.Assess == objects.AssessCondition || d.Assess == objects.AssessExistence {
		return false
	}
	_, says, _ := unstructured.NestedFieldNoCopy(content.Object, "spec", "replicas")
	return !says
}
