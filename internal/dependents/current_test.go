// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// Whether others have changed what was applied is told by whose the fields are, where the
// generation or the version tells only that something has changed.
func TestWhoseFieldsAreChanged(t *testing.T) {
	const (
		ours      = `{"f:spec":{"f:image":{}}}`
		scaled    = `{"f:spec":{"f:replicas":{}}}`
		ourScaled = `{"f:spec":{"f:image":{},"f:replicas":{}}}`
		added     = `{"f:spec":{"f:hack":{}}}`
	)
	owns := func(manager, set string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(set)}
	}
	noted := func(set string) string {
		return fields.NoteOf(&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{owns("strata", set)}}).Own
	}
	for name, test := range map[string]struct {
		reason string
		// generation of the live object; that of the last apply is 3.
		generation int64
		fields     string
		live       []metav1.ManagedFieldsEntry
		// git says the number of replicas, or to merge.
		git  string
		want bool
	}{
		"untouched":   {"nothing has changed", 3, noted(ours), []metav1.ManagedFieldsEntry{owns("strata", ours)}, "", true},
		"not noted":   {"of an object that was applied before there were notes the generation says it", 3, "", []metav1.ManagedFieldsEntry{owns("strata", ours)}, "", true},
		"not managed": {"an API server that keeps no managedFields has the generation alone", 4, "", nil, "", false},
		"scaled": {
			"git says no replicas", 4, noted(ours), []metav1.ManagedFieldsEntry{owns("strata", ours), owns("hpa", scaled)}, "", true,
		},
		"scaled after it was created": {
			"what was filled in at its creation was Strata's", 4, noted(ourScaled), []metav1.ManagedFieldsEntry{owns("strata", ours), owns("hpa", scaled)}, "", true,
		},
		"scaled against git": {
			"git says how many", 4, noted(ourScaled),
			[]metav1.ManagedFieldsEntry{owns("strata", ours), owns("hpa", scaled)},
			"replicas", false,
		},
		"changed": {
			"who changes a field takes it away", 4, noted(ours), []metav1.ManagedFieldsEntry{owns("x", ours)}, "", false,
		},
		"changed, generation as before": {
			"labels are no part of the specification", 3, noted(ours),
			[]metav1.ManagedFieldsEntry{owns("strata", `{"f:metadata":{}}`), owns("x", ours)},
			"", false,
		},
		"added by a controller": {"it may", 4, noted(ours), []metav1.ManagedFieldsEntry{owns("strata", ours), owns("x", added)}, "", true},
		"added by hand": {
			"it is taken back", 4, noted(ours), []metav1.ManagedFieldsEntry{owns("strata", ours), owns("kubectl-edit", added)}, "", false,
		},
		"added by hand, before there were notes": {
			"nothing is taken back because of an upgrade", 3, "", []metav1.ManagedFieldsEntry{owns("strata", ours), owns("kubectl-edit", added)}, "", true,
		},
		"added by hand, where that may stay": {
			"git asks for it", 4, noted(ours), []metav1.ManagedFieldsEntry{owns("strata", ours), owns("kubectl-edit", added)}, "merge", true,
		},
		"fields became fewer": {
			"what they say does not tell whether one of them is gone", 3, noted(`{"f:spec":{"f:image":{},"f:gone":{}}}`),
			[]metav1.ManagedFieldsEntry{owns("strata", ours)},
			"", false,
		},
		"whose fields they are was taken off": {
			"applying says it again", 3, noted(ours), nil, "", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
			live, says := config("web"), config("web")
			live.SetGeneration(test.generation)
			live.SetLabels(map[string]string{testKeys.Owner: "base"})
			live.SetManagedFields(test.live)
			if test.git == "replicas" {
				says.Object["spec"] = map[string]any{"replicas": int64(2)}
			}
			d := &Dependent{ID: id, Object: ContentOf(says), Digest: "v1", Merges: test.git == "merge"}
			entry := Entry{ID: id, Digest: "v1", Generation: 3, Fields: test.fields}
			p := newPlanner(Input{Owner: "base", Keys: testKeys})
			if got := p.isCurrent(d, entry, live); got != test.want {
				t.Errorf("it is as it was applied: %t; %s", got, test.reason)
			}
		})
	}
}

// An object that others change again and again stands as it is until it is time to correct
// it; other content is written at once.
func TestDisputedObjectsWait(t *testing.T) {
	in := world(wanted(want(a)), inventory(had(a)), lives(release("a", generation(2))))
	dispute := Dispute{Rival: fields.Rival{Field: "spec.x", Manager: "other"}, Times: 3, Until: in.Now.Add(time.Minute), Ends: in.Now.Add(2 * time.Minute)}
	in.Disputes = map[objects.ID]Dispute{a: dispute}
	plan := Make(in)
	if len(plan.Actions) != 0 || !plan.Until.Equal(dispute.Until) || !plan.Standings[0].Current || len(plan.Disputes) != 1 {
		t.Errorf("before it is time the plan is %+v", plan)
	}
	in.Now = dispute.Until
	plan = Make(in)
	if len(plan.Actions) != 1 || !plan.Actions[0].Correction || !plan.Until.Equal(dispute.Ends) || !plan.Standings[0].Current {
		t.Errorf("when it is time the plan is %+v", plan)
	}
	in.Now = in.Now.Add(-time.Minute)
	in.Wanted[0].Digest = "v2"
	if plan = Make(in); len(plan.Actions) != 1 || plan.Actions[0].Correction {
		t.Errorf("with other content the plan is %+v", plan)
	}
}
