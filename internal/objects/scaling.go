// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Scaling is what is said of an object that is ready, and on its way to another number of
// replicas.
const Scaling = "is scaling"

// ScalingTime is how long replicas may take to be there, where an object does not say how
// long a roll-out may. It is Kubernetes' own default for a Deployment.
const ScalingTime = 10 * time.Minute

// IsScaling tells whether all that a live object lacks is replicas, and when that ends by
// itself; the zero time where it does not. What the object was given at a generation, or
// later, has to be rolled out: its controller says so by replicas of one content.
//
// It ends where not enough replicas are available, because a large step makes the condition
// Available False until most of the new Pods are there. They have the time that a roll-out
// has, from when they were asked for. A StatefulSet has no such condition, and this time.
func IsScaling(live *unstructured.Unstructured, generation int64, asked, now time.Time) (bool, time.Time) {
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if observed < generation || !isRolledOut(live) {
		return false, time.Time{}
	}
	if available, _ := ConditionOf(live, "Available"); available.Status == "True" {
		return true, time.Time{}
	}
	until := asked.Add(scalingTime(live))
	return now.Before(until), until
}

// isRolledOut tells whether all replicas that a live object has are of its last content.
func isRolledOut(live *unstructured.Unstructured) bool {
	current, _, _ := unstructured.NestedString(live.Object, "status", "currentRevision")
	if update, _, _ := unstructured.NestedString(live.Object, "status", "updateRevision"); update != current {
		return false
	} else if update != "" {
		return true
	}
	replicas, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
	updated, _, _ := unstructured.NestedInt64(live.Object, "status", "updatedReplicas")
	progressing, told := ConditionOf(live, "Progressing")
	return updated == replicas && (!told || progressing.Status == "True" && progressing.Reason == "NewReplicaSetAvailable")
}

func scalingTime(live *unstructured.Unstructured) time.Duration {
	seconds, said, _ := unstructured.NestedInt64(live.Object, "spec", "progressDeadlineSeconds")
	if !said || seconds >= math.MaxInt32 { // Kubernetes takes the largest number as no deadline
		return ScalingTime
	}
	return time.Duration(seconds) * time.Second
}
