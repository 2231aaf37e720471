// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/internal/heldacts"
)

// actKeeper owns acts of people on objects of one kind, so that Flux does not drop them. It has
// one worker, and a queue of its own: a look may take as long as hosts are upgraded, and Flux
// applies what git has meanwhile.
type actKeeper struct {
	cache  cache.Cache
	client client.Client
	fresh  func() client.Object
	now    func() time.Time
	since  map[ctrl.Request]heldacts.Since
}

// keepActs has the acts on objects of a kind kept, by a controller of that name.
func keepActs(name string, mgr manager.Manager, of client.Object, gvk schema.GroupVersionKind, options controller.Options) error {
	k := &actKeeper{
		cache: mgr.GetCache(), client: mgr.GetClient(), fresh: func() client.Object { return of.DeepCopyObject().(client.Object) }, now: time.Now,
		since: map[ctrl.Request]heldacts.Since{},
	}
	c, err := newGuarded(name, mgr, of, gvk, controller.Options{
		Reconciler: k, MaxConcurrentReconciles: 1, NeedLeaderElection: options.NeedLeaderElection, SkipNameValidation: options.SkipNameValidation,
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), of, &handler.EnqueueRequestForObject{}, withActs)); err != nil {
		return fmt.Errorf("cannot watch the acts on objects of kind %s: %w", gvk.Kind, err)
	}
	return nil
}

// withActs passes what has acts, or had some. Of all other objects the cache keeps no
// managedFields.
var withActs = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return hasActs(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return hasActs(e.ObjectOld) || hasActs(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return hasActs(e.Object) },
}

func hasActs(object client.Object) bool { return len(object.GetManagedFields()) > 0 }

// Reconcile owns what is to be owned of one object, as the cache has it. It asks the API server
// for nothing, and writes where an act has come or is left to another manager.
func (k *actKeeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := k.fresh()
	if err := k.cache.Get(ctx, req.NamespacedName, object, client.UnsafeDisableDeepCopy); err != nil || !hasActs(object) {
		delete(k.since, req)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := k.now()
	decision := heldacts.Decide(object, k.since[req], now)
	if len(decision.Since) > 0 {
		k.since[req] = decision.Since
	} else {
		delete(k.since, req)
	}
	if decision.Write {
		err := k.own(ctx, object, decision.Own)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // what has changed comes as an event
			return ctrl.Result{}, fmt.Errorf("cannot keep annotations of people from being dropped by Flux: %w", err)
		}
	}
	if decision.Until.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(decision.Until.Sub(now), time.Second)}, nil
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
