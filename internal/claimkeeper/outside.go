// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/providers"
)

// outsideRetry is how soon a plug-in is asked again that says that something is on its way.
const outsideRetry = 5 * time.Second

// maxWaits bounds what is told of what a release waits for, in bytes.
const maxWaits = 512

// hand has a claim's plug-in hand out what is outside of any cluster, unless it has for the very
// same, and gives the instance what that publishes. waits says why the binding has to wait.
func (v *visit) hand(ctx context.Context, instance *capabilities.Instance) (waits string, problem *capabilities.Problem, err error) {
	if !v.outside {
		return "", nil, nil
	}
	if err := v.keepUntilReleased(ctx); err != nil {
		return "", nil, err
	}
	request, err := v.asked(instance).EnsureRequest(instance.Passwords, instance.Previous)
	if err != nil {
		return "", nil, err
	}
	key, err := keyOf(request, v.record.bound.Spec.Plugin.Digest)
	if err != nil {
		return "", nil, err
	}
	said, known := v.k.plugins.handed.get(v.claim.UID)
	if !known || said.request != key {
		ended := v.k.fly(ctx, &v.k.plugins.outside, v.claim, key, v.ensure(request, key))
		if ended == nil {
			return "waits for its plug-in to hand it out", nil, nil
		}
		if !ended.again.IsZero() {
			v.again = max(ended.again.Sub(v.now), time.Second)
		}
		if ended.problem != nil {
			return "", ended.problem, nil
		}
		if said = ended.answer; said.handed.Waits != "" {
			return said.handed.Waits, nil, nil
		}
		v.k.plugins.handed.set(v.claim.UID, said)
	}
	plan, _ := v.k.plugins.answers.get(v.claim.UID)
	spec := *plan.filled.Spec.DeepCopy()
	spec.Publishes = append(spec.Publishes, said.handed.Publishes...)
	understood := v.k.plans.understand(sha256.Sum256(append(plan.said[:], said.said[:]...)), spec)
	if understood.blueprint == nil {
		return "", invalidPlan(v.record.bound.Provider, understood.problems[0]), nil
	}
	instance.Blueprint = understood.blueprint
	return "", nil, nil
}

// keyOf identifies a request to a plug-in.
func keyOf(request proto.Message, digest string) ([sha256.Size]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot write a request: %w", err)
	}
	return sha256.Sum256(append(data, digest...)), nil
}

// asked is what the claim's plug-in is asked about.
func (v *visit) asked(instance *capabilities.Instance) providers.Asked {
	return providers.Asked{
		Claim: v.claim, Version: instance.Version, Namespace: instance.Namespace, Parameters: instance.Parameters,
		Rotation: instance.Rotation, Rotating: len(instance.Previous) > 0, Objects: instance.Live,
	}
}

// keepUntilReleased has the claim stay until its plug-in has released it, before that hands
// anything out.
func (v *visit) keepUntilReleased(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(v.stored, v1alpha1.OutsideFinalizer) {
		return nil
	}
	patched := v.stored.DeepCopy()
	controllerutil.AddFinalizer(patched, v1alpha1.OutsideFinalizer)
	return v.refinalize(ctx, patched)
}

// refinalize writes other finalizers of the claim.
func (v *visit) refinalize(ctx context.Context, patched *v1alpha1.CapabilityClaim) error {
	if err := apply.PatchLocked(ctx, v.k.Client, patched, v.stored); err != nil {
		return fmt.Errorf("cannot write the finalizers of CapabilityClaim %s/%s: %w", patched.Namespace, patched.Name, err)
	}
	v.k.written.Wrote(patched)
	if last, known := v.k.unsaved.get(v.claim.UID); known { // it is of the same claim still
		v.k.unsaved.set(v.claim.UID, unsaved{patched.ResourceVersion, last.objects})
	}
	status := v.claim.Status
	v.stored, v.claim = patched, patched.DeepCopy()
	v.claim.Status = status
	return nil
}

// ensure asks a plug-in to hand out what a claim asks for. What it says has no password in it.
func (v *visit) ensure(request *pluginv1.EnsureRequest, key [sha256.Size]byte) func(context.Context) flight {
	k, provider, spec := v.k, v.record.bound.Provider, v.record.bound.Spec
	plan, _ := k.plugins.answers.get(v.claim.UID)
	return func(ctx context.Context) flight {
		made := flight{answer: answer{request: key}}
		response, err := k.Plugins.Ensure(ctx, k.reference(ctx, provider, spec), request)
		if err != nil {
			return k.failedFlight(provider, providers.Mask(err, request.GetPasswords(), request.GetPrevious()))
		}
		handed, err := providers.Hand(plan.filled.Spec.Publishes, response)
		if err != nil {
			made.problem = invalidPlan(provider, err.Error())
			return made
		}
		handed.Waits = providers.MaskText(handed.Waits, request.GetPasswords(), request.GetPrevious())
		data, err := handed.Identity()
		if err != nil {
			made.problem = invalidPlan(provider, "cannot be written")
			return made
		}
		made.answer.handed, made.answer.said = handed, sha256.Sum256(data)
		if handed.Waits != "" {
			made.again = k.now().Add(outsideRetry)
		}
		return made
	}
}

