// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/signed"
)

// The names of the field indexes.
const (
	indexDependsOn     = "strata.dependsOn"
	indexTeardownAfter = "strata.teardownAfter"
	indexSource        = "strata.source"
	indexIdentity      = "strata.identity"
	indexFormerOwner   = "strata.formerOwner"
	indexCluster       = "strata.cluster"
	indexKubeConfig    = "strata.kubeConfig"
	indexSecrets       = "strata.secrets"
	indexPlugin        = "strata.plugin"
	indexPlatform      = "strata.platform"
	indexApplication   = "strata.application"
)

var (
	helmReleaseVersion = kinds.HelmReleaseKind.WithVersion("v2")
	namespaceVersion   = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	definitionVersion  = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// setupIndexes registers the field indexes.
func setupIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	helmRelease := &unstructured.Unstructured{}
	helmRelease.SetGroupVersionKind(helmReleaseVersion)
	helmRepository := &unstructured.Unstructured{}
	helmRepository.SetGroupVersionKind(kinds.HelmRepositoryKind.WithVersion("v1"))
	for _, index := range []struct {
		obj   client.Object
		field string
		value func(client.Object) []string
	}{
		{&v1alpha1.AddonsLayer{}, indexDependsOn, func(obj client.Object) []string { return dependencyNames(obj.(*v1alpha1.AddonsLayer)) }},
		{&v1alpha1.AddonsLayer{}, indexTeardownAfter, func(obj client.Object) []string { return obj.(*v1alpha1.AddonsLayer).Spec.TeardownAfter }},
		{&v1alpha1.AddonsLayer{}, indexSource, indexedSource},
		{&v1alpha1.AddonsLayer{}, indexCluster, indexedCluster},
		{&v1alpha1.RemoteCluster{}, indexKubeConfig, func(obj client.Object) []string {
			return []string{placement.KubeConfigSecret(obj.(*v1alpha1.RemoteCluster)).String()}
		}},
		{&v1alpha1.HostCluster{}, indexSecrets, func(obj client.Object) []string {
			return idsOf(placement.LoginSecrets(obj.(*v1alpha1.HostCluster)))
		}},
		{&v1alpha1.CapabilityProvider{}, indexSecrets, func(obj client.Object) []string {
			return idsOf(placement.PluginSecrets(obj.(*v1alpha1.CapabilityProvider)))
		}},
		{&v1alpha1.CapabilityProvider{}, indexPlugin, func(obj client.Object) []string {
			return placement.PluginNames(obj.(*v1alpha1.CapabilityProvider))
		}},
		{&v1alpha1.AddonsLayer{}, indexSecrets, func(obj client.Object) []string {
			return []string{placement.DecryptionSecret(obj.(*v1alpha1.AddonsLayer))}
		}},
		{&v1alpha1.AddonsLayer{}, indexPlatform, func(obj client.Object) []string { return []string{obj.GetLabels()[v1alpha1.PlatformLabel]} }},
		{&v1alpha1.ApplicationBundle{}, indexApplication, indexedApplications},
		{helmRelease, indexIdentity, indexedIdentity},
		{helmRelease, indexFormerOwner, indexedFormerOwner},
		{helmRepository, indexFormerOwner, indexedFormerOwner},
	} {
		if err := indexer.IndexField(ctx, index.obj, index.field, index.value); err != nil {
			return fmt.Errorf("cannot index %s: %w", index.field, err)
		}
	}
	return nil
}

// idsOf returns IDs as an index has them.
func idsOf(ids []objects.ID) []string {
	texts := make([]string, 0, len(ids))
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return texts
}

// indexedSource leaves the kind and the namespace out, which have defaults.
func indexedSource(obj client.Object) []string {
	return []string{obj.(*v1alpha1.AddonsLayer).Spec.Source.Name}
}

