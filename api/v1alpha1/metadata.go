// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Finalizer keeps a layer until its objects are gone or handed over. It is the
// one that Kraan sets, so that a layer can change hands in place.
const Finalizer = "finalizers.kraan.io"

// Labels on the objects of a layer.
const (
	// LayerLabel names the layer that owns the object.
	LayerLabel = "kraan/layer"
	// OrphanedLabel marks an object that its layer no longer lists. Its value
	// is the moment in RFC 3339, in UTC, with "." for each ":".
	OrphanedLabel = "orphaned"
)

// Annotations on an AddonsLayer. All of them are words to Strata, and none is
// part of the specification: setting one does not change the generation.
const (
	// HoldAnnotation holds the layer while it is present; its value says why.
	// The value "false" holds nothing.
	HoldAnnotation = "kraan.io/hold"
	// HoldUntilAnnotation ends the hold of HoldAnnotation at an RFC 3339 time.
	HoldUntilAnnotation = "kraan.io/hold-until"
	// HoldReleasesAnnotation with the value "true" also suspends the layer's
	// HelmReleases while it is held.
	HoldReleasesAnnotation = "kraan.io/hold-releases"
	// AllowEmptyAnnotation lets a directory without objects empty the layer.
	// Its value is the revision that may do so, or AllowNext.
	AllowEmptyAnnotation = "kraan.io/allow-empty"
	// AllowPruneAnnotation lets one revision remove most of the releases, and what a
	// layer that cannot be read may list. Its value is that revision, or AllowNext.
	AllowPruneAnnotation = "kraan.io/allow-prune"
	// AllowReinstallAnnotation lets one revision have Flux uninstall releases that have
	// volumes, and install them anew. Its value is that revision, or AllowNext.
	AllowReinstallAnnotation = "kraan.io/allow-reinstall"
	// ForceDeleteAnnotation with the value "true" deletes a layer although
	// other layers depend on it.
	ForceDeleteAnnotation = "kraan.io/force-delete"
	// ConfirmDeletionAnnotation with the value "true" deletes a layer although
	// custom resources or volumes exist that go with it.
	ConfirmDeletionAnnotation = "kraan.io/confirm-deletion"
	// AllowBreakAnnotation with the value "true" lets the layer move to a
	// version that dependants do not accept.
	AllowBreakAnnotation = "kraan.io/allow-break"
	// RollbackToAnnotation takes the layer back to the deployment of its
	// history that it names.
	RollbackToAnnotation = "kraan.io/rollback-to"
	// DecidedAnnotation holds what was decided for a layer or a Platform beyond what
	// it says itself: a roll-back, an opened guard; how far a roll-out has come, chosen
	// versions. Strata writes it, and acts on it; the status only reports it.
	DecidedAnnotation = "kraan.io/decided"
	// AbandonAnnotation with the value "true" deletes suspended HelmReleases
	// although Flux will not uninstall what they installed, and leaves behind what
	// is on a cluster that does not answer: what a layer has there, what all layers
	// have on a RemoteCluster, or, on a Platform that is deleted, all that it has.
	AbandonAnnotation = "kraan.io/abandon"
	// HoldsDataAnnotation with the value "true" is on objects that data go with, as the plug-in
	// of their claim has said.
	HoldsDataAnnotation = "kraan.io/holds-data"

	// PluginLabel is on the objects that the plug-in of a CapabilityProvider runs by, with what
	// identifies the provider, and PluginAnnotation says what they were made by.
	PluginLabel      = "kraan.io/plugin"
	PluginAnnotation = "kraan.io/plugin-spec"
)

// AllowNext is the value of AllowEmptyAnnotation, AllowPruneAnnotation and AllowReinstallAnnotation that
// allows whichever revision needs it next. It is removed when it is used.
const AllowNext = "next"

// Annotations on a RemoteCluster, for people to decide which cluster it is.
const (
	// AcceptClusterAnnotation lets Strata write to another cluster than the one that
	// the RemoteCluster led to before. Its value is the UID of the namespace
	// kube-system of the new one. It is removed when it is used.
	AcceptClusterAnnotation = "kraan.io/accept-cluster"
	// TakeOverAnnotation takes a cluster over from another hub. Its value is the UID
	// of the namespace kube-system of that hub. It is removed when it is used.
	TakeOverAnnotation = "kraan.io/take-over-from"
)

