// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// publish adds a chart to the fixture's HelmRepository.
func (f *fixture) publish(files map[string]string) {
	f.Helper()
	f.must(stack.charts.AddFiles(files))
	request := time.Now().Format(time.RFC3339Nano)
	charts := &sourcev1.HelmRepository{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "charts"}}
	f.patch(charts, fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, request))
	f.eventually("source-controller fetches the index of charts", func() error {
		f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(charts), charts))
		if charts.Status.LastHandledReconcileAt != request || charts.Status.Artifact == nil {
			return fmt.Errorf("it has handled %q", charts.Status.LastHandledReconcileAt)
		}
		return nil
	})
}

// values returns the values of a HelmRelease.
func (f *fixture) values(release string) map[string]any {
	f.Helper()
	found := map[string]any{}
	if raw := f.release(release).Spec.Values; raw != nil {
		f.must(yaml.Unmarshal(raw.Raw, &found))
	}
	return found
}

// configMap returns the data of a ConfigMap of the fixture's namespace; nil
// where there is none.
func (f *fixture) configMap(name string) map[string]string {
	f.Helper()
	found := &corev1.ConfigMap{}
	if f.absent(found, name) {
		return nil
	}
	return found.Data
}

// A cluster serves v2 only: what is written in an older version arrives as v2,
// with the fields that v2 has dropped in their new place.
func TestOldVersionsOfHelmReleaseAreAppliedAsV2(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version string
		reason  string
		chart   string
		want    []string
	}{
		{"v2beta1", "valuesFile is an older way to write valuesFiles", "valuesFile: values.yaml", []string{"values.yaml"}},
		{"v2beta2", "what has not changed stays", "valuesFiles: [values.yaml]", []string{"values.yaml"}},
	} {
		t.Run(test.version, func(t *testing.T) {
			f := newFixture(t)
			revision := f.push(map[string]string{"apps/release.yaml": fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/%s
kind: HelmRelease
metadata: {name: old, namespace: %s}
spec:
  interval: 1h
  chart:
    spec:
      chart: configmap
      version: 1.0.0
      %s
      sourceRef: {kind: HelmRepository, name: charts, namespace: %s}
  values: {data: {value: old}}
`, test.version, f.prefix, test.chart, f.prefix)})
			f.layer("apps")
			f.deployed("apps", revision)

			release := f.release("old")
			if got := release.Spec.Chart.Spec.ValuesFiles; fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("%s: valuesFiles is %v, want %v", test.reason, got, test.want)
			}
			applied := ""
			for _, entry := range release.ManagedFields {
				if entry.Manager == "strata" {
					applied = entry.APIVersion
				}
			}
			if applied != "helm.toolkit.fluxcd.io/v2" {
				t.Errorf("applied as %q", applied)
			}
			if got := f.configMap("old")["value"]; got != "old" {
				t.Errorf("the chart made the value %q", got)
			}
		})
	}
}

// versionedRelease asks for the layer's version, and has a number that a float
// cannot hold.
func (f *fixture) versionedRelease(name, annotation string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: %s
  namespace: %s
  annotations: {kraan.updateVersion: %q}
spec:
  interval: 1h
  chart:
    spec: {chart: %s-versioned, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %s}}
  values: {exact: 9007199254740993, kraanVersion: from git}
`, name, f.prefix, annotation, f.prefix, f.prefix)
}

func (f *fixture) publishVersioned() {
	f.Helper()
	f.publish(map[string]string{
		"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s-versioned\nversion: 1.0.0\n", f.prefix),
		"templates/configmap.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {kraanVersion: {{ .Values.kraanVersion | quote }}}
`,
	})
}

// The annotation kraan.updateVersion hands the layer's version to the chart;
// a new version upgrades the releases that ask for it, and no others.
func TestLayerVersionReachesTheReleasesThatAskForIt(t *testing.T) {
	f := newFixture(t)
	f.publishVersioned()
	revision := f.push(map[string]string{
		"apps/asks.yaml": f.versionedRelease("asks", "true"),
		"apps/not.yaml":  f.versionedRelease("asks-not", "false"),
	})
	f.layer("apps")
	f.deployed("apps", revision)
	check := func(version string) {
		t.Helper()
		if got := f.values("asks")["kraanVersion"]; got != version {
			t.Errorf("value kraanVersion is %v, want %s", got, version)
		}
		if got := f.configMap("asks")["kraanVersion"]; got != version {
			t.Errorf("the chart saw version %q, want %s", got, version)
		}
		if got := f.configMap("asks-not")["kraanVersion"]; got != "from git" {
			t.Errorf("a release that does not ask got %q", got)
		}
		if raw := string(f.release("asks").Spec.Values.Raw); !strings.Contains(raw, "9007199254740993") {
			t.Errorf("a number of the values is not exact any more: %s", raw)
		}
	}
	check("1.0.0")
	generation := f.release("asks-not").Generation

	f.edit("apps", `{"spec":{"version":"1.1.0"}}`)
	if got := f.deployed("apps", revision).Status.Version; got != "1.1.0" {
		t.Errorf("deployed version %s", got)
	}
	check("1.1.0")
	if got := f.release("asks-not").Generation; got != generation {
		t.Errorf("a release that does not ask was written: generation %d, before %d", got, generation)
	}
}

// A directory with a kustomization is what kustomize builds: base and patch,
// where the base lies beside the directory but inside the artifact.
func TestKustomizeDirectoryIsBuilt(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"common/kustomization.yaml": "resources: [release.yaml]\n",
		"common/release.yaml":       f.configMapRelease("common", "base"),
		"apps/kustomization.yaml": `resources: [../common, own.yaml]
patches:
  - target: {kind: HelmRelease, name: common}
    patch: |
      - {op: replace, path: /spec/values/data/value, value: patched}
`,
		"apps/own.yaml":    f.configMapRelease("own", "own"),
		"apps/unused.yaml": f.configMapRelease("unused", "unused"),
	})
	f.layer("apps")
	f.deployed("apps", revision)
	for name, want := range map[string]string{"common": "patched", "own": "own"} {
		if got := f.configMap(name)["value"]; got != want {
			t.Errorf("release %s made the value %q, want %q", name, got, want)
		}
	}
	if !f.absent(&helmv2.HelmRelease{}, "unused") {
		t.Error("a file that the kustomization leaves out was applied")
	}
}

// A Namespace, a HelmRepository and a ConfigMap in it, and a release that needs
// all three come in one commit: each is created before what needs it.
func TestKindsOfOneCommitAreAppliedInOrder(t *testing.T) {
	f := newFixture(t)
	namespace := f.prefix + "-apps"
	t.Cleanup(func() {
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	})
	created := f.watchCreations(f.name("apps"),
		&corev1.NamespaceList{}, &corev1.ConfigMapList{}, &sourcev1.HelmRepositoryList{}, &helmv2.HelmReleaseList{})
	// The names of the files are in the wrong order on purpose.
	revision := f.push(map[string]string{
		"apps/a.yaml": fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: release, namespace: %s}
spec:
  interval: 1h
  chart:
    spec: {chart: configmap, version: 1.0.0, sourceRef: {kind: HelmRepository, name: own}}
  valuesFrom: [{kind: ConfigMap, name: values}]
`, namespace),
		"apps/b.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: %s}\n"+
			"data: {values.yaml: \"data: {value: from the layer}\"}\n", namespace),
		"apps/c.yaml": fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: own, namespace: %s}\n"+
			"spec: {interval: 1h, url: %q}\n", namespace, stack.charts.URL()),
		"apps/d.yaml": fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace),
	})
	f.layer("apps")
	layer := f.deployed("apps", revision)
	if len(layer.Status.Resources) != 4 {
		t.Errorf("status.resources lists %d objects, want 4: %v", len(layer.Status.Resources), layer.Status.Resources)
	}

	found := &corev1.ConfigMap{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: namespace, Name: "release"}, found))
	if got := found.Data["value"]; got != "from the layer" {
		t.Errorf("the release saw the value %q", got)
	}
	at := created()
	for _, pair := range [][2]string{
		{"Namespace", "ConfigMap"}, {"Namespace", "HelmRepository"}, {"ConfigMap", "HelmRelease"}, {"HelmRepository", "HelmRelease"},
	} {
		if at[pair[0]] == 0 || at[pair[0]] >= at[pair[1]] {
			t.Errorf("%s was not created before %s: %v", pair[0], pair[1], at)
		}
	}
}

