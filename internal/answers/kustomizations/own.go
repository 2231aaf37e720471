// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/sources"
)

// SourceGroup is the API group of Flux's sources.
const SourceGroup = "source.toolkit.fluxcd.io"

// GeneratorGroup is the API group of ArtifactGenerators, which make sources of others.
const GeneratorGroup = "source.extensions.fluxcd.io"

// GeneratorOf returns the name of the ArtifactGenerator that makes the source of a
// Kustomization; empty where no file says one.
func GeneratorOf(written []Written, k *kustomizev1.Kustomization) string {
	if k.Spec.SourceRef.Kind != sources.ExternalArtifact {
		return ""
	}
	for _, w := range written {
		if !isGenerator(w.Object) {
			continue
		}
		artifacts, _, _ := unstructured.NestedSlice(w.Object.Object, "spec", "artifacts")
		for _, artifact := range artifacts {
			if of, _ := artifact.(map[string]any); of["name"] == k.Spec.SourceRef.Name {
				return w.Object.GetName()
			}
		}
	}
	return ""
}

// Artifact is what an ArtifactGenerator makes of folders of the repository.
type Artifact struct {
	Name    string
	Folders []ArtifactFolder
}

// ArtifactFolder is a folder of the repository, and where it is in an artifact; both clean.
type ArtifactFolder struct{ From, To string }

// ArtifactsOf returns the artifacts that an object has made of whole folders of the sources
// that are the repository itself. It leaves out those that are made in any other way.
func ArtifactsOf(object *unstructured.Unstructured, own []Source) []Artifact {
	if !isGenerator(object) {
		return nil
	}
	var spec struct {
		Sources []struct {
			Alias string `json:"alias"`
			Kind  string `json:"kind"`
			Name  string `json:"name"`
		} `json:"sources"`
		Artifacts []struct {
			Name string `json:"name"`
			Copy []struct {
				From     string   `json:"from"`
				To       string   `json:"to"`
				Strategy string   `json:"strategy"`
				Exclude  []string `json:"exclude"`
			} `json:"copy"`
		} `json:"artifacts"`
	}
	given, _, _ := unstructured.NestedMap(object.Object, "spec")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(given, &spec) != nil {
		return nil // no API server takes it
	}
	aliases := map[string]bool{}
	for _, source := range spec.Sources {
		aliases[source.Alias] = slices.Contains(own, Source{source.Kind, source.Name})
	}
	var made []Artifact
	for _, artifact := range spec.Artifacts {
		one := Artifact{Name: artifact.Name}
		for _, each := range artifact.Copy {
			alias, from, _ := strings.Cut(strings.TrimPrefix(each.From, "@"), "/")
			from, isFolder := strings.CutSuffix("./"+from, "/**")
			to, isArtifact := strings.CutPrefix(each.To, "@artifact/")
			if !aliases[alias] || !isFolder || !isArtifact || strings.ContainsAny(from, "*?[{") || len(each.Exclude) > 0 || each.Strategy != "" {
				break
			}
			one.Folders = append(one.Folders, ArtifactFolder{From: path.Clean(from), To: path.Clean(to)})
		}
		if len(one.Folders) > 0 && len(one.Folders) == len(artifact.Copy) {
			made = append(made, one)
		}
	}
	return made
}

// Source names one, by its kind and name: the namespace is left out, because a file may
// leave it to a kustomization.
type Source struct{ Kind, Name string }

// SourceOf returns the source of a Kustomization.
func SourceOf(object *unstructured.Unstructured) Source {
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "sourceRef", "kind")
	name, _, _ := unstructured.NestedString(object.Object, "spec", "sourceRef", "name")
	return Source{Kind: kind, Name: name}
}

// OwnSources returns the sources that are the repository itself, so that what they are asked
// for is found in it: those of the roots that it names, and others of the same address.
// Without such roots it is the one that flux bootstrap would make, or else the GitRepository
// that most Kustomizations name.
func OwnSources(written []Written, roots []Root) []Source {
	var own []Source
	for _, root := range roots {
		if source := SourceOf(root.Object); !slices.Contains(own, source) {
			own = append(own, source)
		}
	}
	if len(own) == 0 {
		own = mostNamed(written)
	}
	addresses := map[string]bool{}
	for _, w := range written {
		source := Source{w.Object.GetKind(), w.Object.GetName()}
		if address := addressOf(w.Object); address != "" && slices.Contains(own, source) {
			addresses[address] = true
		}
	}
	for _, w := range written {
		source := Source{w.Object.GetKind(), w.Object.GetName()}
		if addresses[addressOf(w.Object)] && !slices.Contains(own, source) {
			own = append(own, source)
		}
	}
	return own
}

// addressOf returns where a source has its files from, and at which revision; empty for what
// is none.
func addressOf(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().Group != SourceGroup {
		return ""
	}
	url, _, _ := unstructured.NestedString(object.Object, "spec", "url")
	if url == "" {
		return ""
	}
	ref, _, _ := unstructured.NestedMap(object.Object, "spec", "ref")
	return fmt.Sprint(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"), " ", ref)
}

// mostNamed returns the source that is taken for the repository itself where no root says
// which one is.
func mostNamed(written []Written) []Source {
	count := map[Source]int{}
	var all []Source
	for _, w := range written {
		for _, source := range namedBy(w.Object) {
			if source.Name == bootstrap {
				return []Source{source}
			}
			if count[source] == 0 {
				all = append(all, source)
			}
			count[source]++
		}
	}
	if len(all) == 1 {
		return all
	}
	all = slices.DeleteFunc(all, func(s Source) bool { return s.Kind != sources.GitRepository })
	slices.SortStableFunc(all, func(a, b Source) int { return cmp.Or(count[b]-count[a], cmp.Compare(a.Name, b.Name)) })
	return all[:min(len(all), 1)]
}

// namedBy returns the sources that a Kustomization names, or an ArtifactGenerator.
func namedBy(object *unstructured.Unstructured) []Source {
	if IsWhole(object) {
		return []Source{SourceOf(object)}
	}
	if !isGenerator(object) {
		return nil
	}
	var all []Source
	given, _, _ := unstructured.NestedSlice(object.Object, "spec", "sources")
	for _, each := range given {
		source, _ := each.(map[string]any)
		kind, _ := source["kind"].(string)
		name, _ := source["name"].(string)
		all = append(all, Source{kind, name})
	}
	return all
}

// isGenerator tells whether an object is an ArtifactGenerator.
func isGenerator(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == GeneratorGroup && gvk.Kind == "ArtifactGenerator"
}

// Layer returns the layer that a Kustomization by itself becomes, also that of Flux itself:
// it is how its directory is built.
func Layer(k *kustomizev1.Kustomization) *v1alpha1.AddonsLayer {
	c := treeOf([]Found{{Kustomization: k, Others: 1}}, nil).convert(k, Options{})
	return c.Layer
}
