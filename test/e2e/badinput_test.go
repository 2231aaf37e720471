// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// footprint is what a release is on the cluster, down to its last write.
type footprint struct {
	UID         types.UID
	Written     string
	Generation  int64
	Labels      map[string]string
	Annotations map[string]string
	Deleted     bool
	// Made is the UID and the resourceVersion of the ConfigMap that its chart
	// made.
	Made string
}

// footprints returns those of all releases of the fixture's namespace.
func (f *fixture) footprints() map[string]footprint {
	f.Helper()
	releases := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)))
	found := map[string]footprint{}
	for _, release := range releases.Items {
		made := &corev1.ConfigMap{}
		if f.absent(made, release.Name) {
			made = &corev1.ConfigMap{}
		}
		found[release.Name] = footprint{
			UID: release.UID, Written: written(&release), Generation: release.Generation,
			Labels: release.Labels, Annotations: release.Annotations, Deleted: !release.DeletionTimestamp.IsZero(),
			Made: string(made.UID) + "@" + made.ResourceVersion,
		}
	}
	return found
}

// untouched checks for a while that the releases are as they were.
func (f *fixture) untouched(before map[string]footprint) {
	f.Helper()
	f.throughout(500*time.Millisecond, "releases stay as they are", func() error {
		if diff := cmp.Diff(before, f.footprints()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// stalled waits until a layer is Stalled for a reason, with all of the words in
// its message.
func (f *fixture) stalled(layer, reason string, words ...string) {
	f.Helper()
	found := f.reason(layer, reason, words...)
	if found.Status.State != v1alpha1.StateFailed || !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.StalledCondition) {
		f.Errorf("layer %s is %s and not Stalled: %v", layer, found.Status.State, found.Status.Conditions)
	}
}

// in returns the fixture for a subtest, which shares everything with it.
func (f *fixture) in(t *testing.T) *fixture {
	sub := *f
	sub.T = t
	return &sub
}

// A mistake in the directory is the author's to mend: the layer says which, and
// where; what is deployed stays exactly as it is, and the mended commit heals. Each
// mistake has a layer of its own, and one commit makes them all.
func TestMistakeInTheDirectoryChangesNothing(t *testing.T) {
	f := newFixture(t)
	good := map[string]string{"apps/one.yaml": f.configMapRelease("one", "one")}
	// object is a manifest of three lines, of which a case leaves one out.
	object := func(lines ...string) string {
		return strings.Join(append(lines, "data: {key: value}"), "\n") + "\n"
	}
	release := "# the same again\n" + f.configMapRelease("one", "other")
	cases := []struct {
		name, reason string
		add          map[string]string
		remove       []string
		want         string
		words        []string
	}{
		{
			name: "directory gone", reason: "git drops directories without files",
			remove: []string{"apps"},
			want:   v1alpha1.ReasonPathNotFound, words: []string{"spec.source.path", "./apps does not exist", v1alpha1.AllowEmptyAnnotation},
		},
		{
			name: "directory with nothing in it", reason: "a README is no object",
			remove: []string{"apps"}, add: map[string]string{"apps/README.md": "moved\n"},
			want: v1alpha1.ReasonEmptyDirectory, words: []string{"spec.source.path", "./apps holds no objects", v1alpha1.AllowEmptyAnnotation},
		},
		{
			name: "file in place of the directory", reason: "a file holds no manifests",
			remove: []string{"apps"}, add: map[string]string{"apps": "moved\n"},
			want: v1alpha1.ReasonPathNotFound, words: []string{"apps", "spec.source.path", "is a file"},
		},
		{
			name: "file that is not YAML", reason: "line 3 closes what line 2 has not opened",
			add:  map[string]string{"apps/bad.yaml": "apiVersion: v1\nkind: ConfigMap\n}\n"},
			want: v1alpha1.ReasonInvalidManifest, words: []string{"apps/bad.yaml:", "cannot be read as YAML"},
		},
		{
			name: "file that is no object", reason: "a list of words is YAML, too",
			add:  map[string]string{"apps/bad.yaml": "# words\n- one\n- two\n"},
			want: v1alpha1.ReasonInvalidManifest, words: []string{"apps/bad.yaml:2", "is no Kubernetes object"},
		},
		{
			name: "object without name", reason: "the second document of the file, at its line",
			add:  map[string]string{"apps/bad.yaml": "---\n" + object("apiVersion: v1", "kind: ConfigMap", "metadata: {namespace: "+f.prefix+"}")},
			want: v1alpha1.ReasonInvalidManifest, words: []string{"apps/bad.yaml:", "metadata.name", "is missing"},
		},
		{
			name: "object without apiVersion", reason: "nothing says which API",
			add:  map[string]string{"apps/bad.yaml": object("kind: ConfigMap", "metadata: {name: bad, namespace: "+f.prefix+"}")},
			want: v1alpha1.ReasonInvalidManifest, words: []string{"apps/bad.yaml:1", "apiVersion", "is missing"},
		},
		{
			name: "object without kind", reason: "nothing says which kind",
			add:  map[string]string{"apps/bad.yaml": object("apiVersion: v1", "metadata: {name: bad, namespace: "+f.prefix+"}")},
			want: v1alpha1.ReasonInvalidManifest, words: []string{"apps/bad.yaml:1", "kind", "is missing"},
		},
		{
			name: "object without namespace", reason: "layers have no default namespace",
			add:  map[string]string{"apps/bad.yaml": object("apiVersion: v1", "kind: ConfigMap", "metadata: {name: bad}")},
			want: v1alpha1.ReasonInvalidManifest, words: []string{"apps/bad.yaml:1", "metadata.namespace"},
		},
		{
			name: "SOPS-encrypted file", reason: "what cannot be decrypted is not applied as it is",
			add: map[string]string{"apps/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: bad, namespace: " + f.prefix + "}\n" +
				"stringData: {password: 'ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]'}\n" +
				"sops: {lastmodified: '2026-01-01T00:00:00Z', mac: 'ENC[AES256_GCM,data:Zm9v,type:str]', version: 3.9.0}\n"},
			want: v1alpha1.ReasonEncryptedManifest, words: []string{"apps/secret.yaml", "SOPS"},
		},
		{
			name: "duplicate object", reason: "which of the two is meant cannot be known",
			add:  map[string]string{"apps/three.yaml": release},
			want: v1alpha1.ReasonDuplicateObject, words: []string{"apps/three.yaml:2", "HelmRelease " + f.prefix + "/one", "apps/one.yaml:1"},
		},
		{
			name: "kustomization that does not build", reason: "a resource of it is missing",
			add:  map[string]string{"apps/kustomization.yaml": "resources: [one.yaml, three.yaml]\n"},
			want: v1alpha1.ReasonKustomizeFailed, words: []string{"apps/kustomization.yaml", "three.yaml"},
		},
		{
			name: "kustomization outside of the artifact", reason: "only what is in the source is deployed",
			add:  map[string]string{"apps/kustomization.yaml": "resources: [one.yaml, ../../etc]\n"},
			want: v1alpha1.ReasonPathOutsideArtifact, words: []string{"apps/kustomization.yaml", "resources", "../../etc"},
		},
		{
			name: "kustomization with a remote base", reason: "what is deployed is pinned by the revision",
			add:  map[string]string{"apps/kustomization.yaml": "resources: [one.yaml, 'https://example.com/base.yaml']\n"},
			want: v1alpha1.ReasonKustomizeFailed, words: []string{"apps/kustomization.yaml", "https://example.com/base.yaml"},
		},
	}
	words := regexp.MustCompile(`\b(apps|one)\b`)
	// of returns what a case says, about its own directory and release.
	of := func(i int, text string) string { return words.ReplaceAllString(text, fmt.Sprintf("${1}%02d", i)) }
	all := func(add func(i int) map[string]string) map[string]string {
		files := map[string]string{}
		for i := range cases {
			for path, content := range add(i) {
				files[of(i, path)] = of(i, content)
			}
		}
		return files
	}
	everyGood := all(func(int) map[string]string { return good })
	revision := f.push(everyGood)
	for i := range cases {
		f.layer(of(i, "apps"))
	}
	for i := range cases {
		f.deployed(of(i, "apps"), revision)
	}
	before := f.footprints()
	if len(before) != len(cases) {
		t.Fatalf("deployed %v", before)
	}

	mistakes := all(func(i int) map[string]string { return cases[i].add })
	for i, test := range cases {
		for _, path := range test.remove {
			_, err := f.repo.Remove("remove", of(i, path))
			f.must(err)
		}
	}
	f.push(mistakes)
	for i, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			says := make([]string, 0, len(test.words))
			for _, word := range test.words {
				says = append(says, of(i, word))
			}
			f.in(t).stalled(of(i, "apps"), test.want, says...)
			if t.Failed() {
				t.Log(test.reason)
			}
		})
	}
	f.untouched(before)

	_, err := f.repo.Remove("mend", slices.Collect(maps.Keys(mistakes))...)
	f.must(err)
	revision = f.push(everyGood)
	for i := range cases {
		f.deployed(of(i, "apps"), revision)
	}
	f.untouched(before)
}

