// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/trim"
)

// FirstSync bounds the wait for the first list of a kind that is new to the
// controller.
const FirstSync = 10 * time.Second

// Kinds watches the kinds that layers hold, from the first layer that holds
// one, and reads objects from those watches. Objects without an owner label are
// not in the cache, but for HelmReleases.
type Kinds struct {
	Cluster
	wiring Wiring
	mu     sync.Mutex
	// starts holds kinds whose watch was asked for, and served those that can
	// be read from it.
	starts map[schema.GroupKind]*start
	served map[schema.GroupKind]schema.GroupVersionKind
	// defined says when a definition of an API group was last seen to change.
	defined map[string]time.Time
	// definitions holds those of watched kinds by name, and definedBy their
	// names.
	definitions map[string]*definition
	definedBy   map[schema.GroupKind]string
	// changes counts what may have changed how kinds are served.
	changes int
	classes classes
	// reading is held by those who read from the cache of a kind that may go.
	reading sync.RWMutex
}

// Cluster is how one cluster is read.
type Cluster struct {
	// Name of the cluster, as IDs have it; empty for the one that the controller
	// runs in.
	Name string
	// Client writes to it, and knows how it serves kinds.
	Client client.Client
	// Past reads it past every cache.
	Past client.Reader
	// Cache of the kinds.
	Cache cache.Cache
	// Reader reads from Cache.
	Reader client.Reader
}

// Wiring is what becomes of what the caches of clusters tell.
type Wiring struct {
	// Watch begins a watch.
	Watch func(source.Source) error
	// Handle returns who is told of the objects of a kind of a cluster.
	Handle func(cluster string, gk schema.GroupKind) handler.EventHandler
	// Passes returns the events that they are told of.
	Passes func(cluster string, gk schema.GroupKind) predicate.Predicate
	// Definitions returns who is told of the definitions of a cluster.
	Definitions func(*Kinds) handler.EventHandler
}

// start is the begin of a kind's watch, which takes a while.
type start struct {
	mu       sync.Mutex
	watching bool
	// kind is what is watched, at its version.
	kind schema.GroupVersionKind
}

// NewKinds returns the kinds of a cluster, of which none is watched yet.
func NewKinds(of Cluster, wiring Wiring) *Kinds {
	return &Kinds{
		Cluster: of, wiring: wiring,
		starts: map[schema.GroupKind]*start{}, served: map[schema.GroupKind]schema.GroupVersionKind{}, defined: map[string]time.Time{},
		definitions: map[string]*definition{}, definedBy: map[schema.GroupKind]string{},
	}
}

// Scope says how the cluster serves a kind, at a version or, where that is
// empty, at any.
func (k *Kinds) Scope(gk schema.GroupKind, version string) (objects.Scope, error) {
	var versions []string
	if version != "" {
		versions = []string{version}
	}
	mapping, err := k.Mapping(gk, versions...)
	switch {
	case meta.IsNoMatchError(err):
		return objects.ScopeUnknown, nil
	case err != nil:
		return objects.ScopeUnknown, fmt.Errorf("cannot find out how kind %s is served: %w", gk, err)
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return objects.ScopeNamespaced, nil
	default:
		return objects.ScopeCluster, nil
	}
}

