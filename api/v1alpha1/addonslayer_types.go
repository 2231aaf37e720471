// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddonsLayerKind is the kind of AddonsLayer.
const AddonsLayerKind = "AddonsLayer"

// AddonsLayerSpec says which directory makes up the layer, at which version,
// and what must hold before it may be deployed.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.source.kind) && self.source.kind == 'ApplicationBundle') || !(has(self.build) || has(self.targetNamespace) || has(self.namePrefix) || has(self.nameSuffix) || has(self.components) || has(self.patches) || has(self.images) || has(self.buildMetadata) || has(self.decryption) || has(self.postBuild))",message="build, targetNamespace, namePrefix, nameSuffix, components, patches, images, buildMetadata, decryption and postBuild are for layers with a directory: an ApplicationBundle has none"
// +kubebuilder:validation:XValidation:rule="!(has(self.deletionPolicy) && self.deletionPolicy == 'Abandon') || has(self.cluster)",message="deletionPolicy Abandon is for layers of another cluster, which spec.cluster names: write Orphan"
// +kubebuilder:validation:XValidation:rule="!(has(self.inputs) || has(self.instance) || has(self.releases)) || (has(self.source.kind) && self.source.kind == 'ApplicationBundle')",message="inputs, instance and releases are for layers whose source.kind is ApplicationBundle"
type AddonsLayerSpec struct {
	KustomizationFields `json:",inline"`
	RolloutFields       `json:",inline"`

	// Build is Flux where the directory becomes objects in the way of Flux's
	// kustomize-controller: where it has no kustomization.yaml, one is made of all its
	// manifests. It is so anyway where one of the fields of a Kustomization is given.
	// +kubebuilder:validation:Enum=Flux
	// +optional
	Build string `json:"build,omitempty"`

	// Namespace is where the account, the ConfigMaps and the Secrets are that the layer
	// names. Defaults to the namespace of the source.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Source names the directory that holds the layer's manifests.
	// +required
	Source SourceSpec `json:"source"`

	// Prereqs is what must hold before anything of the layer is applied.
	// +optional
	Prereqs PrereqsSpec `json:"prereqs,omitempty,omitzero"`

	// Hold stops everything that Strata does for the layer, but its deletion.
	// The annotation kraan.io/hold does the same with a reason and an end.
	// +optional
	Hold bool `json:"hold,omitempty"`

	// Interval is how often the layer is looked at although nothing happened.
	// It is a safety net only: every change wakes the layer at once. Defaults
	// to the controller's --sync-period.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s: it is only a safety net, changes are seen at once"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// OrphanGrace is how long an object that left the layer waits for another
	// layer to adopt it before it is deleted. Defaults to interval.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="orphanGrace must not be negative"
	// +optional
	OrphanGrace *metav1.Duration `json:"orphanGrace,omitempty"`

	// Timeout is how long the layer may be Applying before it is Failed. It
	// still heals afterwards. Defaults to the larger of interval and the
	// longest timeout of the layer's releases plus one minute.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Version of the layer. Any string; other layers compare it exactly, or
	// with a range where it is a semantic version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Version string `json:"version"`

	// DeletionPolicy says what becomes of the layer's objects when the layer
	// is deleted: Delete uninstalls them (the default), Orphan leaves them without
	// owner (the default where prune is false), Abandon does not even ask the other
	// cluster that they are on.
	// +kubebuilder:validation:XValidation:rule="self in ['Delete', 'Orphan', 'Abandon']",message="deletionPolicy must be Delete (uninstall the layer's objects), Orphan (leave them without owner) or Abandon (leave them, and do not contact their cluster)"
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// ServiceAccountName is the account, of the source's namespace, as which the
	// layer's objects are applied and removed. Defaults to the controller's
	// --default-service-account, and without that to the controller itself.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="serviceAccountName must be the name of a ServiceAccount in the source's namespace"
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Cluster names the RemoteCluster that the layer belongs on. It defaults to
	// the cluster that Strata runs in. Where it is changed, the layer moves: it is
	// removed from the cluster that it was on.
	// +optional
	Cluster *ClusterReference `json:"cluster,omitempty"`

	BundleFields `json:",inline"`

	// WatchHealth has the health of what the layer's releases have made be watched once
	// they are installed. What is not well makes the layer Unhealthy and not Ready.
	// +optional
	WatchHealth *HealthWatch `json:"watchHealth,omitempty"`

	LayerHooks `json:",inline"`

	// Rollback takes the whole layer back to what was deployed last when a
	// revision fails. It stays there until the layer, or what its source holds
	// for it, changes.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
}

// DeletionPolicy is what becomes of a layer's objects when it is deleted.
type DeletionPolicy string

const (
	// DeletionPolicyDelete uninstalls the layer's objects in reverse order.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the layer's objects without owner.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
	// DeletionPolicyAbandon leaves the layer's objects as they are, and asks their
	// cluster for nothing.
	DeletionPolicyAbandon DeletionPolicy = "Abandon"
)

