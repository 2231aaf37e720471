// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// State is the one word that says where a layer stands. The words are Kraan's.
type State string

const (
	// StateK8sVersion waits for the cluster's Kubernetes version.
	StateK8sVersion State = "K8sVersion"
	// StatePending waits for the source.
	StatePending State = "Pending"
	// StatePruning waits for removed objects to go, and for nothing else.
	StatePruning State = "Pruning"
	// StateApplyPending waits for other layers.
	StateApplyPending State = "ApplyPending"
	// StateApplying applies objects or waits until they are ready.
	StateApplying State = "Applying"
	// StateDeployed has every release of one revision ready.
	StateDeployed State = "Deployed"
	// StateFailed cannot go on, or has taken longer than its timeout.
	StateFailed State = "Failed"
	// StateHold is held by somebody.
	StateHold State = "Hold"
	// StateUnknown is on a cluster that does not answer.
	StateUnknown State = "Unknown"
)

// Condition types of an AddonsLayer.
const (
	// ReadyCondition says whether the layer is as its specification wants it.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while the layer is on its way.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True when only an author can mend what is wrong.
	StalledCondition = "Stalled"
	// HeldCondition is True while somebody holds the layer; its message is
	// the reason that they gave.
	HeldCondition = "Held"
	// DeployedCondition says whether what status names is deployed.
	DeployedCondition = "Deployed"
	// DeletingCondition is True from the moment at which the objects of a
	// deleted layer begin to go.
	DeletingCondition = "Deleting"
	// SourceReadyCondition is False while the source cannot be updated, though
	// its last artifact is still being used.
	SourceReadyCondition = "SourceReady"
	// ContestedCondition is True while HelmReleases that no layer has stand for the
	// same Helm releases as those of the layer. It stops nothing.
	ContestedCondition = "Contested"
)

// Condition types of a RemoteCluster, beside Ready.
const (
	// ReachableCondition says whether the cluster answers.
	ReachableCondition = "Reachable"
	// IdentifiedCondition says whether it is known which cluster answers, and that
	// it is the one that may be written to.
	IdentifiedCondition = "Identified"
	// CredentialsExpiringCondition is True when the credentials end soon.
	CredentialsExpiringCondition = "CredentialsExpiring"
)

// Condition reasons of a RemoteCluster.
const (
	// ReasonReachable says that the cluster answers.
	ReasonReachable = "Reachable"
	// ReasonUnreachable says that the cluster does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonPending waits for the Secret of the kubeconfig, or for the cluster
	// on which it lies.
	ReasonPending = "Pending"
	// ReasonIdentified says that the cluster is the one that it was when it was
	// first seen, or that somebody has accepted.
	ReasonIdentified = "Identified"
	// ReasonClusterShared says that another RemoteCluster leads to the same cluster,
	// or that it is the one that Strata runs in.
	ReasonClusterShared = "ClusterShared"
	// ReasonClusterNotClaimed says that other hubs are not told that the cluster is
	// this one's, because a right is missing.
	ReasonClusterNotClaimed = "ClusterNotClaimed"
	// ReasonIdentityForbidden says that the kubeconfig's user may not read which
	// cluster it is.
	ReasonIdentityForbidden = "IdentityForbidden"
	// ReasonIdentityChanged says that another cluster answers than the one that may
	// be written to.
	ReasonIdentityChanged = "IdentityChanged"
	// ReasonClaimedByOther says that another hub has the cluster.
	ReasonClaimedByOther = "ClaimedByOther"
	// ReasonInvalidKubeConfig says that the kubeconfig cannot be used.
	ReasonInvalidKubeConfig = "InvalidKubeConfig"
	// ReasonCredentialsSourceGone says that the Secret of the kubeconfig has
	// gone, and that Strata goes on with its copy.
	ReasonCredentialsSourceGone = "CredentialsSourceGone"
	// ReasonCopyUnverified says that the Secret of the kubeconfig has gone, or cannot
	// be used, and that nothing shows that Strata has written its copy as it is.
	ReasonCopyUnverified = "CopyUnverified"
	// ReasonCredentialsRefused says that the cluster does not accept the
	// credentials.
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonCredentialsExpiring and ReasonCredentialsValid say how long the
	// credentials last.
	ReasonCredentialsExpiring = "CredentialsExpiring"
	ReasonCredentialsValid    = "CredentialsValid"
	// ReasonLayersLeft says that layers are still on a cluster that is deleted.
	ReasonLayersLeft = "LayersLeft"
)

