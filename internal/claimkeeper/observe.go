// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// observe reads what is decided from. What keeps the claim from being served is a problem.
func (v *visit) observe(ctx context.Context) (primaries.Look, *capabilities.Problem, error) {
	look, err := v.known(ctx)
	if err != nil {
		return look, nil, err
	}
	if v.record.bound.Shared != nil {
		return v.observeShared(ctx, look)
	}
	plan := v.k.plans.understand(v.record.digest, v.record.bound.Spec)
	if plan.blueprint == nil {
		return look, invalid(v.record.bound.Provider, errors.New(plan.problems[0])), nil
	}
	cluster, namespace := capabilities.Place(v.record.bound.Spec, v.claim, v.k.Settings.Namespace)
	scopes, err := v.watch(ctx, &look, cluster, plan.blueprint.Kinds())
	if err != nil {
		return look, nil, err
	}
	if err := v.k.objects.Read(ctx, &look); err != nil {
		return look, nil, err
	}
	instance := capabilities.Instance{
		Claim: v.claim, Blueprint: plan.blueprint, Provider: v.record.bound.Provider, Version: v.record.bound.Version,
		Cluster: cluster, Namespace: namespace, Scopes: scopes, Live: v.byID(look), Own: v.owned(look),
	}
	var problem string
	if instance.Parameters, problem = plan.blueprint.Parameters(v.claim.Spec); problem != "" {
		message := "CapabilityProvider " + v.record.bound.Provider + " " + problem
		return look, &capabilities.Problem{Reason: v1alpha1.ReasonInvalidParameters, Message: message, Stalled: true}, nil
	}
	if failure, err := v.wanted(ctx, &look, &instance); failure != nil || err != nil {
		return look, failure, err
	}
	if err := v.k.objects.ReadWanted(ctx, &look); err != nil {
		return look, nil, err
	}
	failure, err := v.binding(ctx, &look, &instance)
	return look, failure, err
}

// invalid says that a provider's templates cannot be used.
func invalid(provider string, err error) *capabilities.Problem {
	return &capabilities.Problem{
		Reason: v1alpha1.ReasonInvalidTemplate, Message: fmt.Sprintf("CapabilityProvider %s: %v", provider, err), Stalled: true,
	}
}

func (v *visit) newLook() primaries.Look {
	look := v.k.objects.NewLook(string(v.claim.UID), v.claim.Status.Objects, v.now)
	look.DigestKey = v.k.Settings.DigestKey
	return look
}

// byID returns the claim's own objects by their IDs in the provider that it is bound to.
func (v *visit) byID(look primaries.Look) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, known := range look.Known {
		live := look.Live[primaries.IdentityOf(known)]
		if known.Of == v.record.bound.Provider && live != nil && keeping.Own(look, primaries.IdentityOf(known)) != nil && live.GetDeletionTimestamp() == nil {
			found[known.ID] = live
		}
	}
	return found
}

// owned returns all that the claim has.
func (v *visit) owned(look primaries.Look) map[objects.ID]*unstructured.Unstructured {
	found := map[objects.ID]*unstructured.Unstructured{}
	for id := range look.Live {
		if live := keeping.Own(look, id); live != nil && live.GetDeletionTimestamp() == nil {
			found[id] = live
		}
	}
	return found
}

// wanted adds what the claim is to have but for its binding.
func (v *visit) wanted(ctx context.Context, look *primaries.Look, instance *capabilities.Instance) (*capabilities.Problem, error) {
	have, failure, err := v.passwords(ctx, look)
	if failure != nil || err != nil {
		return failure, err
	}
	if problem := instance.Unmade(have, v.record.number > 1); problem != nil {
		return problem, nil
	}
	*instance = instance.WithPasswords(have)
	taken := false
	if v.rotating = ""; len(instance.Previous) > 0 {
		taking, err := v.taking(ctx, *look, instance.Rotation)
		if err != nil {
			return nil, err
		}
		taken = v.wait(taking)
	}
	if object, has := instance.PasswordsObject(have, taken, fresh); has {
		look.Objects = append(look.Objects, object)
	}
	made, problem, err := v.objects(ctx, look, instance)
	if problem != nil || err != nil {
		return problem, err
	}
	for id, live := range instance.Observed {
		look.Live[id] = live
	}
	look.Objects = append(look.Objects, made...)
	return nil, nil
}

// passwords returns what the Secret with the claim's passwords holds; nil where it is not
// there yet.
func (v *visit) passwords(ctx context.Context, look *primaries.Look) (map[string][]byte, *capabilities.Problem, error) {
	live := keeping.Own(*look, objects.ID{Kind: "Secret", Namespace: v.claim.Namespace, Name: capabilities.PasswordsName(v.claim)})
	if live == nil {
		return nil, nil, nil
	}
	held, failure, err := v.content(ctx, "", live)
	return held.data, failure, err
}