// OnDeletion returns what becomes of the layer's objects when it is deleted.
func (s *AddonsLayerSpec) OnDeletion() DeletionPolicy {
	switch {
	case s.DeletionPolicy != "":
		return s.DeletionPolicy
	case !s.Prunes():
		return DeletionPolicyOrphan
	default:
		return DeletionPolicyDelete
	}
}

// SourceSpec names a directory in the artifact of a Flux source.
type SourceSpec struct {
	// Kind of the source. Defaults to GitRepository.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'GitRepository', 'gitrepositories.source.toolkit.fluxcd.io', 'OCIRepository', 'Bucket', 'ExternalArtifact', 'ApplicationBundle']",message="source.kind must be GitRepository, OCIRepository, Bucket, ExternalArtifact or ApplicationBundle"
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the source.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Namespace of the source. Defaults to the controller's own. An ApplicationBundle
	// has none; serviceAccountName is of this namespace all the same.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="source.namespace must be the name of a namespace"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Path of the directory below the root of the artifact, beginning with ./; of an
	// ApplicationBundle it is ./ and the name of one of its layers.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('./')",message="source.path must begin with ./ and name a directory below the root of the source, for example ./addons/base"
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(part, part == '..')",message="source.path must stay inside the source: remove the .. from it"
	// +required
	Path string `json:"path"`
}

// PrereqsSpec is what must hold before a layer may be deployed.
type PrereqsSpec struct {
	// K8sVersion is the Kubernetes version that the cluster must have: 1.16
	// and v1.16 are minimums, ">=1.30 <2" is a range.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[v0-9<>=!~^*xX.,| a-zA-Z+-]+$') && self.matches('[0-9*]')",message="prereqs.k8sVersion must be a minimum such as 1.30 or a range such as >=1.30 <2"
	// +optional
	K8sVersion string `json:"k8sVersion,omitempty"`

	// DependsOn lists the layers that must be deployed before this one: each as
	// name@version, where an exact version is compared as a string and one with
	// an operator (>=1.1 <2, ^2, ~1.4, 1.x) is a range of semantic versions, or
	// as a bare name for any version.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(@|$)')",message="each of prereqs.dependsOn must begin with the name of a layer, which has no capitals: write name@version, name@range or name"
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^[^@]*@[ ]*$')",message="each of prereqs.dependsOn must have a version or a range behind the @: write name@version, or the name alone for any version"
	// +listType=atomic
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
}

// AddonsLayerStatus says what is deployed and where the layer stands.
type AddonsLayerStatus struct {
	// State is the layer's state in one word.
	// +optional
	State State `json:"state,omitempty"`

	// StateSince is when State became what it is.
	// +optional
	StateSince metav1.Time `json:"stateSince,omitempty,omitzero"`

	// Version is the version that is deployed: the last one of which every
	// release was ready.
	// +optional
	Version string `json:"version,omitempty"`

	// Revision of the source that is deployed.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Digest identifies the content of the directory that is deployed. A
	// revision that leaves the directory as it was has the same digest.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Cluster that Digest is deployed on, as namespace/name of a RemoteCluster;
	// empty for the cluster that Strata runs in.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastHandledReconcileAt is the value of the annotation
	// reconcile.fluxcd.io/requestedAt that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Attempt is the content that is being rolled out, or was last.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// Rollback says what the layer has gone back from, and to what.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// BlockedBy says what stands in the way, from what the layer itself waits
	// for down to the cause of it all. Each entry explains the last one before
	// it that is less deep; where the depth skips a number, links were left
	// out. There are at most 12, and none where the layer is deployed.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	BlockedBy []Cause `json:"blockedBy,omitempty"`

	// History lists the last deployments, the newest first.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

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

	// Resources lists the objects that the layer has: its inventory.
	// +kubebuilder:validation:MaxItems=30000
	// +listType=atomic
	// +optional
	Resources []Resource `json:"resources,omitempty"`
}

// Attempt is one roll-out of one content of the layer's directory.
type Attempt struct {
	// Version of the layer.
	// +optional
	Version string `json:"version,omitempty"`
	// Revision of the source.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Digest of the directory's content.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Artifact that holds the content.
	// +optional
	Artifact *ArtifactReference `json:"artifact,omitempty"`
	// StartTime is when the roll-out began; spec.timeout counts from it.
	// +optional
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// Refused is true where the API server has refused an object of the content.
	// +optional
	Refused bool `json:"refused,omitempty"`
	// Allowed lists the guards that an annotation opened for this roll-out:
	// Empty, Prune, Doubt, Reinstall. It is emptied when the removals have been marked.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Allowed []string `json:"allowed,omitempty"`
}

// Rollback is what a layer has gone back from. It ends when the layer's
// specification, or what its source holds for it, is another.
type Rollback struct {
	// To is the entry of the history that the layer has gone back to.
	To string `json:"to"`
	// Version that the layer has gone back from.
	// +optional
	Version string `json:"version,omitempty"`
	// Revision of the source that the layer has gone back from.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Digest of the directory's content that the layer has gone back from.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Generation of the layer that it has gone back from.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
}

