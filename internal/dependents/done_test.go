// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

func jobID(name string) objects.ID {
	return objects.ID{Group: "batch", Kind: "Job", Namespace: "default", Name: name}
}

// job returns a live Job of the primary base.
func job(name string, changes ...change) *unstructured.Unstructured {
	return object(jobID(name), append([]change{generation(1)}, changes...)...)
}

func expires(o *unstructured.Unstructured) {
	spec, _ := o.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	spec["ttlSecondsAfterFinished"] = int64(5)
	o.Object["spec"] = spec
}

// byHand is what people have changed with kubectl.
func byHand(o *unstructured.Unstructured) {
	entry := func(manager, set string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(set)}
	}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry(fields.Manager, `{"f:spec":{"f:template":{}}}`), entry("kubectl-edit", `{"f:spec":{"f:ttlSecondsAfterFinished":{}}}`),
	})
}

var complete = conditioned("Complete", "True", "", "")

func wantJob(name string, changes ...func(*Dependent)) Dependent {
	return want(jobID(name), append([]func(*Dependent){func(d *Dependent) { d.Assess = objects.AssessStatus }}, changes...)...)
}

func hadJob(name string, changes ...func(*Entry)) Entry {
	return had(jobID(name), append([]func(*Entry){func(e *Entry) { e.Generation, e.ResourceVersion, e.Assess = 1, "", objects.AssessStatus }}, changes...)...)
}

func completed(e *Entry) { e.Completed = true }

func ofUID(uid string) func(*Entry) { return func(e *Entry) { e.UID = uid } }

const isDone = "migrate ready Deployed: has completed, and is not run again"

// A Job that its TTL takes away has done its work, and one that somebody deletes is to run again.
func TestMakeJobs(t *testing.T) {
	again := []string{"Write migrate as a correction"}
	const pending = "migrate progressing NotDeployed: has yet to be applied"
	runPlanCases(t, map[string]planCase{
		"taken away by its TTL": {
			reason: "it has done its work, and was seen to", in: world(wanted(wantJob("migrate")), inventory(hadJob("migrate", completed))), standings: []string{isDone},
		},
		"on its way out by its TTL": {
			reason:    "Kubernetes deletes its Pods first, and the deletion makes another generation",
			in:        world(wanted(wantJob("migrate")), inventory(hadJob("migrate", completed)), lives(job("migrate", expires, complete, generation(2), deleting))),
			standings: []string{isDone},
		},
		"on its way out, and not looked at before": {
			reason:    "it says itself that it has completed",
			in:        world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", expires, complete, generation(2), deleting))),
			standings: []string{isDone},
		},
		"gone, and not seen to complete": {
			reason: "it runs once at least", in: world(wanted(wantJob("migrate")), inventory(hadJob("migrate"))), actions: again, standings: []string{pending},
		},
		"with a TTL that somebody wrote by hand": {
			reason: "git has none, so that it is run again",
			in:     world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", expires, complete, byHand, generation(2), deleting))),
			standings: []string{
				"migrate progressing Deleting: is being deleted and will be created again",
			},
		},
		"deleted before it has completed": {
			reason:    "it is run again when it is gone",
			in:        world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", expires, generation(2), deleting))),
			standings: []string{"migrate progressing Deleting: is being deleted and will be created again"},
		},
		"failed, and taken away by its TTL": {
			reason: "its work is not done", in: world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", expires, conditioned("Failed", "True", "", ""), generation(2), deleting))),
			standings: []string{"migrate progressing Deleting: is being deleted and will be created again"},
		},
		"deleted by somebody, without a TTL": {
			reason:    "people rerun migrations so",
			in:        world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", complete, generation(2), deleting))),
			standings: []string{"migrate progressing Deleting: is being deleted and will be created again"},
		},
		"with another content": {
			reason: "what was seen was another content's work",
			in:     world(wanted(wantJob("migrate", digest("v2"))), inventory(hadJob("migrate", completed))), actions: []string{"Write migrate"}, standings: []string{pending},
		},
		"made in its place": {
			reason: "somebody else's Job of the name has completed, and not this one",
			in: world(wanted(wantJob("migrate")), inventory(hadJob("migrate", ofUID("01234567"))),
				lives(job("migrate", expires, complete, deleting, func(o *unstructured.Unstructured) { o.SetUID("76543210-9") }))),
			standings: []string{"migrate progressing Deleting: is being deleted and will be created again"},
		},
		"of another owner": {
			reason: "its status says nothing of this primary's", in: world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", unowned, expires, complete, deleting))),
			standings: []string{"migrate progressing Deleting: is being deleted and will be created again"},
		},
		"not seen yet": {
			reason: "the cache is older than the last write", in: world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), stale(jobID("migrate"))),
			standings: []string{"migrate progressing Deployed: was written a moment ago"},
		},
		"created once": {
			reason: "it is not made again, either", in: world(wanted(wantJob("migrate", mode(ModeCreateOnce))), inventory(hadJob("migrate", completed))), standings: []string{isDone},
		},
		"behind a closed gate": {
			reason: "what is deployed is repaired, and this is as it should be",
			in:     world(repairOnly, wanted(wantJob("migrate")), inventory(hadJob("migrate", completed))), standings: []string{isDone},
		},
		"what waits for it": {
			reason: "it has been ready", in: world(wanted(wantJob("migrate"), want(a, func(d *Dependent) { d.DependsOn = []objects.ID{jobID("migrate")} })), inventory(hadJob("migrate", completed))),
			actions: []string{"Write a"}, standings: []string{isDone, "a progressing NotDeployed: has yet to be applied"},
		},
		"what waits for one that is to run": {
			reason: "it has yet to do its work", in: world(wanted(wantJob("migrate"), want(a, func(d *Dependent) { d.DependsOn = []objects.ID{jobID("migrate")} })), inventory(hadJob("migrate"))),
			actions: again, standings: []string{pending, "a blocked NotDeployed: waits for Job default/migrate, which has yet to be applied"},
		},
		"suspended": {
			reason: "it neither blocks nor counts, and what waits for it goes on",
			in: world(wanted(wantJob("migrate"), want(a, func(d *Dependent) { d.DependsOn = []objects.ID{jobID("migrate")} })), inventory(hadJob("migrate")),
				lives(job("migrate", suspended))),
			actions: []string{"Write a"}, standings: []string{"migrate ignored Suspended: is suspended", "a progressing NotDeployed: has yet to be applied"},
		},
		"no longer listed": {
			reason: "nothing is left of it", in: world(inventory(hadJob("migrate", completed))),
		},
	})
}

