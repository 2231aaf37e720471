// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// readers is how many objects are read at once.
const readers = 8

// objects adds to a world what is on the cluster of all that layers list and have,
// and how the cluster serves it.
func (g *Plan) objects(ctx context.Context, w *forecast.World) error {
	w.Objects = maps.Clone(g.Objects)
	w.Scopes, w.Unserved = map[objects.ServedKind]objects.Scope{}, map[objects.ServedVersion]bool{}
	w.Resources = map[objects.ServedKind]string{}
	if w.Objects == nil {
		w.Objects = map[objects.ID]*unstructured.Unstructured{}
	}
	_, versioned, _ := g.wanted(w)
	for kind := range versioned {
		if err := g.serve(w, kind); err != nil {
			return err
		}
	}
	w.NameInScope()
	versions, _, of := g.wanted(w)
	listed := g.listed()
	maps.DeleteFunc(versions, func(id objects.ID, _ string) bool {
		return id.Cluster != "" || listed[id.GroupKind()] || w.Scopes[id.ServedKind()] == objects.ScopeUnknown
	})
	maps.Copy(w.Objects, g.read(ctx, objects.SortIDs(slices.Collect(maps.Keys(versions)))))
	if err := ctx.Err(); err != nil {
		return err
	}
	g.assume(w)
	for _, id := range objects.SortIDs(slices.Collect(maps.Keys(g.unread))) {
		if err := g.unreadable[id]; err != nil {
			g.noteOf(of[id], "cannot read %s: %v", id, err)
		} else if !listed[id.GroupKind()] {
			g.noteOf(of[id], "you may not get %s: those that layers have are taken to be as Strata left them", id.GroupKind())
		}
	}
	return nil
}

// wanted returns the objects that the planned layers list, have or wait for, with the
// version at which they are written, "" where any will do, all of their kinds, and the
// names of the layers of each.
func (g *Plan) wanted(w *forecast.World) (versions map[objects.ID]string, versioned map[objects.ServedVersion]bool, of map[objects.ID][]string) {
	of = map[objects.ID][]string{}
	versions = map[objects.ID]string{}
	versioned = map[objects.ServedVersion]bool{
		servedAt("", kinds.HelmReleaseKind, "v2"): true, servedAt("", kinds.HelmRepositoryKind, "v1"): true,
	}
	for _, layer := range g.Planned {
		if directory := w.Contents[layer.Name].Directory; directory != nil {
			for _, manifest := range directory.Manifests {
				gvk := manifest.Object.GroupVersionKind()
				versions[manifest.ID()] = gvk.Version
				of[manifest.ID()] = append(of[manifest.ID()], layer.Name)
				versioned[servedAt(manifest.Cluster, gvk.GroupKind(), gvk.Version)] = true
			}
		}
		for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
			of[entry.ID] = append(of[entry.ID], layer.Name)
			if _, known := versions[entry.ID]; !known {
				versions[entry.ID] = ""
				versioned[servedAt(entry.ID.Cluster, entry.ID.GroupKind(), "")] = true
			}
		}
		for _, wait := range hooks.Waits(layer, g.settings.Namespace) {
			id, version, err := wait.ID("")
			if err != nil {
				continue
			}
			versions[id] = version
			of[id] = append(of[id], layer.Name)
			versioned[servedAt("", id.GroupKind(), version)] = true
			if wait.Defaulted {
				id.Namespace = ""
				versions[id] = version
				of[id] = append(of[id], layer.Name)
			}
		}
	}
	return versions, versioned, of
}

// assume takes what may not be read to be as Strata left it.
func (g *Plan) assume(w *forecast.World) {
	for _, layer := range g.Planned {
		assumed := forecast.Assumed(layer, w.Contents[layer.Name].Directory, func(id objects.ID) bool {
			return id.Cluster != "" || g.unread[id]
		})
		for id, obj := range assumed {
			// Of a Secret there is no digest to compare but one that needs the
			// controller's key.
			if digests.IsSecret(obj) {
				g.noteOf([]string{layer.Name}, "%s cannot be read: whether the plan changes what it holds is not known", id)
			}
		}
		maps.Copy(w.Objects, assumed)
	}
}