// HubAnnotation on the namespace kube-system of a cluster names the hub that has
// RemoteClusters for it, by the UID of that hub's own namespace kube-system.
const HubAnnotation = "kraan.io/hub"

// Labels and annotations of HostClusters, and on what is made for them.
const (
	// HostClusterFinalizer keeps a HostCluster until its hosts were reset, or are left alone.
	HostClusterFinalizer = "kraan.io/host-cluster"
	// HostClusterLabel names the HostCluster, of the same namespace, that a Secret was made
	// for.
	HostClusterLabel = "kraan.io/host-cluster"
	// HostClusterIDAnnotation on the Secret with the kubeconfig of a HostCluster is the ID of the
	// cluster that the kubeconfig leads to, and HostClusterVersionAnnotation its version.
	// ClusterDiscoveries read these annotations, and not the status of the HostCluster.
	HostClusterIDAnnotation      = "kraan.io/host-cluster-id"
	HostClusterVersionAnnotation = "kraan.io/host-cluster-version"
	// TakeOverClusterAnnotation takes the cluster on the hosts over from whoever manages it.
	// Its value is the cluster's ID, or AnyCluster where Strata has not made it. It is
	// removed when it is used.
	TakeOverClusterAnnotation = "kraan.io/take-over-cluster"
	// AnyCluster is the value of TakeOverClusterAnnotation for a cluster without an ID.
	AnyCluster = "any"
	// WithoutSnapshotAnnotation with the value AllowNext has members of etcd change without
	// a snapshot, once. It is removed when it is used.
	WithoutSnapshotAnnotation = "kraan.io/without-snapshot"
	// UpgradingAnnotation is on a Node that Strata has cordoned to upgrade its host, and has
	// the ID of the cluster. Other cordoned Nodes do not have it.
	UpgradingAnnotation = "kraan.io/upgrading"
	// ReconcileRequestAnnotation has an object looked at when its value changes; it is the
	// one of Flux.
	ReconcileRequestAnnotation = "reconcile.fluxcd.io/requestedAt"
)

// Labels and annotations on what Strata makes for a RemoteCluster.
const (
	// ClusterLabel names the RemoteCluster, of the object's own namespace, that
	// an object was made for.
	ClusterLabel = "kraan.io/cluster"
	// ClusterFinalizer keeps a RemoteCluster until nothing is on its cluster, or
	// what is there was given up.
	ClusterFinalizer = "kraan.io/remote-cluster"
	// KubeConfigFinalizer keeps Strata's own copy of a kubeconfig as long as
	// something is installed through it: Flux uninstalls nothing without it.
	KubeConfigFinalizer = "kraan.io/kubeconfig"
	// ClusterUIDAnnotation on Strata's own copy of a kubeconfig is the UID of the
	// namespace kube-system of the cluster that may be written to through it.
	ClusterUIDAnnotation = "kraan.io/cluster-uid"
	// CopyMACAnnotation on Strata's own copy of a kubeconfig is a MAC of it by
	// Strata's key of digests, and so shows that Strata has written it as it is.
	CopyMACAnnotation = "kraan.io/copy-mac"
	// JoinedLabel is on what kubectl strata has made to join a cluster, and names the
	// account on that one.
	JoinedLabel = "kraan.io/joined"
	// CopyOfAnnotation says what an object is a copy of, as kind/namespace/name.
	CopyOfAnnotation = "kraan.io/copy-of"
	// PlacedForAnnotation names the RemoteCluster, as namespace/name, that an object
	// was put beside, because Flux looks for it there.
	PlacedForAnnotation = "kraan.io/placed-for"
	// SuspendedByLossAnnotation marks a HelmRelease that Strata suspended because
	// its cluster does not answer, and will resume when it does.
	SuspendedByLossAnnotation = "kraan.io/suspended-by-loss"
	// ShareWithAnnotation on a ConfigMap or Secret gives it to layers of other
	// clusters: a list of remotecluster/NAMESPACE/NAME, layer/NAME and ShareWithClusters,
	// with commas between.
	ShareWithAnnotation = "kraan.io/share-with"
	// ShareWithClusters in ShareWithAnnotation gives the object to the layers of all
	// RemoteClusters of its own namespace.
	ShareWithClusters = "remoteclusters"
	// SharedByAnnotation on a copy says which leave it was made by. A copy of a Secret without
	// it comes from a version that needed no leave beside a RemoteCluster.
	SharedByAnnotation = "kraan.io/shared-by"
)