// What was seen is kept for the content that it was seen with, and until something is written.
func TestCompletionIsRecorded(t *testing.T) {
	seen := Make(world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", expires, complete))))
	if len(seen.Inventory) != 1 || !seen.Inventory[0].Completed {
		t.Fatalf("it was not seen to complete: %+v", seen.Inventory)
	}
	for name, in := range map[string]Input{
		"one without a TTL":      world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", complete))),
		"one that runs":          world(wanted(wantJob("migrate")), inventory(hadJob("migrate")), lives(job("migrate", expires))),
		"one of another content": world(wanted(wantJob("migrate", digest("v2"))), inventory(hadJob("migrate")), lives(job("migrate", expires, complete))),
		"one never applied":      world(wanted(wantJob("migrate")), inventory(hadJob("migrate", undeployed)), lives(job("migrate", expires, complete))),
	} {
		if plan := Make(in); plan.Inventory[0].Completed {
			t.Errorf("%s was seen to complete", name)
		}
	}
	again := Make(world(wanted(wantJob("migrate", digest("v2"))), inventory(seen.Inventory...)))
	written := again.Of(VerbWrite)
	if len(written) != 1 {
		t.Fatalf("it is not run with its next content: %v", again.Actions)
	}
	recorded := Record(again.Inventory, []Result{{Action: written[0], UID: "fedcba98-7", Generation: 1}})
	if recorded[0].Completed || recorded[0].Digest != "v2" {
		t.Errorf("what was seen of the content before counts for the next one: %+v", recorded[0])
	}
	back := Make(world(wanted(wantJob("migrate")), inventory(again.Inventory...)))
	if back.Writes() {
		t.Errorf("nothing was written with another content, and it is run again: %v", back.Actions)
	}
}
