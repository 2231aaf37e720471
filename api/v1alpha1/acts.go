// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Act is an annotation by which people decide something by hand.
type Act struct {
	// Annotation that says it.
	Annotation string
	// Once is true for one that is used up. An approval is not: it names its stage and
	// version, and a change of git is a way to approve.
	Once bool
}

// GivenAgain tells whether an act with a value would be given again and again if git had it.
// One that allows a revision by name allows no other.
func (a Act) GivenAgain(value string) bool {
	allows := a.Annotation == AllowEmptyAnnotation || a.Annotation == AllowPruneAnnotation
	return a.Once && (!allows || value == AllowNext)
}

// Acts returns the annotations by which people decide something by hand, on any of the kinds.
func Acts() []Act {
	return []Act{
		{Annotation: HoldAnnotation},
		{Annotation: HoldUntilAnnotation},
		{Annotation: HoldReleasesAnnotation},
		{Annotation: AllowEmptyAnnotation, Once: true},
		{Annotation: AllowPruneAnnotation, Once: true},
		{Annotation: AllowBreakAnnotation},
		{Annotation: ForceDeleteAnnotation},
		{Annotation: ConfirmDeletionAnnotation},
		{Annotation: AbandonAnnotation},
		{Annotation: RollbackToAnnotation, Once: true},
		{Annotation: ApproveAnnotation},
		{Annotation: ApproveReasonAnnotation},
		{Annotation: ApprovedByAnnotation},
		{Annotation: AcceptClusterAnnotation, Once: true},
		{Annotation: TakeOverAnnotation, Once: true},
		{Annotation: TakeOverClusterAnnotation, Once: true},
		{Annotation: WithoutSnapshotAnnotation, Once: true},
		{Annotation: RebindAnnotation, Once: true},
	}
}
