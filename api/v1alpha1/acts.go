// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// Act is an annotation by which people decide something by hand.
type Act struct {
	// Annotation that says it.
	Annotation string
	// On has the kinds that are decided on by it.
	On []string
	// InGit is what an act does where git has it, and so whatever applies git says it again
	// and again.
	InGit ActInGit
}

// ActInGit is what an act does where git has it.
type ActInGit string

const (
	// ActStands is an act that holds for as long as it is there, and lets nothing go. Git is
	// a place for it.
	ActStands ActInGit = "stands"
	// ActNames is an act that is for the very thing that it names, such as a stage and a
	// version. Git is a place for it as long as it names one.
	ActNames ActInGit = "names"
	// ActIsUsedUp is an act for one moment, which is removed when it is used. Git gives it
	// again each time.
	ActIsUsedUp ActInGit = "used up"
	// ActOpens is an act that opens a guard for as long as it is there. In git the guard is
	// open for good.
	ActOpens ActInGit = "opens"
)

// Acts returns the annotations by which people decide something by hand, on any of the kinds.
func Acts() []Act {
	layers, platforms, clusters, hosts := []string{AddonsLayerKind}, []string{PlatformKind}, []string{RemoteClusterKind}, []string{HostClusterKind}
	return []Act{
		{HoldAnnotation, layers, ActStands},
		{HoldUntilAnnotation, layers, ActStands},
		{HoldReleasesAnnotation, layers, ActStands},
		{AllowEmptyAnnotation, layers, ActIsUsedUp},
		{AllowPruneAnnotation, []string{AddonsLayerKind, ClusterDiscoveryKind}, ActIsUsedUp},
		{AllowReinstallAnnotation, layers, ActIsUsedUp},
		{AllowBreakAnnotation, layers, ActOpens},
		{ForceDeleteAnnotation, []string{AddonsLayerKind, PlatformKind}, ActOpens},
		{ConfirmDeletionAnnotation, []string{AddonsLayerKind, PlatformKind, CapabilityClaimKind, HostClusterKind}, ActOpens},
		{AbandonAnnotation, []string{AddonsLayerKind, PlatformKind, RemoteClusterKind, CapabilityClaimKind}, ActOpens},
		{RollbackToAnnotation, layers, ActIsUsedUp},
		{ApproveAnnotation, platforms, ActNames},
		{ApproveReasonAnnotation, platforms, ActNames},
		{ApprovedByAnnotation, platforms, ActNames},
		{AcceptClusterAnnotation, clusters, ActIsUsedUp},
		{TakeOverAnnotation, clusters, ActIsUsedUp},
		{TakeOverClusterAnnotation, hosts, ActIsUsedUp},
		{WithoutSnapshotAnnotation, hosts, ActIsUsedUp},
		{RebindAnnotation, []string{CapabilityClaimKind}, ActIsUsedUp},
	}
}

// ActsOn returns the acts on objects of a kind; none where people decide nothing by annotations
// there.
func ActsOn(kind string) []Act {
	return slices.DeleteFunc(Acts(), func(act Act) bool { return !slices.Contains(act.On, kind) })
}
