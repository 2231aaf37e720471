// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
)

// ruled is what was decided for a platform and neither its specification nor its
// layers say. The status reports it; the platform's annotation is what counts, because
// whoever may write that may change the platform itself.
type ruled struct {
	// Rollout is how far it has come: stages that are over need no approval and no
	// time to soak any more.
	Rollout *v1alpha1.RolloutProgress `json:"rollout,omitempty"`
	// Lock has the chosen versions, without the reasons, which are many words.
	Lock *v1alpha1.PlatformLock `json:"lock,omitempty"`
	// Approvals that count, with the selectors of their stages.
	Approvals []approval `json:"approvals,omitempty"`
}

// approval is one that was seen, and what it was for.
type approval struct {
	Approval string `json:"approval"`
	Selector string `json:"selector"`
}

// Decided returns the value of DecidedAnnotation that goes with a status; empty where
// it needs none.
func Decided(platform *v1alpha1.Platform, status v1alpha1.PlatformStatus, seal decisions.Seal) string {
	d := ruled{Rollout: status.Rollout, Lock: withoutReasons(status.Lock)}
	for _, each := range status.Approvals {
		if each.Selector != "" {
			d.Approvals = append(d.Approvals, approval{each.Approval, each.Selector})
		}
	}
	return decisions.Text(d, platform, v1alpha1.PlatformKind, seal)
}

// Trusted returns a platform whose status says of its roll-out and of chosen versions
// what was decided, whatever somebody else has written there: the platform itself
// where it does. One that was restored from a backup keeps its versions, and asks for each
// approval again; one that was made by copying another one has decided nothing.
func Trusted(platform *v1alpha1.Platform, seal decisions.Seal) *v1alpha1.Platform {
	d, standing := decisions.Read[ruled](platform, v1alpha1.PlatformKind, seal)
	status := platform.Status
	approvals := slices.Clone(status.Approvals)
	for i := range approvals {
		approvals[i].Selector = "" // the annotation says
	}
	if foreign := standing != decisions.Whole && platform.Annotations[v1alpha1.DecidedAnnotation] != ""; foreign {
		d.Rollout, d.Approvals = nil, nil
		approvals = ofAnother(platform)
	}
	approvals = d.approved(approvals)
	if equality.Semantic.DeepEqual(approvals, status.Approvals) && equality.Semantic.DeepEqual(d.Rollout, status.Rollout) &&
		equality.Semantic.DeepEqual(d.Lock, withoutReasons(status.Lock)) {
		return platform
	}
	trusted := platform.DeepCopy()
	if !equality.Semantic.DeepEqual(d.Lock, withoutReasons(status.Lock)) {
		trusted.Status.Lock = d.Lock
	}
	trusted.Status.Rollout, trusted.Status.Approvals = d.Rollout, approvals
	return trusted
}

// notCovered is in place of the selector of an approval that covers none.
const notCovered = "-"

// ofAnother returns the approvals that a platform has with the annotations of another one. They
// cover nothing: what it asks for has another value.
func ofAnother(platform *v1alpha1.Platform) []v1alpha1.StageApproval {
	var approvals []v1alpha1.StageApproval
	for _, value := range slices.Sorted(maps.Keys(approvedOf(platform))) {
		approvals = append(approvals, v1alpha1.StageApproval{
			Approval: value, Selector: notCovered, Seen: platform.CreationTimestamp,
			Reason: "was given to an object that this one was made from, and does not count",
		})
	}
	return approvals[:min(len(approvals), mostApprovals)]
}

// approved returns approvals of a status with the selectors that they were for: empty for
// those of which that is not known.
func (d ruled) approved(said []v1alpha1.StageApproval) []v1alpha1.StageApproval {
	var approvals []v1alpha1.StageApproval
	selectors := map[string]string{}
	for _, each := range d.Approvals {
		selectors[each.Approval] = each.Selector
	}
	for _, each := range said {
		if each.Selector != notCovered {
			each.Selector = selectors[each.Approval]
		}
		delete(selectors, each.Approval)
		approvals = append(approvals, each)
	}
	for _, each := range d.Approvals {
		if _, left := selectors[each.Approval]; left {
			approvals = append(approvals, v1alpha1.StageApproval{Approval: each.Approval, Selector: each.Selector})
		}
	}
	return approvals
}

// withoutReasons returns a lock without why its versions were chosen.
func withoutReasons(lock *v1alpha1.PlatformLock) *v1alpha1.PlatformLock {
	if lock == nil {
		return nil
	}
	short := lock.DeepCopy()
	for i := range short.Applications {
		short.Applications[i].Why = ""
	}
	return short
}
