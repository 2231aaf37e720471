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
	// HealthyCondition says how what a layer's releases have made fares, where
	// spec.watchHealth asks for that.
	HealthyCondition = "Healthy"
	// SourceReadyCondition is False while the source cannot be updated, though
	// its last artifact is still being used.
	SourceReadyCondition = "SourceReady"
	// ContestedCondition is True while HelmReleases that no layer has stand for the
	// same Helm releases as those of the layer, and while somebody changes fields of its
	// objects each time they are corrected. It stops nothing.
	ContestedCondition = "Contested"
	// VariablesUnsetCondition is True while objects of the layer read variables that
	// nobody gives, which are empty then. It stops nothing.
	VariablesUnsetCondition = "VariablesUnset"
	// SecretsInNamesCondition is True while names of objects of the layer are made of values
	// of Secrets, which statuses and messages tell then. It stops nothing.
	SecretsInNamesCondition = "SecretsInNames"
	// UnsharedSecretsCondition is True while releases of the layer use copies of Secrets that
	// are not shared with the layer's cluster. The next minor version deletes these copies.
	// The condition stops nothing.
	UnsharedSecretsCondition = "UnsharedSecrets"
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

// Condition reasons of a ClusterDiscovery, beside those of other kinds.
const (
	// ReasonDiscovered says that each cluster that is selected has its RemoteCluster.
	ReasonDiscovered = "Discovered"
)

// Condition types of a CapabilityClaim, beside Ready.
const (
	// BoundCondition says whether a provider serves the claim.
	BoundCondition = "Bound"
	// BindingOutdatedCondition is True where the claim would get something else if it were
	// bound anew. It stops nothing.
	BindingOutdatedCondition = "BindingOutdated"
	// RotatingCondition is True while the passwords of before are still valid. It stops
	// nothing.
	RotatingCondition = "Rotating"
)

// Condition reasons of a CapabilityClaim and of a CapabilityProvider, beside those of other
// kinds.
const (
	// ReasonBound says that a claim has what it needs.
	ReasonBound = "Bound"
	// ReasonAmbiguous says that several providers fit a claim.
	ReasonAmbiguous = "Ambiguous"
	// ReasonNoProvider says that no provider fits a claim.
	ReasonNoProvider = "NoProvider"
	// ReasonInvalidParameters says that a claim's provider does not take its parameters.
	ReasonInvalidParameters = "InvalidParameters"
	// ReasonPluginFailed says that the plug-in of a provider does not answer.
	ReasonPluginFailed = "PluginFailed"
	// ReasonInvalidPasswords says that a claim's passwords are not as Strata makes them.
	ReasonInvalidPasswords = "InvalidPasswords"
	// ReasonRecordUnsigned says that the record of a claim's binding was not written by a
	// controller with the present key.
	ReasonRecordUnsigned = "RecordUnsigned"
	// ReasonInvalidPlan says that a provider's plug-in wants what it may not have.
	ReasonInvalidPlan = "InvalidPlan"
	// ReasonInvalidTemplate says that a provider's templates come to no object.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonObjectFailed says that an object of a claim cannot be made, or has failed.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonInUse says that a claim that is being deleted is still needed.
	ReasonInUse = "InUse"
	// ReasonProviderChanged says that the provider of a claim is not as it was, or has gone.
	ReasonProviderChanged = "ProviderChanged"
	// ReasonMoveRefused says that a claim cannot be moved to the provider that is named.
	ReasonMoveRefused = "MoveRefused"
	// ReasonNotShared says that there is no claim of the name that a claim is to be bound to,
	// or none that allows it.
	ReasonNotShared = "NotShared"
	// ReasonPreviousValid says that the passwords of before are still valid, and until when.
	ReasonPreviousValid = "PreviousValid"
	// ReasonRotated says that passwords were made anew, or that those of before have gone.
	ReasonRotated = "Rotated"
	// ReasonMoved says that a claim has another provider, or what its provider has become.
	ReasonMoved = "Moved"
	// ReasonOffered says that a provider serves whoever claims.
	ReasonOffered = "Offered"
)