// indexedCluster leaves the namespace out, which has a default, and adds the
// clusters that a layer still has something on.
func indexedCluster(obj client.Object) []string {
	layer := obj.(*v1alpha1.AddonsLayer)
	var names []string
	if layer.Spec.Cluster != nil {
		names = append(names, layer.Spec.Cluster.Name)
	}
	for _, cluster := range layers.ClustersLeft(layer) {
		names = append(names, cluster.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func indexedIdentity(obj client.Object) []string {
	return []string{kinds.HelmReleaseIdentity(obj.(*unstructured.Unstructured))}
}

// indexedFormerOwner names the layer that owns an object in the way that Kraan
// writes it down.
func indexedFormerOwner(obj client.Object) []string {
	if u := obj.(*unstructured.Unstructured); dependents.HasOwner(u, layers.Keys) {
		return []string{u.GetLabels()[v1alpha1.LayerLabel]}
	}
	return nil
}

// setupWatches says what wakes layers up.
func (r *AddonsLayerReconciler) setupWatches() error {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionVersion)
	watches := []source.Source{
		source.Kind(r.Cache, client.Object(&v1alpha1.AddonsLayer{}), &handler.EnqueueRequestForObject{},
			r.cacheEvents.count(predicate.Or[client.Object](layerChanged, foreignStatus))),
		source.Kind(r.Cache, client.Object(&v1alpha1.AddonsLayer{}), handler.EnqueueRequestsFromMapFunc(r.dependantsOf), standingChanged),
		source.Kind(r.Cache, client.Object(&v1alpha1.AddonsLayer{}), r.graphHandler(), needChanged),
		source.Kind(r.Cache, client.Object(&v1alpha1.AddonsLayer{}), handler.EnqueueRequestsFromMapFunc(r.deletedAfter), needChanged),
		source.Kind(r.Cache, client.Object(crd), r.definitionHandler(r.kinds)),
		source.Kind(r.Cache, client.Object(&v1alpha1.RemoteCluster{}), handler.EnqueueRequestsFromMapFunc(r.layersOn), r.cacheEvents.count(clusterChanged)),
		source.Kind(r.Cache, client.Object(&v1alpha1.ApplicationBundle{}), handler.EnqueueRequestsFromMapFunc(r.layersOfBundle), r.cacheEvents.count(bundleChanged)),
		source.Kind(
			r.Cache,
			client.Object(&v1alpha1.HelmApplication{}),
			handler.EnqueueRequestsFromMapFunc(r.layersOfApplication),
			r.cacheEvents.count(publishedChanged),
		),
		source.Channel(r.layerWakeups, &handler.EnqueueRequestForObject{}),
		source.Channel(r.Cluster.changes, handler.EnqueueRequestsFromMapFunc(r.allLayers)),
	}
	for _, watch := range watches {
		if err := r.watch(watch); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return nil
}

func requests(names ...string) []ctrl.Request {
	found := make([]ctrl.Request, 0, len(names))
	for _, name := range names {
		if name != "" {
			found = append(found, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return found
}

// layerChanged passes what people change on a layer, and not its status.
var layerChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || // --watch-label-selector
			!equality.Semantic.DeepEqual(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}

// foreignStatus passes a status that does not count, which is to be written again.
var foreignStatus = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		is, signs := e.ObjectNew.(signed.Object)
		return signs && v1alpha1.IsForeign(*is.SignedStatus().Conditions)
	},
}

// standingChanged passes what dependants of a layer wait for.
var standingChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.AddonsLayer), e.ObjectNew.(*v1alpha1.AddonsLayer)
		return layerChanged.UpdateFunc(e) || was.Status.State != is.Status.State ||
			was.Status.Version != is.Status.Version || was.Status.Digest != is.Status.Digest ||
			was.Status.ObservedGeneration != is.Status.ObservedGeneration || readyReason(was) != readyReason(is) ||
			meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.DeployedCondition) !=
				meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.DeployedCondition) ||
			carriedChanged(was, is)
	},
}

func readyReason(layer *v1alpha1.AddonsLayer) string {
	if ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		return ready.Reason
	}
	return ""
}

// needChanged passes what the dependencies of a layer wait for: that it no
// longer needs them, and what keeps it when it is being deleted itself.
var needChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.AddonsLayer), e.ObjectNew.(*v1alpha1.AddonsLayer)
		return layerChanged.UpdateFunc(e) || !is.DeletionTimestamp.IsZero() && carriedChanged(was, is)
	},
}