// A path that was never there is told from one that has gone only by what is
// deployed: nothing.
func TestPathThatWasNeverThereIsStalled(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{"apps/one.yaml": f.configMapRelease("one", "one")})
	f.layer("misspelt")
	f.stalled("misspelt", v1alpha1.ReasonPathNotFound, "./misspelt does not exist")
	f.edit("misspelt", `{"spec":{"source":{"path":"./apps"}}}`)
	f.state("misspelt", v1alpha1.StateDeployed)
}

// The API server refuses what can be seen to be wrong in the layer alone, and
// says what to write instead.
func TestAPIRefusesPathsOutsideOfTheSource(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct{ path, reason, message string }{
		{"./../other", "the source's parent", "source.path must stay inside the source: remove the .. from it"},
		{"./apps/../../other", "in the middle", "source.path must stay inside the source: remove the .. from it"},
		{"/etc", "absolute", "source.path must begin with ./ and name a directory below the root of the source"},
		{"apps", "without ./", "source.path must begin with ./ and name a directory below the root of the source"},
	} {
		layer := &v1alpha1.AddonsLayer{
			ObjectMeta: metav1.ObjectMeta{Name: f.name("outside")},
			Spec:       v1alpha1.AddonsLayerSpec{Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "addons", Namespace: f.prefix, Path: test.path}},
		}
		err := stack.client.Create(f.ctx, layer)
		if err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("path %s (%s) is refused with %v, want %q", test.path, test.reason, err, test.message)
		}
	}
	// Two dots in a name lead nowhere.
	f.push(map[string]string{"v1..2/one.yaml": f.configMapRelease("one", "one")})
	f.layer("dots", func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Path = "./v1..2" })
	f.state("dots", v1alpha1.StateDeployed)
}

