// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// find adds to what is known of the claim the objects that have its label, on some clusters: a
// status, which others may write, takes none of them from it. Of those it is not known by which
// IDs the provider has them.
func (v *visit) find(ctx context.Context, look *primaries.Look, clusters []string) error {
	all, err := v.kindsOfRecords(ctx)
	if err != nil {
		return err
	}
	listed := map[objects.ID]bool{}
	for _, known := range look.Known {
		listed[primaries.IdentityOf(known)] = true
	}
	found := slices.Clone(look.Known)
	for _, cluster := range clusters {
		if _, err := v.k.objects.Watch(ctx, look, cluster, all); err != nil {
			return err
		}
		served, err := v.k.objects.On(ctx, cluster)
		if err != nil {
			return err
		}
		for _, gvk := range all {
			labelled := client.MatchingLabels{v1alpha1.ClaimLabel: look.Owner}
			items, err := served.List(ctx, gvk.GroupKind(), labelled)
			if err != nil {
				return fmt.Errorf("cannot list what the claim has: %w", err)
			}
			for i := range items {
				one := foundObject(&items[i], gvk.GroupKind(), cluster)
				if id := primaries.IdentityOf(one); !listed[id] && metav1.GetControllerOf(&items[i]) == nil {
					listed[id] = true
					found = append(found, one)
				}
			}
		}
	}
	look.Known = found
	return nil
}

// foundObject lists an object that was found by its label.
func foundObject(live *unstructured.Unstructured, kind schema.GroupKind, cluster string) v1alpha1.Dependent {
	return v1alpha1.Dependent{Group: kind.Group, Kind: kind.Kind, Namespace: live.GetNamespace(), Name: live.GetName(), Cluster: cluster}
}

// kindsOfRecords returns the kinds that the claim may have objects of, by all that it was ever
// bound to, each once.
func (v *visit) kindsOfRecords(ctx context.Context) ([]schema.GroupVersionKind, error) {
	all := []*record{v.record}
	recorded, err := v.k.recordsOf(ctx, v.claim.UID)
	if err != nil {
		return nil, err
	}
	for i := range recorded {
		if !v.k.isSigned(capabilities.RecordOfClaim, v.claim.UID, &recorded[i]) {
			continue
		}
		if earlier, err := decodeRecord(&recorded[i]); err == nil {
			all = append(all, earlier)
		}
	}
	var found []schema.GroupVersionKind
	seen := map[schema.GroupKind]bool{}
	add := func(gvk schema.GroupVersionKind) {
		if !seen[gvk.GroupKind()] {
			seen[gvk.GroupKind()] = true
			found = append(found, gvk)
		}
	}
	for _, one := range all {
		if plan := v.k.plans.understand(one.digest, one.bound.Spec); plan.blueprint != nil {
			for _, gvk := range plan.blueprint.Kinds() {
				add(gvk)
			}
		}
		if plugin := one.bound.Spec.Plugin; plugin != nil {
			for _, kind := range plugin.Kinds {
				add(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
			}
		}
	}
	return found, nil
}

// clustersOf returns the clusters that the claim may have objects on, by what it is bound to: the
// one that Strata runs in first.
func (v *visit) clustersOf(ctx context.Context) ([]string, error) {
	found := []string{""}
	cluster, _ := capabilities.Place(v.record.bound.Spec, v.claim, v.k.Settings.Namespace)
	for _, one := range []string{cluster, capabilities.ClusterOf(v.claim)} {
		if slices.Contains(found, one) {
			continue
		}
		is, err := v.k.isCluster(ctx, one)
		if err != nil {
			return nil, err
		}
		if is {
			found = append(found, one)
		}
	}
	return found, nil
}

// known returns a look at all that the claim has: what its status lists, where that is the
// controller's own list, and what has its label. A claim that goes is not let go by what lists
// nothing.
func (v *visit) known(ctx context.Context) (primaries.Look, error) {
	look := v.newLook()
	deleting := !v.claim.DeletionTimestamp.IsZero()
	if v.record == nil || v.listed && !deleting {
		return look, nil
	}
	if !v.listed {
		clusters, err := v.clustersOf(ctx)
		if err != nil {
			return look, err
		}
		return look, v.find(ctx, &look, clusters)
	}
	clusters := []string{""}
	for _, known := range look.Known {
		if !slices.Contains(clusters, known.Cluster) {
			clusters = append(clusters, known.Cluster)
		}
	}
	return look, v.find(ctx, &look, clusters)
}

// bindingOf returns the live Secret of a claim's binding; nil where there is none that is its own.
func (k *Keeper) bindingOf(ctx context.Context, claim *v1alpha1.CapabilityClaim) (*unstructured.Unstructured, error) {
	id := objects.ID{Kind: secretKind.Kind, Namespace: claim.Namespace, Name: capabilities.BindingName(claim)}
	live, err := k.kinds.Get(ctx, id)
	if err != nil || live == nil || types.UID(live.GetLabels()[v1alpha1.ClaimLabel]) != claim.UID {
		return nil, err
	}
	return live, nil
}
