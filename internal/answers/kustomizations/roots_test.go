// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// document reads an object of a file.
func document(t *testing.T, file, text string) Written {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return Written{File: file, Object: object}
}

// kustomization is one of a file.
func kustomization(t *testing.T, file, name, applies string) Written {
	t.Helper()
	return document(t, file, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "+name+"}\n"+
		"spec: {interval: 1h, prune: true, path: "+applies+", sourceRef: {kind: GitRepository, name: flux-system}}\n")
}

func TestBegun(t *testing.T) {
	for name, test := range map[string]struct {
		reason  string
		written []Written
		want    []string
	}{
		"bootstrap": {
			"flux bootstrap writes this file",
			[]Written{kustomization(t, "clusters/home/flux-system/gotk-sync.yaml", "flux-system", "./clusters/home")},
			[]string{"flux-system/flux-system clusters/home"},
		},
		"another file": {
			"the name and the source say it",
			[]Written{kustomization(t, "flux.yaml", "flux-system", "./clusters/dev"), kustomization(t, "a.yaml", "apps", "./apps")},
			[]string{"flux-system/flux-system clusters/dev"},
		},
		"an instance": {
			"the sync is a root, named as its namespace",
			[]Written{document(t, "flux/instance.yaml",
				"apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: fluxes}\nspec: {sync: {kind: OCIRepository, url: 'oci://x', path: ./apps}}\n")},
			[]string{"fluxes/fluxes apps"},
		},
		"an instance without sync": {
			"nothing is applied", []Written{document(t, "a.yaml", "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\nspec: {}\n")}, nil,
		},
		"values of a chart": {
			"its chart makes the instance",
			[]Written{document(t, "a.yaml",
				"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: flux, namespace: flux-system}\nspec: {values: {instance: {sync: {kind: GitRepository, url: 'https://x', path: kubernetes/flux}}}}\n")},
			[]string{"flux-system/flux-system kubernetes/flux"},
		},
		"a file of values": {
			"it is one of the chart", []Written{document(t, "values.yaml", "instance: {sync: {url: 'https://x', path: ./k}}\n")}, []string{"flux-system/flux-system k"},
		},
		"both": {
			"the same root is one", []Written{
				kustomization(t, "k/gotk-sync.yaml", "flux-system", "./k"),
				document(t, "values.yaml", "instance: {sync: {url: 'https://x', path: ./k}}\n"),
			}, []string{"flux-system/flux-system k"},
		},
		"a piece": {
			"nothing that lacks a source is applied", []Written{document(t, "gotk-sync.yaml",
				"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system}\nspec: {interval: 1m, prune: true, path: ./x}\n")}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, root := range Begun(test.written) {
				got = append(got, root.Object.GetNamespace()+"/"+root.Object.GetName()+" "+root.Path())
				if !root.Bootstrap || !IsWhole(root.Object) {
					t.Errorf("%s is no root of Flux", root.Object.GetName())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

func TestUnbegun(t *testing.T) {
	at := func(file, applies string, others ...int) Appliable {
		return Appliable{Written: kustomization(t, file, "a", applies), Applies: others, Known: true}
	}
	for name, test := range map[string]struct {
		reason string
		all    []Appliable
		want   []int
	}{
		"a chain":   {"only the first is applied by nothing", []Appliable{at("c/a.yaml", "./apps", 1), at("apps/b.yaml", "./x")}, []int{0}},
		"itself":    {"what applies itself is applied by no other", []Appliable{at("c/a.yaml", "./c", 0, 1), at("c/b.yaml", "./x")}, []int{0}},
		"a circle":  {"one of them begins", []Appliable{at("x/a.yaml", "./y", 1), at("y/b.yaml", "./x", 0)}, []int{0}},
		"unlisted":  {"its directory leaves it out", []Appliable{at("c/root.yaml", "./c/home", 1), at("c/home/a.yaml", "./x"), at("c/home/old.yaml", "./y")}, []int{0}},
		"unknown":   {"what cannot be built leaves nothing out", []Appliable{{Written: kustomization(t, "c/root.yaml", "r", "./c/home")}, at("c/home/a.yaml", "./x")}, []int{0, 1}},
		"unrelated": {"both are applied by nothing", []Appliable{at("a.yaml", "./x"), at("b.yaml", "./y")}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Unbegun(test.all)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

func TestClusters(t *testing.T) {
	root := func(file, name, applies string, begun bool) Root {
		return Root{Object: named(kustomization(t, file, name, applies).Object), File: file, Bootstrap: begun}
	}
	for name, test := range map[string]struct {
		reason string
		roots  []Root
		want   []string
	}{
		"one":            {"all of a folder are one cluster", []Root{root("flux/a.yaml", "a", "./a", false), root("flux/b.yaml", "b", "./b", false)}, []string{".: a b"}},
		"two folders":    {"nothing parts them", []Root{root("flux/a.yaml", "a", "./a", false), root("more/b.yaml", "b", "./b", false)}, []string{".: a b"}},
		"same names":     {"no cluster has two of a name", []Root{root("envs/prod/a.yaml", "a", "./a", false), root("envs/test/a.yaml", "a", "./b", false)}, []string{"prod: a", "test: a"}},
		"clusters":       {"the folder says it", []Root{root("clusters/a/x.yaml", "x", "./x", false), root("clusters/b/z.yaml", "z", "./z", false)}, []string{"a: x", "b: z"}},
		"begun":          {"each is named by what it applies", []Root{root("clusters/b/flux-system/gotk-sync.yaml", "flux-system", "./clusters/b", true), root("x/gotk-sync.yaml", "flux-system", "./clusters/a", true)}, []string{"a: flux-system", "b: flux-system"}},
		"same folders":   {"the whole folder names them", []Root{root("a/gotk-sync.yaml", "flux-system", "./east/prod", true), root("b/gotk-sync.yaml", "flux-system", "./west/prod", true)}, []string{"east/prod: flux-system", "west/prod: flux-system"}},
		"a whole source": {"the folder of its file names it", []Root{root("flux/gotk-sync.yaml", "flux-system", "./", true)}, []string{"flux: flux-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, cluster := range Clusters(test.roots) {
				var names []string
				for _, root := range cluster.Roots {
					names = append(names, root.Object.GetName())
				}
				got = append(got, cluster.Name+": "+strings.Join(names, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", test.reason, diff)
			}
		})
	}
}