// carriedChanged tells whether others have to repeat something else of what
// stands in a layer's way.
func carriedChanged(was, is *v1alpha1.AddonsLayer) bool {
	return !equality.Semantic.DeepEqual(layers.Carried(was), layers.Carried(is))
}

// objectChanged passes what a layer reads of its objects: everything but the
// ticks of a controller that says the same again.
var objectChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isUnstructured := e.ObjectOld.(*unstructured.Unstructured)
		is, _ := e.ObjectNew.(*unstructured.Unstructured)
		if !isUnstructured || is == nil || is.GetGeneration() == 0 {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		}
		return was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() ||
			was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
			!equality.Semantic.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences()) ||
			!equality.Semantic.DeepEqual(was.Object["status"], is.Object["status"])
	},
}

// dependantsOf returns the layers that depend on a layer. Those of another Platform that are
// deployed do not wait for it, but what is not deployed behind them does (see dependsOnGate).
func (r *AddonsLayerReconciler) dependantsOf(ctx context.Context, obj client.Object) []ctrl.Request {
	found := r.listRequests(ctx, client.MatchingFields{indexDependsOn: obj.GetName()})
	if platform := obj.GetLabels()[v1alpha1.PlatformLabel]; platform != "" {
		found = append(found, r.waitBehind(ctx, obj.GetName(), platform, false, map[string]bool{})...)
	}
	return found
}

// waitBehind returns the layers that are not deployed and depend, not directly, on a layer of a
// Platform through one of another Platform. behind is true once that was passed, and seen holds
// the layers that were passed.
func (r *AddonsLayerReconciler) waitBehind(ctx context.Context, name, platform string, behind bool, seen map[string]bool) []ctrl.Request {
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexDependsOn: name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list layers")
		return nil
	}
	var found []ctrl.Request
	for i := range list.Items {
		dependant := &list.Items[i]
		of := dependant.Labels[v1alpha1.PlatformLabel]
		if seen[dependant.Name] || of == "" || of == platform && !behind {
			continue
		}
		if behind && dependant.Status.State != v1alpha1.StateDeployed {
			found = append(found, requests(dependant.Name)...)
		}
		seen[dependant.Name] = true
		found = append(found, r.waitBehind(ctx, dependant.Name, of, true, seen)...)
	}
	return found
}

// deletedAfter returns the layers that are not deleted before a layer is gone.
func (r *AddonsLayerReconciler) deletedAfter(ctx context.Context, obj client.Object) []ctrl.Request {
	return r.listRequests(ctx, client.MatchingFields{indexTeardownAfter: obj.GetName()})
}

func (r *AddonsLayerReconciler) allLayers(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.listRequests(ctx)
}

func (p *Process) listRequests(ctx context.Context, opts ...client.ListOption) []ctrl.Request {
	list := &v1alpha1.AddonsLayerList{}
	if err := p.Client.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "cannot list layers")
		return nil
	}
	found := make([]string, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, list.Items[i].Name)
	}
	return requests(found...)
}

// publishedChanged passes what changes of an application for its bundles: its
// versions, and what is remembered of them.
var publishedChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*v1alpha1.HelmApplication)
		after, is := e.ObjectNew.(*v1alpha1.HelmApplication)
		return !was || !is || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status.Published, after.Status.Published)
	},
}

// indexedApplications names the applications of a bundle.
func indexedApplications(obj client.Object) []string {
	return bundles.Named(obj.(*v1alpha1.ApplicationBundle))
}

// bundleChanged passes what layers read of a bundle.
var bundleChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.ApplicationBundle), e.ObjectNew.(*v1alpha1.ApplicationBundle)
		return was.UID != is.UID || was.Generation != is.Generation || was.Status.Digest != is.Status.Digest
	},
}

// specOrLabelsChanged passes what people change: not the status, unless it does not count.
var specOrLabelsChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, foreignStatus)

func dependencyNames(layer *v1alpha1.AddonsLayer) []string {
	return dependencies.Names(layer.Spec.Prereqs.DependsOn)
}

// clusterChanged passes what layers read of a RemoteCluster: not how many they
// are, and when it was seen.
var clusterChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return readOf(e.ObjectOld.(*v1alpha1.RemoteCluster)) != readOf(e.ObjectNew.(*v1alpha1.RemoteCluster))
	},
}
