// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// A live object is written by others, at any version of its kind. It is Ready
// only where it says so, at its own generation.
func FuzzLive(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"generation":1},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}`,
		`{"spec":{"suspend":true},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, `{"spec":{"suspend":"yes"},"status":[]}`, `{"status":{"conditions":{}}}`, `{"status":{"conditions":[null,7,{"type":"Ready"},{"type":"Stalled","status":"True","reason":7}]}}`,
		`{"metadata":7}`, `{"metadata":{"generation":1.5,"labels":{"a":1}},"status":{"observedGeneration":"1"}}`, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":7}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":"x"},"status":{"replicas":-1}}`, `{"apiVersion":"a/b/c","kind":""}`, `{"apiVersion":"batch/v1","kind":"Job","status":{"conditions":[{"type":"Failed","status":"True"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		live := &unstructured.Unstructured{}
		if len(data) > 20_000 || json.Unmarshal(data, &live.Object) != nil || live.Object == nil {
			return
		}
		before := live.DeepCopy()
		for _, how := range []objects.Assess{objects.AssessStatus, objects.AssessCondition, objects.AssessExistence, "unheard of"} {
			standing := objects.AssessObject(how, live)
			if standing.Status == "" || standing.Health < objects.Ready || standing.Health > objects.Failed {
				t.Fatalf("%s: %+v", how, standing)
			}
			if again := objects.AssessObject(how, live); again != standing {
				t.Fatalf("%s: %+v, and then %+v", how, standing, again)
			}
			if standing.Health == objects.Ready && how == objects.AssessCondition {
				mustSayReady(t, live)
			}
		}
		if objects.IsSuspended(live) && objects.AssessObject(objects.AssessCondition, live).Health != objects.Ignored {
			t.Fatal("a suspended object counts")
		}
		objects.IsActing(live)
		if !cmp.Equal(before, live) {
			t.Fatal("what others read is changed")
		}
	})
}

// mustSayReady looks for the condition in the most obvious way.
func mustSayReady(t *testing.T, live *unstructured.Unstructured) {
	t.Helper()
	status, _ := live.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, item := range conditions {
		if fields, _ := item.(map[string]any); fields["type"] == "Ready" {
			observed, _ := status["observedGeneration"].(int64)
			if fields["status"] != "True" || observed != live.GetGeneration() {
				t.Fatalf("Ready although it says %v at %v", fields, status["observedGeneration"])
			}
			return
		}
	}
	t.Fatal("Ready without a condition")
}
