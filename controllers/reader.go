// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// reader reads for one look at a layer, and notes each answer in the same act: where
// the caches would answer the same again, the next look would find the same.
type reader struct {
	from  *AddonsLayerReconciler
	layer string
	// answers is what the caches have said; opaque is true where something was read of
	// which they tell nothing.
	answers map[question]string
	opaque  bool
	// following holds the objects that are followed for the layer, and noticing those
	// of which no more than the metadata is.
	following, noticing map[objects.ID]bool
	// events and kinds say how many events the caches had told of, and how often kinds
	// had changed, before the first answer; cluster is the version of the cluster that
	// Strata runs in.
	events  uint64
	kinds   int
	cluster string
}

func newReader(from *AddonsLayerReconciler, layer string) *reader {
	return &reader{
		from: from, layer: layer, answers: map[question]string{},
		following: map[objects.ID]bool{}, noticing: map[objects.ID]bool{},
		events: from.cacheEvents.Load(), kinds: from.kindChanges(), cluster: from.Cluster.Version(),
	}
}

// read reads what a question asks for, and notes the answer.
func read[T any](ctx context.Context, l *reader, q readable[T]) (T, error) {
	found, err := q.read(ctx, l.from)
	if err == nil {
		l.answers[q] = q.answer(found)
	}
	return found, err
}

// unnoted returns what reads without a note, so that nothing counts as settled by this
// look.
func (l *reader) unnoted() *AddonsLayerReconciler {
	l.opaque = true
	return l.from
}

// source returns a layer's source as the rules see it, and the layer's content. Past the
// cache, it reads what the API server has.
func (l *reader) source(ctx context.Context, layer *v1alpha1.AddonsLayer, pastCache bool) (*layers.Source, content, error) {
	obj, source, found, err := l.from.readSource(ctx, layer, pastCache)
	switch {
	case sources.IsOfBundle(layer):
		l.answers[fillingQuestion{layer.Name}] = fillingAnswer(source)
	case pastCache || err != nil:
		l.opaque = true
	default:
		l.answers[sourceQuestion{sources.Of(layer, l.from.Settings.Namespace).ID()}] = objectVersion(obj)
	}
	return source, found, err
}

// followed returns a ConfigMap or Secret with all that it holds, or nil, and follows
// it.
func (l *reader) followed(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	l.following[id] = true
	found, err := l.from.follows.Get(ctx, layerReader(l.layer), id)
	if err == nil {
		l.answers[followedQuestion{id: id}] = objectVersion(found)
	}
	return found, err
}

// followedIfAllowed is as followed, but that there is nothing where the controller has
// no right to read it.
func (l *reader) followedIfAllowed(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	found, err := l.followed(ctx, id)
	if apierrors.IsForbidden(err) {
		l.answers[followedQuestion{id: id}] = ""
		return nil, nil
	}
	return found, err
}

// followedAs is as followed, for an object of a resource of any kind, as an account may
// read it.
func (l *reader) followedAs(
	ctx context.Context, id objects.ID, resource schema.GroupVersionResource, version string, account types.NamespacedName,
) (*unstructured.Unstructured, error) {
	l.following[id] = true
	found, err := l.from.follows.GetAs(ctx, layerReader(l.layer), id, resource, account)
	if err == nil {
		l.answers[followedQuestion{id, version, account}] = objectVersion(found)
	}
	return found, err
}

// noticed returns the metadata of an object, or nil, and follows it.
func (l *reader) noticed(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	l.noticing[id] = true
	found, err := l.from.metas.Get(ctx, layerReader(l.layer), id)
	if err == nil {
		l.answers[noticedQuestion{id}] = objectVersion(found)
	}
	return found, err
}

// done ends what is followed for the layer and was not read, as the account that it
// reads as.
func (l *reader) done(account types.NamespacedName) {
	l.from.follows.KeepAs(layerReader(l.layer), l.following, account)
	l.from.metas.Keep(layerReader(l.layer), l.noticing)
}
