// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// SetupWithManager registers the controller and its watches; the layers' one must
// be registered before.
func (r *PlatformReconciler) SetupWithManager(mgr manager.Manager) error {
	c, err := looks.NewController("platform", mgr, &v1alpha1.Platform{}, controllerOptions(r, r.Concurrent))
	if err != nil {
		return err
	}
	cache := r.Cache
	for _, watch := range []source.Source{
		source.Kind(cache, client.Object(&v1alpha1.Platform{}), &handler.EnqueueRequestForObject{},
			predicate.Or[client.Object](
				predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, deletionBegun, foreignStatus,
			)),
		source.Kind(cache, client.Object(&v1alpha1.AddonsLayer{}), handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueuePlatform(q, e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueuePlatform(q, e.ObjectOld, e.ObjectNew) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueuePlatform(q, e.Object) },
		}, platformLayerChanged),
		source.Kind(cache, client.Object(&v1alpha1.AddonsLayer{}), handler.EnqueueRequestsFromMapFunc(r.platformsThatPick), contentChanged),
		source.Kind(cache, client.Object(&v1alpha1.AddonsLayer{}), handler.EnqueueRequestsFromMapFunc(r.platformsAround), contentChanged),
		source.Kind(cache, client.Object(&v1alpha1.Platform{}), handler.EnqueueRequestsFromMapFunc(r.platformsBesides), platformToldChanged),
		source.Kind(cache, client.Object(&v1alpha1.ApplicationBundle{}), handler.EnqueueRequestsFromMapFunc(r.platformsOfBundle), bundleToldChanged),
		source.Kind(cache, client.Object(&v1alpha1.HelmApplication{}), handler.EnqueueRequestsFromMapFunc(r.all), publishedChanged),
		source.Kind(cache, client.Object(&v1alpha1.RemoteCluster{}), handler.EnqueueRequestsFromMapFunc(r.platformsOn), clusterChanged),
		source.Channel(r.platformWakeups, &handler.EnqueueRequestForObject{}),
	} {
		if err := c.Watch(watch); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return nil
}

func enqueuePlatform(q queue, objects ...client.Object) {
	for _, obj := range objects {
		if name := obj.GetLabels()[v1alpha1.PlatformLabel]; name != "" {
			q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
}

// platformLayerChanged passes what a Platform reads of its layers: what they are to
// be, and how they say that they fare.
var platformLayerChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.AddonsLayer), e.ObjectNew.(*v1alpha1.AddonsLayer)
		return standingChanged.UpdateFunc(e) || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions)
	},
}

// bundleToldChanged passes what a Platform reads of bundles.
var bundleToldChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.ApplicationBundle), e.ObjectNew.(*v1alpha1.ApplicationBundle)
		return bundleChanged.UpdateFunc(e) || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions)
	},
}

// platformsOfBundle returns the Platforms of a bundle's family, and the one that a
// bundle was made for.
func (r *PlatformReconciler) platformsOfBundle(ctx context.Context, obj client.Object) []ctrl.Request {
	bundle := obj.(*v1alpha1.ApplicationBundle)
	return r.those(ctx, func(platform *v1alpha1.Platform) bool {
		return platform.Spec.Bundle != nil && platform.Spec.Bundle.Family == bundle.Spec.Family ||
			platform.Name == bundle.Labels[v1alpha1.PlatformLabel]
	})
}

// contentChanged passes what layers are to hold, and that they go.
var contentChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, deletionBegun)

// platformsThatPick returns the Platforms that pick applications on the cluster of a layer
// of a bundle: what that brings counts as chosen. A Platform is told of its own otherwise.
func (r *PlatformReconciler) platformsThatPick(ctx context.Context, obj client.Object) []ctrl.Request {
	layer := obj.(*v1alpha1.AddonsLayer)
	if !sources.IsOfBundle(layer) {
		return nil
	}
	return r.those(ctx, func(platform *v1alpha1.Platform) bool {
		if len(platform.Spec.Applications) == 0 || platform.Name == layer.Labels[v1alpha1.PlatformLabel] {
			return false
		}
		if layer.Spec.Cluster == nil {
			return len(platform.Spec.Clusters) == 0 && platform.Spec.ClusterSelector == nil
		}
		return platform.Spec.ClusterSelector != nil ||
			slices.ContainsFunc(platform.Spec.Clusters, func(c v1alpha1.ClusterReference) bool { return c.Name == layer.Spec.Cluster.Name })
	})
}