// Watch sees to it that a kind is watched. Where the controller has no right
// to, it says so instead of waiting for a watch that never begins.
// A kind that is slow to begin holds up only the layers that hold it.
func (k *Kinds) Watch(ctx context.Context, gk schema.GroupKind) error {
	if k.Watched(gk) {
		return nil
	}
	start := k.startOf(gk)
	start.mu.Lock()
	defer start.mu.Unlock()
	if k.Watched(gk) {
		return nil
	}
	mapping, err := k.Mapping(gk)
	if err != nil {
		return fmt.Errorf("cannot find out how kind %s is served: %w", gk, err)
	}
	k.follow(mapping)
	gvk := mapping.GroupVersionKind
	probe := &metav1.PartialObjectMetadataList{}
	probe.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := k.Past.List(ctx, probe, client.Limit(1)); err != nil {
		if apierrors.IsNotFound(err) {
			k.Redefined(mapping.Resource.GroupResource().String())
		}
		if apierrors.IsForbidden(err) { // says itself what may not be listed
			return err
		}
		return fmt.Errorf("cannot list kind %s: %w", gk, err)
	}
	if err := k.mayWatch(ctx, mapping); err != nil {
		return err
	}
	if !start.watching {
		if err := k.wiring.Watch(source.Kind(k.Cache, newObject(gvk), k.wiring.Handle(k.Name, gk), k.wiring.Passes(k.Name, gk))); err != nil {
			return fmt.Errorf("cannot watch kind %s: %w", gk, err)
		}
		start.watching, start.kind = true, gvk
	}
	informer, err := k.Cache.GetInformer(ctx, newObject(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch kind %s: %w", gk, err)
	}
	waiting, cancel := context.WithTimeout(ctx, FirstSync)
	defer cancel()
	if !toolscache.WaitForCacheSync(waiting.Done(), informer.HasSynced) {
		return fmt.Errorf("cannot list kind %s within %s", gk, FirstSync)
	}
	k.Serves(gvk)
	return nil
}

// Serves notes that a kind can be read, at a version.
func (k *Kinds) Serves(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served[gvk.GroupKind()] = gvk
	k.changes++
}

// startOf returns the start of a kind's watch, which is made once.
func (k *Kinds) startOf(gk schema.GroupKind) *start {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.starts[gk] == nil {
		k.starts[gk] = &start{}
	}
	return k.starts[gk]
}

// mayWatch asks for the right to watch a kind that may be listed. Without it
// the cache would be filled once, and drift never be seen.
func (k *Kinds) mayWatch(ctx context.Context, mapping *meta.RESTMapping) error {
	resource := mapping.Resource
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "watch", Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		},
	}}
	err := k.Client.Create(ctx, review)
	switch {
	case apierrors.IsForbidden(err): // who may not ask finds out by the watch
		return nil
	case err != nil:
		return fmt.Errorf("cannot ask for the right to watch kind %s: %w", mapping.GroupVersionKind.GroupKind(), err)
	case review.Status.Allowed:
		return nil
	}
	return apierrors.NewForbidden(resource.GroupResource(), "",
		fmt.Errorf("the controller cannot watch resource %q in API group %q at the cluster scope", resource.Resource, resource.Group))
}

// Watched tells whether a kind can be read.
func (k *Kinds) Watched(gk schema.GroupKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.served[gk]
	return known
}

// All returns the kinds that can be read.
func (k *Kinds) All() []schema.GroupKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.served))
}

// Version returns the version at which a kind is read, if it can be.
func (k *Kinds) Version(gk schema.GroupKind) (schema.GroupVersionKind, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	gvk, known := k.served[gk]
	return gvk, known
}

// Get returns an object from the cache, or nil. It is the cache's own and must
// not be changed; to copy all objects of a layer is most of the work of a look.
func (k *Kinds) Get(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	k.reading.RLock()
	defer k.reading.RUnlock()
	gvk, known := k.Version(id.GroupKind())
	if !known {
		return nil, nil
	}
	obj := newObject(gvk)
	if err := k.Reader.Get(ctx, id.Key(), obj, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot read %s: %w", id, err)
	}
	return ToUnstructured(obj, gvk)
}

// GetPast is as get, past the cache. Of what the cache would not hold, as it is no
// layer's, there is none.
func (k *Kinds) GetPast(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	gvk, known := k.Version(id.GroupKind())
	if !known {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, FirstSync)
	defer cancel()
	obj := newObject(gvk)
	if err := k.Past.Get(ctx, id.Key(), obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot make sure that %s is not there: %w", id, err)
	}
	if obj.GetLabels()[v1alpha1.LayerLabel] == "" {
		return nil, nil
	}
	return ToUnstructured(obj, gvk)
}

// List returns objects of a kind from the cache, which must not be changed.
// There are none of a kind that is not watched.
func (k *Kinds) List(ctx context.Context, gk schema.GroupKind, opts ...client.ListOption) ([]unstructured.Unstructured, error) {
	k.reading.RLock()
	defer k.reading.RUnlock()
	gvk, known := k.Version(gk)
	if !known {
		return nil, nil
	}
	opts = append(opts, client.UnsafeDisableDeepCopy)
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if isMetadataOnly(gvk) {
		return k.listMetadata(ctx, gvk, listKind, opts)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listKind)
	if err := k.Reader.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("cannot list kind %s: %w", gk, err)
	}
	return list.Items, nil
}

