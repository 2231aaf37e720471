// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/repos"
)

// withoutObserved are the kinds of sources whose status names no generation:
// whoever makes an ExternalArtifact writes its artifact and nothing else, and
// its specification only says what it was made from.
var withoutObserved = map[string]bool{layers.ExternalArtifact: true}

// artifactStored is the condition by which source-controller says that the
// artifact is that of the source: its generation moves only when the source has
// been fetched, unlike status.observedGeneration.
const artifactStored = "ArtifactInStorage"

// fluxSource is what all kinds of Flux sources have in common, at all versions
// of their API.
type fluxSource struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Artifact           *fluxmeta.Artifact `json:"artifact"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func parseSource(obj *unstructured.Unstructured) (*fluxSource, error) {
	parsed := &fluxSource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, parsed); err != nil {
		return nil, fmt.Errorf("cannot understand %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	if withoutObserved[obj.GetKind()] {
		parsed.Status.ObservedGeneration = parsed.Generation
	}
	return parsed, nil
}

// ready returns whether the source says that all is well, and otherwise what it
// says instead.
func (s *fluxSource) ready() (bool, string) {
	condition := meta.FindStatusCondition(s.Status.Conditions, "Ready")
	if condition == nil {
		return s.Status.Artifact != nil, ""
	}
	if condition.Status == metav1.ConditionFalse {
		return false, condition.Message
	}
	// While it fetches a source is neither ready nor not; that is no news, and
	// what it says of its steps need not be said again by each of its layers.
	return true, ""
}

// fetched returns the generation that the artifact is known to be of, or 0.
func (s *fluxSource) fetched() int64 {
	condition := meta.FindStatusCondition(s.Status.Conditions, artifactStored)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return 0
	}
	return condition.ObservedGeneration
}

// observed returns what the rules decide from, and the artifact where that
// speaks of the source as it is specified now.
func (s *fluxSource) observed() (*layers.Source, *repos.Artifact) {
	source := &layers.Source{
		Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration,
		ArtifactGeneration: s.fetched(), Suspended: s.Spec.Suspend,
	}
	source.Ready, source.Message = s.ready()
	stored := s.Status.Artifact
	if stored == nil {
		return source, nil
	}
	source.Revision, source.Digest, source.URL = stored.Revision, stored.Digest, stored.URL
	if source.ObservedGeneration != source.Generation || stored.Digest == "" {
		return source, nil
	}
	artifact := &repos.Artifact{URL: stored.URL, Revision: stored.Revision, Digest: stored.Digest}
	if stored.Size != nil {
		artifact.Size = *stored.Size
	}
	return source, artifact
}

// sourceCache holds all sources of the kinds that layers come from, whoever
// owns them, from the first layer of a kind on. It is a cache of its own: one
// that is told of a kind beforehand does not start where that is not served.
type sourceCache struct{ cache.Cache }

// GetCache makes the manager start it before the controllers.
func (c sourceCache) GetCache() cache.Cache { return c.Cache }

func newSourceCache(mgr manager.Manager) (sourceCache, error) {
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: strip,
	})
	if err != nil {
		return sourceCache{}, fmt.Errorf("cannot make the cache of sources: %w", err)
	}
	return sourceCache{made}, mgr.Add(sourceCache{made})
}

// newSources returns the watches of the kinds of sources.
func newSources(r *AddonsLayerReconciler, sources cache.Cache) *kinds {
	k := newKinds(r)
	k.cache, k.reader = sources, sources
	k.handle = func(gk schema.GroupKind) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
			return r.layersOf(ctx, layers.SourceRef{Kind: gk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()})
		})
	}
	k.passes = func(schema.GroupKind) predicate.Predicate { return sourceChanged }
	return k
}

// sourceChanged passes what a layer reads of its source.
var sourceChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, errWas := parseSource(e.ObjectOld.(*unstructured.Unstructured))
		is, errIs := parseSource(e.ObjectNew.(*unstructured.Unstructured))
		if errWas != nil || errIs != nil {
			return true
		}
		before, _ := was.observed()
		after, _ := is.observed()
		return *before != *after || was.UID != is.UID || !equality.Semantic.DeepEqual(was.Status.Artifact, is.Status.Artifact)
	},
}

// layersOf returns the layers of a source.
func (r *AddonsLayerReconciler) layersOf(ctx context.Context, source layers.SourceRef) []ctrl.Request {
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexSource: source.Name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a source", "source", source.String())
		return nil
	}
	var found []string
	for i := range list.Items {
		if layers.SourceOf(&list.Items[i], r.Settings.Namespace) == source {
			found = append(found, list.Items[i].Name)
		}
	}
	return requests(found...)
}

// layersOfKind returns the layers whose sources are of a kind.
func (r *AddonsLayerReconciler) layersOfKind(ctx context.Context, kind string) []string {
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a kind of sources", "kind", kind)
		return nil
	}
	var found []string
	for i := range list.Items {
		if layers.SourceOf(&list.Items[i], r.Settings.Namespace).Kind == kind {
			found = append(found, list.Items[i].Name)
		}
	}
	return found
}

// readSource returns a layer's source as it was read and as the rules see it,
// and its artifact where that speaks of the source as it is specified now. The
// source is nil where there is none. Of a bundle only how the rules see it is
// returned.
// Past the cache, it reads what the API server has.
func (r *AddonsLayerReconciler) readSource(ctx context.Context, layer *v1alpha1.AddonsLayer, pastCache bool) (*unstructured.Unstructured, *layers.Source, *repos.Artifact, error) {
	if layers.IsOfBundle(layer) {
		source, artifact, err := r.fill(ctx, layer)
		return nil, source, artifact, err
	}
	ref := layers.SourceOf(layer, r.Settings.Namespace)
	if err := r.watchSources(ctx, ref.GroupKind()); err != nil {
		return nil, nil, nil, err
	}
	obj, err := r.source(ctx, ref, pastCache)
	if err != nil || obj == nil {
		return nil, nil, nil, err
	}
	parsed, err := parseSource(obj)
	if err != nil {
		return nil, nil, nil, err
	}
	source, artifact := parsed.observed()
	return obj, source, artifact, nil
}

// errUnserved says that the cluster does not serve the kind of a source.
var errUnserved = errors.New("the cluster does not serve the kind of the source")

// watchSources sees to it that a kind of sources is watched.
func (r *AddonsLayerReconciler) watchSources(ctx context.Context, gk schema.GroupKind) error {
	if err := r.sources.revise(ctx, gk); err != nil {
		return err
	}
	if r.sources.watched(gk) {
		return nil
	}
	scope, err := r.sources.scope(gk, "")
	if err != nil {
		return err
	}
	if scope == layers.ScopeUnknown {
		return errUnserved
	}
	return r.sources.watch(ctx, gk)
}

// source reads a source of a kind that is watched; nil where there is none.
func (r *AddonsLayerReconciler) source(ctx context.Context, ref layers.SourceRef, pastCache bool) (*unstructured.Unstructured, error) {
	if !pastCache {
		return r.sources.get(ctx, ref.ID())
	}
	gvk, _ := r.sources.version(ref.GroupKind())
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
