// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusParts are those of a status that is signed.
//
// +kubebuilder:object:generate=false
type StatusParts struct {
	// Kind of the object.
	Kind string
	// Status is a pointer to all of it.
	Status any
	// Conditions in it, and the MAC of what others act on.
	Conditions *[]metav1.Condition
	MAC        *string
}

// SignedKinds returns the kinds whose statuses are signed.
func SignedKinds() []string {
	return []string{AddonsLayerKind, PlatformKind, RemoteClusterKind, HelmApplicationKind, ApplicationBundleKind}
}

// IsForeign tells whether some conditions are those of a status that was found not to be written
// by the controller, so that nothing is left in it of what others act on.
func IsForeign(conditions []metav1.Condition) bool {
	ready := meta.FindStatusCondition(conditions, ReadyCondition)
	return ready != nil && ready.Reason == ReasonForeignStatus
}

// IsMistaken tells whether the conditions of a RemoteCluster say that nothing may be written to
// the cluster that answers, which only people can mend.
func IsMistaken(conditions []metav1.Condition) bool {
	ready := meta.FindStatusCondition(conditions, ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return false
	}
	switch ready.Reason {
	case ReasonIdentityChanged, ReasonClaimedByOther, ReasonIdentityForbidden, ReasonCopyUnverified:
		return true
	}
	return false
}

// SignedStatus returns the parts of the status.
func (l *AddonsLayer) SignedStatus() StatusParts {
	return StatusParts{AddonsLayerKind, &l.Status, &l.Status.Conditions, &l.Status.MAC}
}

// SignedStatus returns the parts of the status.
func (p *Platform) SignedStatus() StatusParts {
	return StatusParts{PlatformKind, &p.Status, &p.Status.Conditions, &p.Status.MAC}
}

// SignedStatus returns the parts of the status.
func (c *RemoteCluster) SignedStatus() StatusParts {
	return StatusParts{RemoteClusterKind, &c.Status, &c.Status.Conditions, &c.Status.MAC}
}

// SignedStatus returns the parts of the status.
func (a *HelmApplication) SignedStatus() StatusParts {
	return StatusParts{HelmApplicationKind, &a.Status, &a.Status.Conditions, &a.Status.MAC}
}

// SignedStatus returns the parts of the status.
func (b *ApplicationBundle) SignedStatus() StatusParts {
	return StatusParts{ApplicationBundleKind, &b.Status, &b.Status.Conditions, &b.Status.MAC}
}