// failedFlight is a question to a provider's plug-in that has failed, and is asked again.
func (k *Keeper) failedFlight(provider string, err error) flight {
	now := k.now()
	return flight{problem: pluginFailed(provider, err), again: now.Add(retryOf(err, now))}
}

// release has the plug-in take back what it has handed out to a claim that goes. It returns true
// once it has; until then, what keeps it from that.
func (v *visit) release(ctx context.Context) (released bool, problem *capabilities.Problem, err error) {
	if !controllerutil.ContainsFinalizer(v.stored, v1alpha1.OutsideFinalizer) {
		return true, nil, nil
	}
	if v.record == nil || v.record.bound.Spec.Plugin == nil || v.k.Plugins == nil {
		return false, &capabilities.Problem{
			Reason: v1alpha1.ReasonDeletionBlocked, Stalled: true,
			Message: "has something outside of any cluster, and it is not known any more which plug-in has handed that out. " +
				"Take it back by hand, and let the claim go with the annotation " + v1alpha1.AbandonAnnotation + `: "true"`,
		}, nil
	}
	instance := capabilities.Instance{Version: v.record.bound.Version}
	binding, err := v.k.bindingOf(ctx, v.claim)
	if err != nil {
		return false, nil, err
	}
	if binding != nil {
		instance.Rotation = capabilities.RotationOf(binding).Number
	}
	_, instance.Namespace = capabilities.Place(v.record.bound.Spec, v.claim, v.k.Settings.Namespace)
	if understood := v.k.plans.understand(v.record.digest, v.record.bound.Spec); understood.blueprint != nil {
		instance.Parameters, _ = understood.blueprint.Parameters(v.claim.Spec) // those that are wrong were never used
	}
	request, err := v.asked(&instance).ReleaseRequest(v.claim.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true")
	if err != nil {
		return false, nil, err
	}
	key, err := keyOf(request, v.record.bound.Spec.Plugin.Digest+" release")
	if err != nil {
		return false, nil, err
	}
	k, provider, spec := v.k, v.record.bound.Provider, v.record.bound.Spec
	ended := k.fly(ctx, &k.plugins.outside, v.claim, key, func(ctx context.Context) flight {
		response, err := k.Plugins.Release(ctx, k.reference(ctx, provider, spec), request)
		if err != nil {
			return k.failedFlight(provider, err)
		}
		made := flight{answer: answer{request: key}}
		if waits := response.GetWaits(); waits != "" {
			made.answer.handed.Waits, made.again = printable.Line(waits, maxWaits), k.now().Add(outsideRetry)
		}
		return made
	})
	if ended == nil {
		return false, &capabilities.Problem{Reason: v1alpha1.ReasonProgressing, Message: "waits for its plug-in to release it"}, nil
	}
	if !ended.again.IsZero() {
		v.again = max(ended.again.Sub(v.now), time.Second)
	}
	if ended.problem != nil {
		return false, ended.problem, nil
	}
	if waits := ended.answer.handed.Waits; waits != "" {
		return false, &capabilities.Problem{Reason: v1alpha1.ReasonProgressing, Message: waits}, nil
	}
	patched := v.stored.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.OutsideFinalizer)
	if err := v.refinalize(ctx, patched); err != nil {
		return false, nil, err
	}
	v.k.Events.Eventf(v.claim, nil, corev1.EventTypeNormal, v1alpha1.ReasonReleased, "Reconcile", "its plug-in has released it")
	return true, nil, nil
}

// staysWith says why a claim cannot be moved to another provider: what the one of before has
// handed out only that takes back.
func (v *visit) staysWith(to *capabilities.Bound) string {
	isSame := to.Provider == v.record.bound.Provider && to.Spec.Plugin != nil && to.Shared == nil
	if isSame || !controllerutil.ContainsFinalizer(v.stored, v1alpha1.OutsideFinalizer) {
		return ""
	}
	return "it has something outside of any cluster that only the plug-in of CapabilityProvider " + v.record.bound.Provider + " takes back: make another claim"
}