// platformsAround returns the Platforms to which it matters that a layer of somebody else
// comes, changes or goes: those that depend on its own or whose clusters that, or the layer,
// has made, and the one that has made the layer's cluster.
func (r *PlatformReconciler) platformsAround(ctx context.Context, obj client.Object) []ctrl.Request {
	layer := obj.(*v1alpha1.AddonsLayer)
	own := layer.Labels[v1alpha1.PlatformLabel]
	woken, filled := map[string]bool{}, ""
	if place := placement.Of(layer, r.Settings.Namespace); place.Name != "" {
		switch maker := r.makerOf(ctx, place); maker {
		case "":
		case own:
			filled = place.Name
			r.onCluster(ctx, place, woken)
		default:
			woken[maker] = true
		}
	}
	if layer.DeletionTimestamp != nil {
		remotes := &v1alpha1.RemoteClusterList{}
		if err := r.Client.List(ctx, remotes, client.MatchingLabels{v1alpha1.LayerLabel: layer.Name}, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot list the RemoteClusters of a layer")
		}
		for i := range remotes.Items {
			r.onCluster(ctx, client.ObjectKeyFromObject(&remotes.Items[i]), woken)
		}
		r.dependenciesOf(ctx, own, woken)
	}
	return r.those(ctx, func(platform *v1alpha1.Platform) bool {
		return platform.Name != own && (woken[platform.Name] || dependsOnPlatform(platform, own) || filled != "" && mayBeOn(platform, filled))
	})
}

// makerOf returns the name of the Platform whose layer has made a cluster; empty for none.
func (r *PlatformReconciler) makerOf(ctx context.Context, cluster types.NamespacedName) string {
	remote, maker := &v1alpha1.RemoteCluster{}, &v1alpha1.AddonsLayer{}
	if err := r.Client.Get(ctx, cluster, remote, client.UnsafeDisableDeepCopy); err != nil || remote.Labels[v1alpha1.LayerLabel] == "" {
		return ""
	}
	if found, err := r.getShared(ctx, remote.Labels[v1alpha1.LayerLabel], maker); err != nil || !found {
		return ""
	}
	return maker.Labels[v1alpha1.PlatformLabel]
}

// dependenciesOf notes the Platforms that one depends on.
func (r *PlatformReconciler) dependenciesOf(ctx context.Context, name string, woken map[string]bool) {
	platform := &v1alpha1.Platform{}
	if found, err := r.getShared(ctx, name, platform); name == "" || err != nil || !found {
		return
	}
	for _, dependency := range platform.Spec.DependsOn {
		woken[dependency.Name] = true
	}
}

// onCluster notes the Platforms that have layers on a cluster or name it.
func (r *PlatformReconciler) onCluster(ctx context.Context, cluster types.NamespacedName, woken map[string]bool) {
	layers := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, layers, client.MatchingFields{indexCluster: cluster.Name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a RemoteCluster")
		return
	}
	for i := range layers.Items {
		woken[layers.Items[i].Labels[v1alpha1.PlatformLabel]] = true
	}
}

func dependsOnPlatform(platform *v1alpha1.Platform, name string) bool {
	return slices.ContainsFunc(platform.Spec.DependsOn, func(p v1alpha1.PlatformDependency) bool { return p.Name == name })
}

// platformsBesides returns the Platforms that depend on one, and those that it depends on:
// they may wait for it to be ready, or to go.
func (r *PlatformReconciler) platformsBesides(ctx context.Context, obj client.Object) []ctrl.Request {
	changed := obj.(*v1alpha1.Platform)
	return r.those(ctx, func(platform *v1alpha1.Platform) bool {
		return dependsOnPlatform(platform, changed.Name) || dependsOnPlatform(changed, platform.Name)
	})
}

// platformToldChanged is for what a Platform says of itself, and for its coming and going.
var platformToldChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Platform), e.ObjectNew.(*v1alpha1.Platform)
		return was.Generation != is.Generation || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions)
	},
}

// platformsOn returns the Platforms that have to do with a RemoteCluster: that may
// select it, that name it, that have a layer on it, or whose layer has made it.
func (r *PlatformReconciler) platformsOn(ctx context.Context, obj client.Object) []ctrl.Request {
	layers := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, layers, client.MatchingFields{indexCluster: obj.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a RemoteCluster")
		return nil
	}
	with := map[string]bool{}
	for i := range layers.Items {
		with[layers.Items[i].Labels[v1alpha1.PlatformLabel]] = true
	}
	if name := obj.GetLabels()[v1alpha1.LayerLabel]; name != "" {
		maker := &v1alpha1.AddonsLayer{}
		if found, err := r.getShared(ctx, name, maker); err != nil {
			log.FromContext(ctx).Error(err, "cannot read the layer that has made a RemoteCluster")
		} else if found {
			with[maker.Labels[v1alpha1.PlatformLabel]] = true
		}
	}
	return r.those(ctx, func(platform *v1alpha1.Platform) bool { return with[platform.Name] || mayBeOn(platform, obj.GetName()) })
}

// mayBeOn tells whether a Platform may be meant to be on a cluster of a name.
func mayBeOn(platform *v1alpha1.Platform, cluster string) bool {
	return platform.Spec.ClusterSelector != nil ||
		slices.ContainsFunc(platform.Spec.Clusters, func(c v1alpha1.ClusterReference) bool { return c.Name == cluster })
}

func (r *PlatformReconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.those(ctx, func(*v1alpha1.Platform) bool { return true })
}

func (r *PlatformReconciler) those(ctx context.Context, matches func(*v1alpha1.Platform) bool) []ctrl.Request {
	list := &v1alpha1.PlatformList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list Platforms")
		return nil
	}
	var found []string
	for i := range list.Items {
		if matches(&list.Items[i]) {
			found = append(found, list.Items[i].Name)
		}
	}
	return requests(found...)
}
