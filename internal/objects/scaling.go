// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Scaling is what is said of an object that is ready, and on its way to another number of
// replicas.
const Scaling = "is scaling"

// IsScaling tells whether all that a live object lacks is replicas, of which enough are
// available: what it was given at a generation, or later, was rolled out. Its controller says
// so by the condition Available, and by replicas of one content.
func IsScaling(live *unstructured.Unstructured, generation int64) bool {
	available, _ := ConditionOf(live, "Available")
	progressing, told := ConditionOf(live, "Progressing")
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	replicas, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
	updated, _, _ := unstructured.NestedInt64(live.Object, "status", "updatedReplicas")
	return available.Status == "True" && observed >= generation && updated == replicas &&
		(!told || progressing.Status == "True" && progressing.Reason == "NewReplicaSetAvailable")
}
