// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// VolumeClaimKind is the kind of claims for volumes.
	VolumeClaimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	// StorageClassKind is the kind of what says how volumes are made.
	StorageClassKind = schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}
)

// selectedNode is the annotation by which the scheduler says where a Pod runs that wants
// a claim: from then on the volume is made.
const selectedNode = "volume.kubernetes.io/selected-node"

// UnconsumedClass returns the StorageClass of a PersistentVolumeClaim as far as the claim
// knows of no volume and no consumer; false for another object, and for a claim that has
// a volume, or for which one is being made.
func UnconsumedClass(live *unstructured.Unstructured) (string, bool) {
	if live.GroupVersionKind().GroupKind() != VolumeClaimKind || live.GetDeletionTimestamp() != nil || live.GetAnnotations()[selectedNode] != "" {
		return "", false
	}
	class, _, _ := unstructured.NestedString(live.Object, "spec", "storageClassName")
	volume, _, _ := unstructured.NestedString(live.Object, "spec", "volumeName")
	return class, class != "" && volume == ""
}

// WaitsForConsumers tells whether volumes of a StorageClass are made when a Pod wants
// them, and not before. It cannot be changed.
func WaitsForConsumers(class *unstructured.Unstructured) bool {
	mode, _, _ := unstructured.NestedString(class.Object, "volumeBindingMode")
	return mode == "WaitForFirstConsumer"
}
