// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/reserved"
)

// ownerQuestion asks whether the owner of a kept name exists.
type ownerQuestion struct{ of, owner objects.ID }

func (q ownerQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q ownerQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (bool, error) {
	var err error
	switch q.owner.Kind {
	case v1alpha1.HostClusterKind:
		err = r.Client.Get(ctx, q.owner.Key(), &v1alpha1.HostCluster{}, client.UnsafeDisableDeepCopy)
	case v1alpha1.CapabilityClaimKind:
		err = r.Client.Get(ctx, q.owner.Key(), &v1alpha1.CapabilityClaim{}, client.UnsafeDisableDeepCopy)
	case v1alpha1.CapabilityProviderKind: // of which the name has no more than a digest
		list := &v1alpha1.CapabilityProviderList{}
		err = r.Client.List(ctx, list, client.MatchingFields{indexPlugin: q.of.Key().String()}, client.UnsafeDisableDeepCopy)
		if err == nil {
			return len(list.Items) > 0, nil
		}
	default:
		return false, fmt.Errorf("whether %s exists is not known", q.owner)
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read %s: %w", q.owner, err)
	}
	return true, nil
}

func (q ownerQuestion) answer(exists bool) string { return strconv.FormatBool(exists) }

// namedQuestion asks what a Secret is kept for by what refers to it.
type namedQuestion struct{ secret objects.ID }

func (q namedQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q namedQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	clusters, hosts := &v1alpha1.RemoteClusterList{}, &v1alpha1.HostClusterList{}
	providers, layers := &v1alpha1.CapabilityProviderList{}, &v1alpha1.AddonsLayerList{}
	for _, lookUp := range []struct {
		list         client.ObjectList
		field, value string
	}{
		{clusters, indexKubeConfig, q.secret.String()},
		{hosts, indexSecrets, q.secret.String()},
		{providers, indexSecrets, q.secret.String()},
		{layers, indexSecrets, q.secret.Name},
	} {
		if err := r.Client.List(ctx, lookUp.list, client.MatchingFields{lookUp.field: lookUp.value}, client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("cannot find out what refers to %s: %w", q.secret, err)
		}
	}
	return placement.Referrers{
		Clusters: pointers(clusters.Items), Hosts: pointers(hosts.Items), Providers: pointers(providers.Items), Layers: pointers(layers.Items),
		NamespaceOf: r.Settings.NamespaceFor,
	}.Kept(q.secret), nil
}

// pointers returns pointers to the items of a list, which are the cache's own.
func pointers[T any](items []T) []*T {
	found := make([]*T, 0, len(items))
	for i := range items {
		found = append(found, &items[i])
	}
	return found
}

func (q namedQuestion) answer(kept string) string { return kept }

// bindingQuestion asks whether a Secret is the binding of a claim of a RemoteCluster.
type bindingQuestion struct {
	secret  objects.ID
	cluster string
}

func (q bindingQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q bindingQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (*v1alpha1.CapabilityClaim, error) {
	name, is := kinds.ClaimOfBinding(q.secret.Name)
	if !is {
		return nil, nil
	}
	claim := &v1alpha1.CapabilityClaim{}
	key := q.secret.Key()
	key.Name = name
	switch err := r.Client.Get(ctx, key, claim, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read CapabilityClaim %s: %w", key, err)
	case claim.Spec.Cluster != q.cluster:
		return nil, nil
	}
	return claim, nil
}

func (q bindingQuestion) answer(claim *v1alpha1.CapabilityClaim) string {
	if claim == nil {
		return ""
	}
	return string(claim.UID)
}

// kept says what a Secret is kept for by the owner of its name, or by what refers to it,
// and whether it is the binding of a claim of the layer's cluster.
func (o *observer) kept(ctx context.Context, place placement.Place, at objects.ID, seen *placement.Looked) error {
	claim, err := read(ctx, o.reads, bindingQuestion{at, place.Cluster.Name})
	if err != nil {
		return err
	}
	if isOfClaim := claim != nil && seen.Object != nil && seen.Object.GetLabels()[v1alpha1.ClaimLabel] == string(claim.UID); isOfClaim &&
		at.Cluster == "" && at.Namespace == place.Cluster.Namespace {
		seen.IsBinding = true
		return nil
	}
	if seen.Kept, err = read(ctx, o.reads, namedQuestion{at}); err != nil || seen.Kept != "" {
		return err
	}
	for _, owner := range reserved.Owners(at) {
		exists, err := read(ctx, o.reads, ownerQuestion{at, owner.ID})
		if err != nil {
			return err
		}
		if exists && !reserved.IsBinding(at) {
			seen.Kept = owner.Keeps
		}
	}
	return nil
}
