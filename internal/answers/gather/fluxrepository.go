// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
)

// FluxOptions say where in a repository Flux begins.
type FluxOptions struct {
	// Below are folders that roots are looked for in; all where there is none.
	Below []string
	// Path is a folder that Flux applies, as flux bootstrap has it; empty for what the
	// repository says.
	Path string
	// Sources are further repositories, by the names of their sources.
	Sources map[string]*repository.Repository
}

// FluxRepository is what a repository has Flux apply. It must be closed.
type FluxRepository struct {
	// Clusters of the repository, with what their roots reach.
	Clusters []FluxCluster
	// Unreached are Kustomizations of files that no root reaches.
	Unreached []kustomizations.Written

	artifact *filesOfSource
	others   map[string]*filesOfSource
	own      []kustomizations.Source
	account  kustomizations.DefaultAccount
	session  *repos.Session
	// written are the objects of files, and texts their documents.
	written []kustomizations.Written
	texts   [][]byte
	// built are directories that were built before, by how they are.
	built map[string]*builtDirectory
	// made are artifacts that are made of the repository, which lie in the folder laidOut.
	made    map[string]*filesOfSource
	laidOut string
	// Problems say which files cannot be read.
	Problems []string
}

// FluxCluster is one cluster, and what its roots reach.
type FluxCluster struct {
	kustomizations.Cluster
	Has *Kustomizations
	// values are those of ConfigMaps and Secrets that the repository gives it.
	values map[objects.ID]builds.Variables
	// artifacts are those that it makes of the repository.
	artifacts map[types.NamespacedName]*filesOfSource
	// beside are ConfigMaps, Secrets and ArtifactGenerators that stand beside its roots.
	beside []*unstructured.Unstructured
}

// markers are the texts by one of which a file is looked into.
var markers = []string{kustomizev1.GroupVersion.Group, kustomizations.SourceGroup, kustomizations.InstanceGroup, kustomizations.GeneratorGroup, "instance:"}

