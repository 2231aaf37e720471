// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/looks"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

func (k *Keeper) setupClaims(mgr manager.Manager) error {
	c, err := k.newController(mgr, "capabilityclaim", &v1alpha1.CapabilityClaim{}, k.reconcileClaim, max(k.Concurrent, 1))
	if err != nil {
		return err
	}
	k.wired = k.wiring(func(s source.Source) error { return c.Watch(s) })
	k.kinds = informers.NewKinds(informers.Cluster{Client: k.Client, Past: k.Reader, Cache: k.own, Reader: k.own}, k.wired)
	k.objects = &keeping.Objects{Keys: keys, Kinds: k.kinds, Other: k.kindsOn, Recent: k.recent, Reserved: k.Settings.ReservedForClaims}
	k.executor = k.objects.Executor(k.Client, k.PlanValid)
	k.releases.begin = func() error { return watchAll(c, k.releaseWatch(mgr)) }
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionVersion)
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceVersion)
	note := &metav1.PartialObjectMetadata{}
	note.SetGroupVersionKind(secretKind.WithVersion("v1"))
	main := mgr.GetCache()
	if k.Remotes != nil {
		remote := client.Object(&v1alpha1.RemoteCluster{})
		err := watchAll(c, source.Kind(main, remote, handler.EnqueueRequestsFromMapFunc(k.claimsOnCluster), clusterChanged))
		if err != nil {
			return err
		}
	}
	return watchAll(
		c,
		source.Func(k.takeWakeUps),
		source.Kind(main, client.Object(&v1alpha1.CapabilityClaim{}), &handler.EnqueueRequestForObject{}, keeping.SpecChanged),
		source.Kind(main, client.Object(&v1alpha1.CapabilityClaim{}), handler.EnqueueRequestsFromMapFunc(k.claimsThatShare), shareChanged),
		source.Kind(main, client.Object(&v1alpha1.CapabilityProvider{}), handler.EnqueueRequestsFromMapFunc(k.claimsOfProvider), keeping.SpecChanged),
		source.Kind(main, client.Object(namespace), handler.EnqueueRequestsFromMapFunc(k.claimsIn), predicate.LabelChangedPredicate{}),
		source.Kind(main, client.Object(crd), handler.EnqueueRequestsFromMapFunc(k.redefined(k.kinds))),
		source.Kind(k.own, client.Object(&appsv1.ControllerRevision{}), handler.EnqueueRequestsFromMapFunc(k.claimOf), onlyDeletes),
		source.Kind(k.own, client.Object(note), handler.EnqueueRequestsFromMapFunc(k.claimsToSign), predicate.AnnotationChangedPredicate{}),
	)
}

// releaseWatch wakes the claims that a release has let go, or whose passwords it has taken.
func (k *Keeper) releaseWatch(mgr manager.Manager) source.Source {
	release := &unstructured.Unstructured{}
	release.SetGroupVersionKind(releaseVersion)
	return source.Kind(mgr.GetCache(), client.Object(release), handler.EnqueueRequestsFromMapFunc(k.claimsThatWaitFor), released)
}

// releases are watched once somebody asks for them: where Flux is not installed there are
// none, and a watch of them would never begin.
type releases struct {
	mu      sync.Mutex
	begin   func() error
	watched bool
}

// watch begins the watch, unless that has begun.
func (r *releases) watch() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	r.watched = true
	return nil
}

func (k *Keeper) setupProviders(mgr manager.Manager) error {
	c, err := k.newController(mgr, "capabilityprovider", &v1alpha1.CapabilityProvider{}, k.reconcileProvider, max(k.Concurrent, 1))
	if err != nil {
		return err
	}
	later := func(q queue, obj client.Object) {
		if name := obj.(*v1alpha1.CapabilityClaim).Status.Provider; name != "" {
			q.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}, countLag)
		}
	}
	counts := handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { later(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*v1alpha1.CapabilityClaim), e.ObjectNew.(*v1alpha1.CapabilityClaim)
			if was.Status.Provider != is.Status.Provider {
				later(q, was)
				later(q, is)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(q, e.Object) },
	}
	return watchAll(
		c,
		source.Kind(mgr.GetCache(), client.Object(&v1alpha1.CapabilityProvider{}), &handler.EnqueueRequestForObject{}, keeping.SpecChanged),
		source.Kind(mgr.GetCache(), client.Object(&v1alpha1.CapabilityClaim{}), counts),
		source.Func(func(_ context.Context, q queue) error {
			k.providerWakeUps.to(q)
			return nil
		}),
	)
}

func (k *Keeper) newController(
	mgr manager.Manager,
	name string,
	of client.Object,
	do func(context.Context, ctrl.Request) (time.Duration, error),
	concurrent int,
) (controller.Controller, error) {
	return looks.NewController(name, mgr, of, controller.Options{
		Reconciler: reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			return k.look(ctx, req, do)
		}),
		MaxConcurrentReconciles: concurrent,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry),
	})
}

