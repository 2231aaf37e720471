// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// newFollows returns what follows the objects that claims only observe, each as the account of
// its provider.
func (k *Keeper) newFollows() *informers.Follows {
	return informers.NewFollows(func(cluster string, account types.NamespacedName) dynamic.Interface {
		if cluster == "" {
			return k.Accounts.Dynamic(account)
		}
		if k.Remotes == nil {
			return nil
		}
		return k.Remotes.Dynamic(cluster, account)
	}, func(readers []informers.Follower) { k.wake(readers) })
}

func claimReader(claim types.NamespacedName) informers.Follower {
	return informers.Follower{Kind: v1alpha1.CapabilityClaimKind, NamespacedName: claim}
}

// objects returns what the templates of an instance make, with what they observe. That is read
// until they name nothing more: what is observed may say what else is.
func (v *visit) objects(ctx context.Context, instance *capabilities.Instance) ([]primaries.Object, error) {
	following := map[objects.ID]bool{}
	for {
		made, err := instance.Objects()
		if err != nil {
			return nil, err
		}
		more := false
		for _, object := range made {
			id := object.Identity()
			if object.Mode != dependents.ModeObserve || object.Object == nil || following[id] {
				continue
			}
			following[id], more = true, true
			if err := v.follow(ctx, instance, object); err != nil {
				return nil, err
			}
		}
		if !more {
			v.k.follows.KeepAs(claimReader(client.ObjectKeyFromObject(v.claim)), following, v.account())
			return made, nil
		}
	}
}

// follow reads an object that is only observed, as the provider's account may.
func (v *visit) follow(ctx context.Context, instance *capabilities.Instance, of primaries.Object) error {
	id := of.Identity()
	kinds, err := v.k.objects.On(ctx, id.Cluster)
	if err != nil {
		return err
	}
	mapping, err := kinds.Mapping(id.GroupKind(), of.Object.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return nil // which is told, and waited for
	}
	if err != nil {
		return fmt.Errorf("cannot find out how %s is served: %w", id, err)
	}
	if _, failure, err := v.client(ctx, id.Cluster); failure != nil || err != nil {
		if err == nil {
			instance.Withhold(id, failure.Message)
		}
		return err
	}
	live, err := v.k.follows.GetAs(ctx, claimReader(client.ObjectKeyFromObject(v.claim)), id, mapping.Resource, v.account())
	switch {
	case apierrors.IsForbidden(err):
		why := accounts.FailureOf(v.account(), err)
		instance.Withhold(id, "cannot be read"+why.As+": "+why.Message)
	case err != nil:
		return fmt.Errorf("cannot read %s: %w", id, err)
	case live != nil:
		instance.Observe(id, live)
	}
	return nil
}
