// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RemoteClusterKind is the kind of RemoteCluster.
const RemoteClusterKind = "RemoteCluster"

// ClusterReference names a RemoteCluster.
type ClusterReference struct {
	// Namespace of the RemoteCluster. Defaults to the controller's own.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="cluster.namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the RemoteCluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="cluster.name must be the name of a RemoteCluster"
	// +required
	Name string `json:"name"`
}

// RemoteClusterSpec says how a cluster is reached.
type RemoteClusterSpec struct {
	// KubeConfig names the Secret that holds the cluster's kubeconfig. It may
	// appear later.
	// +required
	KubeConfig KubeConfigSource `json:"kubeConfig"`

	OldClusterWords `json:",inline"`

	// Interval is how often the cluster is asked whether it answers. Defaults
	// to 30s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Unreachable says what becomes of the cluster's layers while it does not
	// answer.
	// +optional
	Unreachable UnreachableSpec `json:"unreachable,omitempty,omitzero"`

	// DeletionPolicy says what becomes of what is on the cluster when the RemoteCluster,
	// or the layer that has made it, is deleted. Where it is empty, or Wait, nothing is
	// taken along: it stays until no layer is on the cluster. Otherwise the layers that
	// Platforms have there go with it: they are uninstalled (Delete), left without owner
	// (Orphan), or left behind on a cluster that is not contacted any more (Abandon).
	// Other layers are waited for, but with Abandon.
	// +kubebuilder:validation:XValidation:rule="self in ['Wait', 'Delete', 'Orphan', 'Abandon']",message="deletionPolicy must be Delete (uninstall what Platforms have there), Orphan (leave it without owner) or Abandon (leave it, and do not contact the cluster); without it the RemoteCluster waits until no layer is there"
	// +optional
	DeletionPolicy ClusterDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ClusterDeletionPolicy is what becomes of what is on a cluster when its RemoteCluster
// is deleted.
type ClusterDeletionPolicy string

const (
	// ClusterDeletionWait waits until no layer is on the cluster.
	ClusterDeletionWait ClusterDeletionPolicy = "Wait"
	// ClusterDeletionDelete takes along what Platforms have there, and uninstalls it.
	ClusterDeletionDelete ClusterDeletionPolicy = "Delete"
	// ClusterDeletionOrphan takes along what Platforms have there, and leaves it
	// running without owner.
	ClusterDeletionOrphan ClusterDeletionPolicy = "Orphan"
	// ClusterDeletionAbandon leaves on the cluster what is there.
	ClusterDeletionAbandon ClusterDeletionPolicy = "Abandon"
)

// KubeConfigSource says where a kubeconfig is.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef.__namespace__) || size(self.secretRef.__namespace__) == 0 || has(self.clusterRef)",message="secretRef.namespace is for a Secret on another cluster, which clusterRef names: on the cluster that Strata runs in it lies beside the RemoteCluster"
type KubeConfigSource struct {
	// SecretRef names the Secret.
	// +required
	SecretRef SecretKeyReference `json:"secretRef"`
	// ClusterRef names another RemoteCluster, on which the Secret lies. It defaults to
	// the cluster that Strata runs in.
	// +optional
	ClusterRef *LocalClusterReference `json:"clusterRef,omitempty"`
}

// SecretKeyReference names a key of a Secret.
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="secretRef.name must be the name of a Secret"
	// +required
	Name string `json:"name"`
	// Namespace of the Secret on the cluster that clusterRef names. Defaults to the
	// namespace of the RemoteCluster, which it always is without clusterRef.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="secretRef.namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key of the Secret's data. Where it is not given, value, config,
	// kubeconfig and Config are tried.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// LocalClusterReference names a RemoteCluster of the same namespace.
type LocalClusterReference struct {
	// Name of the RemoteCluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// UnreachableSpec is about a cluster that does not answer.
type UnreachableSpec struct {
	// After is how long the cluster may be away before its layers are Unknown
	// and their releases suspended, so that they keep no worker of Flux busy.
	// Nothing is deleted, and they go on when it is back. Defaults to 2m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="unreachable.after must not be negative"
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
}

// RemoteClusterStatus says whether a cluster is reached.
type RemoteClusterStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Version is the Kubernetes version of the cluster's API server.
	// +optional
	Version string `json:"version,omitempty"`

	// ClusterUID is the UID of the namespace kube-system of the cluster, by which
	// it is known, as it was seen last. It is a report: what may be written to is
	// recorded on Strata's own copy of the kubeconfig.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`

	// Endpoint is the URL of the cluster's API server.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// CredentialsExpire is when the credentials end, where they say so: the
	// first of the client certificate and the token.
	// +optional
	CredentialsExpire *metav1.Time `json:"credentialsExpire,omitempty"`

	// LastSeen is when the cluster has answered last. It is written when that
	// changes whether it is reachable, and not with every answer.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// Layers counts the layers that name the cluster.
	// +kubebuilder:default={}
	// +optional
	Layers LayerCount `json:"layers,omitempty"`

	// Conditions in the form that kstatus understands.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// MAC authenticates, by the controller's key, what others act on in this status. Where it
	// does not match, that counts for nothing until the controller has written it again.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MAC string `json:"mac,omitempty"`

	// Resources lists what Strata has made for the cluster.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	Resources []Resource `json:"resources,omitempty"`
}

// LayerCount counts layers. Patches leave out a number that stays as it is, so a
// number that is not there is 0.
type LayerCount struct {
	// Deployed layers.
	// +kubebuilder:default=0
	// +optional
	Deployed int32 `json:"deployed"`
	// Total number of layers.
	// +kubebuilder:default=0
	// +optional
	Total int32 `json:"total"`
}

// RemoteCluster is a cluster that layers can be put on, reached through a
// kubeconfig.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remoteclusters,scope=Namespaced,shortName=rcluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Deployed",type=integer,JSONPath=`.status.layers.deployed`
// +kubebuilder:printcolumn:name="Layers",type=integer,JSONPath=`.status.layers.total`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`,priority=1
// +kubebuilder:printcolumn:name="Identified",type=string,JSONPath=`.status.conditions[?(@.type=="Identified")].status`,priority=1
// +kubebuilder:printcolumn:name="UID",type=string,JSONPath=`.status.clusterUID`,priority=1
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`,priority=1
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.credentialsExpire`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a RemoteCluster must have at most 63 characters"
type RemoteCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RemoteClusterSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status RemoteClusterStatus `json:"status,omitempty"`
}

// RemoteClusterList is a list of RemoteClusters.
//
// +kubebuilder:object:root=true
type RemoteClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemoteCluster `json:"items"`
}
