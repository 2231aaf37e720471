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
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/repos"
)

// Kustomizations are what was found of Flux's Kustomizations.
type Kustomizations struct {
	Found []kustomizations.Found
	// Texts are the documents that they stand in, as files have them.
	Texts map[types.NamespacedName][]byte
	// Handed holds the layers that were made of Kustomizations, by these.
	Handed map[types.NamespacedName]string
	// Account is that of Kustomizations which name none.
	Account kustomizations.DefaultAccount
	// Problems say what could not be looked into.
	Problems []string
}

// Kustomizations reads those of a cluster.
func (c *Cluster) Kustomizations(ctx context.Context) (*Kustomizations, error) {
	client, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(snapshot.Kustomizations.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.explain(err, snapshot.Kustomizations)
	}
	k := &Kustomizations{Handed: map[types.NamespacedName]string{}}
	// A cluster without Strata has no layers.
	if made, err := client.Resource(snapshot.Layers.GroupVersionResource).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range made.Items {
			record, err := kustomizations.ReadRecord(made.Items[i].GetAnnotations()[v1alpha1.TakenOverAnnotation])
			if err == nil {
				k.Handed[record.Key()] = made.Items[i].GetName()
			}
		}
	}
	if k.Account, err = c.fluxAccount(ctx); err != nil {
		return nil, err
	}
	for i := range list.Items {
		found, err := kustomizations.Live(&list.Items[i])
		if err != nil {
			k.Problems = append(k.Problems, fmt.Sprintf("Kustomization %s/%s: %v", list.Items[i].GetNamespace(), list.Items[i].GetName(), err))
			continue
		}
		k.Found = append(k.Found, found)
	}
	return k, nil
}

// expansion finds the Kustomizations of a repository: those in its files, and those that
// they apply in turn, as they are when they are applied.
type expansion struct {
	*Kustomizations
	artifact fs.FS
	session  *repos.Session
	// byKey is the index in Found of each.
	byKey map[types.NamespacedName]int
	// written are those of files that nothing was seen to apply yet.
	written []repository.Manifest
}

// KustomizationsIn reads those of a repository. A Kustomization whose directory is in the
// repository is built as Flux builds it, so that what it applies has the namespaces,
// patches and variables that it has on a cluster.
func KustomizationsIn(ctx context.Context, r *repository.Repository, paths ...string) (*Kustomizations, error) {
	artifact, err := r.Artifact(ctx, "")
	if err != nil {
		return nil, err
	}
	manifests, err := r.ManifestsOf(ctx, kustomizev1.GroupVersion.Group, paths...)
	if err != nil {
		return nil, err
	}
	manifests = slices.DeleteFunc(manifests, func(m repository.Manifest) bool { return m.Object.GetKind() != kustomizev1.KustomizationKind })
	e := &expansion{
		Kustomizations: &Kustomizations{Texts: map[types.NamespacedName][]byte{}}, artifact: artifact, session: repos.NewSession(),
		byKey: map[types.NamespacedName]int{}, written: manifests,
	}
	defer e.session.Close()
	// What is in the directory of another one is applied by that. Where each is applied by
	// some other, the first one begins.
	for len(e.written) > 0 {
		next := slices.IndexFunc(e.written, func(m repository.Manifest) bool { return !e.isBelowAnother(m) })
		m := e.written[max(next, 0)]
		e.written = slices.Delete(e.written, max(next, 0), max(next, 0)+1)
		if err := e.add(ctx, m.Object, types.NamespacedName{}, m); err != nil {
			return nil, err
		}
	}
	e.Account, err = fluxAccountIn(artifact)
	return e.Kustomizations, err
}

// isBelowAnother tells whether the file of a Kustomization lies in the directory of another.
func (e *expansion) isBelowAnother(m repository.Manifest) bool {
	return slices.ContainsFunc(e.written, func(other repository.Manifest) bool {
		if other.File == m.File && other.Object.GetName() == m.Object.GetName() {
			return false
		}
		applied, _, _ := unstructured.NestedString(other.Object.Object, "spec", "path")
		below := strings.Trim(strings.TrimPrefix(applied, "./"), "/")
		return below == "" && m.File != other.File || below != "" && strings.HasPrefix(m.File, below+"/")
	})
}

