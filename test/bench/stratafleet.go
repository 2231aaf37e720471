// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// ClusterPath is where the RemoteClusters of a run are.
func (s *strataSystem) ClusterPath() string {
	return "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/remoteclusters"
}

// Cluster returns a RemoteCluster at its defaults.
func (s *strataSystem) Cluster(name string) any {
	// The status is the controller's, also an empty one.
	return struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              v1alpha1.RemoteClusterSpec `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RemoteClusterKind},
		metav1.ObjectMeta{Name: name},
		v1alpha1.RemoteClusterSpec{KubeConfig: v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: name}}},
	}
}

// Deployed returns the number of layers that a RemoteCluster counts as deployed.
func (s *strataSystem) Deployed(o object) int {
	var status v1alpha1.RemoteClusterStatus
	if len(o.Status) == 0 || json.Unmarshal(o.Status, &status) != nil {
		return 0
	}
	return int(status.Layers.Deployed)
}

// Joined tells whether a RemoteCluster is Ready.
func (s *strataSystem) Joined(o object) bool {
	var status v1alpha1.RemoteClusterStatus
	if len(o.Status) == 0 || json.Unmarshal(o.Status, &status) != nil {
		return false
	}
	return status.ObservedGeneration == o.Metadata.Generation && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ReadyCondition)
}
