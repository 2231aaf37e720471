// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

var webID = objects.ID{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "web"}

// unavailableFor is what the controller of Deployments says since some time while too few Pods
// are there.
func unavailableFor(ago time.Duration) change {
	return func(o *unstructured.Unstructured) {
		conditioned("Available", "False", "MinimumReplicasUnavailable", "")(o)
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, each := range all {
			if condition := each.(map[string]any); condition["type"] == "Available" {
				condition["lastTransitionTime"] = testNow.Add(-ago).UTC().Format(time.RFC3339)
			}
		}
		_ = unstructured.SetNestedSlice(o.Object, all, "status", "conditions")
	}
}

// setByOthers is a live object whose replicas others have set since it was applied at
// generation 2.
func setByOthers(o *unstructured.Unstructured) {
	generation(3)(o)
	applied(o)
}

// applied is a live object of which Strata has a field.
func applied(o *unstructured.Unstructured) {
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: fields.Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{}}}`),
	}})
}

// notedFields is what the inventory has of the fields of an object that was applied so.
func notedFields() string {
	live := &unstructured.Unstructured{Object: map[string]any{}}
	applied(live)
	return fields.NoteOf(live).Own
}

// counts are those of a Deployment.
type counts struct{ wanted, has, updated, ready, available int64 }

// deployment returns a live Deployment of the primary base, as its controller has seen it at a
// generation.
func deployment(at int64, n counts, changes ...change) *unstructured.Unstructured {
	counted := func(o *unstructured.Unstructured) {
		o.Object["spec"] = map[string]any{"replicas": n.wanted, "progressDeadlineSeconds": int64(600)}
		o.Object["status"] = map[string]any{
			"observedGeneration": at, "replicas": n.has, "updatedReplicas": n.updated, "readyReplicas": n.ready, "availableReplicas": n.available,
		}
	}
	return object(webID, append([]change{counted, applied, generation(at), conditioned("Available", "True", "", ""), conditioned("Progressing", "True", "NewReplicaSetAvailable", "")}, changes...)...)
}

func wantWeb(spec map[string]any) Dependent {
	return want(webID, func(d *Dependent) {
		d.Assess, d.Object = objects.AssessStatus, ContentOf(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
	})
}

// hadWeb is the entry of what was applied at a generation.
func hadWeb(generation int64) Entry {
	return had(webID, func(e *Entry) {
		e.Generation, e.ResourceVersion, e.Assess, e.Fields = generation, "", objects.AssessStatus, notedFields()
	})
}

// A scaling by others is no roll-out: what was deployed stays ready. A roll-out is one, and so is
// what is not available.
func TestMakeScalings(t *testing.T) {
	const ready, scaling = "web ready Deployed", "web ready Deployed: is scaling"
	none := map[string]any{}
	two := func(d Dependent, live *unstructured.Unstructured, at int64) Input {
		return world(wanted(d), inventory(hadWeb(at)), lives(live))
	}
	runPlanCases(t, map[string]planCase{
		"as many as it should have": {reason: "it is ready", in: two(wantWeb(none), deployment(2, counts{3, 3, 3, 3, 3}), 2), standings: []string{ready}},
		"more, not made yet": {
			reason: "an autoscaler has asked for more", in: two(wantWeb(none), deployment(2, counts{5, 3, 3, 3, 3}), 2), standings: []string{scaling},
		},
		"more, on their way": {
			reason: "its Pods start", in: two(wantWeb(none), deployment(2, counts{5, 5, 5, 4, 4}), 2), standings: []string{scaling},
		},
		"fewer": {
			reason: "some of its Pods end", in: two(wantWeb(none), deployment(2, counts{2, 3, 3, 3, 3}), 2), standings: []string{scaling},
		},
		"from none": {
			reason: "as KEDA does", in: two(wantWeb(none), deployment(2, counts{wanted: 1}), 2), standings: []string{scaling},
		},
		"without a deadline": {
			reason: "its controller tells of no progress then",
			in: two(wantWeb(none), deployment(2, counts{5, 5, 5, 4, 4}, func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "spec", "progressDeadlineSeconds")
				unstructured.RemoveNestedField(o.Object, "status", "conditions")
				conditioned("Available", "True", "", "")(o)
			}), 2),
			standings: []string{scaling},
		},
		"git says how many": {
			reason: "they are a part of what is rolled out", in: two(wantWeb(map[string]any{"replicas": int64(5)}), deployment(2, counts{5, 3, 3, 3, 3}), 2),
			standings: []string{"web progressing InProgress: is not ready: Replicas: 3/5"},
		},
		"a roll-out": {
			reason: "some Pods have the content of before", in: two(wantWeb(none), deployment(2, counts{3, 4, 1, 4, 4}), 2),
			standings: []string{"web progressing InProgress: is not ready: Updated: 1/3"},
		},
		"a roll-out that goes on": {
			reason:    "its controller says that the last content is not there yet",
			in:        two(wantWeb(none), deployment(2, counts{3, 3, 3, 2, 2}, conditioned("Progressing", "True", "ReplicaSetUpdated", "")), 2),
			standings: []string{"web progressing InProgress: is not ready: Available: 2/3"},
		},
		"a roll-out that was not seen": {
			reason: "what its status says is of the content before",
			in:     two(wantWeb(none), deployment(2, counts{3, 3, 3, 3, 3}, observed(1)), 2),
			standings: []string{
				"web progressing InProgress: is not ready: Deployment generation is 2, but latest observed generation is 1",
			},
		},
		"not available": {
			reason:    "its Pods crash",
			in:        two(wantWeb(none), deployment(2, counts{3, 3, 3, 0, 0}, conditioned("Available", "False", "MinimumReplicasUnavailable", "")), 2),
			standings: []string{"web progressing InProgress: is not ready: Available: 0/3"},
		},
		"a roll-out that has failed": {
			reason:    "it does not get on by itself",
			in:        two(wantWeb(none), deployment(2, counts{3, 3, 3, 2, 2}, conditioned("Progressing", "False", "ProgressDeadlineExceeded", "")), 2),
			standings: []string{"web failed Failed: has failed: Progress deadline exceeded"},
		},
		"a large step": {
			reason:    "most of what was asked for is not there, so that it is not called available for a minute",
			in:        two(wantWeb(none), deployment(3, counts{40, 3, 3, 3, 3}, unavailableFor(time.Minute), setByOthers), 2),
			standings: []string{scaling}, until: testNow.Truncate(1e9).Add(9 * time.Minute),
		},
		"a large step of a slow Deployment": {
			reason: "it has the time that it says a roll-out may take",
			in: two(wantWeb(none), deployment(3, counts{40, 3, 3, 3, 3}, unavailableFor(time.Minute), setByOthers, func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["progressDeadlineSeconds"] = int64(1800)
			}), 2),
			standings: []string{scaling}, until: testNow.Truncate(1e9).Add(29 * time.Minute),
		},
		"a large step that came to nothing": {
			reason:    "its Pods have had their time",
			in:        two(wantWeb(none), deployment(3, counts{40, 40, 40, 3, 3}, unavailableFor(10*time.Minute), setByOthers), 2),
			standings: []string{"web progressing InProgress: is not ready: Available: 3/40"},
		},
		"nobody has asked for more": {
			reason:    "it is as it was applied, and has lost its Pods",
			in:        two(wantWeb(none), deployment(2, counts{3, 3, 3, 1, 1}, unavailableFor(time.Minute)), 2),
			standings: []string{"web progressing InProgress: is not ready: Available: 1/3"},
		},
		"what waits for it": {
			reason: "it is ready",
			in: world(wanted(wantWeb(none), want(a, func(d *Dependent) { d.DependsOn = []objects.ID{webID} })), inventory(hadWeb(2)),
				lives(deployment(2, counts{5, 3, 3, 3, 3}))),
			actions: []string{"Write a"}, standings: []string{scaling, "a progressing NotDeployed: has yet to be applied"},
		},
	})
}