// Condition reasons of a HelmApplication.
const (
	// ReasonPublished says that all versions can be used.
	ReasonPublished = "Published"
	// ReasonProblems says that something is wrong with a version.
	ReasonProblems = "Problems"
	// ReasonContentChanged says that a version is not what was published under
	// its number.
	ReasonContentChanged = "ContentChanged"
)

// Condition reasons of a Platform.
const (
	// ReasonInstalled says that everything is deployed on every cluster.
	ReasonInstalled = "Installed"
	// ReasonProgressing says that something is being installed or removed.
	ReasonProgressing = "Progressing"
	// ReasonWaiting says that clusters wait for their turn to be moved.
	ReasonWaiting = "Waiting"
	// ReasonHalted says that a roll-out starts nothing more.
	ReasonHalted = "Halted"
	// ReasonClusterFailed says that something has failed on a cluster.
	ReasonClusterFailed = "ClusterFailed"
	// ReasonBundleNotFound says that there is no bundle to install.
	ReasonBundleNotFound = "BundleNotFound"
	// ReasonInputsNotFound says that inputs cannot be read.
	ReasonInputsNotFound = "InputsNotFound"
	// ReasonUnsatisfiable says that no versions of what is picked fit together.
	ReasonUnsatisfiable = "Unsatisfiable"
)

// Condition and event reasons of an AddonsLayer.
const (
	ReasonDeployed             = "Deployed"
	ReasonHold                 = "Hold"
	ReasonSourceNotFound       = "SourceNotFound"
	ReasonSourceNotReady       = "SourceNotReady"
	ReasonK8sVersion           = "K8sVersion"
	ReasonDependencyNotFound   = "DependencyNotFound"
	ReasonDependencyVersion    = "DependencyVersion"
	ReasonDependencyNotReady   = "DependencyNotDeployed"
	ReasonDependencyCycle      = "DependencyCycle"
	ReasonInvalidSpec          = "InvalidSpec"
	ReasonApplying             = "Applying"
	ReasonPruning              = "Pruning"
	ReasonTimeout              = "Timeout"
	ReasonReleaseFailed        = "ReleaseFailed"
	ReasonApplyFailed          = "ApplyFailed"
	ReasonPruneFailed          = "PruneFailed"
	ReasonKindNotServed        = "KindNotServed"
	ReasonOwnershipConflict    = "OwnershipConflict"
	ReasonForeignRelease       = "ForeignRelease"
	ReasonSuspendedRelease     = "SuspendedRelease"
	ReasonMassPrune            = "MassPrune"
	ReasonEmptyDirectory       = "EmptyDirectory"
	ReasonPathNotFound         = "PathNotFound"
	ReasonPathOutside          = "PathOutsideArtifact"
	ReasonInvalidManifest      = "InvalidManifest"
	ReasonEncryptedManifest    = "EncryptedManifest"
	ReasonDuplicateObject      = "DuplicateObject"
	ReasonKustomizeFailed      = "KustomizeFailed"
	ReasonArtifactRefused      = "ArtifactRefused"
	ReasonArtifactFailed       = "ArtifactFailed"
	ReasonDeleting             = "Deleting"
	ReasonDeletionBlocked      = "DeletionBlocked"
	ReasonProgressingWithRetry = "ProgressingWithRetry"
	ReasonWouldBreakDependants = "WouldBreakDependants"
	ReasonRollingBack          = "RollingBack"
	ReasonRolledBack           = "RolledBack"
	ReasonRollbackFailed       = "RollbackFailed"
	ReasonRollbackNotPossible  = "RollbackNotPossible"

	// Reasons of who may do it.
	ReasonAccessDenied           = "AccessDenied"
	ReasonReservedObject         = "ReservedObject"
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"
	ReasonImpersonationDenied    = "ImpersonationDenied"

	// Reasons of the cluster that a layer belongs on.
	ReasonClusterNotFound    = "ClusterNotFound"
	ReasonClusterNotReady    = "ClusterNotReady"
	ReasonClusterUnreachable = "ClusterUnreachable"
	ReasonClusterAbandoned   = "ClusterAbandoned"
	ReasonClusterMistaken    = "ClusterMistaken"

	// Reasons of events alone.
	ReasonAdopted    = "Adopted"
	ReasonOrphaned   = "Orphaned"
	ReasonPruned     = "Pruned"
	ReasonReleased   = "Released"
	ReasonSuspended  = "Suspended"
	ReasonResumed    = "Resumed"
	ReasonCorrected  = "DriftCorrected"
	ReasonSuperseded = "Superseded"
	ReasonNotKept    = "RevisionNotKept"
	ReasonLeftBehind = "LeftBehind"
)
