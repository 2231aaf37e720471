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

// IsScaling tells whether all that a live object lacks is replicas, which others have asked for
// since it was applied at a generation, and when that ends by itself; the zero time where it
// does not. What the object was given has to be rolled out: its controller says so by replicas
// of one content.
//
// It ends where too few replicas are available. A step that is larger than maxUnavailable makes
// the condition Available False until most of the new Pods are there. They have the time that a
// roll-out has, from when the condition became False: when the step was asked for is nowhere.
func IsScaling(live *unstructured.Unstructured, generation int64, now time.Time) (bool, time.Time) {
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	replicas, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
	updated, _, _ := unstructured.NestedInt64(live.Object, "status", "updatedReplicas")
	progressing, told := ConditionOf(live, "Progressing")
	if observed < generation || updated != replicas || told && (progressing.Status != "True" || progressing.Reason != "NewReplicaSetAvailable") {
		return false, time.Time{}
	}
	available, known := ConditionOf(live, "Available")
	if available.Status == "True" {
		return true, time.Time{}
	}
	if !known || live.GetGeneration() <= generation {
		return false, time.Time{}
	}
	until := available.Since.Add(scalingTime(live))
	return now.Before(until), until
}

func scalingTime(live *unstructured.Unstructured) time.Duration {
	seconds, said, _ := unstructured.NestedInt64(live.Object, "spec", "progressDeadlineSeconds")
	if !said || seconds >= math.MaxInt32 { // Kubernetes takes the largest number as no deadline
		return ScalingTime
	}
	return time.Duration(seconds) * time.Second
}