// Cause is one link in the chain of what stands in a layer's way.
type Cause struct {
	// Depth is 0 for what the layer itself waits for, 1 for what that waits
	// for, and so on.
	// +optional
	Depth int32 `json:"depth,omitempty"`
	// Kind of the object that stands in the way, such as AddonsLayer,
	// GitRepository, HelmRelease or RemoteCluster; Cluster for the cluster that
	// Strata runs in.
	Kind string `json:"kind"`
	// Cluster is the RemoteCluster, as namespace/name, that the object is on;
	// empty for the cluster that Strata runs in.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Namespace of the object; empty where its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// Reason in one word, as conditions give it.
	Reason string `json:"reason"`
	// Message is what the object says of itself, or what is seen of it.
	// +optional
	Message string `json:"message,omitempty"`
	// Until is when it ends by itself, where that is known.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// DeploymentResult is what became of a deployment.
type DeploymentResult string

const (
	// ResultDeployed had every release ready.
	ResultDeployed DeploymentResult = "Deployed"
	// ResultFailed has failed and may still heal.
	ResultFailed DeploymentResult = "Failed"
	// ResultRolledBack has failed and was taken back.
	ResultRolledBack DeploymentResult = "RolledBack"
)

// HistoryEntry is one deployment of a layer.
type HistoryEntry struct {
	// ID identifies the deployment among those of the layer.
	ID string `json:"id"`
	// Version of the layer.
	// +optional
	Version string `json:"version,omitempty"`
	// Revision of the source, the last one that held this content.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Digest of the directory's content.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Result is Deployed, Failed or RolledBack.
	Result DeploymentResult `json:"result"`
	// Message says why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// Started is when the roll-out began.
	Started metav1.Time `json:"started"`
	// Duration of the roll-out, until it had its result; 0s where that is not
	// known.
	Duration metav1.Duration `json:"duration"`
	// Artifact that held the content last.
	// +optional
	Artifact *ArtifactReference `json:"artifact,omitempty"`
	// Kept is true while the cluster keeps the objects of the content, in a
	// Secret of the controller's namespace, so that the layer can go back to
	// them although the source no longer has them.
	// +optional
	Kept bool `json:"kept,omitempty"`
}

// ArtifactReference is where a content was read.
type ArtifactReference struct {
	// URL of the artifact. One that holds more than scheme, host and path is not
	// kept, because that may be a secret: what the artifact holds is then had again
	// from the cache, from what the cluster keeps of it, or not at all.
	// +optional
	URL string `json:"url,omitempty"`
	// Digest of the artifact's bytes, as algorithm:hex.
	Digest string `json:"digest"`
	// Path of the directory in the artifact.
	Path string `json:"path"`
}

// Resource is one object of a layer.
type Resource struct {
	// Cluster that holds the object, as namespace/name of a RemoteCluster; empty
	// for the cluster that Strata runs in.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Namespace of the object; empty where its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// Kind of the object, with its group, as kubectl understands it.
	Kind string `json:"kind"`
	// LastTransitionTime is when Status became what it is.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// Status is Deployed, NotDeployed, Suspended, Orphaned, or the reason of
	// the object's Ready condition.
	Status string `json:"status"`
	// Digest of the object as it was last applied.
	// +optional
	Digest string `json:"digest,omitempty"`
	// UID begins like that of the object that was last applied, so that one that
	// somebody made in its place is told from it.
	// +optional
	UID string `json:"uid,omitempty"`
	// Generation that the object had after it was last applied.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// ResourceVersion that the object had after it was last applied, for
	// kinds that have no generation.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Fields identifies the fields of the object that were Strata's after it was last
	// applied. A field that somebody changes is no longer Strata's. It is empty for
	// Flux's kinds, whose generation says as much.
	// +optional
	Fields string `json:"fields,omitempty"`
	// Completed is true for a Job with ttlSecondsAfterFinished that was seen to
	// complete with the content of Digest: it is not run again when its TTL has
	// taken it away.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// File of the layer's directory that lists the object.
	// +optional
	File string `json:"file,omitempty"`
	// DependsOn names the objects of this layer that must be ready before this
	// one and that go after it: by name, or as namespace/name where they are of
	// another namespace.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=atomic
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
}

// AddonsLayer is a directory of HelmReleases that is deployed as one, after
// the layers that it depends on.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addonslayers,scope=Cluster,shortName=al;layer;addonlayer
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.source.path`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of an AddonsLayer must have at most 63 characters: it is the value of a label on every object of the layer"
type AddonsLayer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonsLayerSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status AddonsLayerStatus `json:"status,omitempty"`
}

// AddonsLayerList is a list of AddonsLayers.
//
// +kubebuilder:object:root=true
type AddonsLayerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonsLayer `json:"items"`
}