// What is on and about the objects of a CapabilityClaim.
const (
	// ClaimLabel is the UID of the claim that an object was made for.
	ClaimLabel = "kraan.io/claim"
	// RebindAnnotation on a claim names the provider that it is bound to anew, at the highest
	// version that fits; that may be the one that it has. What it had of another one stays
	// until the claim goes. It is removed when it is used.
	RebindAnnotation = "kraan.io/rebind"
	// RotationAnnotation on the Secret of a binding says which passwords it has, since when,
	// and which releases had others before, with what they had installed then.
	RotationAnnotation = "kraan.io/rotation"
	// ProviderLabel is the UID of the CapabilityProvider that a record was made for.
	ProviderLabel = "kraan.io/provider"
	// RecordMACAnnotation on a record is its MAC by Strata's key of digests. A record holds the
	// binding of a claim, or the last plug-in of a provider. One without a MAC is ignored.
	RecordMACAnnotation = "kraan.io/record-mac"
	// RecordsName is the name of a Secret in the controller's namespace. It notes that all
	// records of earlier versions are signed. RecordsType is its type.
	RecordsName = "strata-records"
	RecordsType = "kraan.io/records"
	// SignRecordsAnnotation on that Secret has records signed again, by their names and what they
	// hold: NAME=DIGEST, several with blanks between them.
	SignRecordsAnnotation = "kraan.io/sign-records"
	// ClaimFinalizer keeps a claim until what was made for it has gone.
	ClaimFinalizer = "kraan.io/capability-claim"

	// OutsideFinalizer keeps a claim until its plug-in has taken back what it has handed out
	// outside of any cluster.
	OutsideFinalizer = "kraan.io/outside"
)

// Labels and annotations on the RemoteClusters that a ClusterDiscovery has made.
const (
	// DiscoveryLabel names the ClusterDiscovery, of the same namespace.
	DiscoveryLabel = "discovery.kraan.io/name"
	// DiscoveredUIDAnnotation is the UID of the object that the RemoteCluster was made of.
	DiscoveredUIDAnnotation = "discovery.kraan.io/uid"
	// DiscoveredLabelsAnnotation lists the keys of the labels that come from the object and
	// from the template, with commas between. Others are people's.
	DiscoveredLabelsAnnotation = "discovery.kraan.io/labels"
	// ReportedVersionAnnotation is the version of Kubernetes that the object tells of.
	ReportedVersionAnnotation = "discovery.kraan.io/version"
)

// How Strata knows what it has kept of a deployment.
const (
	// RevisionOfLabel names the layer whose deployment a Secret keeps. It is not
	// the label by which layers own objects.
	RevisionOfLabel = "kraan.io/revision-of"
	// RevisionType is the type of such a Secret.
	RevisionType = "kraan.io/revision"
	// DigestAnnotation on such a Secret is the digest of the directory that it keeps.
	DigestAnnotation = "kraan.io/digest"
	// DigestKeyName is the name of the Secret in the controller's namespace that has
	// the key of the digests of Secrets, and DigestKeyType its type.
	DigestKeyName = "strata-digest-key"
	DigestKeyType = "kraan.io/digest-key"
	// DecisionsSignedName is the name of a Secret in the controller's namespace. It notes that
	// all decisions of earlier versions are signed: while it exists, a decision without a MAC
	// is ignored. DecisionsSignedType is its type.
	DecisionsSignedName = "strata-decisions-signed"
	DecisionsSignedType = "kraan.io/decisions-signed"
)