// Condition reasons of a HostCluster, beside those of other kinds and those for which the
// hosts are left as they are, such as QuorumLost.
const (
	// ReasonHostsHealthy says that all hosts are as the HostCluster says.
	ReasonHostsHealthy = "HostsHealthy"
	// ReasonHostsLocked says that somebody else works on the hosts.
	ReasonHostsLocked = "HostsLocked"
	// ReasonActionFailed says that something could not be done to a host.
	ReasonActionFailed = "ActionFailed"
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
	// ReasonNoClusters says that a Platform selects no cluster, or fewer than it is to be on.
	ReasonNoClusters = "NoClusters"
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
	// ReasonDeployed says that all that the layer lists is applied and ready.
	ReasonDeployed = "Deployed"
	// ReasonHold says that somebody holds the layer as it is.
	ReasonHold = "Hold"
	// ReasonSourceNotFound says that the source does not exist, or that the cluster does
	// not serve its kind.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonSourceNotReady says that the source has no artifact of its present generation.
	ReasonSourceNotReady = "SourceNotReady"
	// ReasonK8sVersion says that the cluster is not at the version of Kubernetes that
	// the layer asks for.
	ReasonK8sVersion = "K8sVersion"
	// ReasonDependencyNotFound says that a layer that this one depends on does not exist.
	ReasonDependencyNotFound = "DependencyNotFound"
	// ReasonDependencyVersion says that a layer that this one depends on is at another
	// version than it asks for.
	ReasonDependencyVersion = "DependencyVersion"
	// ReasonDependencyNotDeployed says that a layer that this one depends on is not
	// deployed as it is specified now.
	ReasonDependencyNotDeployed = "DependencyNotDeployed"
	// ReasonDependencyCycle says that layers depend on each other in a circle.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonInvalidSpec says that a field of the layer's specification cannot be
	// understood.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonApplying says that the roll-out is under way, within its timeout.
	ReasonApplying = "Applying"
	// ReasonPruning says that objects which the layer no longer lists are on their way
	// out.
	ReasonPruning = "Pruning"
	// ReasonTimeout says that the roll-out takes longer than the timeout allows.
	ReasonTimeout = "Timeout"
	// ReasonReleaseFailed says that helm-controller has given up on a release.
	ReasonReleaseFailed = "ReleaseFailed"
	// ReasonApplyFailed says that an object cannot be written.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonPruneFailed says that an object cannot be removed.
	ReasonPruneFailed = "PruneFailed"
	// ReasonKindNotServed says that the cluster does not serve the kind of an object.
	ReasonKindNotServed = "KindNotServed"
	// ReasonOwnershipConflict says that another layer has an object that this one lists.
	ReasonOwnershipConflict = "OwnershipConflict"
	// ReasonForeignStatus says that the status of an object was not written by Strata's
	// controller, or with another key. It counts for nothing until the controller has
	// written it again.
	ReasonForeignStatus = "ForeignStatus"
	// ReasonForeignRelease says that a HelmRelease of nobody stands for the same Helm
	// release.
	ReasonForeignRelease = "ForeignRelease"
	// ReasonContestedFields says that another manager changes a field of an object each time
	// Strata corrects it, so that it is corrected ever more rarely.
	ReasonContestedFields = "ContestedFields"
	// ReasonSuspendedRelease says that a release which is to be removed is suspended, so
	// that nothing would uninstall it.
	ReasonSuspendedRelease = "SuspendedRelease"
	// ReasonMassPrune says that a commit would remove most releases of the layer.
	ReasonMassPrune = "MassPrune"
	// ReasonWouldReinstall says that Flux would uninstall a release with volumes, and
	// install it anew.
	ReasonWouldReinstall = "WouldReinstall"
	// ReasonEmptyDirectory says that the directory lists nothing any more, where it did
	// before.
	ReasonEmptyDirectory = "EmptyDirectory"
	// ReasonPathNotFound says that the artifact has no such directory.
	ReasonPathNotFound = "PathNotFound"
	// ReasonPathOutsideArtifact says that the path leads out of the artifact.
	ReasonPathOutsideArtifact = "PathOutsideArtifact"
	// ReasonInvalidManifest says that a file holds what is no object, or one that the
	// API server refuses.
	ReasonInvalidManifest = "InvalidManifest"
	// ReasonConflictsWithLiveState says that the API server refuses a change of an object because
	// of what that is now. It would create the object as the manifest has it.
	ReasonConflictsWithLiveState = "ConflictsWithLiveState"
	// ReasonEncryptedManifest says that a file is encrypted, and that no key opens it.
	ReasonEncryptedManifest = "EncryptedManifest"
	// ReasonDuplicateObject says that two files list the same object.
	ReasonDuplicateObject = "DuplicateObject"
	// ReasonVariablesUnavailable says that a ConfigMap or Secret of substituteFrom is not
	// there, may not be read by the layer's account, or holds no variables.
	ReasonVariablesUnavailable = "VariablesUnavailable"
	// ReasonDecryptionKeysUnavailable says that the Secret of spec.decryption is not there,
	// may not be read by the layer's account, or holds no key.
	ReasonDecryptionKeysUnavailable = "DecryptionKeysUnavailable"
	// ReasonVariablesUnset says that objects read variables that nobody gives.
	ReasonVariablesUnset = "VariablesUnset"
	// ReasonSecretsInNames says that names of objects are made of values of Secrets.
	ReasonSecretsInNames = "SecretsInNames"
	// ReasonGivenWithoutLeave says that releases use copies of Secrets that are not shared
	// with their cluster.
	ReasonGivenWithoutLeave = "GivenWithoutLeave"
	// ReasonKustomizeFailed says that the kustomization of the directory cannot be built.
	ReasonKustomizeFailed = "KustomizeFailed"
	// ReasonInventoryTooLarge says that the layer lists more objects than its status can
	// have.
	ReasonInventoryTooLarge = "InventoryTooLarge"
	// ReasonArtifactRefused says that the archive is not what its source says, or is
	// larger than allowed.
	ReasonArtifactRefused = "ArtifactRefused"
	// ReasonArtifactFailed says that the archive cannot be fetched at present.
	ReasonArtifactFailed = "ArtifactFailed"
	// ReasonDeleting says that the layer is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonHealthy says that what the layer's releases have made is well.
	ReasonHealthy = "Healthy"
	// ReasonUnhealthy says that something that the layer's releases have made is not.
	ReasonUnhealthy = "Unhealthy"
	// ReasonRecovering says that something that the layer's releases have made is not ready,
	// and may yet be.
	ReasonRecovering = "Recovering"
	// ReasonHealthUnread says that what the layer's releases have made cannot be read.
	ReasonHealthUnread = "HealthUnread"
	// ReasonDeletionBlocked says that something is in the way of the layer's deletion.
	ReasonDeletionBlocked = "DeletionBlocked"
	// ReasonInternalError says that the last look has ended in a panic. The controller's log
	// has its stack under the hash that the message names.
	ReasonInternalError = "InternalError"
	// ReasonProgressingWithRetry says that what failed is tried again.
	ReasonProgressingWithRetry = "ProgressingWithRetry"
	// ReasonWouldBreakDependants says that the new version is outside of what a
	// dependant takes.
	ReasonWouldBreakDependants = "WouldBreakDependants"
	// ReasonRollingBack says that the layer is on its way to an earlier deployment.
	ReasonRollingBack = "RollingBack"
	// ReasonRolledBack says that the layer is at an earlier deployment.
	ReasonRolledBack = "RolledBack"
	// ReasonRollbackFailed says that the layer cannot get to the earlier deployment.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonRollbackNotPossible says that the deployment which is asked for cannot be
	// gone back to.
	ReasonRollbackNotPossible = "RollbackNotPossible"

	// Reasons of who may do it.
	// ReasonAccessDenied says that the layer refers to what it may not use.
	ReasonAccessDenied = "AccessDenied"
	// ReasonReservedObject says that the directory lists what Strata or Flux keeps for
	// itself.
	ReasonReservedObject = "ReservedObject"
	// ReasonServiceAccountNotFound says that the layer's account does not exist.
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"
	// ReasonImpersonationDenied says that the controller may not act as the layer's
	// account.
	ReasonImpersonationDenied = "ImpersonationDenied"

	// Reasons of the cluster that a layer belongs on.
	// ReasonClusterNotFound says that the RemoteCluster does not exist.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterNotReady says that the RemoteCluster cannot be used yet.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonClusterUnreachable says that the cluster has not answered for a while.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonClusterAbandoned says that what the layer has on the cluster is given up.
	ReasonClusterAbandoned = "ClusterAbandoned"
	// ReasonClusterMistaken says that another cluster answers than the one that may be
	// written to.
	ReasonClusterMistaken = "ClusterMistaken"

	// Reasons of events alone.
	// ReasonAdopted tells of an object that the layer has taken over.
	ReasonAdopted = "Adopted"
	// ReasonApproved: somebody has approved a stage of a Platform's roll-out.
	ReasonApproved = "Approved"
	// ReasonOrphaned tells of an object that the layer no longer lists, and of its grace.
	ReasonOrphaned = "Orphaned"
	// ReasonPruned tells of an object that was removed.
	ReasonPruned = "Pruned"
	// ReasonReleased tells of an object that stays and is no longer the layer's.
	ReasonReleased = "Released"
	// ReasonSuspended tells of a release that was suspended.
	ReasonSuspended = "Suspended"
	// ReasonResumed tells of a release that was resumed.
	ReasonResumed = "Resumed"
	// ReasonDriftCorrected tells of an object whose drift was taken back.
	ReasonDriftCorrected = "DriftCorrected"
	// ReasonSuperseded tells of a HelmRelease that another one has taken the place of.
	ReasonSuperseded = "Superseded"
	// ReasonRevisionNotKept tells that what was deployed cannot be kept for a roll-back.
	ReasonRevisionNotKept = "RevisionNotKept"
	// ReasonLeftBehind tells of an object that stays on a cluster which was given up.
	ReasonLeftBehind = "LeftBehind"
)