// kustomized returns a directory of releases of which the kustomization names
// the first few.
func (f *fixture) kustomized(named, releases int) map[string]string {
	files := map[string]string{}
	var resources []string
	for i := range releases {
		name := fmt.Sprintf("r%02d", i)
		files["apps/"+name+".yaml"] = f.configMapRelease(name, name)
		if i < named {
			resources = append(resources, name+".yaml")
		}
	}
	files["apps/kustomization.yaml"] = "resources: [" + strings.Join(resources, ", ") + "]\n"
	return files
}

// A kustomization that suddenly renders 1 of 20 releases is a slip until
// somebody says that it is meant.
func TestMassPruneIsRefused(t *testing.T) {
	f := newFixture(t)
	f.layer("apps")
	f.deployed("apps", f.push(f.kustomized(20, 20)))
	before := f.footprints()
	if len(before) != 20 {
		t.Fatalf("deployed %d releases", len(before))
	}
	f.push(f.kustomized(1, 20))
	f.stalled("apps", v1alpha1.ReasonMassPrune, "removes 19 of the layer's 20 releases", v1alpha1.AllowPruneAnnotation)
	f.untouched(before)
	// What else the commit brings waits as well.
	files := f.kustomized(1, 20)
	files["apps/r00.yaml"] = f.configMapRelease("r00", "changed")
	f.push(files)
	f.stalled("apps", v1alpha1.ReasonMassPrune)
	f.untouched(before)

	f.deployed("apps", f.push(f.kustomized(20, 20)))
	f.untouched(before)
}