// Annotations on objects of a layer directory.
const (
	// UpdateVersionAnnotation with the value "true" gives a HelmRelease the
	// layer's version as the value "kraanVersion".
	UpdateVersionAnnotation = "kraan.updateVersion"
	// PruneAnnotation with the value "disabled" keeps an object for ever;
	// "enabled" lets a Namespace, a CustomResourceDefinition or a
	// PersistentVolumeClaim that Strata has created be deleted, which is never done
	// otherwise.
	PruneAnnotation = "kraan.io/prune"
	// FluxPruneAnnotation with the value "disabled" keeps an object, as Flux has it.
	FluxPruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"
	// FluxReconcileAnnotation with the value "disabled", in a manifest or on the live
	// object, has the object left as it is, and kept.
	FluxReconcileAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
	// FluxSSAAnnotation with the value "IfNotPresent" has an object created where it is
	// missing and left alone otherwise, with "Ignore" left alone anyway. "Merge" and
	// "Override" are how every object is applied.
	FluxSSAAnnotation = "kustomize.toolkit.fluxcd.io/ssa"
	// FluxForceAnnotation with the value "enabled" recreates an object where a field is
	// to change that cannot be changed.
	FluxForceAnnotation = "kustomize.toolkit.fluxcd.io/force"
	// TakenOverAnnotation on a layer holds what is kept of the Kustomization that its
	// objects were handed over from.
	TakenOverAnnotation = "kraan.io/taken-over-from"
	// HandOverAnnotation on a Kustomization names the layer that it is handed over to, or
	// given back by.
	HandOverAnnotation = "kraan.io/hand-over"
	// CreatedForAnnotation on an object of these kinds names the layer that Strata
	// has created it for. What was there before a layer adopted it lacks it.
	CreatedForAnnotation = "kraan.io/created-for"
	// SuspendedByHoldAnnotation marks a HelmRelease that Strata suspended for
	// a hold and will resume after it.
	SuspendedByHoldAnnotation = "kraan/suspended-by-hold"
	// SupersededByAnnotation marks a HelmRelease that Strata suspended because
	// another one, which it names, has taken over its Helm release.
	SupersededByAnnotation = "kraan.io/superseded-by"
)

// Labels and annotations of Platforms, on what they make and on themselves.
const (
	// PlatformLabel names the Platform that a layer or an ApplicationBundle was
	// made for.
	PlatformLabel = "platform.kraan.io/name"
	// PlatformLayerLabel names the layer of the bundle that a layer was made of; where
	// that holds picked applications PickedLayerPrefix is before it.
	PlatformLayerLabel = "platform.kraan.io/layer"
	// PlatformClusterLabel is the cluster that the bundle is installed on, as
	// NAMESPACE.NAME of its RemoteCluster or a digest of that where it is longer than
	// a label may be; empty for the cluster that Strata runs in. A layer may be on
	// another cluster, which a layer of the same bundle has made.
	PlatformClusterLabel = "platform.kraan.io/cluster"
	// PlatformFamilyLabel is the family of the bundle that a layer was made of.
	PlatformFamilyLabel = "platform.kraan.io/family"
	// PlatformBeforeAnnotation is what a cluster had before a roll-out first moved
	// it, as VERSION@TARGET. VERSION is empty where it had nothing.
	PlatformBeforeAnnotation = "platform.kraan.io/before"
	// PlatformMovedAnnotation is what a cluster was at before it was moved last, and
	// when that was, as VERSION@TIME with a time of RFC 3339.
	PlatformMovedAnnotation = "platform.kraan.io/moved"
	// PlatformInputsAnnotation has the inputs that a cluster has, and
	// PlatformInputsBeforeAnnotation those that it had before a roll-out first moved it,
	// as JSON, where a Platform has them go to the clusters in stages.
	PlatformInputsAnnotation       = "platform.kraan.io/inputs"
	PlatformInputsBeforeAnnotation = "platform.kraan.io/inputs-before"
	// PlatformDroppedAnnotation with the value "true" is on a layer that the bundle, at the
	// version and inputs of its cluster, does not have any more, while the Platform stays
	// on that cluster. What other Platforms have there does not come after it.
	PlatformDroppedAnnotation = "platform.kraan.io/dropped"
	// ApproveAnnotation on a Platform approves stages of roll-outs: STAGE@VERSION,
	// several with commas between them.
	ApproveAnnotation = "kraan.io/approve"
	// ApproveReasonAnnotation is why somebody approved last, and ApprovedByAnnotation who
	// that was. They are for people: whoever may write the Platform may write anything.
	ApproveReasonAnnotation = "kraan.io/approve-reason"
	ApprovedByAnnotation    = "kraan.io/approved-by"
)

// PickedLayerPrefix begins the value of PlatformLayerLabel on layers of picked
// applications. No layer of a bundle can be named so.
const PickedLayerPrefix = "picked."
