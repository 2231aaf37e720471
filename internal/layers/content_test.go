// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

func contentOne(t *testing.T, m directories.Manifest) dependents.Dependent {
	t.Helper()
	content, err := Content(directoriestest.Of(newRevision, m), "base", "1.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	return content[0]
}

func TestContentOwns(t *testing.T) {
	m := directoriestest.HelmRelease("a")
	m.Object.SetLabels(map[string]string{"team": "x", v1alpha1.OrphanedLabel: "forged", v1alpha1.LayerLabel: "other"})
	before := m.Object.DeepCopy()
	got := contentOne(t, m)
	if diff := cmp.Diff(map[string]string{"team": "x", v1alpha1.LayerLabel: "base"}, got.Manifest().GetLabels()); diff != "" {
		t.Errorf("the label of the layer is set and no other mark is applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, m.Object); diff != "" {
		t.Errorf("the shared manifest is changed:\n%s", diff)
	}
	got.Object, got.Digest = dependents.Content{}, ""
	want := dependents.Dependent{ID: releaseID("a"), Stage: kinds.StageRelease, Assess: objects.AssessCondition, Exclusive: "default/a", Origin: "base/a.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What releases of the layer take values from has Flux's label, so that a change is seen at
// once; who says otherwise, and what is to be as Flux had it, is left alone.
func TestContentIsWatchedByFlux(t *testing.T) {
	release := directoriestest.HelmRelease("a")
	release.Object.Object["spec"].(map[string]any)["valuesFrom"] = []any{
		map[string]any{"kind": "ConfigMap", "name": "values"}, map[string]any{"kind": "Secret", "name": "secret"}, map[string]any{"kind": "ConfigMap", "name": "quiet"},
	}
	listed := func(kind, name string, labels map[string]string) directories.Manifest {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		obj.SetNamespace("default")
		obj.SetName(name)
		obj.SetLabels(labels)
		return directories.Manifest{File: name + ".yaml", Object: obj}
	}
	manifests := []directories.Manifest{
		release, listed("ConfigMap", "values", nil), listed("Secret", "secret", nil), listed("ConfigMap", "other", nil),
		listed("ConfigMap", "quiet", map[string]string{kinds.WatchLabel: "Disabled"}),
	}
	want := map[string]string{"values": "Enabled", "secret": "Enabled", "quiet": "Disabled"}
	for _, asFlux := range []bool{false, true} {
		for i := range manifests {
			manifests[i].AsFlux = asFlux
		}
		content, err := Content(directoriestest.Of(newRevision, manifests...), "base", "1.0.0", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range content {
			expected := want[got.ID.Name]
			if asFlux && expected == "Enabled" {
				expected = ""
			}
			if is := got.Manifest().GetLabels()[kinds.WatchLabel]; is != expected {
				t.Errorf("as Flux has it %v: %s has the label %q, want %q", asFlux, got.ID, is, expected)
			}
		}
	}
	if manifests[1].Object.GetLabels() != nil {
		t.Errorf("the shared manifest is changed: %v", manifests[1].Object.GetLabels())
	}
}

func TestContentDigest(t *testing.T) {
	same, again := contentOne(t, directoriestest.HelmRelease("a", "x", "1", "y", "2")), contentOne(t, directoriestest.HelmRelease("a", "y", "2", "x", "1"))
	other := contentOne(t, directoriestest.HelmRelease("a", "x", "1", "y", "3"))
	if same.Digest == "" || same.Digest != again.Digest || same.Digest == other.Digest {
		t.Errorf("a digest speaks of content: %s, %s and %s", same.Digest, again.Digest, other.Digest)
	}
}

func TestContentDependsOn(t *testing.T) {
	on := func(names ...any) []any {
		var list []any
		for _, name := range names {
			if text, ok := name.(string); ok {
				namespace, name, found := strings.Cut(text, "/")
				if !found {
					list = append(list, map[string]any{"name": text})
					continue
				}
				list = append(list, map[string]any{"name": name, "namespace": namespace})
				continue
			}
			list = append(list, name)
		}
		return list
	}
	expression := map[string]any{"name": "a", "readyExpr": "true"}
	cases := map[string]struct {
		reason string
		given  []any
		taken  []objects.ID
		left   any
	}{
		"of this layer":   {"Strata orders it, without Flux's polling", on("b", "default/a"), []objects.ID{releaseID("a"), releaseID("b")}, nil},
		"of elsewhere":    {"Flux goes on waiting for it", on("z", "other/a"), nil, on("z", "other/a")},
		"some":            {"each goes where it belongs", on("a", "z"), []objects.ID{releaseID("a")}, on("z")},
		"more than ready": {"an expression is Flux's to judge as well", on(expression), []objects.ID{releaseID("a")}, on(expression)},
		"repeated":        {"once is enough", on("a", "a"), []objects.ID{releaseID("a")}, nil},
		"none":            {"an empty list stays as it is", []any{}, nil, []any{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			content, err := Content(directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"), directoriestest.HelmRelease("c", "dependsOn", tc.given)), "base", "1", nil)
			if err != nil {
				t.Fatal(err)
			}
			left, _, _ := unstructured.NestedFieldNoCopy(content[2].Manifest().Object, "spec", "dependsOn")
			if diff := cmp.Diff(tc.taken, content[2].DependsOn); diff != "" {
				t.Errorf("%s; taken (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("%s; left (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What is no release waits for what it is told to.
func TestContentNeeds(t *testing.T) {
	job := directoriestest.Any("batch/v1", "Job", "default", "migrate")
	job.Needs = []objects.ID{releaseID("podinfo")}
	wanted, err := Content(directoriestest.Of(newRevision, directoriestest.HelmRelease("podinfo"), job), "base", "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range wanted {
		if want := d.ID.Kind == "Job"; slices.Equal(d.DependsOn, job.Needs) != want {
			t.Errorf("%s waits for %v", d.ID, d.DependsOn)
		}
	}
}

func TestContentVersion(t *testing.T) {
	update := func(m directories.Manifest) directories.Manifest {
		m.Object.SetAnnotations(map[string]string{v1alpha1.UpdateVersionAnnotation: "true"})
		return m
	}
	exact := map[string]any{"big": int64(9007199254740993), "float": 1e21, "nested": map[string]any{"n": int64(-1)}}
	cases := map[string]struct {
		reason string
		given  directories.Manifest
		want   any
	}{
		"beside others": {
			"other values keep their exact numbers", update(directoriestest.HelmRelease("a", "values", exact)),
			map[string]any{"big": int64(9007199254740993), "float": 1e21, "nested": map[string]any{"n": int64(-1)}, "kraanVersion": "../../x"},
		},
		"no values":      {"there are some then", update(directoriestest.HelmRelease("a")), map[string]any{"kraanVersion": "../../x"}},
		"null":           {"a key without a value is no mistake", update(directoriestest.HelmRelease("a", "values", nil)), map[string]any{"kraanVersion": "../../x"}},
		"replaced":       {"the layer's version it is", update(directoriestest.HelmRelease("a", "values", map[string]any{"kraanVersion": "1"})), map[string]any{"kraanVersion": "../../x"}},
		"not asked for":  {"values are the author's", directoriestest.HelmRelease("a", "values", exact), exact},
		"not asked, nil": {"and stay as they are", directoriestest.HelmRelease("a"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			content, err := Content(directoriestest.Of(newRevision, tc.given), "base", "../../x", nil)
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedFieldNoCopy(content[0].Manifest().Object, "spec", "values")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	first, _ := Content(directoriestest.Of(newRevision, update(directoriestest.HelmRelease("a"))), "base", "1", nil)
	second, _ := Content(directoriestest.Of(newRevision, update(directoriestest.HelmRelease("a"))), "base", "2", nil)
	if first[0].Digest == second[0].Digest {
		t.Error("the release is written again when only the layer's version changes")
	}
}

func TestContentErrors(t *testing.T) {
	scopes := map[objects.ServedKind]objects.Scope{{GroupKind: kinds.HelmReleaseKind}: objects.ScopeNamespaced, {GroupKind: schema.GroupKind{Kind: "Namespace"}}: objects.ScopeCluster}
	listed := directoriestest.HelmRelease("a", "values", []any{"x"})
	listed.Object.SetAnnotations(map[string]string{v1alpha1.UpdateVersionAnnotation: "true"})
	homeless := directoriestest.HelmRelease("a")
	homeless.Object.SetNamespace("")
	on := func(name string) []any { return []any{map[string]any{"name": name}} }
	cases := map[string]struct {
		reason    string
		manifests []directories.Manifest
		want      string
	}{
		"values that are none": {
			"there is nowhere to put the version",
			[]directories.Manifest{listed},
			"base/a.yaml:1: spec.values: must be a mapping, because the annotation kraan.updateVersion adds a value to it",
		},
		"no namespace": {
			"a namespaced kind needs one",
			[]directories.Manifest{homeless},
			"base/a.yaml:1: metadata.namespace: HelmRelease a has none: name the namespace it belongs in, or spec.targetNamespace of its layer",
		},
		"releases in a circle": {
			"they would wait for each other",
			[]directories.Manifest{directoriestest.HelmRelease("a", "dependsOn", on("b")), directoriestest.HelmRelease("b", "dependsOn", on("a"))},
			"base/a.yaml: spec.dependsOn: releases wait for each other: HelmRelease default/a -> HelmRelease default/b -> HelmRelease default/a",
		},
		"a release after itself": {
			"it would wait for ever",
			[]directories.Manifest{directoriestest.HelmRelease("a", "dependsOn", on("a"))},
			"base/a.yaml: spec.dependsOn: releases wait for each other: HelmRelease default/a -> HelmRelease default/a",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Content(directoriestest.Of(newRevision, tc.manifests...), "base", "1", scopes)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: want %s\ngot %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := Content(directoriestest.Of(newRevision, directoriestest.Any("acme.io/v1", "Issuer", "", "x")), "base", "1", scopes); err != nil {
		t.Errorf("a kind that is not served yet has either scope: %v", err)
	}
}

// TestHelmReleaseIdentity compares with what helm-controller makes of it.
func TestHelmReleaseIdentity(t *testing.T) {
	long := strings.Repeat("n", 54)
	cases := map[string]struct {
		name string
		spec []any
		want string
	}{
		"plain":        {name: "a", want: "default/a"},
		"target":       {name: "a", spec: []any{"targetNamespace", "apps"}, want: "default/apps-a"},
		"name":         {name: "a", spec: []any{"releaseName", "x", "targetNamespace", "apps"}, want: "default/x"},
		"storage":      {name: "a", spec: []any{"storageNamespace", "store"}, want: "store/a"},
		"53 of them":   {name: long[:53], want: "default/" + long[:53]},
		"54 of them":   {name: long, want: "default/" + long[:40] + "-b905c05321dd"},
		"remote":       {name: "a", spec: []any{"kubeConfig", map[string]any{"secretRef": map[string]any{"name": "prod"}}}, want: "default/prod/default/a"},
		"remote, maps": {name: "a", spec: []any{"kubeConfig", map[string]any{"configMapRef": map[string]any{"name": "prod"}}}, want: "default/prod/default/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := directoriestest.HelmRelease(tc.name, tc.spec...).Object
			got := kinds.HelmReleaseIdentity(obj)
			hr := helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Namespace: "default"}}
			hr.Spec.ReleaseName, _, _ = unstructured.NestedString(obj.Object, "spec", "releaseName")
			hr.Spec.TargetNamespace, _, _ = unstructured.NestedString(obj.Object, "spec", "targetNamespace")
			hr.Spec.StorageNamespace, _, _ = unstructured.NestedString(obj.Object, "spec", "storageNamespace")
			if len(hr.GetReleaseName()) <= 53 && !strings.HasSuffix(got, hr.GetStorageNamespace()+"/"+hr.GetReleaseName()) {
				t.Errorf("helm-controller calls it %s/%s: got %s", hr.GetStorageNamespace(), hr.GetReleaseName(), got)
			}
			if got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
			if _, short, _ := strings.Cut(got, "/"); len(short) > 53 && !strings.Contains(name, "remote") {
				t.Errorf("longer than 53: %s", short)
			}
		})
	}
}

func TestTimeoutOf(t *testing.T) {
	kustomization := directoriestest.Any("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "default", "k")
	kustomization.Object.Object["spec"] = map[string]any{"timeout": "20m"}
	cases := map[string]struct {
		reason    string
		own       time.Duration
		interval  time.Duration
		manifests []directories.Manifest
		want      time.Duration
	}{
		"own":           {"what the layer says", time.Second, time.Hour, []directories.Manifest{directoriestest.HelmRelease("a")}, time.Second},
		"interval":      {"the larger one", 0, time.Hour, []directories.Manifest{directoriestest.HelmRelease("a")}, time.Hour},
		"Flux's":        {"a release without timeout has Flux's, and a minute", 0, time.Minute, []directories.Manifest{directoriestest.HelmRelease("a")}, 6 * time.Minute},
		"longest":       {"the longest of all", 0, time.Minute, []directories.Manifest{directoriestest.HelmRelease("a", "timeout", "10m"), directoriestest.HelmRelease("b", "timeout", "1s")}, 11 * time.Minute},
		"shorter":       {"shorter than Flux's", 0, time.Second, []directories.Manifest{directoriestest.HelmRelease("a", "timeout", "30s")}, 90 * time.Second},
		"nonsense":      {"what cannot be read is Flux's", 0, time.Minute, []directories.Manifest{directoriestest.HelmRelease("a", "timeout", "soon")}, 6 * time.Minute},
		"others":        {"other kinds have none", 0, time.Minute, []directories.Manifest{directoriestest.Any("v1", "ConfigMap", "default", "x")}, time.Minute},
		"Kustomization": {"counts like a release", 0, time.Minute, []directories.Manifest{kustomization}, 21 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := layer()
			if tc.own != 0 {
				l.Spec.Timeout = &metav1.Duration{Duration: tc.own}
			}
			content, err := Content(directoriestest.Of(newRevision, tc.manifests...), "base", "1", nil)
			if got := timeoutOf(l, tc.interval, content); got != tc.want || err != nil {
				t.Errorf("%s: want %s, got %s, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestListingOf(t *testing.T) {
	got := ListingOf(directoriestest.Of(newRevision, directoriestest.HelmRelease("b", "releaseName", "x"), directoriestest.HelmRelease("a", "releaseName", "x"), directoriestest.Any("v1", "ConfigMap", "default", "c")))
	want := Listing{
		Files: map[objects.ID]string{
			releaseID("a"): "base/a.yaml", releaseID("b"): "base/b.yaml", {Kind: "ConfigMap", Namespace: "default", Name: "c"}: "base/c.yaml",
		},
		Exclusive: map[string][]objects.ID{"default/x": {releaseID("a"), releaseID("b")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// BenchmarkContent has a layer of many releases in a chain.
func BenchmarkContent(b *testing.B) {
	var manifests []directories.Manifest
	for i := range 200 {
		m := directoriestest.HelmRelease(fmt.Sprintf("r%03d", i), "values", map[string]any{"replicas": int64(1), "labels": map[string]any{"a": "b"}})
		if i > 0 {
			_ = unstructured.SetNestedSlice(m.Object.Object, []any{map[string]any{"name": fmt.Sprintf("r%03d", i-1)}}, "spec", "dependsOn")
		}
		manifests = append(manifests, m)
	}
	dir := directoriestest.Of(newRevision, manifests...)
	for b.Loop() {
		if _, err := Content(dir, "base", "1", nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReleaseOrder compares with what Cycle finds, release by release.
func TestReleaseOrder(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		var wanted []dependents.Dependent
		edges := map[string][]string{}
		for _, name := range names {
			d := dependents.Dependent{ID: releaseID(name)}
			for _, other := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, name+" needs") {
				d.DependsOn, edges[name] = append(d.DependsOn, releaseID(other)), append(edges[name], other)
			}
			wanted = append(wanted, d)
		}
		circle := slices.ContainsFunc(names, func(name string) bool {
			return dependencies.Cycle(name, func(n string) []string { return edges[n] }) != nil
		})
		err := checkReleaseOrder(wanted)
		if (err != nil) != circle || isOrdered(wanted) == circle || circle && !strings.Contains(err.Error(), "releases wait for each other: ") {
			t.Errorf("%v: a circle is %v, and got %v", edges, circle, err)
		}
	})
}

// A namespace on an object whose kind has none is dropped, as the API server does.
func TestNamespaceTooMany(t *testing.T) {
	issuer := schema.GroupKind{Group: "cert-manager.io", Kind: "ClusterIssuer"}
	scopes := map[objects.ServedKind]objects.Scope{{GroupKind: issuer}: objects.ScopeCluster, {GroupKind: schema.GroupKind{Kind: "ConfigMap"}}: objects.ScopeNamespaced}
	written := directoriestest.Of(newRevision, directoriestest.Any("cert-manager.io/v1", "ClusterIssuer", "default", "x"), directoriestest.Any("v1", "ConfigMap", "default", "y"))
	wanted, err := Content(written, "base", "1", scopes)
	if err != nil {
		t.Fatal(err)
	}
	within := InScope(written, scopes)
	for i, want := range []string{"ClusterIssuer x", "ConfigMap default/y"} {
		object, _ := wanted[i].Object.Get()
		if got := wanted[i].ID.String(); got != want || objects.IDOf(object).String() != want {
			t.Errorf("wanted %s as %s, want %s", objects.IDOf(object), got, want)
		}
		if got := within.Manifests[i].ID().String(); got != want {
			t.Errorf("in scope it is %s, want %s", got, want)
		}
	}
	if got := written.Manifests[0].ID().String(); got != "ClusterIssuer default/x" {
		t.Errorf("what was written is now %s", got)
	}
	if InScope(within, scopes) != within || InScope(nil, scopes) != nil {
		t.Error("a directory in scope is another one")
	}
}