func servedAt(cluster string, gk schema.GroupKind, version string) objects.ServedVersion {
	return objects.ServedVersion{Cluster: cluster, GroupVersionKind: gk.WithVersion(version)}
}

// listed returns the kinds of which all objects were read.
func (g *Plan) listed() map[schema.GroupKind]bool {
	found := map[schema.GroupKind]bool{}
	for _, part := range planParts {
		if g.Unread[part] == nil {
			found[schema.GroupKind{Group: part.Group, Kind: part.Kind}] = true
		}
	}
	return found
}

// serve finds out how a kind is served.
func (g *Plan) serve(w *forecast.World, kind objects.ServedVersion) error {
	served := objects.ServedKind{Cluster: kind.Cluster, GroupKind: kind.GroupKind()}
	if g.isOffline() || kind.Cluster != "" {
		w.Scopes[served] = usualScope(kind.GroupVersionKind, g.isOffline())
		if scope, known := g.defined[kind.GroupKind()]; known {
			w.Scopes[served] = scope
		}
		return nil
	}
	mapping, err := g.mapper.RESTMapping(kind.GroupKind())
	switch {
	case meta.IsNoMatchError(err):
		w.Scopes[served] = objects.ScopeUnknown
		return nil
	case err != nil:
		return fmt.Errorf("cannot find out which kinds the cluster serves: %w", err)
	}
	w.Scopes[served], w.Resources[served] = objects.ScopeNamespaced, mapping.Resource.Resource
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		w.Scopes[served] = objects.ScopeCluster
	}
	if kind.Version == "" {
		return nil
	}
	if _, err := g.mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		w.Unserved[kind] = true
	} else if err != nil {
		return fmt.Errorf("cannot find out which kinds the cluster serves: %w", err)
	}
	return nil
}

// usualScope returns the scope that a kind has where it is served. What is neither
// Kubernetes' own nor Flux's nor Strata's is served, on a cluster that is there, at the scope
// that most kinds have; where there is no cluster, something has to bring it.
func usualScope(kind schema.GroupVersionKind, offline bool) objects.Scope {
	switch {
	case kinds.HasNoNamespaces(kind.GroupKind()):
		return objects.ScopeCluster
	case !offline, strings.HasSuffix(kind.Group, fluxGroups), kind.Group == v1alpha1.GroupVersion.Group, isOfKubernetes(kind):
		return objects.ScopeNamespaced
	default:
		return objects.ScopeUnknown
	}
}

// fluxGroups is how the groups of Flux's own kinds end. Strata does not run without Flux.
const fluxGroups = ".toolkit.fluxcd.io"

// isOfKubernetes tells whether a kind is Kubernetes' own; at which version does not matter.
func isOfKubernetes(kind schema.GroupVersionKind) bool {
	return len(scheme.Scheme.VersionsForGroupKind(kind.GroupKind())) > 0
}

// define reads the kinds that files define, of the folders of --crds.
func (g *Plan) define(ctx context.Context, folders []string) error {
	g.defined = map[schema.GroupKind]objects.Scope{}
	for _, folder := range folders {
		opened, err := repository.OpenFolder(folder)
		if err != nil {
			return fmt.Errorf("--crds: %w", err)
		}
		found, _, err := opened.Look(ctx, []string{kinds.DefinitionKind.Kind})
		_ = opened.Close() // nothing was written that could be lost
		if err != nil {
			return fmt.Errorf("--crds: %w", err)
		}
		before := len(g.defined)
		for _, manifest := range found {
			if gk, scope, is := definedKind(manifest.Object); is {
				g.defined[gk] = scope
			}
		}
		if len(g.defined) == before {
			g.note("--crds: %s has no CustomResourceDefinition that was not read before", folder)
		}
	}
	return nil
}