// defaultNamespace is where a Kustomization is that no file says otherwise of.
const defaultNamespace = "flux-system"

// add adds a Kustomization that something applies, and those that it applies itself.
func (e *expansion) add(ctx context.Context, object *unstructured.Unstructured, parent types.NamespacedName, m repository.Manifest) error {
	object = object.DeepCopy()
	object.SetNamespace(cmp.Or(object.GetNamespace(), defaultNamespace))
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if _, known := e.byKey[key]; known {
		return nil
	}
	read, err := kustomizations.Read(object)
	if err != nil {
		e.Problems = append(e.Problems, fmt.Sprintf("%s: Kustomization %s: %v", m.File, key, err))
		return nil
	}
	e.byKey[key] = len(e.Found)
	e.Found = append(e.Found, kustomizations.Found{Kustomization: read, File: m.File, Parent: parent, Others: -1})
	e.Texts[key] = m.Text
	return e.expand(ctx, key)
}

// expand builds the directory of a Kustomization, and adds those that are in it.
func (e *expansion) expand(ctx context.Context, key types.NamespacedName) error {
	found := &e.Found[e.byKey[key]]
	layer := kustomizations.Convert([]kustomizations.Found{{Kustomization: found.Kustomization, Others: 1}}, nil, kustomizations.DefaultAccount{})[0].Layer
	if layer == nil {
		return nil
	}
	if _, err := fs.Stat(e.artifact, strings.TrimSuffix(strings.TrimPrefix(layer.Spec.Source.Path, "./"), "/")); err != nil && layer.Spec.Source.Path != "./" {
		return nil // it is of another repository
	}
	if applies, err := e.mayApply(ctx, layer.Spec.Source.Path); err != nil || !applies {
		return err
	}
	how, err := builds.Of(&layer.Spec)
	if err != nil {
		return err
	}
	if after := layer.Spec.PostBuild; after != nil && len(after.SubstituteFrom) > 0 {
		how.Substitution, how.VariablesUnknown = nil, true // what a cluster gives is not known here
	}
	directory, err := e.session.ParseAs(ctx, e.artifact, layer.Spec.Source.Path, how)
	var mistake *directories.ContentError
	if errors.As(err, &mistake) {
		e.Problems = append(e.Problems, fmt.Sprintf("Kustomization %s: its directory cannot be built: %v", key, mistake))
		return nil
	}
	if err != nil {
		return err
	}
	others := 0
	for i := range directory.Manifests {
		object := directory.Manifests[i].Object
		gvk := object.GroupVersionKind()
		if gvk.Group != kustomizev1.GroupVersion.Group || gvk.Kind != kustomizev1.KustomizationKind {
			others++
			continue
		}
		if err := e.add(ctx, object, key, e.take(object)); err != nil {
			return err
		}
	}
	e.Found[e.byKey[key]].Others = others
	return nil
}

// mayApply tells whether what is in a directory may hold Kustomizations. Most are those of
// an application, and have none: they need not be built to be found out.
func (e *expansion) mayApply(ctx context.Context, folder string) (bool, error) {
	found := false
	err := fs.WalkDir(e.artifact, path.Clean(folder), func(name string, entry fs.DirEntry, err error) error {
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
		data, err := fs.ReadFile(e.artifact, name)
		// What is beside the directory is loaded by a kustomization alone.
		outside := slices.Contains(konfig.RecognizedKustomizationFileNames(), entry.Name()) && bytes.Contains(data, []byte(".."))
		found = outside || bytes.Contains(data, []byte(kustomizev1.GroupVersion.Group+"/"+kustomizev1.GroupVersion.Version))
		return err
	})
	return found, err
}

// take returns the document that a Kustomization was made of, which nothing else begins
// with any more. It has the name, and the namespace where it says one.
func (e *expansion) take(object *unstructured.Unstructured) repository.Manifest {
	at := slices.IndexFunc(e.written, func(m repository.Manifest) bool {
		return m.Object.GetName() == object.GetName() && slices.Contains([]string{"", object.GetNamespace()}, m.Object.GetNamespace())
	})
	if at < 0 {
		return repository.Manifest{}
	}
	m := e.written[at]
	e.written = slices.Delete(e.written, at, at+1)
	return m
}
