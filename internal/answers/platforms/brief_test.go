// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/verdict"
)

// What a status says comes to one word: what failed goes before what waits for somebody,
// and that before what gets on by itself.
func TestBriefs(t *testing.T) {
	ready := func(status metav1.ConditionStatus) func(*v1alpha1.Platform) {
		return func(p *v1alpha1.Platform) {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: "R", Message: "it says so"}}
		}
	}
	stage := func(state, approval string) func(*v1alpha1.Platform) {
		return func(p *v1alpha1.Platform) {
			p.Status.Stages = append(p.Status.Stages, v1alpha1.StageStatus{Name: "canary", State: state, Approval: approval})
		}
	}
	is := func(changes ...func(*v1alpha1.Platform)) []func(*v1alpha1.Platform) { return changes }
	for name, test := range map[string]struct {
		changes []func(*v1alpha1.Platform)
		fares   verdict.State
		why     string
	}{
		"well":              {is(ready("True")), verdict.Well, "it says so"},
		"new":               {nil, verdict.Moving, "has not been looked at yet"},
		"changed":           {is(ready("True"), func(p *v1alpha1.Platform) { p.Generation++ }), verdict.Moving, "has not been looked at since it was changed"},
		"under way":         {is(ready("Unknown"), func(p *v1alpha1.Platform) { p.Status.Clusters.Progressing = 1 }), verdict.Moving, "it says so"},
		"held":              {is(ready("True"), func(p *v1alpha1.Platform) { p.Spec.Hold = true }), verdict.Waiting, "it says so"},
		"cannot go on":      {is(ready("False")), verdict.Waiting, "it says so"},
		"asks":              {is(ready("Unknown"), stage("Active", "canary@2")), verdict.Waiting, "it says so"},
		"will ask":          {is(ready("Unknown"), stage("Waiting", "canary@2")), verdict.Moving, "it says so"},
		"halted":            {is(ready("Unknown"), stage("Active", "canary@2"), stage("Halted", "")), verdict.Failed, "it says so"},
		"failed":            {is(ready("False"), func(p *v1alpha1.Platform) { p.Status.Clusters.Failed = 1 }), verdict.Failed, "it says so"},
		"a cluster is away": {is(ready("Unknown"), func(p *v1alpha1.Platform) { p.Status.Clusters.Unreachable = 1 }), verdict.Failed, "it says so"},
	} {
		t.Run(name, func(t *testing.T) {
			platform := &v1alpha1.Platform{
				ObjectMeta: metav1.ObjectMeta{Name: "edge", Generation: 1},
				Spec:       v1alpha1.PlatformSpec{Bundle: &v1alpha1.PlatformBundle{Family: "edge"}},
				Status:     v1alpha1.PlatformStatus{ObservedGeneration: 1},
			}
			for _, change := range test.changes {
				change(platform)
			}
			if b := BriefOf(platform); b.Fares != test.fares || b.Why != test.why || b.Family != "edge" {
				t.Errorf("%s: %s, of %s", b.Fares, b.Why, b.Family)
			}
		})
	}
}
