// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/forecast"
)

// A plan says of a number of replicas that git does not say any more that it is the default.
func TestDefaultReplicasAreSaidToBe(t *testing.T) {
	deployment := func(replicas, seconds int64) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas, "minReadySeconds": seconds}}}
		obj.SetAPIVersion("apps/v1")
		obj.SetKind("Deployment")
		obj.SetName("web")
		return obj
	}
	for defaulted, want := range map[bool]string{true: "~ Deployment web  spec.replicas: 3 -> 1 (default)", false: "~ Deployment web  spec.replicas: 3 -> 1"} {
		changes := ownChanges(forecast.Step{Before: deployment(3, 1), Done: deployment(1, 2), DefaultReplicas: defaulted})
		if len(changes) != 1 {
			t.Fatalf("changes are %+v", changes)
		}
		if diff := cmp.Diff([]string{"~ Deployment web  spec.minReadySeconds: 1 -> 2", want}, changes[0].Lines(0)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