// watchCreations watches the objects of a layer and returns a function that
// gives the resourceVersion at which the first of each kind was created.
func (f *fixture) watchCreations(layer string, lists ...client.ObjectList) func() map[string]int64 {
	f.Helper()
	type creation struct {
		kind    string
		version int64
	}
	creations := make(chan creation, 100)
	for _, list := range lists {
		watching, err := stack.client.Watch(f.ctx, list, client.MatchingLabels{v1alpha1.LayerLabel: layer})
		f.must(err)
		f.Cleanup(watching.Stop)
		go func() {
			for event := range watching.ResultChan() {
				obj, ok := event.Object.(client.Object)
				if !ok || event.Type != "ADDED" {
					continue
				}
				gvk, err := stack.client.GroupVersionKindFor(obj)
				version, parseErr := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
				if err == nil && parseErr == nil {
					creations <- creation{gvk.Kind, version}
				}
			}
		}()
	}
	return func() map[string]int64 {
		f.Helper()
		first := map[string]int64{}
		for len(first) < len(lists) {
			select {
			case c := <-creations:
				if at, seen := first[c.kind]; !seen || c.version < at {
					first[c.kind] = c.version
				}
			case <-time.After(patience):
				f.Fatalf("creations seen: %v", first)
			}
		}
		return first
	}
}

// A version that looks like a path is compared, shown and handed to charts as
// it is, and never becomes part of a file name.
func TestVersionThatLooksLikeAPathIsDataOnly(t *testing.T) {
	f := newFixture(t)
	f.publishVersioned()
	escaped := "escaped-" + f.prefix
	version := "../../" + escaped
	revision := f.push(map[string]string{
		"base/release.yaml": f.versionedRelease("base", "true"),
		"apps/release.yaml": f.configMapRelease("apps", "apps"),
	})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Version = version })
	f.layer("apps", f.dependsOn("base@"+version))
	f.deployed("apps", revision)
	if got := f.deployed("base", revision).Status.Version; got != version {
		t.Errorf("status.version is %q", got)
	}
	if got := f.configMap("base")["kraanVersion"]; got != version {
		t.Errorf("the chart saw version %q", got)
	}
	// Nothing of that name in or above the controller's folder.
	f.must(filepath.WalkDir(stack.plane.Dir(), func(path string, _ fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone since the folder was read
			return nil
		case err == nil && filepath.Base(path) == escaped:
			return fmt.Errorf("the version became the file %s", path)
		}
		return err
	}))
}