// OpenFlux finds the roots of a repository, and all that they reach. Each Kustomization whose
// directory is in the repository is built as Flux builds it, so that what it applies has the
// namespaces, patches and variables that it has on a cluster.
func OpenFlux(ctx context.Context, r *repository.Repository, options FluxOptions) (*FluxRepository, error) {
	artifact, err := r.Artifact(ctx, "")
	if err != nil {
		return nil, err
	}
	found, problems, err := r.Look(ctx, markers)
	if err != nil {
		return nil, err
	}
	f := &FluxRepository{
		artifact: &filesOfSource{FS: artifact}, others: map[string]*filesOfSource{}, session: repos.NewSession(),
		built: map[string]*builtDirectory{}, made: map[string]*filesOfSource{}, Problems: problems,
	}
	for _, m := range found {
		f.written, f.texts = append(f.written, kustomizations.Written{File: m.File, Object: m.Object}), append(f.texts, m.Text)
	}
	for name, other := range options.Sources {
		files, err := other.Artifact(ctx, "")
		if err != nil {
			f.Close()
			return nil, err
		}
		f.others[name] = &filesOfSource{FS: files, name: name}
	}
	f.account, err = fluxAccountIn(artifact)
	if err == nil {
		err = f.findClusters(ctx, r, options)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close ends what was started to build directories, and removes what was laid out.
func (f *FluxRepository) Close() {
	f.session.Close()
	if f.laidOut != "" {
		_ = os.RemoveAll(f.laidOut) // nothing of it is needed
	}
}

// findClusters finds the roots, and what each cluster's reach.
func (f *FluxRepository) findClusters(ctx context.Context, r *repository.Repository, options FluxOptions) (err error) {
	for _, below := range options.Below {
		if _, err := fs.Stat(f.artifact, path.Clean(below)); err != nil {
			return fmt.Errorf("the repository has no %s", path.Clean(below))
		}
	}
	roots := kustomizations.Begun(f.written)
	for i := range roots {
		if err := f.patch(ctx, &roots[i]); err != nil {
			return err
		}
	}
	if options.Path != "" {
		roots = []kustomizations.Root{{
			Object: kustomizations.RootOf(kustomizations.DefaultNamespace, kustomizations.DefaultNamespace, sources.GitRepository, options.Path), Bootstrap: true,
		}}
		if _, err := fs.Stat(f.artifact, roots[0].Path()); err != nil {
			return fmt.Errorf("the repository has no %s", roots[0].Path())
		}
	}
	f.own = kustomizations.OwnSources(f.written, roots)
	isAsked := func(file string) bool {
		return len(options.Below) == 0 || slices.ContainsFunc(options.Below, func(below string) bool {
			below = path.Clean(below)
			return file == below || kustomizations.IsBelow(file, below)
		})
	}
	roots = slices.DeleteFunc(roots, func(root kustomizations.Root) bool {
		return options.Path == "" && !isAsked(root.File) && !isAsked(root.Path()+"/.")
	})
	if len(roots) == 0 {
		if roots, err = f.unbegun(ctx, isAsked); err != nil {
			return err
		}
	}
	reached := map[int]bool{}
	for _, cluster := range kustomizations.Clusters(roots) {
		of := FluxCluster{Cluster: cluster}
		if of.beside, err = f.besideOf(ctx, r, cluster); err != nil {
			return err
		}
		if err := f.reachAll(ctx, &of, reached); err != nil {
			return err
		}
		f.Clusters = append(f.Clusters, of)
	}
	for at, w := range f.written {
		if !reached[at] && kustomizations.IsWhole(w.Object) && isAsked(w.File) {
			f.Unreached = append(f.Unreached, w)
		}
	}
	return nil
}

// patch gives a root the patches that a FluxInstance has for it.
func (f *FluxRepository) patch(ctx context.Context, root *kustomizations.Root) error {
	if len(root.Patches) == 0 {
		return nil
	}
	patched, err := f.session.Patched(ctx, root.Object, root.Patches)
	if errors.As(err, new(*directories.ContentError)) {
		f.Problems = append(f.Problems, fmt.Sprintf("%s: the patches of its Kustomization cannot be put in: %v", root.File, err))
		return nil
	}
	if err == nil {
		root.Object = patched
	}
	return err
}

// unbegun returns the Kustomizations that nothing applies, where no root is named.
func (f *FluxRepository) unbegun(ctx context.Context, isAsked func(string) bool) ([]kustomizations.Root, error) {
	var all []kustomizations.Appliable
	position := map[int]int{}
	var indices []int
	for at, w := range f.written {
		if kustomizations.IsWhole(w.Object) && isAsked(w.File) {
			position[at] = len(all)
			indices = append(indices, at)
			all = append(all, kustomizations.Appliable{Written: w})
		}
	}
	for i := range all {
		once := f.newReach(&FluxCluster{}, nil, nil)
		object := all[i].Object.DeepCopy()
		object.SetNamespace(cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace))
		once.add(object, types.NamespacedName{}, indices[i], all[i].File)
		if len(once.Found) == 0 {
			continue // which is said when it is reached
		}
		if err := once.expand(ctx, 0); err != nil {
			return nil, err
		}
		all[i].Known = once.Found[0].Others >= 0
		for at := range once.reached {
			if other, known := position[at]; known && other != i {
				all[i].Applies = append(all[i].Applies, other)
			}
		}
		slices.Sort(all[i].Applies)
	}
	var roots []kustomizations.Root
	for _, i := range kustomizations.Unbegun(all) {
		object := all[i].Object.DeepCopy()
		object.SetNamespace(cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace))
		roots = append(roots, kustomizations.Root{Object: object, File: all[i].File})
	}
	return roots, nil
}

// besideOf returns the ConfigMaps, Secrets and ArtifactGenerators that stand beside the roots of a cluster, where
// the repository does not say what applies these: the same applies both.
func (f *FluxRepository) besideOf(ctx context.Context, r *repository.Repository, cluster kustomizations.Cluster) ([]*unstructured.Unstructured, error) {
	var folders []string
	for _, root := range cluster.Roots {
		if folder := path.Dir(root.File); !root.Bootstrap && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if len(folders) == 0 {
		return nil, nil
	}
	found, _, err := r.Look(ctx, []string{"ConfigMap", "Secret", kustomizations.GeneratorGroup}, folders...)
	var beside []*unstructured.Unstructured
	for _, m := range found {
		if slices.Contains(folders, path.Dir(m.File)) {
			beside = append(beside, m.Object)
		}
	}
	return beside, err
}
