// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostSecretReference names a Secret in the namespace of the HostCluster.
type HostSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="secretRef.name must be the name of a Secret"
	// +required
	Name string `json:"name"`
}

// HostKeeping says how the controller keeps the cluster. The plug-in does not read it.
type HostKeeping struct {
	// Hold keeps the controller from doing anything to the hosts.
	// +optional
	Hold bool `json:"hold,omitempty"`
	// Interval is how often the hosts are looked at although nothing has changed; 10m where
	// it is not given.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="interval must be at least 10s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// DeletionPolicy says what becomes of the hosts when the HostCluster is deleted. With
	// Orphan, which it is where it is not given, no host is touched, and the cluster goes on.
	// With Reset the cluster is taken away from them, once no RemoteCluster uses its
	// kubeconfig and the annotation kraan.io/confirm-deletion has the ID of the cluster.
	// +kubebuilder:validation:XValidation:rule="self in ['Orphan', 'Reset']",message="deletionPolicy must be Orphan (touch no host) or Reset (take the cluster away from the hosts)"
	// +optional
	DeletionPolicy HostDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// HostDeletionPolicy is what becomes of hosts when their HostCluster is deleted.
type HostDeletionPolicy string

const (
	// HostDeletionOrphan touches no host.
	HostDeletionOrphan HostDeletionPolicy = "Orphan"
	// HostDeletionReset takes the cluster away from its hosts.
	HostDeletionReset HostDeletionPolicy = "Reset"
)

// HostClusterStatus says how the hosts are, as the controller has seen them last.
type HostClusterStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ID of the cluster, which its first action has given it; empty where there is none yet.
	// +optional
	ID string `json:"id,omitempty"`

	// Version of Kubernetes at which the cluster is.
	// +optional
	Version string `json:"version,omitempty"`

	// Healthy counts the hosts that are healthy, of all that the HostCluster lists, as 2/3.
	// +optional
	Healthy string `json:"healthy,omitempty"`

	// Etcd counts the members of etcd that are healthy, of all, as 3/3.
	// +optional
	Etcd string `json:"etcd,omitempty"`

	// Hosts as they are.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	// +optional
	Hosts []HostStatus `json:"hosts,omitempty"`

	// CertificatesEnd is when the first certificate of a host ends. It is renewed before.
	// +optional
	CertificatesEnd *metav1.Time `json:"certificatesEnd,omitempty"`

	// KubeConfig names the Secret with the kubeconfig of the cluster, in its key value.
	// +optional
	KubeConfig string `json:"kubeConfig,omitempty"`

	// LastHandledReconcileAt is the last value of the annotation
	// reconcile.fluxcd.io/requestedAt that was acted on.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Conditions in the form that kstatus understands.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostStatus is a host as it is.
type HostStatus struct {
	// Name of the host.
	Name string `json:"name"`
	// Role is control-plane or worker.
	Role string `json:"role"`
	// Class is Healthy, Empty, Dirty, InProgress, Broken or Unreachable.
	Class string `json:"class"`
	// Version of its kubelet; empty where that is not known.
	// +optional
	Version string `json:"version,omitempty"`
	// Note says what there is to know of it, such as why it cannot be reached.
	// +optional
	Note string `json:"note,omitempty"`
}

// HostCluster is a cluster that is made of hosts which are reached over SSH. A user who may
// write one has a cluster made with the SSH keys that lie in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostclusters,scope=Namespaced,shortName=hc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.healthy`
// +kubebuilder:printcolumn:name="Etcd",type=string,JSONPath=`.status.etcd`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a HostCluster must have at most 63 characters"
type HostCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec HostClusterSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status HostClusterStatus `json:"status,omitempty"`
}

// HostClusterList is a list of HostClusters.
//
// +kubebuilder:object:root=true
type HostClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostCluster `json:"items"`
}
