// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

func (v *visit) bindingID() objects.ID {
	return objects.ID{Kind: "Secret", Namespace: v.claim.Namespace, Name: capabilities.BindingName(v.claim)}
}

// mark notes on a binding that is wanted which passwords it has, and who had others before.
func (v *visit) mark(ctx context.Context, look *primaries.Look, binding primaries.Object, number int64) (*capabilities.Problem, error) {
	if binding.Object == nil || number == 0 {
		return nil, nil
	}
	live := keeping.Own(*look, v.bindingID())
	var before map[string][]byte
	var releases []*unstructured.Unstructured
	if live != nil && capabilities.RotationOf(live).Number != number {
		held, failure, err := v.content(ctx, "", live)
		if failure != nil || err != nil {
			return failure, err
		}
		before = held.data
		if releases, err = v.releases(ctx, v.claim.Namespace); err != nil {
			return nil, err
		}
	}
	capabilities.Mark(binding.Object, live, before, number, releases, v.now)
	return nil, nil
}

// taking reads what tells whether passwords were taken by all who had others before.
func (v *visit) taking(ctx context.Context, look primaries.Look, number int64) (capabilities.Taking, error) {
	releases, err := v.releases(ctx, v.claim.Namespace)
	if err != nil {
		return capabilities.Taking{}, err
	}
	taking := capabilities.Taking{Claim: v.claim, Number: number, Releases: releases, Now: v.now}
	if live := keeping.Own(look, v.bindingID()); live != nil {
		taking.Binding = capabilities.RotationOf(live)
	}
	sharing, err := v.sharing(ctx)
	if err != nil {
		return taking, err
	}
	for _, claim := range sharing {
		of, err := v.takingOf(ctx, claim, number)
		if err != nil {
			return taking, err
		}
		taking.Sharing = append(taking.Sharing, of)
	}
	return taking, nil
}

// takingOf is as taking, of a claim that is bound to this one: by its live binding, and not by its
// status.
func (v *visit) takingOf(ctx context.Context, claim *v1alpha1.CapabilityClaim, number int64) (capabilities.Taking, error) {
	taking := capabilities.Taking{Claim: claim, Number: number, Now: v.now}
	binding, err := v.k.bindingOf(ctx, claim)
	if err != nil {
		return taking, err
	}
	if binding != nil {
		taking.Binding = capabilities.RotationOf(binding)
	}
	taking.Releases, err = v.releases(ctx, claim.Namespace)
	return taking, err
}

// wait notes until when passwords of before are valid. It returns true where they need not be
// any longer.
func (v *visit) wait(taking capabilities.Taking) bool {
	waits, until := taking.Waits()
	v.rotating = waits
	if !until.IsZero() {
		v.again = max(until.Sub(v.now), time.Second)
	}
	return waits == ""
}

// releases returns the HelmReleases of a namespace, in the cache's copies.
func (v *visit) releases(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	scope, err := v.k.kinds.Scope(releaseVersion.GroupKind(), releaseVersion.Version)
	if err != nil || scope == objects.ScopeUnknown {
		return nil, err
	}
	if err := v.k.releases.watch(); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(releaseVersion.GroupVersion().WithKind(releaseVersion.Kind + "List"))
	if err := v.k.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list HelmReleases: %w", err)
	}
	found := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}
