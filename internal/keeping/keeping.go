// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keeping reads the objects of primaries from watches, for package primaries to decide
// from, and says what carries out what that has decided.
package keeping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/ownwrites"
	"github.com/strata-project/strata/internal/primaries"
)

// extraWrites is how many objects all primaries together write side by side beyond one each.
const extraWrites = 16

// Objects are those of the primaries of a kind.
type Objects struct {
	// Keys are the labels and annotations by which they are owned.
	Keys dependents.Keys
	// Kinds are watched once a primary has an object of one. Only objects with an owner are
	// seen.
	Kinds *informers.Kinds
	// Other returns the kinds of another cluster, by the name that IDs have for it. Nil means
	// that there is none.
	Other func(ctx context.Context, cluster string) (*informers.Kinds, error)
	// Recent are the writes of this process.
	Recent *ownwrites.Objects
	// Reserved says what an object is that others keep for themselves; empty for any other. Nil
	// means that there are none.
	Reserved func(objects.ID, *unstructured.Unstructured) string
}

// NewLook returns a look at the primary of a UID, which had some objects and of which nothing
// was read yet.
func (o *Objects) NewLook(owner string, known []v1alpha1.Dependent, now time.Time) primaries.Look {
	return primaries.Look{
		Owner: owner, Keys: o.Keys, Now: now, Known: known,
		Live: map[objects.ID]*unstructured.Unstructured{}, Stale: map[objects.ID]bool{}, NotServed: map[objects.ServedKind]bool{},
		Reserved: map[objects.ID]string{},
	}
}

// On returns the kinds of a cluster.
func (o *Objects) On(ctx context.Context, cluster string) (*informers.Kinds, error) {
	switch {
	case cluster == "":
		return o.Kinds, nil
	case o.Other == nil:
		return nil, fmt.Errorf("there is no cluster %s", cluster)
	}
	return o.Other(ctx, cluster)
}

// Watch sees to it that the kinds of a primary's objects, and of some more on a cluster, are
// watched. It returns which of these have namespaces. Kinds that cannot be watched do not keep
// others from it; that the controller may not watch one is told at once.
func (o *Objects) Watch(ctx context.Context, look *primaries.Look, cluster string, more []schema.GroupVersionKind) (map[schema.GroupKind]objects.Scope, error) {
	wanted := map[objects.ServedKind]string{}
	for _, known := range look.Known {
		wanted[primaries.IdentityOf(known).ServedKind()] = ""
	}
	for _, gvk := range more {
		wanted[objects.ServedKind{Cluster: cluster, GroupKind: gvk.GroupKind()}] = gvk.Version
	}
	scopes := map[schema.GroupKind]objects.Scope{}
	var failed error
	for kind, version := range wanted {
		scope, err := o.watch(ctx, kind, version)
		switch {
		case apierrors.IsForbidden(err):
			return nil, err
		case err != nil:
			failed = errors.Join(failed, err)
		case scope == objects.ScopeUnknown:
			look.NotServed[kind] = true
		case kind.Cluster == cluster:
			scopes[kind.GroupKind] = scope
		}
	}
	return scopes, failed
}

// watch sees to it that a kind is watched, and returns how it is served.
func (o *Objects) watch(ctx context.Context, kind objects.ServedKind, version string) (objects.Scope, error) {
	served, err := o.On(ctx, kind.Cluster)
	if err != nil {
		return objects.ScopeUnknown, err
	}
	if err := served.Revise(ctx, kind.GroupKind); err != nil {
		return objects.ScopeUnknown, err
	}
	scope, err := served.Scope(kind.GroupKind, version)
	if err != nil || scope == objects.ScopeUnknown {
		return scope, err
	}
	return scope, served.Watch(ctx, kind.GroupKind)
}