// onlyRelease waits until a layer has deployed a revision and one release is
// left.
func (f *fixture) onlyRelease(revision, name string) {
	f.Helper()
	f.deployed("apps", revision)
	f.eventually("only "+name+" is left", func() error {
		if left := slices.Sorted(maps.Keys(f.footprints())); !slices.Equal(left, []string{name}) {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
}

// annotated tells whether a layer still has an annotation.
func (f *fixture) annotated(layer, annotation string) bool {
	_, found := f.get(layer).Annotations[annotation]
	return found
}

// allow sets an annotation on the layer apps.
func (f *fixture) allow(annotation, value string) {
	f.Helper()
	f.edit("apps", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, value))
}

// allow-prune opens the guard for one revision: the next that needs it, or the
// one that it names.
func TestAllowPruneIsUsedUpOnce(t *testing.T) {
	f := newFixture(t)
	f.layer("apps")
	f.deployed("apps", f.push(f.kustomized(5, 5)))

	revision := f.push(f.kustomized(1, 5))
	f.stalled("apps", v1alpha1.ReasonMassPrune, "removes 4 of the layer's 5 releases")
	f.allow(v1alpha1.AllowPruneAnnotation, v1alpha1.AllowNext)
	f.onlyRelease(revision, "r00")
	if f.annotated("apps", v1alpha1.AllowPruneAnnotation) {
		t.Error("the annotation is not used up")
	}

	f.deployed("apps", f.push(f.kustomized(5, 5)))
	revision = f.push(f.kustomized(1, 5))
	f.stalled("apps", v1alpha1.ReasonMassPrune)
	before := f.footprints()
	f.allow(v1alpha1.AllowPruneAnnotation, "main@sha1:0000000000000000000000000000000000000000")
	f.stalled("apps", v1alpha1.ReasonMassPrune, revision)
	f.untouched(before)
	f.allow(v1alpha1.AllowPruneAnnotation, revision)
	f.onlyRelease(revision, "r00")

	f.deployed("apps", f.push(f.kustomized(5, 5)))
	before = f.footprints()
	f.push(f.kustomized(1, 5))
	f.stalled("apps", v1alpha1.ReasonMassPrune)
	f.untouched(before)
}

// allow-empty empties the layer once: with the next revision that is empty, or
// with the one that it names.
func TestAllowEmptyIsUsedUpOnce(t *testing.T) {
	f := newFixture(t)
	files := map[string]string{"apps/one.yaml": f.configMapRelease("one", "one")}
	gone := func(revision string) {
		t.Helper()
		f.deployed("apps", revision)
		f.eventually("the release and what it installed are gone", func() error {
			if !f.absent(&helmv2.HelmRelease{}, "one") || f.configMap("one") != nil {
				return errors.New("they are still there")
			}
			return nil
		})
	}
	f.layer("apps")
	f.deployed("apps", f.push(files))

	revision := f.remove("apps")
	f.stalled("apps", v1alpha1.ReasonPathNotFound, v1alpha1.AllowEmptyAnnotation, revision)
	f.allow(v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowNext)
	gone(revision)
	if f.annotated("apps", v1alpha1.AllowEmptyAnnotation) {
		t.Error("the annotation is not used up")
	}

	f.deployed("apps", f.push(files))
	before := f.footprints()
	revision = f.remove("apps")
	f.stalled("apps", v1alpha1.ReasonPathNotFound, revision)
	f.untouched(before)
	f.allow(v1alpha1.AllowEmptyAnnotation, revision)
	gone(revision)

	f.deployed("apps", f.push(files))
	before = f.footprints()
	revision = f.remove("apps")
	f.stalled("apps", v1alpha1.ReasonPathNotFound, revision)
	f.untouched(before)
}
