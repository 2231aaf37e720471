// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/ownwrites"
	"github.com/strata-project/strata/internal/round"
	"github.com/strata-project/strata/internal/trim"
)

const (
	// interval is how often a primary is looked at although nothing has happened, and jitter
	// spreads that.
	interval = 10 * time.Minute
	jitter   = 0.05
	// minRetry and maxRetry bound the back-off after errors.
	minRetry = 200 * time.Millisecond
	maxRetry = 2 * time.Minute
	// writeTimeout bounds the write of a status.
	writeTimeout = 15 * time.Second
	// indexUID is the name of the field index of UIDs.
	indexUID = "primary.uid"
)

// engine keeps the primaries of a kind.
type engine[P Object] struct {
	kind   Kind[P]
	gvk    schema.GroupVersionKind
	mgr    manager.Manager
	keys   dependents.Keys
	events events.EventRecorder
	// objects are those that primaries have, and observed those that others make.
	objects  *keeping.Objects
	observed *keeping.Objects
	executor *apply.Executor
	// written are the primaries as this process has written them last.
	written ownwrites.Newest[P]
	// digests keys what is told of Secrets: with each process anew, so that each is applied
	// once more after a start, which changes nothing.
	digests digests.Key
}

// Register has a manager keep the primaries of a kind. Its scheme must know the kind, and its
// client's user must have the rights to all that they want. Objects of primaries have the label
// GROUP/primary with the UID of theirs, and primaries have the finalizer GROUP/primary.
func Register[P Object](mgr manager.Manager, kind Kind[P]) error {
	if err := kind.check(); err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(kind.New(), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("cannot keep primaries of a kind: %w", err)
	}
	e := &engine[P]{kind: kind, gvk: gvk, mgr: mgr, events: mgr.GetEventRecorder(strings.ToLower(gvk.Kind))}
	e.keys = dependents.Keys{
		Owner: gvk.Group + "/primary", Orphaned: gvk.Group + "/orphaned", SuspendedByHold: v1alpha1.SuspendedByHoldAnnotation,
		SupersededBy: v1alpha1.SupersededByAnnotation, CreatedFor: v1alpha1.CreatedForAnnotation, Abandon: v1alpha1.AbandonAnnotation,
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // which never fails
	if e.digests, err = digests.NewKey(secret); err != nil {
		return err
	}
	return e.setup()
}

func (e *engine[P]) setup() error {
	owned, err := labels.NewRequirement(e.keys.Owner, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("cannot select objects: %w", err)
	}
	own, err := cache.New(e.mgr.GetConfig(), cache.Options{
		Scheme: e.mgr.GetScheme(), Mapper: e.mgr.GetRESTMapper(), HTTPClient: e.mgr.GetHTTPClient(),
		DefaultTransform: trim.Object, DefaultLabelSelector: labels.NewSelector().Add(*owned),
	})
	if err != nil {
		return fmt.Errorf("cannot make a cache: %w", err)
	}
	if err := e.mgr.Add(keeping.LedCache{Cache: own}); err != nil {
		return fmt.Errorf("cannot add a cache: %w", err)
	}
	err = e.mgr.GetFieldIndexer().IndexField(context.Background(), e.kind.New(), indexUID, func(obj client.Object) []string {
		return []string{string(obj.GetUID())}
	})
	if err != nil {
		return fmt.Errorf("cannot index %s: %w", e.gvk.Kind, err)
	}
	c, err := looks.NewController(strings.ToLower(e.gvk.Kind), e.mgr, e.kind.New(), controller.Options{
		Reconciler:              reconcile.Func(e.look),
		MaxConcurrentReconciles: max(e.kind.Concurrent, 1),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry),
	})
	if err != nil {
		return err
	}
	recent := ownwrites.NewObjects()
	e.objects = e.newObjects(c, own, recent, e.ownerOf)
	e.observed = e.newObjects(c, e.mgr.GetCache(), recent, e.observersOf)
	e.executor = e.objects.Executor(e.mgr.GetClient(), 0)
	if err := c.Watch(source.Kind(e.mgr.GetCache(), client.Object(e.kind.New()), &handler.EnqueueRequestForObject{}, keeping.SpecChanged)); err != nil {
		return fmt.Errorf("cannot watch %s: %w", e.gvk.Kind, err)
	}
	return nil
}

// newObjects returns the objects of a cache, of which none is watched yet.
func (e *engine[P]) newObjects(c controller.Controller, of cache.Cache, recent *ownwrites.Objects, wakes handler.MapFunc) *keeping.Objects {
	kinds := informers.NewKinds(
		informers.Cluster{Client: e.mgr.GetClient(), Past: e.mgr.GetAPIReader(), Cache: of, Reader: of},
		informers.Wiring{
			Watch:  func(s source.Source) error { return c.Watch(s) },
			Handle: func(string, schema.GroupKind) handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(wakes) },
			Passes: func(string, schema.GroupKind) predicate.Predicate { return predicate.Funcs{} },
		},
	)
	return &keeping.Objects{Keys: e.keys, Kinds: kinds, Recent: recent}
}

// ownerOf returns the primary that an object is of, by its label.
func (e *engine[P]) ownerOf(ctx context.Context, obj client.Object) []ctrl.Request {
	uid := obj.GetLabels()[e.keys.Owner]
	if uid == "" {
		return nil
	}
	return e.primaries(ctx, client.MatchingFields{indexUID: uid})
}

// observersOf returns the primaries that wait for an object that others make: those of its
// namespace.
func (e *engine[P]) observersOf(ctx context.Context, obj client.Object) []ctrl.Request {
	return e.primaries(ctx, client.InNamespace(obj.GetNamespace()))
}

func (e *engine[P]) primaries(ctx context.Context, options ...client.ListOption) []ctrl.Request {
	list, err := e.mgr.GetScheme().New(e.gvk.GroupVersion().WithKind(e.gvk.Kind + "List"))
	if err != nil {
		return nil // of a scheme that knows the kind
	}
	of, is := list.(client.ObjectList)
	if !is || e.mgr.GetClient().List(ctx, of, append(options, client.UnsafeDisableDeepCopy)...) != nil {
		return nil
	}
	var found []ctrl.Request
	_ = meta.EachListItem(of, func(item runtime.Object) error { // of a list, which it is
		if obj, is := item.(client.Object); is {
			found = append(found, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	return found
}

// look looks at one primary.
func (e *engine[P]) look(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	after, err := round.Outcome(e.reconcile(ctx, req.NamespacedName))
	return ctrl.Result{RequeueAfter: after}, err
}

func (e *engine[P]) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	cached := e.kind.New()
	if err := e.mgr.GetClient().Get(ctx, key, cached); err != nil {
		if !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("cannot read %s %s: %w", e.gvk.Kind, key, err)
		}
		e.written.Forget(key)
		return 0, nil
	}
	stored := e.written.Of(cached)
	v := &visit[P]{engine: e, stored: stored, primary: copyOf(stored), now: time.Now()}
	switch deleting := stored.GetDeletionTimestamp() != nil; {
	case deleting && !hasFinalizer(stored, e.keys.Owner):
		return 0, nil
	case deleting:
		return v.remove(ctx)
	}
	return v.keep(ctx)
}

// safetyNet returns when a primary is looked at again in any case.
func safetyNet() time.Duration { return wait.Jitter(interval, jitter) }