func watchAll(c controller.Controller, sources ...source.Source) error {
	for _, each := range sources {
		if err := c.Watch(each); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return nil
}

// onlyDeletes passes that something has gone.
var onlyDeletes = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// shareChanged passes what concerns claims that are bound to another one, and that one.
var shareChanged = predicate.Or[client.Object](keeping.SpecChanged, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*v1alpha1.CapabilityClaim).Status, e.ObjectNew.(*v1alpha1.CapabilityClaim).Status
	differs := func(condition string) bool {
		return meta.IsStatusConditionTrue(was.Conditions, condition) != meta.IsStatusConditionTrue(is.Conditions, condition)
	}
	return was.Provider != is.Provider || was.Version != is.Version || was.Rotation != is.Rotation ||
		differs(v1alpha1.RotatingCondition) || differs(v1alpha1.ReadyCondition)
}})

// released passes that a release reads other values, has taken some, or goes.
var released = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isOld := e.ObjectOld.(*unstructured.Unstructured)
		is, isNew := e.ObjectNew.(*unstructured.Unstructured)
		return isOld && isNew && (was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
			capabilities.HasTaken(was) != capabilities.HasTaken(is) || !equality.Semantic.DeepEqual(kinds.ValueKeysOf(was), kinds.ValueKeysOf(is)))
	},
}

// objectHandler wakes the claim that has an object, and those that read it.
func (k *Keeper) objectHandler(string, schema.GroupKind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		found := k.claimOf(ctx, obj)
		for _, reader := range k.secrets.readersOf(client.ObjectKeyFromObject(obj)) {
			found = append(found, ctrl.Request{NamespacedName: reader})
		}
		return found
	})
}

// objectPasses passes what is of claims: of Secrets, whose metadata are all in the cache, only
// those that claims have or read.
func (k *Keeper) objectPasses(_ string, gk schema.GroupKind) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return gk != secretKind || obj.GetLabels()[v1alpha1.ClaimLabel] != "" || len(k.secrets.readersOf(client.ObjectKeyFromObject(obj))) > 0
	})
}

// claimOf returns the claim that has an object, by its label.
func (k *Keeper) claimOf(ctx context.Context, obj client.Object) []ctrl.Request {
	uid := obj.GetLabels()[v1alpha1.ClaimLabel]
	if uid == "" {
		return nil
	}
	return k.claims(ctx, func(*v1alpha1.CapabilityClaim) bool { return true }, client.MatchingFields{indexUID: uid})
}

// claimsOfProvider returns the claims of what a provider has.
func (k *Keeper) claimsOfProvider(ctx context.Context, obj client.Object) []ctrl.Request {
	capability := strings.ToLower(obj.(*v1alpha1.CapabilityProvider).Spec.Capability)
	return k.claims(ctx, func(*v1alpha1.CapabilityClaim) bool { return true }, client.MatchingFields{indexCapability: capability})
}

// claimsThatShare returns the claims that are bound to a claim, and those that it is bound to.
func (k *Keeper) claimsThatShare(ctx context.Context, obj client.Object) []ctrl.Request {
	found := k.claims(ctx, func(*v1alpha1.CapabilityClaim) bool { return true }, client.MatchingFields{indexBoundTo: client.ObjectKeyFromObject(obj).String()})
	for _, key := range boundTo(obj.(*v1alpha1.CapabilityClaim)) {
		namespace, name, _ := strings.Cut(key, "/")
		found = append(found, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return found
}

// claimsIn returns the claims of a namespace that nobody serves, or another claim's instance.
func (k *Keeper) claimsIn(ctx context.Context, obj client.Object) []ctrl.Request {
	return k.claims(ctx, func(claim *v1alpha1.CapabilityClaim) bool {
		return claim.Status.Provider == "" || claim.Status.BoundTo != nil
	}, client.InNamespace(obj.GetName()))
}

// claimsThatWaitFor returns the claims that wait for a release to let them go, or to take their
// passwords.
func (k *Keeper) claimsThatWaitFor(ctx context.Context, obj client.Object) []ctrl.Request {
	return k.claims(ctx, func(claim *v1alpha1.CapabilityClaim) bool {
		return !claim.DeletionTimestamp.IsZero() || capabilities.IsRotating(claim)
	}, client.InNamespace(obj.GetNamespace()))
}

// redefined returns what finds the claims that are not ready: their kinds may be served now, on
// the cluster of some kinds.
func (k *Keeper) redefined(of *informers.Kinds) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []ctrl.Request {
		_, group, _ := strings.Cut(obj.GetName(), ".")
		of.Define(group, k.now())
		of.Redefined(obj.GetName())
		return k.claims(ctx, func(claim *v1alpha1.CapabilityClaim) bool {
			return claim.Status.Provider != "" && !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha1.ReadyCondition)
		})
	}
}

func (k *Keeper) claims(ctx context.Context, is func(*v1alpha1.CapabilityClaim) bool, options ...client.ListOption) []ctrl.Request {
	list := &v1alpha1.CapabilityClaimList{}
	if err := k.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "cannot list CapabilityClaims")
		return nil
	}
	var found []ctrl.Request
	for i := range list.Items {
		if is(&list.Items[i]) {
			found = append(found, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return found
}
