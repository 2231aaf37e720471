// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/round"
)

// remove takes back what was made for a claim that is being deleted, and lets it go.
func (v *visit) remove(ctx context.Context) (time.Duration, error) {
	err := v.recorded(ctx)
	var unsigned *unsignedError
	isGivenUp := v.claim.Annotations[v1alpha1.AbandonAnnotation] == "true"
	switch {
	case isGivenUp && (err == nil || errors.As(err, &unsigned)):
		return 0, v.finalize(ctx)
	case err != nil:
		return v.failed(ctx, err)
	}
	hasOutside := controllerutil.ContainsFinalizer(v.stored, v1alpha1.OutsideFinalizer)
	if err := v.leaveBehind(ctx); err != nil {
		return 0, err
	}
	look, err := v.known(ctx)
	if err != nil {
		return v.failed(ctx, err)
	}
	if v.record == nil {
		look.Known = v.stored.Status.Objects // whoever has written it, it keeps the claim alone
	}
	if len(look.Known) == 0 && !hasOutside {
		return 0, v.finalize(ctx)
	}
	if _, err := v.k.objects.Watch(ctx, &look, "", nil); err != nil {
		return v.failed(ctx, err)
	}
	if v.record == nil && hasOutside {
		_, problem, err := v.release(ctx)
		if err != nil {
			return 0, err
		}
		return v.stays(ctx, problem)
	}
	if v.record == nil {
		return v.removeUnknown(ctx, look)
	}
	if err := v.k.objects.Read(ctx, &look); err != nil {
		return v.failed(ctx, err)
	}
	users, err := v.users(ctx)
	if err != nil {
		return 0, err
	}
	problem := capabilities.KeepsFromGoing(v.claim, v.record.bound, look.Known, look.Live, users)
	if problem == nil {
		released, unreleased, err := v.release(ctx)
		switch {
		case err != nil:
			return 0, err
		case !released:
			return v.stays(ctx, unreleased)
		}
	}
	look.MayPrune = problem == nil
	look.Stays = "stays until the claim may go"
	plan := look.Plan()
	if problem == nil && len(plan.Inventory) == 0 && !plan.Writes() {
		left, err := v.k.objects.IsLeft(ctx, look)
		switch {
		case err != nil:
			return 0, err
		case left:
			return round.LookAgain, nil
		}
		return 0, v.finalize(ctx)
	}
	return v.carryOut(ctx, look, plan, problem)
}

// removeUnknown lets a claim go of which it is not known any more as whom its objects were made,
// once they have gone: its record goes last.
func (v *visit) removeUnknown(ctx context.Context, look primaries.Look) (time.Duration, error) {
	left, err := v.k.objects.IsLeft(ctx, look)
	if err != nil {
		return 0, err
	}
	if !left {
		return 0, v.finalize(ctx)
	}
	return v.k.safetyNet(), v.report(ctx, capabilities.Outcome{Objects: v.claim.Status.Objects, Kept: true, Problem: &capabilities.Problem{
		Reason: v1alpha1.ReasonDeletionBlocked, Stalled: true,
		Message: "it is not known any more as whom the claim's objects were made: its record in the namespace " + v.k.Settings.Namespace +
			" has gone. Delete the objects by hand, or leave them with the annotation " + v1alpha1.AbandonAnnotation + `: "true"`,
	}})
}

// users returns who reads the claim's binding and is to stay: releases, and claims that are
// bound to it.
func (v *visit) users(ctx context.Context) ([]string, error) {
	releases, err := v.releases(ctx, v.claim.Namespace)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, release := range releases {
		if release.GetDeletionTimestamp() == nil && capabilities.ReadsBinding(release, v.claim) {
			found = append(found, "HelmRelease "+release.GetName())
		}
	}
	sharing, err := v.sharing(ctx)
	for _, claim := range sharing {
		if claim.DeletionTimestamp == nil {
			found = append(found, "CapabilityClaim "+claim.Namespace+"/"+claim.Name)
		}
	}
	return found, err
}

// finalize lets a claim go, with the records of its binding.
func (v *visit) finalize(ctx context.Context) error {
	recorded, err := v.k.recordsOf(ctx, v.claim.UID)
	if err != nil {
		return err
	}
	if v.record != nil || len(recorded) > 0 {
		if err := v.k.unbind(ctx, v.claim.UID); err != nil {
			return err
		}
	}
	patched := v.stored.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.ClaimFinalizer)
	if controllerutil.RemoveFinalizer(patched, v1alpha1.OutsideFinalizer) {
		v.k.Events.Eventf(v.claim, nil, corev1.EventTypeWarning, v1alpha1.ReasonLeftBehind, "Reconcile",
			"is let go, and what its plug-in has handed out outside of any cluster stays")
	}
	err = apply.PatchLocked(ctx, v.k.Client, patched, v.stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of CapabilityClaim %s/%s: %w", patched.Namespace, patched.Name, err)
	}
	v.k.records.forget(v.claim.UID)
	v.k.unsaved.forget(v.claim.UID)
	v.k.plugins.answers.forget(v.claim.UID)
	v.k.plugins.flights.forget(v.claim.UID)
	v.k.plugins.handed.forget(v.claim.UID)
	v.k.plugins.outside.forget(v.claim.UID)
	return nil
}
