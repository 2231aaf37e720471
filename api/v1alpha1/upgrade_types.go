// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpgradeSpec says when and how far clusters are moved to newer versions.
type UpgradeSpec struct {
	// Mode is Manual (the default: a cluster moves only when the specification asks
	// for another version), or Auto (clusters move to the newest version within maxStep).
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Manual', 'Auto']",message="upgrade.mode must be Manual or Auto; what was Notify is Manual with upgrade.forceAfterEndOfLife: true"
	// +optional
	Mode UpgradeMode `json:"mode,omitempty"`
	// ForceAfterEndOfLife has a cluster leave a version that is past its end of life in
	// the mode Manual, too: for the nearest within maxStep that is not. An exact version in
	// the specification stays.
	// +optional
	ForceAfterEndOfLife bool `json:"forceAfterEndOfLife,omitempty"`
	// MaxStep bounds how far a version may be from the installed one to be gone to by
	// itself: Patch, Minor (the default) or Major.
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Patch', 'Minor', 'Major']",message="upgrade.maxStep must be Patch, Minor or Major"
	// +optional
	MaxStep UpgradeBound `json:"maxStep,omitempty"`
	// MaintenanceWindows in which clusters begin to move; without them at any time. A first
	// installation waits for none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	MaintenanceWindows []UpgradeWindow `json:"maintenanceWindows,omitempty"`

	OldUpgradeWords `json:",inline"`
	// Spread distributes the clusters evenly over this time from the opening of a
	// window on, each always at the same moment.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="upgrade.spread must not be negative"
	// +optional
	Spread *metav1.Duration `json:"spread,omitempty"`
}

// UpgradeMode says what happens when there is a newer version.
type UpgradeMode string

// The modes of upgrades.
const (
	UpgradeManual UpgradeMode = "Manual"
	UpgradeAuto   UpgradeMode = "Auto"
	// UpgradeNotify was a mode once, which moved clusters in spite of its name. A Platform
	// that has it stored is told what to write.
	UpgradeNotify UpgradeMode = "Notify"
)

// UpgradeBound says how far an upgrade may go by itself.
type UpgradeBound string

// The bounds of upgrades.
const (
	UpgradePatch UpgradeBound = "Patch"
	UpgradeMinor UpgradeBound = "Minor"
	UpgradeMajor UpgradeBound = "Major"
)

// Weekday is a day of the week by its English name, or by the first three letters of it.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday;Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// UpgradeWindow is a time of the week.
type UpgradeWindow struct {
	// Days on which it opens, as Monday or Mon; without them every day.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +listType=atomic
	// +optional
	Days []Weekday `json:"days,omitempty"`
	// Start is the time of day at which it opens, as 22:00.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day such as 22:00"
	// +required
	Start string `json:"start"`
	// Duration is how long it stays open, at most 168h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="duration must be between 1m and 168h"
	// +required
	Duration metav1.Duration `json:"duration"`
	// TimeZone is a name of the IANA database such as Europe/Berlin. Defaults to UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}
