// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/heldacts"
)

// actKeeper owns acts of people on objects of one kind, so that Flux does not drop them.
type actKeeper struct {
	cache  cache.Cache
	client client.Client
	fresh  func() client.Object
	now    func() time.Time

	mu    sync.Mutex
	since map[ctrl.Request]heldacts.Since
}

// keep owns what is to be owned of one object, as the cache has it, and returns when that has
// to be decided again. It asks the API server for nothing, and writes where an act has come or
// is left to another manager. One that cannot be owned is tried again with the next look.
func (k *actKeeper) keep(ctx context.Context, req ctrl.Request) time.Time {
	object := k.fresh()
	if err := k.cache.Get(ctx, req.NamespacedName, object, client.UnsafeDisableDeepCopy); err != nil || len(object.GetManagedFields()) == 0 {
		k.remember(req, nil)
		return time.Time{}
	}
	decision := heldacts.Decide(object, k.remembered(req), k.now())
	if decision.Write {
		if err := k.own(ctx, object, decision.Own); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Error(err, "annotations of people cannot be kept from being dropped by Flux")
		}
	}
	k.remember(req, decision.Since)
	return decision.Until
}

// own applies the annotations, and nothing else, at the version that was seen: what somebody
// has taken off meanwhile is not brought back.
func (k *actKeeper) own(ctx context.Context, object client.Object, acts map[string]string) error {
	gvk, err := k.client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(gvk)
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	applied.SetUID(object.GetUID())
	applied.SetResourceVersion(object.GetResourceVersion())
	if len(acts) > 0 {
		applied.SetAnnotations(acts)
	}
	return k.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(heldacts.Manager), client.ForceOwnership)
}

func (k *actKeeper) remembered(req ctrl.Request) heldacts.Since {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.since[req]
}

func (k *actKeeper) remember(req ctrl.Request, since heldacts.Since) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(since) == 0 {
		delete(k.since, req)
		return
	}
	if k.since == nil {
		k.since = map[ctrl.Request]heldacts.Since{}
	}
	k.since[req] = since
}

// sooner returns the end of a look that is followed by another one no later than a moment.
func sooner(result ctrl.Result, until, now time.Time) ctrl.Result {
	if until.IsZero() {
		return result
	}
	if after := max(until.Sub(now), time.Second); result.RequeueAfter == 0 || result.RequeueAfter > after {
		result.RequeueAfter = after
	}
	return result
}

// hasActs tells whether people decide by annotations on objects of a kind.
func hasActs(of client.Object) bool {
	switch of.(type) {
	case *v1alpha1.AddonsLayer, *v1alpha1.Platform, *v1alpha1.RemoteCluster, *v1alpha1.HostCluster, *v1alpha1.CapabilityClaim:
		return true
	}
	return false
}
