// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// lender returns the claim of a name, with to whom it is bound.
func (k *Keeper) lender(ctx context.Context, key types.NamespacedName) (capabilities.Lender, error) {
	claim := &v1alpha1.CapabilityClaim{}
	err := k.Client.Get(ctx, key, claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return capabilities.Lender{}, fmt.Errorf("cannot read CapabilityClaim %s: %w", key, err)
	case err != nil || !k.isOwn(claim):
		return capabilities.Lender{}, nil
	}
	record, err := k.bound(ctx, claim)
	if err != nil || record == nil {
		return capabilities.Lender{Claim: claim}, err
	}
	return capabilities.Lender{Claim: claim, Bound: record.bound}, nil
}

// borrow returns the binding of a claim to the instance of another one; false where it asks
// for none.
func (v *visit) borrow(ctx context.Context, seeker capabilities.Seeker) (*capabilities.Bound, *capabilities.Problem, bool, error) {
	to, is := capabilities.BoundTo(v.claim)
	if !is {
		return nil, nil, false, nil
	}
	lender, err := v.k.lender(ctx, to)
	if err != nil {
		return nil, nil, true, err
	}
	bound, problem := seeker.Borrow(client.ObjectKeyFromObject(v.claim), to, lender)
	return bound, problem, true, nil
}

// shares tells whether a claim is bound to this one. One whose record is not signed is as far as
// it says so itself: it keeps what it has.
func (v *visit) shares(ctx context.Context, claim *v1alpha1.CapabilityClaim) (bool, error) {
	record, err := v.k.bound(ctx, claim)
	var unsigned *unsignedError
	if errors.As(err, &unsigned) {
		to, is := capabilities.BoundTo(claim)
		return is && to == client.ObjectKeyFromObject(v.claim), nil
	}
	return record != nil && record.bound.Shared != nil && record.bound.Shared.UID == v.claim.UID, err
}

// sharing returns the claims that are bound to this one and may be: by what is recorded of
// them, since anybody could name it, and a status could fail to.
func (v *visit) sharing(ctx context.Context) ([]*v1alpha1.CapabilityClaim, error) {
	list := &v1alpha1.CapabilityClaimList{}
	of := client.MatchingFields{indexCapability: strings.ToLower(v.claim.Spec.Capability)}
	if err := v.k.Client.List(ctx, list, of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list CapabilityClaims: %w", err)
	}
	var found []*v1alpha1.CapabilityClaim
	for i := range list.Items {
		claim := &list.Items[i]
		shares, err := v.shares(ctx, claim)
		if err != nil {
			return nil, err
		}
		if !shares {
			continue
		}
		labels, err := v.k.labelsOf(ctx, claim.Namespace)
		if err != nil {
			return nil, err
		}
		if capabilities.Allows(v.claim, claim.Namespace, labels) {
			found = append(found, claim)
		}
	}
	return found, nil
}

// observeShared is as observe, for a claim that is served by the instance of another one.
func (v *visit) observeShared(ctx context.Context, look primaries.Look) (primaries.Look, *capabilities.Problem, error) {
	if _, err := v.watch(ctx, &look, "", (&capabilities.Blueprint{}).Kinds()); err != nil {
		return look, nil, err
	}
	if err := v.k.objects.Read(ctx, &look); err != nil {
		return look, nil, err
	}
	bound := v.record.bound
	seeker, err := v.seeker(ctx)
	if err != nil {
		return look, nil, err
	}
	lender, err := v.k.lender(ctx, bound.Shared.Key())
	if err != nil {
		return look, nil, err
	}
	source := objects.ID{Kind: "Secret", Namespace: bound.Shared.Namespace, Name: capabilities.BindingNameOf(bound.Shared.Name)}
	owner := string(bound.Shared.UID)
	withdrawn := bound.Withdrawn(seeker, lender)
	if withdrawn != "" { // it stays with what it has
		v.outdated = withdrawn
		source, owner = v.bindingID(), look.Owner
	}
	v.k.secrets.reads(client.ObjectKeyFromObject(v.claim), []objects.ID{source})
	live, err := v.k.kinds.Get(ctx, source)
	if err != nil {
		return look, nil, err
	}
	if live == nil || live.GetLabels()[v1alpha1.ClaimLabel] != owner {
		if withdrawn != "" {
			return look, &capabilities.Problem{Reason: v1alpha1.ReasonNotShared, Message: withdrawn, Stalled: true}, nil
		}
		failure, err := v.bind(ctx, &look, capabilities.Borrowed(v.claim, bound, nil, "waits for the binding of CapabilityClaim "+bound.Shared.Key().String()), 0)
		return look, failure, err
	}
	held, failure, err := v.content(ctx, "", live)
	if failure != nil || err != nil {
		return look, failure, err
	}
	number := held.rotation.Number
	if failure, err := v.bind(ctx, &look, capabilities.Borrowed(v.claim, bound, held.data, ""), number); failure != nil || err != nil {
		return look, failure, err
	}
	return look, nil, v.passOn(ctx, look, lender, number)
}

// passOn says whether the releases that read the binding have the passwords that the lender
// has got, for as long as it waits for that.
func (v *visit) passOn(ctx context.Context, look primaries.Look, lender capabilities.Lender, number int64) error {
	v.rotating = ""
	if number == 0 || lender.Claim == nil {
		return nil
	}
	taking, err := v.taking(ctx, look, number)
	if err != nil {
		return err
	}
	if taking.IsOver() && !capabilities.IsRotating(lender.Claim) {
		return nil
	}
	v.wait(taking)
	return nil
}
