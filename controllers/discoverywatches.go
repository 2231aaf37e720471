// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/discoveries"
	"github.com/strata-project/strata/internal/informers"
)

// SetupWithManager registers the controller and its watches.
func (r *ClusterDiscoveryReconciler) SetupWithManager(mgr manager.Manager) error {
	c, err := controller.New("clusterdiscovery", mgr, controllerOptions(r, 1))
	if err != nil {
		return fmt.Errorf("cannot make the controller: %w", err)
	}
	if r.found, err = newDiscoveryKinds(r, mgr, c.Watch); err != nil {
		return err
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionVersion)
	for _, watch := range []source.Source{
		source.Kind(r.Cache, client.Object(&v1alpha1.ClusterDiscovery{}), &handler.EnqueueRequestForObject{},
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})),
		source.Kind(r.Cache, client.Object(&v1alpha1.RemoteCluster{}), handler.EnqueueRequestsFromMapFunc(r.discoveriesOf), madeChanged),
		source.Kind(r.Cache, client.Object(crd), handler.EnqueueRequestsFromMapFunc(r.redefined)),
	} {
		if err := c.Watch(watch); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return nil
}

// newDiscoveryKinds returns the kinds that discoveries read. They have a cache of their
// own, which holds the objects whoever owns them, and of the Secrets those that say of
// which ClusterProfile they are.
func newDiscoveryKinds(r *ClusterDiscoveryReconciler, mgr manager.Manager, watch func(source.Source) error) (*informers.Kinds, error) {
	labelled, err := labels.NewRequirement(discoveries.ProfileLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select Secrets: %w", err)
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(secretKind.WithVersion("v1"))
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: informers.Strip,
		ByObject: map[client.Object]cache.ByObject{secret: {Label: labels.NewSelector().Add(*labelled)}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of what stands for clusters: %w", err)
	}
	if err := mgr.Add(sourceCache{made}); err != nil {
		return nil, fmt.Errorf("cannot add a cache: %w", err)
	}
	home, wiring := r.home(), r.wiring()
	home.Cache, home.Reader = made, made
	wiring.Watch = watch
	wiring.Handle = func(string, schema.GroupKind) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(r.discoveriesBeside)
	}
	wiring.Passes = func(string, schema.GroupKind) predicate.Predicate { return foundChanged }
	return informers.NewKinds(home, wiring), nil
}

// foundChanged passes what a discovery reads of an object. Most changes of a Cluster are of
// conditions.
var foundChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, errWas := informers.ToUnstructured(e.ObjectOld, e.ObjectOld.GetObjectKind().GroupVersionKind())
		is, errIs := informers.ToUnstructured(e.ObjectNew, e.ObjectNew.GetObjectKind().GroupVersionKind())
		return errWas != nil || errIs != nil || !equality.Semantic.DeepEqual(discoveries.Parse(was, nil), discoveries.Parse(is, nil))
	},
}

// madeChanged passes what a discovery reads of RemoteClusters.
var madeChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.RemoteCluster), e.ObjectNew.(*v1alpha1.RemoteCluster)
		return was.Generation != is.Generation || !equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
			!equality.Semantic.DeepEqual(was.Annotations, is.Annotations) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
			statusOf(was, v1alpha1.ReadyCondition) != statusOf(is, v1alpha1.ReadyCondition) ||
			statusOf(was, v1alpha1.ReachableCondition) != statusOf(is, v1alpha1.ReachableCondition)
	},
}

func statusOf(cluster *v1alpha1.RemoteCluster, kind string) metav1.ConditionStatus {
	for _, condition := range cluster.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}

// discoveriesOf returns the discoveries that a RemoteCluster has to do with: the one that
// has made it, and, since it may be in the way of others, all where nobody has.
func (r *ClusterDiscoveryReconciler) discoveriesOf(ctx context.Context, obj client.Object) []ctrl.Request {
	if name := obj.GetLabels()[v1alpha1.DiscoveryLabel]; name != "" && obj.GetDeletionTimestamp().IsZero() {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
	}
	return r.discoveriesBeside(ctx, obj)
}

// discoveriesBeside returns the discoveries of an object's namespace.
func (r *ClusterDiscoveryReconciler) discoveriesBeside(ctx context.Context, obj client.Object) []ctrl.Request {
	return r.discoveriesIn(ctx, client.InNamespace(obj.GetNamespace()))
}

// redefined returns the discoveries whose kind may be served in another way now.
func (r *ClusterDiscoveryReconciler) redefined(ctx context.Context, obj client.Object) []ctrl.Request {
	_, group, _ := strings.Cut(obj.GetName(), ".")
	r.found.Define(group, r.now())
	r.found.Redefined(obj.GetName())
	var concerned []ctrl.Request
	for _, kind := range []v1alpha1.DiscoveredKind{v1alpha1.DiscoveredCluster, v1alpha1.DiscoveredClusterProfile} {
		of := &v1alpha1.ClusterDiscovery{Spec: v1alpha1.ClusterDiscoverySpec{Kind: kind}}
		if discoveries.GroupKindOf(of).Group == group {
			concerned = append(concerned, r.discoveriesIn(ctx)...)
		}
	}
	return concerned
}

func (r *ClusterDiscoveryReconciler) discoveriesIn(ctx context.Context, options ...client.ListOption) []ctrl.Request {
	list := &v1alpha1.ClusterDiscoveryList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "cannot list ClusterDiscoveries")
		return nil
	}
	found := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return found
}
