// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/capabilities"
)

// countLag is how late the number of a provider's claims may be, so that many new ones are
// one write.
const countLag = 5 * time.Second

// providersOf returns who has a capability, in this controller's care.
func (k *Keeper) providersOf(ctx context.Context, capability string) ([]capabilities.Provider, error) {
	list := &v1alpha1.CapabilityProviderList{}
	err := k.Client.List(ctx, list, client.MatchingFields{indexCapability: strings.ToLower(capability)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list CapabilityProviders: %w", err)
	}
	found := make([]capabilities.Provider, 0, len(list.Items))
	for i := range list.Items {
		provider := &list.Items[i]
		if !k.isOwn(provider) || !provider.DeletionTimestamp.IsZero() {
			continue
		}
		spec, lacks := k.promise(ctx, provider)
		known, err := k.understand(spec)
		if err != nil {
			return nil, err
		}
		found = append(found, capabilities.Provider{Name: provider.Name, Labels: provider.Labels, Spec: spec, Blueprint: known.blueprint, Lacks: lacks})
	}
	return found, nil
}

func (k *Keeper) understand(spec v1alpha1.CapabilityProviderSpec) (understood, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return understood{}, fmt.Errorf("cannot read a CapabilityProvider: %w", err)
	}
	return k.plans.understand(sha256.Sum256(data), spec), nil
}

// reconcileProvider says how a provider fares.
func (k *Keeper) reconcileProvider(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	provider := &v1alpha1.CapabilityProvider{}
	if err := k.Client.Get(ctx, req.NamespacedName, provider); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("cannot read CapabilityProvider %s: %w", req.Name, err)
	}
	if !k.isOwn(provider) || !provider.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	claims := &v1alpha1.CapabilityClaimList{}
	of := client.MatchingFields{indexCapability: strings.ToLower(provider.Spec.Capability)}
	if err := k.Client.List(ctx, claims, of, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("cannot list CapabilityClaims: %w", err)
	}
	bound := int32(0)
	for i := range claims.Items {
		if claims.Items[i].Status.Provider == provider.Name {
			bound++
		}
	}
	var problems []string
	plugin, err := k.plugin(ctx, provider)
	if err != nil {
		return 0, err
	}
	if plugin.unknown && provider.Status.Plugin != nil && provider.Status.ObservedGeneration == provider.Generation {
		return plugin.again, nil // what it was before this process began, it is until more is known
	}
	again := plugin.again
	if plugin.problem != "" {
		problems = append(problems, plugin.problem)
	}
	spec, _ := k.promise(ctx, provider)
	known, err := k.understand(spec)
	if err != nil {
		return 0, err
	}
	problems = append(problems, known.problems...)
	if err := k.checkAccount(k.account(provider.Spec)); err != nil {
		problems = append(slices.Clone(problems), err.Error())
	}
	patched := provider.DeepCopy()
	patched.Status = capabilities.ProviderStatus(provider, spec, problems, bound, k.now())
	if patched.Status.Plugin = plugin.serves; plugin.serves == nil {
		patched.Status.Plugin = plugin.served // which says that something of it runs
	}
	if equality.Semantic.DeepEqual(patched.Status, provider.Status) {
		return again, nil
	}
	if err := apply.PatchStatus(ctx, k.Client, patched, provider); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if k.Tell != nil {
		k.Tell(patched, v1alpha1.CapabilityProviderKind, "", patched.Status.Conditions, provider.Status.Conditions)
	}
	return again, nil
}

// plugin looks after the plug-in of a provider, records which one serves, and removes what runs of
// others.
func (k *Keeper) plugin(ctx context.Context, provider *v1alpha1.CapabilityProvider) (offer, error) {
	known, err := k.recall(ctx, provider)
	if err != nil {
		return offer{}, err
	}
	if provider.Spec.Plugin == nil && known.number == 0 {
		return offer{}, nil
	}
	made := offer{}
	if provider.Spec.Plugin != nil {
		made = k.offers(ctx, provider)
		if of := made.serves; of != nil && of.Digest == provider.Spec.Plugin.Digest && of.Image == provider.Spec.Plugin.Image {
			if err := k.remember(ctx, provider, *of); err != nil {
				return offer{}, err
			}
		}
	}
	left := k.withdraw(ctx, provider)
	if provider.Spec.Plugin == nil && !left {
		if err := k.forgetServed(ctx, provider, 0); err != nil {
			return offer{}, err
		}
		k.served.forget(provider.UID)
		return made, nil
	}
	if last, _ := k.served.get(provider.UID); last.last != nil {
		made.served = &last.last.Plugin
	}
	return made, nil
}
