// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
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
	follows := informers.NewFollows(func(cluster string, account types.NamespacedName) dynamic.Interface {
		if cluster == "" {
			return k.Accounts.Dynamic(account)
		}
		if k.Remotes == nil {
			return nil
		}
		return k.Remotes.Dynamic(cluster, account)
	}, k.wakeUps.wake)
	follows.Connections = func(cluster string) *informers.Connection {
		if k.Remotes == nil {
			return nil
		}
		return k.Remotes.Raw(cluster)
	}
	return follows
}

func claimReader(claim types.NamespacedName) informers.Follower {
	return informers.Follower{Kind: v1alpha1.CapabilityClaimKind, NamespacedName: claim}
}

// objects returns what an instance is made of, with what its templates, or its plug-in, observe.
// That is read until they name nothing more: what is observed may say what else is.
func (v *visit) objects(ctx context.Context, look *primaries.Look, instance *capabilities.Instance) ([]primaries.Object, *capabilities.Problem, error) {
	following := map[objects.ID]bool{}
	for round := 0; ; round++ {
		if round >= maxRounds && v.record.bound.Spec.Plugin != nil {
			return nil, invalidPlan(v.record.bound.Provider, fmt.Sprintf("observes something more each of %d times that it is asked", maxRounds)), nil
		}
		if problem, err := v.ask(ctx, look, instance); problem != nil || err != nil {
			return nil, problem, err
		}
		made, err := instance.Objects()
		var mistake *capabilities.Mistake
		if errors.As(err, &mistake) {
			return nil, v.mistaken(err), nil
		}
		if err != nil {
			return nil, nil, err
		}
		more := false
		for _, object := range made {
			id := object.Identity()
			if object.Mode != dependents.ModeObserve || object.Object == nil || following[id] {
				continue
			}
			following[id], more = true, true
			if err := v.follow(ctx, instance, object); err != nil {
				return nil, nil, err
			}
		}
		if !more {
			v.k.follows.KeepAs(claimReader(client.ObjectKeyFromObject(v.claim)), following, v.account())
			return made, nil, nil
		}
	}
}

// mistaken says what is wrong with what a provider makes.
func (v *visit) mistaken(err error) *capabilities.Problem {
	if v.record.bound.Spec.Plugin != nil {
		return invalidPlan(v.record.bound.Provider, "says what cannot be made: "+err.Error())
	}
	return invalid(v.record.bound.Provider, err)
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
