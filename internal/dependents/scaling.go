// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// standing says how a live object fares that has the content that is wanted. A scaling is no
// roll-out: where nobody says in git how many replicas there are, others do.
func (p *planner) standing(
	d *Dependent,
	entry Entry,
	live *unstructured.Unstructured,
	judge func(*unstructured.Unstructured) objects.Standing,
) objects.Standing {
	standing := judge(live)
	if _, written := d.Object.Get(); !written || standing.Health != objects.Progressing || !d.isJudgedByStatus() || d.saysReplicas() {
		return standing
	}
	scaling, until := objects.IsScaling(live, entry.Generation, p.Now)
	if !scaling {
		return standing
	}
	p.until(until)
	return objects.Standing{Health: objects.Ready, Status: objects.StatusReady, Message: objects.Scaling}
}

// isJudgedByStatus tells whether how an object fares is told by nothing but its own status.
func (d *Dependent) isJudgedByStatus() bool {
	return d.Judge == nil && d.Ready == nil && d.Assess != objects.AssessCondition && d.Assess != objects.AssessExistence
}

// saysReplicas tells whether a wanted object says how many replicas it has.
func (d *Dependent) saysReplicas() bool {
	content, written := d.Object.Get()
	if !written {
		return false
	}
	_, says, _ := unstructured.NestedFieldNoCopy(content.Object, "spec", "replicas")
	return says
}
