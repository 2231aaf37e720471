// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// problem is what keeps a primary from having what it wants.
type problem struct {
	reason, message string
	// stalled is true where somebody has to do something.
	stalled bool
}

func invalid(err error) *problem {
	return &problem{reason: ReasonInvalid, message: err.Error(), stalled: true}
}

// failed says why a primary cannot be looked at.
func failed(err error) *problem {
	if apierrors.IsForbidden(err) {
		return &problem{reason: ReasonObjectFailed, message: "the operator lacks rights: " + err.Error()}
	}
	return &problem{reason: ReasonProgressing, message: err.Error()}
}

// problemOf returns what keeps a primary from being ready; nil for nothing.
func problemOf(primary Object, standings []objects.Standing) *problem {
	worst, found := primaries.Sum(standings)
	switch {
	case primary.GetDeletionTimestamp() != nil && found:
		return &problem{reason: ReasonDeleting, message: "is being deleted: " + worst.Message}
	case primary.GetDeletionTimestamp() != nil:
		return &problem{reason: ReasonDeleting, message: "is being deleted"}
	case found && worst.Health == objects.Failed:
		return &problem{reason: ReasonObjectFailed, message: worst.Message}
	case found:
		return &problem{reason: ReasonProgressing, message: worst.Message}
	}
	return nil
}

// report writes the status where it has changed, and tells of that.
func (v *visit[P]) report(ctx context.Context, problem *problem, listed []v1alpha1.Dependent, standings []objects.Standing) error {
	if problem == nil {
		problem = problemOf(v.stored, standings)
	}
	patched := copyOf(v.stored)
	status := patched.PrimaryStatus()
	set := conditions.New(status.Conditions, patched.GetGeneration(), v.now)
	if problem == nil {
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, ReasonReady, "all is as it should be")
	} else {
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, problem.reason, problem.message)
		kind := v1alpha1.ReconcilingCondition
		if problem.stalled {
			kind = v1alpha1.StalledCondition
		}
		set.Put(kind, metav1.ConditionTrue, problem.reason, problem.message)
	}
	before := status.Conditions
	status.ObservedGeneration, status.Objects, status.Conditions = patched.GetGeneration(), listed, set.List
	if v.kind.Publish != nil && v.seen != nil {
		v.kind.Publish(patched, v.seen, problem == nil)
	}
	if err := v.persist(ctx, patched); err != nil {
		return err
	}
	v.tell(before)
	return nil
}

// tell tells in an event that a primary has become ready, is not ready any more, or has failed.
func (v *visit[P]) tell(before []metav1.Condition) {
	is, was := meta.FindStatusCondition(v.stored.PrimaryStatus().Conditions, v1alpha1.ReadyCondition), meta.FindStatusCondition(before, v1alpha1.ReadyCondition)
	if is == nil || was != nil && was.Reason == is.Reason || is.Reason == ReasonProgressing && (was == nil || was.Status != metav1.ConditionTrue) {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Reason == ReasonInvalid || is.Reason == ReasonObjectFailed {
		kind = corev1.EventTypeWarning
	}
	v.events.Eventf(v.stored, nil, kind, is.Reason, "Reconcile", "%s", is.Message)
}