// content returns what a Secret of a cluster holds, as the provider's account may read it.
func (v *visit) content(ctx context.Context, cluster string, live *unstructured.Unstructured) (seenSecret, *capabilities.Problem, error) {
	id := objects.IDOf(live).On(cluster)
	if known, is := v.k.secrets.known(id, live); is {
		return known, nil, nil
	}
	as, failure, err := v.client(ctx, cluster)
	if failure != nil || err != nil {
		return seenSecret{}, failure, err
	}
	held, err := v.k.content(ctx, as, id, live)
	if apierrors.IsForbidden(err) {
		why := accounts.FailureOf(v.account(), err)
		return seenSecret{}, &capabilities.Problem{
			Reason: v1alpha1.ReasonAccessDenied, Message: fmt.Sprintf("cannot read %s%s: %s", id, why.As, why.Message),
		}, nil
	}
	return held, nil, err
}

// binding adds the claim's binding, once all else is ready.
func (v *visit) binding(ctx context.Context, look *primaries.Look, instance *capabilities.Instance) (*capabilities.Problem, error) {
	var values map[string][]byte
	waits := whatIsMissing(*look, *instance)
	if waits == "" {
		var failure *capabilities.Problem
		var err error
		if waits, failure, err = v.hand(ctx, instance); failure != nil || err != nil {
			return failure, err
		}
	}
	if waits == "" {
		var failure *capabilities.Problem
		var err error
		if values, waits, failure, err = v.values(ctx, look, instance); failure != nil || err != nil {
			return failure, err
		}
	}
	binding, err := instance.Binding(values, waits)
	if err != nil {
		return v.mistaken(err), nil
	}
	return v.bind(ctx, look, binding, instance.Rotation)
}

// bind adds a claim's binding, and the one that its workloads read on another cluster.
func (v *visit) bind(ctx context.Context, look *primaries.Look, binding primaries.Object, number int64) (*capabilities.Problem, error) {
	there, has := capabilities.ClusterBinding(v.claim, binding)
	look.Objects = append(look.Objects, binding)
	if has {
		look.Objects = append(look.Objects, there)
	}
	if binding.Object == nil {
		return nil, nil
	}
	if has {
		if err := v.k.objects.See(ctx, look, there.Identity()); err != nil {
			return nil, err
		}
	}
	if err := v.k.objects.See(ctx, look, binding.Identity()); err != nil {
		return nil, err
	}
	return v.mark(ctx, look, binding, number)
}

// whatIsMissing says what a binding waits for of all else that a claim has; empty for nothing.
func whatIsMissing(look primaries.Look, instance capabilities.Instance) string {
	if worst, found := primaries.Sum(look.Plan().Standings); found {
		return worst.Message
	}
	for _, object := range look.Objects {
		if object.Waits != "" {
			return object.ID + " " + object.Waits
		}
	}
	return instance.IsReady()
}

// values reads the keys of Secrets that the binding has.
func (v *visit) values(
	ctx context.Context,
	look *primaries.Look,
	instance *capabilities.Instance,
) (values map[string][]byte, waits string, failure *capabilities.Problem, err error) {
	asked, err := instance.SecretKeys()
	if err != nil {
		return nil, "", v.mistaken(err), nil
	}
	own := map[objects.ID]bool{}
	for _, known := range look.Known {
		own[primaries.IdentityOf(known)] = true
	}
	var read []objects.ID
	defer func() { v.k.secrets.reads(client.ObjectKeyFromObject(v.claim), read) }()
	values = map[string][]byte{}
	for _, key := range asked {
		if key.Waits != "" {
			return nil, key.Waits, nil, nil
		}
		read = append(read, key.ID)
		live, err := v.k.objects.Get(ctx, key.ID)
		switch {
		case err != nil:
			return nil, "", nil, err
		case live == nil:
			return nil, fmt.Sprintf("waits for %s, which does not exist yet", key.ID), nil, nil
		case !instance.Owns(own, live):
			return nil, "", &capabilities.Problem{
				Reason: v1alpha1.ReasonAccessDenied, Stalled: true,
				Message: fmt.Sprintf("%s is neither an object of the claim nor owned by one, and no other is read", key.ID),
			}, nil
		}
		held, failure, err := v.content(ctx, key.ID.Cluster, live)
		if failure != nil || err != nil {
			return nil, "", failure, err
		}
		value, has := held.data[key.In]
		if !has {
			return nil, capabilities.Missing(key), nil, nil
		}
		values[key.Key] = value
	}
	return values, "", nil, nil
}
