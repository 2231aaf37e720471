// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/objects"
)

// maxRounds is how often what is reached is looked through, each time with the variables
// that were found before.
const maxRounds = 6

// reachAll finds what the roots of a cluster reach. ConfigMaps of the cluster give variables
// to what it applies, which may be further ConfigMaps.
func (f *FluxRepository) reachAll(ctx context.Context, cluster *FluxCluster, reached map[int]bool) error {
	wanted := map[string]bool{}
	var r *reaching
	for range maxRounds {
		r = f.newReach(cluster, cluster.values, wanted)
		if err := r.all(ctx); err != nil {
			return err
		}
		if maps.EqualFunc(r.given, cluster.values, sameVariables) && maps.Equal(r.wanted, wanted) {
			break
		}
		cluster.values, wanted = r.given, r.wanted
	}
	for at := range r.reached {
		reached[at] = true
	}
	cluster.Has, cluster.artifacts = r.Kustomizations, r.artifacts
	return nil
}

func sameVariables(a, b builds.Variables) bool {
	return a.Secret == b.Secret && maps.Equal(a.Values, b.Values)
}

// reaching is one way through what the roots of a cluster apply.
type reaching struct {
	*Kustomizations
	f       *FluxRepository
	cluster *FluxCluster
	// byKey is the index in Found of each.
	byKey map[types.NamespacedName]int
	// reached are the indices of documents that what was found is made of.
	reached map[int]bool
	// known are the variables that are used, given those that were found, and wanted the
	// names of ConfigMaps and Secrets that are asked for.
	known, given map[objects.ID]builds.Variables
	asked        map[string]bool
	wanted       map[string]bool
	// artifacts are those that are made of the repository.
	artifacts map[types.NamespacedName]*filesOfSource
}

func (f *FluxRepository) newReach(cluster *FluxCluster, known map[objects.ID]builds.Variables, asked map[string]bool) *reaching {
	return &reaching{
		Kustomizations: &Kustomizations{Texts: map[types.NamespacedName][]byte{}, Account: f.account, Problems: slices.Clone(f.Problems)},
		f:              f, cluster: cluster, byKey: map[types.NamespacedName]int{}, reached: map[int]bool{},
		known: known, given: map[objects.ID]builds.Variables{}, asked: asked, wanted: map[string]bool{},
		artifacts: map[types.NamespacedName]*filesOfSource{},
	}
}

// all begins with the roots. What is nearer to them comes first.
func (r *reaching) all(ctx context.Context) error {
	for _, object := range r.cluster.beside {
		r.give(object)
		if err := r.takeArtifacts(object); err != nil {
			return err
		}
	}
	for _, root := range r.cluster.Roots {
		at := slices.IndexFunc(r.f.written, func(w kustomizations.Written) bool {
			return w.File == root.File && kustomizations.IsKustomization(w.Object) && w.Object.GetName() == root.Object.GetName()
		})
		before := len(r.Found)
		r.add(root.Object, types.NamespacedName{}, at, root.File)
		if len(r.Found) > before {
			r.Found[before].Root = root.Bootstrap
		}
	}
	for at := 0; at < len(r.Found); at++ {
		if err := r.expand(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// add adds a Kustomization that something applies, once. at is the index of its document,
// or -1.
func (r *reaching) add(object *unstructured.Unstructured, parent types.NamespacedName, at int, file string) {
	if at >= 0 {
		r.reached[at] = true
		file = r.f.written[at].File
	}
	object = object.DeepCopy()
	object.SetNamespace(cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace))
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if _, known := r.byKey[key]; known {
		return
	}
	read, err := kustomizations.Read(object)
	if err == nil && !kustomizations.IsWhole(object) {
		err = errors.New("it lacks one of spec.interval, spec.prune and spec.sourceRef, without which no API server takes it")
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: Kustomization %s: %v", cmp.Or(file, parent.String()), key, err))
		return
	}
	version := object.GroupVersionKind().Version
	if version == kustomizev1.GroupVersion.Version {
		version = ""
	}
	r.byKey[key] = len(r.Found)
	r.Found = append(r.Found, kustomizations.Found{Kustomization: read, Version: version, File: file, Parent: parent, Others: -1})
	if at >= 0 {
		r.Texts[key] = r.f.texts[at]
	}
}

// expand builds the directory of a Kustomization, and adds those that are in it.
func (r *reaching) expand(ctx context.Context, at int) error {
	k := r.Found[at].Kustomization
	key := types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
	for _, from := range substituteFrom(k) {
		r.wanted[from.Name] = true
	}
	files := r.f.filesOf(r.artifacts, k.Spec.SourceRef.Kind, cmp.Or(k.Spec.SourceRef.Namespace, k.Namespace), k.Spec.SourceRef.Name)
	if files == nil {
		r.Found[at].Generator = kustomizations.GeneratorOf(r.f.written, k)
		return nil // it is of another repository
	}
	layer := kustomizations.Layer(k)
	folder := path.Clean(layer.Spec.Source.Path)
	if info, err := fs.Stat(files, folder); err != nil || !info.IsDir() {
		r.Found[at].Missing = true
		return nil
	}
	if applies, err := r.mayApply(ctx, files, folder); err != nil || !applies {
		return err
	}
	built, err := r.f.build(ctx, files, layer, k.Namespace, r.known)
	if err != nil {
		return err
	}
	if built.err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("Kustomization %s: its directory cannot be built: %v", key, built.err))
		return nil
	}
	others := 0
	for i, object := range built.objects {
		if !kustomizations.IsKustomization(object) {
			others++
			r.give(object)
			if err := r.takeArtifacts(object); err != nil {
				return err
			}
			continue
		}
		child := types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace), Name: object.GetName()}
		if !slices.Contains(r.Found[at].Applies, child) {
			r.Found[at].Applies = append(r.Found[at].Applies, child)
		}
		r.add(object, key, r.f.documentOf(files, built.files[i], object), built.files[i])
	}
	r.Found[at].Others = others
	return nil
}

// give takes the variables of a ConfigMap or Secret, so far as they are not encrypted.
func (r *reaching) give(object *unstructured.Unstructured) {
	if gvk := object.GroupVersionKind(); gvk.Group != "" || gvk.Kind != "ConfigMap" && gvk.Kind != "Secret" {
		return
	}
	variables, known := builds.VariablesWritten(object)
	if !known {
		return
	}
	r.given[objects.ID{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}] = variables
}

// substituteFrom returns what a Kustomization takes variables from.
func substituteFrom(k *kustomizev1.Kustomization) []kustomizev1.SubstituteReference {
	if k.Spec.PostBuild == nil {
		return nil
	}
	return k.Spec.PostBuild.SubstituteFrom
}

// mayApply tells whether what is in a directory may hold Kustomizations, or ConfigMaps and
// Secrets that variables are taken from. Most are those of an application, and have none:
// they need not be built to be found out.
func (r *reaching) mayApply(ctx context.Context, files fs.FS, folder string) (bool, error) {
	found := false
	err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case found:
			return fs.SkipAll
		case entry.IsDir():
			return nil
		}
		data, err := fs.ReadFile(files, name)
		// What is beside the directory is loaded by a kustomization alone.
		outside := slices.Contains(konfig.RecognizedKustomizationFileNames(), entry.Name()) && bytes.Contains(data, []byte(".."))
		found = outside || bytes.Contains(data, []byte(kustomizev1.GroupVersion.Group+"/"))
		for asked := range r.asked {
			found = found || bytes.Contains(data, []byte(asked))
		}
		return err
	})
	return found, err
}
