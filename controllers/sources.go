// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/internal/trim"
)

// sourceCache holds all sources of the kinds that layers come from, whoever
// owns them, from the first layer of a kind on. It is a cache of its own: one
// that is told of a kind beforehand does not start where that is not served.
type sourceCache struct{ cache.Cache }

// GetCache makes the manager start it before the controllers.
func (c sourceCache) GetCache() cache.Cache { return c.Cache }

// Unserved is called when a watch finds that its kind is not served any more.
func newSourceCache(mgr manager.Manager, unserved func(context.Context)) (sourceCache, error) {
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: trim.Object,
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
			if apierrors.IsNotFound(err) {
				unserved(ctx)
			}
		},
	})
	if err != nil {
		return sourceCache{}, fmt.Errorf("cannot make the cache of sources: %w", err)
	}
	return sourceCache{made}, mgr.Add(sourceCache{made})
}

// newSources returns the watches of the kinds of sources.
func newSources(p *Process, all cache.Cache) *informers.Kinds {
	home, wiring := p.home(), p.wiring()
	home.Cache, home.Reader = all, all
	wiring.Handle = func(_ string, gk schema.GroupKind) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
			return p.layersOf(ctx, sources.Ref{Kind: gk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()})
		})
	}
	wiring.Passes = func(string, schema.GroupKind) predicate.Predicate { return p.cacheEvents.count(sourceChanged) }
	return informers.NewKinds(home, wiring)
}

// sourceChanged passes what a layer reads of its source.
var sourceChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, errWas := repos.ParseSource(e.ObjectOld.(*unstructured.Unstructured))
		is, errIs := repos.ParseSource(e.ObjectNew.(*unstructured.Unstructured))
		if errWas != nil || errIs != nil {
			return true
		}
		before, _ := was.Observed()
		after, _ := is.Observed()
		return *before != *after || was.UID != is.UID || !equality.Semantic.DeepEqual(was.Status.Artifact, is.Status.Artifact)
	},
}

// layersOf returns the layers of a source.
func (p *Process) layersOf(ctx context.Context, source sources.Ref) []ctrl.Request {
	list := &v1alpha1.AddonsLayerList{}
	if err := p.Client.List(ctx, list, client.MatchingFields{indexSource: source.Name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a source", "source", source.String())
		return nil
	}
	var found []string
	for i := range list.Items {
		if sources.Of(&list.Items[i], p.Settings.Namespace) == source {
			found = append(found, list.Items[i].Name)
		}
	}
	return requests(found...)
}

// sourcesUnserved has the definitions of the kinds of sources read again, and looks at
// the layers of those kinds. An API server may serve a kind for a moment after its
// definition is gone: the watch that begins then never hears of that, it only ends.
func (p *Process) sourcesUnserved(ctx context.Context) {
	for _, gk := range p.sources.RedefinedAll() {
		p.wake(p.layersOfKind(ctx, gk.Kind)...)
	}
}

// layersOfKind returns the layers whose sources are of a kind.
func (p *Process) layersOfKind(ctx context.Context, kind string) []string {
	list := &v1alpha1.AddonsLayerList{}
	if err := p.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a kind of sources", "kind", kind)
		return nil
	}
	var found []string
	for i := range list.Items {
		if sources.Of(&list.Items[i], p.Settings.Namespace).Kind == kind {
			found = append(found, list.Items[i].Name)
		}
	}
	return found
}

// readSource returns a layer's source as it was read and as the rules see it,
// and its content where that speaks of the source as it is specified now. The
// source is nil where there is none. Of a bundle only how the rules see it is
// returned.
// Past the cache, it reads what the API server has.
func (r *AddonsLayerReconciler) readSource(
	ctx context.Context,
	layer *v1alpha1.AddonsLayer,
	pastCache bool,
) (*unstructured.Unstructured, *layers.Source, content, error) {
	if sources.IsOfBundle(layer) {
		source, found, err := r.fill(ctx, layer)
		return nil, source, found, err
	}
	r.keepSought(layer, bundles.Request{})
	ref := sources.Of(layer, r.Settings.Namespace)
	if err := r.watchSources(ctx, ref.GroupKind()); err != nil {
		return nil, nil, nil, err
	}
	obj, err := r.source(ctx, ref, pastCache)
	if err != nil || obj == nil {
		return nil, nil, nil, err
	}
	parsed, err := repos.ParseSource(obj)
	if err != nil {
		return nil, nil, nil, err
	}
	source, artifact := parsed.Observed()
	return obj, source, r.contentOf(layer, artifact), nil
}

// errUnserved says that the cluster does not serve the kind of a source.
var errUnserved = errors.New("the cluster does not serve the kind of the source")

// watchSources sees to it that a kind of sources is watched.
func (r *AddonsLayerReconciler) watchSources(ctx context.Context, gk schema.GroupKind) error {
	if err := r.sources.Revise(ctx, gk); err != nil {
		return err
	}
	if r.sources.Watched(gk) {
		return nil
	}
	scope, err := r.sources.Scope(gk, "")
	if err != nil {
		return err
	}
	if scope == objects.ScopeUnknown {
		return errUnserved
	}
	return r.sources.Watch(ctx, gk)
}

// source reads a source of a kind that is watched; nil where there is none.
func (r *AddonsLayerReconciler) source(ctx context.Context, ref sources.Ref, pastCache bool) (*unstructured.Unstructured, error) {
	if !pastCache {
		return r.sources.Get(ctx, ref.ID())
	}
	gvk, _ := r.sources.Version(ref.GroupKind())
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if err := r.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot read %s: %w", ref, err)
	}
	return obj, nil
}
