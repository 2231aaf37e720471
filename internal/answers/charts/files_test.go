// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

func treeOf(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

// gitRelease returns a HelmRelease of a folder of a source.
func gitRelease(t *testing.T, kind, folder, more string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1m
  chart:
    spec:
      chart: `+folder+`
      sourceRef: {kind: `+kind+`, name: code, namespace: flux-system}
`+more)
}

func sourceOf(kind string) string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: ` + kind + `
metadata: {name: code, namespace: flux-system}
status: {artifact: {revision: "main@sha1:0123456789abcdef0123456789abcdef01234567", path: p, url: u, digest: d, lastUpdateTime: "2026-01-01T00:00:00Z"}}`
}

func TestRenderFromFiles(t *testing.T) {
	t.Parallel()
	tree := treeOf(map[string]string{
		"deploy/web/Chart.yaml":                      "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: sub, version: 0.1.0, repository: 'https://elsewhere.test'}]\n",
		"deploy/web/templates/all.yaml":              settings,
		"deploy/web/templates/ignored.txt":           "{{ fail \"it is ignored\" }}",
		"deploy/web/.helmignore":                     "*.txt\n",
		"deploy/web/values.yaml":                     "colour: white\n",
		"deploy/web/charts/sub/Chart.yaml":           "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
		"deploy/web/charts/sub/templates/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-sub}\n",
		"deploy/lacking/Chart.yaml":                  "apiVersion: v2\nname: lacking\nversion: 1.0.0\ndependencies: [{name: sub, version: 0.1.0, repository: 'https://elsewhere.test'}]\n",
		"deploy/broken/Chart.yaml":                   "name: [",
		"packed/settings-1.0.0.tgz":                  string(packedChart(t, chartFiles("settings", "1.0.0", settings, nil))),
		"values/blue.yaml":                           "colour: blue\n",
	})
	files := func(_ context.Context, id objects.ID) (fs.FS, error) {
		if id.Namespace != "flux-system" || id.Name != "code" {
			t.Errorf("asked for %s", id)
		}
		return tree, nil
	}
	w := world{}.add(t, sourceOf("GitRepository")).add(t, sourceOf("Bucket"))
	r := renderer(t, Options{})
	for _, c := range []struct {
		reason, kind, folder, more string
		want                       []string
	}{
		{"a folder, with a chart that is vendored", "GitRepository", "./deploy/web", "", []string{"colour: white", "chart: web-1.0.0", "name: of-sub"}},
		{"a Bucket", "Bucket", "deploy/web/", "", []string{"colour: white"}},
		{"a packed chart", "GitRepository", "packed/settings-1.0.0.tgz", "", []string{"colour: grey", "chart: settings-1.0.0"}},
		{"files of values, from the top of the source, in the place of the chart's own", "GitRepository", "deploy/web", "      valuesFiles: [values/blue.yaml, ./values/none.yaml]\n      ignoreMissingValuesFiles: true\n", []string{"colour: blue"}},
		{"they must name the chart's own to have it", "GitRepository", "deploy/web", "      valuesFiles: [values/none.yaml]\n      ignoreMissingValuesFiles: true\n", []string{"colour: grey"}},
		{"later ones win", "GitRepository", "deploy/web", "      valuesFiles: [values/blue.yaml, deploy/web/values.yaml]\n", []string{"colour: white"}},
		{"the revision is part of the version", "GitRepository", "deploy/web", "      reconcileStrategy: Revision\n", []string{"chart: web-1.0.0+0123456789ab"}},
		{"no way out of the source", "GitRepository", "../../deploy/web", "", []string{"colour: white"}},
	} {
		got, err := r.Render(t.Context(), Request{Release: gitRelease(t, c.kind, c.folder, c.more), Find: w.find, Files: files})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		for _, part := range c.want {
			if all := text(t, got.Objects); !strings.Contains(all, part) {
				t.Errorf("%s: no %q in\n%s", c.reason, part, all)
			}
		}
	}
	for _, c := range []struct {
		folder, more, reason string
		parts                []string
	}{
		{"deploy/none", "", ChartNotFound, []string{"GitRepository flux-system/code has no deploy/none"}},
		{"deploy/lacking", "", Unsupported, []string{"sub 0.1.0", "charts"}},
		{"deploy/broken", "", ChartUnavailable, []string{"deploy/broken"}},
		{"values/blue.yaml", "", ChartUnavailable, []string{"no packed chart"}},
		{"deploy/web", "      valuesFiles: [values/none.yaml]\n", ValuesUnavailable, []string{"values/none.yaml"}},
	} {
		_, err := r.Render(t.Context(), Request{Release: gitRelease(t, "GitRepository", c.folder, c.more), Find: w.find, Files: files})
		wantProblem(t, err, c.reason, c.parts...)
	}
	_, err := r.Render(t.Context(), Request{Release: gitRelease(t, "GitRepository", "deploy/web", ""), Find: w.find})
	wantProblem(t, err, ChartUnavailable, "not at hand")
	away := func(context.Context, objects.ID) (fs.FS, error) { return nil, errors.New("away") }
	_, err = r.Render(t.Context(), Request{Release: gitRelease(t, "GitRepository", "deploy/web", ""), Find: w.find, Files: away})
	wantProblem(t, err, ChartUnavailable, "away")
}

func TestAFolderThatIsTooLarge(t *testing.T) {
	t.Parallel()
	tree := treeOf(chartFiles("web", "1.0.0", settings, map[string]string{"a": strings.Repeat("a", 600), "b": strings.Repeat("b", 600)}))
	if _, err := loadFolder(tree, ".", 1000); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
	if _, err := loadFolder(tree, ".", 10000); err != nil {
		t.Error(err)
	}
}

// What is small when packed may be large.
func TestAnArchiveThatIsTooLargeUnpacked(t *testing.T) {
	t.Parallel()
	data := packedChart(t, chartFiles("web", "1.0.0", settings, map[string]string{"zeros": strings.Repeat("0", 1<<20)}))
	if len(data) > 1<<16 {
		t.Fatalf("packed, it has %d bytes", len(data))
	}
	if _, err := unpack(data, 1<<19); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
	if _, err := unpack(data, 1<<22); err != nil {
		t.Error(err)
	}
}