// definedKind returns the kind that a CustomResourceDefinition defines; is is false for all
// else.
func definedKind(object *unstructured.Unstructured) (gk schema.GroupKind, scope objects.Scope, is bool) {
	if object.GroupVersionKind().GroupKind() != kinds.DefinitionKind {
		return gk, scope, false
	}
	gk.Group, _, _ = unstructured.NestedString(object.Object, "spec", "group")
	gk.Kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
	scope = objects.ScopeNamespaced
	if said, _, _ := unstructured.NestedString(object.Object, "spec", "scope"); said == "Cluster" {
		scope = objects.ScopeCluster
	}
	return gk, scope, gk.Kind != ""
}

// takeAsThere has kinds be there that nothing is seen to bring, where there is no cluster:
// a plan that stops at each of them would say nothing of what comes behind. What layers define,
// and what charts were seen to bring, is waited for. It tells whether there was such a kind.
func (g *Plan) takeAsThere(w *forecast.World, brought map[objects.ServedKind]bool) bool {
	if !g.isOffline() {
		return false
	}
	defined := map[schema.GroupKind]bool{}
	unknown := map[objects.ServedKind]objects.Scope{}
	for _, content := range w.Contents {
		if content.Directory == nil {
			continue
		}
		for i := range content.Directory.Manifests {
			manifest := &content.Directory.Manifests[i]
			if gk, _, is := definedKind(manifest.Object); is {
				defined[gk] = true
			}
			kind := manifest.ID().ServedKind()
			if w.Scopes[kind] != objects.ScopeUnknown || brought[kind] || manifest.Observed {
				continue
			}
			if manifest.ID().Namespace != "" {
				unknown[kind] = objects.ScopeNamespaced
			} else if unknown[kind] == "" {
				unknown[kind] = objects.ScopeCluster
			}
		}
	}
	var names []string
	for kind, scope := range unknown {
		if defined[kind.GroupKind] {
			continue
		}
		w.Scopes[kind] = scope
		if name := kind.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false
	}
	slices.Sort(names)
	g.note("nothing in the folder brings %s: they are taken to be there (--crds names folders with definitions)", strings.Join(names, ", "))
	return true
}

// read reads objects one by one, several at once, so that the right to list is not
// needed. Those that do not exist are left out, and those that may not be read are
// noted.
func (g *Plan) read(ctx context.Context, ids []objects.ID) map[objects.ID]*unstructured.Unstructured {
	found := map[objects.ID]*unstructured.Unstructured{}
	if g.isOffline() {
		return found
	}
	var asked []objects.ID
	for _, id := range ids {
		if known := g.Objects[id]; known != nil {
			found[id] = known
		} else if id.Cluster == "" && !g.unread[id] {
			asked = append(asked, id)
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, id := range asked {
		group.Go(func() error {
			live, err := g.get(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && live != nil:
				found[id] = live
			case apierrors.IsForbidden(err):
				g.unread[id] = true
			case err != nil && !apierrors.IsNotFound(err):
				g.unread[id] = true
				g.unreadable[id] = err
			}
			return nil
		})
	}
	_ = group.Wait() // what cannot be read is noted
	return found
}

// get reads one object; nil where its kind is not served.
func (g *Plan) get(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	mapping, err := g.mapper.RESTMapping(id.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return g.client.Resource(mapping.Resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
}

// find returns an object for a release that refers to it: one that the plan would
// write, or one that is there.
func (g *Plan) find(ctx context.Context, planned map[objects.ID]*unstructured.Unstructured, id objects.ID) (*unstructured.Unstructured, error) {
	if object := planned[id]; object != nil {
		return object, nil
	}
	if g.isOffline() || g.listed()[id.GroupKind()] {
		return nil, nil
	}
	live, err := g.get(ctx, id)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}