// Read reads the objects that the primary has.
func (o *Objects) Read(ctx context.Context, look *primaries.Look) error {
	for _, known := range look.Known {
		if err := o.See(ctx, look, primaries.IdentityOf(known)); err != nil {
			return err
		}
	}
	return nil
}

// ReadWanted reads what is in the place of what the primary wants.
func (o *Objects) ReadWanted(ctx context.Context, look *primaries.Look) error {
	for _, object := range look.Objects {
		if object.Object == nil || object.Mode == dependents.ModeObserve { // others read that
			continue
		}
		id := object.Identity()
		if why := o.reserved(id, object.Object); why != "" {
			look.Reserved[id] = why
		}
		if err := o.See(ctx, look, id); err != nil {
			return err
		}
	}
	return nil
}

// See reads one object, unless that was read already.
func (o *Objects) See(ctx context.Context, look *primaries.Look, id objects.ID) error {
	if look.NotServed[id.ServedKind()] || look.Live[id] != nil {
		return nil
	}
	live, err := o.Get(ctx, id)
	if err != nil {
		return err
	}
	version := ""
	if live != nil {
		look.Live[id] = live
		version = live.GetResourceVersion()
		if why := o.reserved(id, live); why != "" {
			look.Reserved[id] = why
		}
	}
	look.Stale[id] = o.Recent.IsStale(id, version, look.Now)
	return nil
}

// Get returns an object as its watch has it, or nil. It must not be changed.
func (o *Objects) Get(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	served, err := o.On(ctx, id.Cluster)
	if err != nil {
		return nil, err
	}
	return served.Get(ctx, id)
}

func (o *Objects) reserved(id objects.ID, object *unstructured.Unstructured) string {
	if o.Reserved == nil {
		return ""
	}
	return o.Reserved(id, object)
}

// Own returns an object of the primary as it is; nil where there is none, or somebody else's.
func Own(look primaries.Look, id objects.ID) *unstructured.Unstructured {
	live := look.Live[id]
	if live == nil || primaries.Foreign(look.Owner, look.Keys, live) != "" {
		return nil
	}
	return live
}

// IsLeft tells whether an object of the primary is there, although the cache does not show it.
func (o *Objects) IsLeft(ctx context.Context, look primaries.Look) (bool, error) {
	for _, known := range look.Known {
		id := primaries.IdentityOf(known)
		served, err := o.On(ctx, id.Cluster)
		if err != nil {
			return false, err
		}
		gvk, watched := served.Version(id.GroupKind())
		if !watched {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		if err := served.Past.Get(ctx, id.Key(), live); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return false, fmt.Errorf("cannot make sure that %s has gone: %w", id, err)
		}
		if live.Labels[look.Keys.Owner] == look.Owner {
			return true, nil
		}
	}
	return false, nil
}

// IsComing tells whether a kind that is waited for may be served any moment.
func (o *Objects) IsComing(ctx context.Context, look primaries.Look) bool {
	for kind := range look.NotServed {
		if served, err := o.On(ctx, kind.Cluster); err == nil && served.IsComing(kind.Group, look.Now) {
			return true
		}
	}
	return false
}

// Reserves says of an object in the place of a wanted one that it is not the primary's: nothing
// is taken over.
func (o *Objects) Reserves(owner string, live *unstructured.Unstructured) string {
	if why := o.reserved(objects.IDOf(live), live); why != "" {
		return why
	}
	return primaries.Foreign(owner, o.Keys, live)
}

// Executor returns what carries out plans as somebody, no later than some time after they were
// made; 0 is no limit.
func (o *Objects) Executor(as client.Client, valid time.Duration) *apply.Executor {
	return &apply.Executor{
		Cluster: apply.Cluster{Client: as, Reader: o.Kinds.Past, Version: o.Kinds.Version}, Keys: o.Keys, Strict: objects.IsStrict,
		Reserved: o.Reserves, Valid: valid, ExtraWorkers: semaphore.NewWeighted(extraWrites), Known: &apply.Known{},
	}
}
