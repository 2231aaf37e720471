// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/internal/answers/adoption"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
)

// readBack reads the directories of layers from files, as the controller will.
func readBack(ctx context.Context, names []string, files []adoption.File) (map[string]*directories.Directory, error) {
	temporary, err := os.MkdirTemp("", "strata-import-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }() // it is only a copy
	if _, err := (folder{path: temporary, mode: 0o600}).write(files); err != nil {
		return nil, err
	}
	found := map[string]*directories.Directory{}
	for _, name := range names {
		directory, err := readDirectory(ctx, temporary, "./"+name)
		if err != nil {
			return nil, fmt.Errorf("what would be written cannot be read as the controller reads it: %w", err)
		}
		found[name] = directory
	}
	return found, nil
}

// readDirectory reads a directory of a layer below a folder.
func readDirectory(ctx context.Context, below, name string) (*directories.Directory, error) {
	root, err := os.OpenRoot(below)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written
	return repos.Parse(ctx, root.FS(), name)
}

// observeKinds adds to a world how the cluster serves the kinds that directories
// list, and the objects of other kinds than Flux's that are there. It returns the
// kinds that may not be read.
func observeKinds(ctx context.Context, flags *genericclioptions.ConfigFlags, client dynamic.Interface, world *adoption.World) ([]string, error) {
	mapper, err := flags.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("cannot ask the cluster for its kinds: %w", err)
	}
	lacking := map[string]bool{}
	for _, layer := range world.Layers {
		directory := world.Directories[layer.Name]
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			id := manifest.ID()
			mapping, err := mapper.RESTMapping(id.GroupKind(), manifest.Object.GroupVersionKind().Version)
			if meta.IsNoMatchError(err) {
				world.Scopes[id.ServedKind()] = objects.ScopeUnknown
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("cannot ask the cluster for the kind %s: %w", id.Kind, err)
			}
			world.Scopes[id.ServedKind()] = objects.ScopeCluster
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				world.Scopes[id.ServedKind()] = objects.ScopeNamespaced
			}
			if err := readLive(ctx, client, mapping, id, world, lacking); err != nil {
				return nil, err
			}
		}
	}
	return sortedNames(lacking), nil
}

// readLive reads an object that a directory lists, unless it is of a kind that was
// listed as a whole.
func readLive(ctx context.Context, client dynamic.Interface, mapping *meta.RESTMapping, id objects.ID, world *adoption.World, lacking map[string]bool) error {
	gk := id.GroupKind()
	if gk == kinds.HelmReleaseKind || gk == kinds.HelmRepositoryKind || lacking[mapping.Resource.GroupResource().String()] {
		return nil
	}
	var resources dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resources = client.Resource(mapping.Resource).Namespace(id.Namespace)
	}
	live, err := resources.Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		lacking[mapping.Resource.GroupResource().String()] = true
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("cannot read %s: %w", id, err)
	default:
		world.Live[id] = live
	}
	return nil
}

func sortedNames(of map[string]bool) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// liveOf returns objects by their IDs.
func liveOf(objs ...[]*unstructured.Unstructured) map[objects.ID]*unstructured.Unstructured {
	live := map[objects.ID]*unstructured.Unstructured{}
	for _, list := range objs {
		for _, obj := range list {
			live[objects.IDOf(obj)] = obj
		}
	}
	return live
}