// listMetadata is as List, for a kind of which the cache has no more than metadata. To
// read whole objects would have the cache watch those, too.
func (k *Kinds) listMetadata(ctx context.Context, gvk, listKind schema.GroupVersionKind, opts []client.ListOption) ([]unstructured.Unstructured, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(listKind)
	if err := k.Reader.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("cannot list kind %s: %w", gvk.GroupKind(), err)
	}
	found := make([]unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		one, err := ToUnstructured(&list.Items[i], gvk)
		if err != nil {
			return nil, err
		}
		found = append(found, *one)
	}
	return found, nil
}

// newObject returns an empty object to read a kind into: metadata only for
// kinds whose content is nobody's business.
func newObject(gvk schema.GroupVersionKind) client.Object {
	if isMetadataOnly(gvk) {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		return obj
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

func isMetadataOnly(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "" && (gvk.Kind == "Secret" || gvk.Kind == "ConfigMap")
}

// ToUnstructured returns an object that a cache has, of which that may be no more than
// the metadata.
func ToUnstructured(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s: %w", gvk.Kind, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// CacheOptions returns what the manager's cache is to hold: objects with an
// owner label, without managedFields, Helm history and most of Helm's inventory; and all layers,
// HelmReleases and Namespaces, since those may matter to a layer that does not own them: a
// Namespace that a layer needs is made where it is missing, and is nobody's.
func CacheOptions() cache.Options {
	owned, err := labels.Parse(v1alpha1.LayerLabel)
	if err != nil {
		panic(err) // the label is a constant
	}
	everything := cache.ByObject{Label: labels.Everything()}
	helmRelease := &unstructured.Unstructured{}
	helmRelease.SetGroupVersionKind(helmReleaseVersion)
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceVersion)
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionVersion)
	return cache.Options{
		DefaultLabelSelector: owned,
		DefaultTransform:     trim.Object,
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.AddonsLayer{}:        everything,
			&v1alpha1.RemoteCluster{}:      everything,
			&v1alpha1.HelmApplication{}:    everything,
			&v1alpha1.ApplicationBundle{}:  everything,
			&v1alpha1.Platform{}:           everything,
			&v1alpha1.ClusterDiscovery{}:   everything,
			&v1alpha1.CapabilityProvider{}: everything,
			&v1alpha1.CapabilityClaim{}:    everything,
			&v1alpha1.HostCluster{}:        everything,
			helmRelease:                    everything,
			namespace:                      everything,
			crd:                            everything,
		},
	}
}

// ClientOptions returns how the manager's client reads: from the cache, also
// Secrets and ConfigMaps, of which it holds the metadata. To disable the cache
// for those two would turn every look at a layer into requests.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{Unstructured: true}}
}

var (
	helmReleaseVersion    = kinds.HelmReleaseKind.WithVersion("v2")
	namespaceVersion      = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	serviceAccountVersion = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	definitionVersion     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// recentDefinition is how long after a change of a definition its kind is
// expected in discovery.
const recentDefinition = 2 * time.Minute

// Define remembers that a definition of an API group has appeared or changed.
func (k *Kinds) Define(group string, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.defined[group] = now
	k.changes++
}

// Changed returns how often it may have changed how kinds are served.
func (k *Kinds) Changed() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changes
}

// IsComing tells whether discovery may know more kinds of a group any moment.
func (k *Kinds) IsComing(group string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, known := k.defined[group]
	return known && now.Sub(at) < recentDefinition
}

// definition is what is known of the definition of a kind that is watched. The
// cluster's discovery lags behind it, and a RESTMapper never unlearns what was
// served once, so once a definition has changed, itself is what counts.
type definition struct {
	kind schema.GroupKind
	// changes counts the events of the definition, and read is the one after
	// which it was read last; both are 0 while discovery still holds.
	changes, read int
	// versions that are served, the best one first.
	versions []string
}
