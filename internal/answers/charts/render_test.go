// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// renderFiles renders a release of a chart given by its files.
func renderFiles(t *testing.T, files map[string]string, spec string, q Request) (*Rendering, error) {
	t.Helper()
	server := chartServer(t)
	if err := server.AddFiles(files); err != nil {
		t.Fatal(err)
	}
	q.Release, q.Find = release(t, "it", "1.0.0", spec), world{}.add(t, repository(server.URL())).find
	return renderer(t, Options{}).Render(t.Context(), q)
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}, {name: v1beta1, served: false, storage: false}]
`

func TestHooksAndCRDs(t *testing.T) {
	t.Parallel()
	files := chartFiles("it", "1.0.0", `
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: elsewhere}}
- {apiVersion: v1, kind: Namespace, metadata: {name: made}}
---
apiVersion: example.dev/v1
kind: Widget
metadata: {name: w}
---
apiVersion: other.dev/v1
kind: Thing
metadata: {name: t}
---
# nothing
---
{{ if .Capabilities.APIVersions.Has "example.dev/v1/Widget" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: sees-its-own-crd}
{{ end }}
`, map[string]string{"crds/all.yaml": crd + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: no-crd}\n"})
	names := func(objects []*unstructured.Unstructured) string {
		var all []string
		for _, object := range objects {
			all = append(all, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		reason, spec         string
		revision             int
		objects, hooks, crds string
		keep                 bool
	}{
		{"an installation", "", 1, "apps/sees-its-own-crd elsewhere/a made apps/w t", "apps/migrate", "widgets.example.dev", true},
		{"an upgrade that replaces CRDs", "  upgrade: {crds: CreateReplace}\n", 2, "apps/sees-its-own-crd elsewhere/a made apps/w t", "apps/migrate", "widgets.example.dev", false},
		{"the policy of the other action says nothing", "  install: {crds: Skip}\n", 2, "apps/sees-its-own-crd elsewhere/a made apps/w t", "apps/migrate", "widgets.example.dev", true},
		{"an installation without CRDs", "  install: {crds: Skip}\n", 0, "elsewhere/a made w t", "apps/migrate", "", true},
		{"without hooks", "  install: {disableHooks: true}\n", 1, "apps/sees-its-own-crd elsewhere/a made apps/w t", "", "widgets.example.dev", true},
	} {
		got, err := renderFiles(t, files, c.spec, Request{Revision: c.revision})
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		if diff := cmp.Diff([]string{c.objects, c.hooks, c.crds}, []string{names(got.Objects), names(got.Hooks), names(got.CRDs)}); diff != "" {
			t.Errorf("%s:\n%s", c.reason, diff)
		}
		if got.KeepCRDs != c.keep {
			t.Errorf("%s: KeepCRDs is %t", c.reason, got.KeepCRDs)
		}
	}
	got, err := renderFiles(t, files, "", Request{Namespaced: func(kind schema.GroupKind) (bool, bool) { return true, kind.Group == "other.dev" }})
	if err != nil || !strings.Contains(names(got.Objects), "apps/t") {
		t.Errorf("a kind that the caller knows: %v, %v", got, err)
	}
}

func TestWhatChartsRefuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason      string
		files       map[string]string
		spec, on    string
		wantProblem string
		parts       []string
	}{
		{"another version of Kubernetes", map[string]string{"Chart.yaml": "apiVersion: v2\nname: it\nversion: 1.0.0\nkubeVersion: '<1.30.0-0'\n"}, "", "1.34", RenderFailed, []string{"<1.30.0-0", "v1.34"}},
		{"this version of Kubernetes is fine", map[string]string{"Chart.yaml": "apiVersion: v2\nname: it\nversion: 1.0.0\nkubeVersion: '>=1.30.0'\n"}, "", "v1.34.2-gke.100", "", nil},
		{"no version of Kubernetes", nil, "", "new", RenderFailed, []string{`"new"`}},
		{"values that the schema does not take", map[string]string{"values.schema.json": `{"properties": {"replicas": {"type": "integer"}}}`}, "  values: {replicas: many}\n", "", RenderFailed, []string{"replicas", "integer"}},
		{"values of a part that its schema does not take", map[string]string{
			"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.schema.json": `{"required": ["size"]}`,
		}, "", "", RenderFailed, []string{"sub", "size"}},
		{"the schema is not asked", map[string]string{"values.schema.json": `{"required": ["replicas"]}`}, "  install: {disableSchemaValidation: true}\n", "", "", nil},
		{"a schema that is none", map[string]string{"values.schema.json": `{"type": 5}`}, "", "", RenderFailed, []string{"values.schema.json"}},
		{"a template that fails", map[string]string{"templates/b.yaml": `{{ required "say the colour" .Values.colour }}`}, "", "", RenderFailed, []string{"say the colour"}},
		{"a template that is none", map[string]string{"templates/b.yaml": `{{ if }}`}, "", "", RenderFailed, []string{"templates/b.yaml"}},
		{"no YAML", map[string]string{"templates/b.yaml": "a: b: c"}, "", "", RenderFailed, []string{"templates/b.yaml"}},
		{"no object", map[string]string{"templates/b.yaml": "a: b"}, "", "", RenderFailed, []string{"templates/b.yaml", "Kind"}},
		{"the same object twice", map[string]string{"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}"}, "", "", RenderFailed, []string{"ConfigMap one is there twice"}},
		{"a name that cannot be one", nil, "  releaseName: Not_A_Name\n", "", RenderFailed, []string{"Not_A_Name"}},
	} {
		files := chartFiles("it", "1.0.0", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}", c.files)
		_, err := renderFiles(t, files, c.spec, Request{KubeVersion: c.on})
		if c.wantProblem == "" {
			if err != nil {
				t.Errorf("%s: %v", c.reason, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: it renders", c.reason)
			continue
		}
		wantProblem(t, err, c.wantProblem, c.parts...)
		if strings.Contains(c.reason, "another version") != errors.Is(err, ErrKubeVersion) {
			t.Errorf("%s: cause %v", c.reason, errors.Unwrap(err))
		}
	}
	_, err := renderFiles(t, chartFiles("it", "1.0.0", "", nil), "  upgrade: {preserveValues: true}\n", Request{Revision: 2})
	wantProblem(t, err, Unsupported, "preserveValues")
}

// A chart sees neither this machine nor the network.
func TestChartsSeeNothingElse(t *testing.T) {
	secretFile := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(secretFile, []byte(`{"type": "string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STRATA_TEST_SECRET", "from-the-environment")
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"type": "string"}`))
	}))
	t.Cleanup(server.Close)
	for _, function := range []string{`env "STRATA_TEST_SECRET"`, `expandenv "$STRATA_TEST_SECRET"`} {
		_, err := renderFiles(t, chartFiles("it", "1.0.0", "a: {{ "+function+" }}", nil), "", Request{})
		wantProblem(t, err, RenderFailed, "not defined")
	}
	got, err := renderFiles(t, chartFiles("it", "1.0.0", `
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data:
  lookup: {{ lookup "v1" "Secret" "kube-system" "any" | toJson | quote }}
  dns: {{ getHostByName "localhost" | quote }}
  file: {{ .Files.Get "`+secretFile+`" | quote }}
  up: {{ .Files.Get "../../../../../../etc/passwd" | quote }}
  own: {{ .Files.Get "own.txt" | quote }}
`, map[string]string{"own.txt": "own"}), "", Request{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(got.Objects[0].Object, "data")
	if diff := cmp.Diff(map[string]string{"lookup": "{}", "dns": "", "file": "", "up": "", "own": "own"}, data); diff != "" {
		t.Error(diff)
	}
	for _, reference := range []string{"file://" + secretFile, server.URL + "/schema.json", "urn:any"} {
		files := chartFiles("it", "1.0.0", "", map[string]string{"values.schema.json": `{"properties": {"a": {"$ref": "` + reference + `"}}}`})
		if _, err := renderFiles(t, files, "  values: {a: 1}\n", Request{}); err != nil {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if asked.Load() > 0 {
		t.Error("a schema has asked the network")
	}
}

func TestPostRenderers(t *testing.T) {
	t.Parallel()
	files := chartFiles("it", "1.0.0", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: "web:1"}]}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: job
  annotations: {helm.sh/hook: pre-install}
spec: {template: {spec: {containers: [{name: web, image: "web:1"}]}}}
`, nil)
	const renderers = `  postRenderers:
  - kustomize:
      images: [{name: web, newName: mirror.test/web, newTag: "2"}]
  - kustomize:
      patches:
      - target: {kind: Deployment, name: web}
        patch: |
          - {op: add, path: /spec/replicas, value: 3}
      - patch: |
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web, labels: {patched: "yes"}}
  commonMetadata: {labels: {team: a}, annotations: {note: b}}
`
	const image = "mirror.test/web:2"
	for strategy, hookImage := range map[string]string{"": image, "combined": image, "nohooks": "web:1"} {
		spec := renderers
		if strategy != "" {
			spec += "  postRenderStrategy: " + strategy + "\n"
		}
		got, err := renderFiles(t, files, spec, Request{})
		if err != nil {
			t.Fatalf("%s: %v", strategy, err)
		}
		web := got.Objects[0]
		replicas, _, _ := unstructured.NestedInt64(web.Object, "spec", "replicas")
		if all := text(t, got.Objects); replicas != 3 || !strings.Contains(all, image) {
			t.Errorf("%s: got\n%s", strategy, all)
		}
		want := map[string]string{"patched": "yes", "team": "a", "helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "apps"}
		if diff := cmp.Diff(want, web.GetLabels()); diff != "" {
			t.Errorf("%s:\n%s", strategy, diff)
		}
		if web.GetAnnotations()["note"] != "b" {
			t.Errorf("%s: annotations %v", strategy, web.GetAnnotations())
		}
		if hook := text(t, got.Hooks); !strings.Contains(hook, hookImage+"\n") || (strategy == "nohooks") == strings.Contains(hook, "team: a") {
			t.Errorf("%s: the hook is\n%s", strategy, hook)
		}
	}
	_, err := renderFiles(t, files, "  postRenderers: [{kustomize: {patches: [{patch: 'a: [', target: {kind: Deployment}}]}}]\n", Request{})
	wantProblem(t, err, RenderFailed, "spec.postRenderers[0]")
	// Nothing is read from this machine.
	_, err = renderFiles(t, files, "  postRenderers: [{kustomize: {patches: [{patch: \"apiVersion: apps/v1\\nkind: Deployment\\nmetadata: {name: other}\"}]}}]\n", Request{})
	wantProblem(t, err, RenderFailed, "spec.postRenderers[0]", "other")
}

// What a post-renderer makes grow ends before this process does.
func TestPostRendererIsBounded(t *testing.T) {
	t.Parallel()
	files := chartFiles("it", "1.0.0", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: [v]}\n", nil)
	bomb := strings.Repeat("          - {op: copy, from: /data/l, path: /data/l/-}\n", 40)
	_, err := renderFiles(t, files, "  postRenderers:\n  - kustomize:\n      patches:\n      - target: {kind: ConfigMap}\n        patch: |\n"+bomb, Request{})
	wantProblem(t, err, RenderFailed, "spec.postRenderers[0]", "exceeding the limit")
}

func TestAHelmChartIsFollowed(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddBuiltin("configmap", "1.0.0", "1.1.0"); err != nil {
		t.Fatal(err)
	}
	w := world{}.add(t, repository(server.URL())).add(t, `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: settings, namespace: flux-system}
spec: {chart: configmap, version: 1.0.x, sourceRef: {kind: HelmRepository, name: charts}}`)
	of := parse(t, strings.Replace(byRef, "{kind: OCIRepository, name: settings}", "{kind: HelmChart, name: settings, namespace: flux-system}", 1))
	got, err := renderer(t, Options{}).Render(t.Context(), Request{Release: of, Find: w.find})
	if err != nil {
		t.Fatal(err)
	}
	if got.Chart != "configmap" || got.Version != "1.0.0" {
		t.Errorf("got %s %s", got.Chart, got.Version)
	}
	_, err = renderer(t, Options{}).Render(t.Context(), Request{Release: parse(t, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: b}\nspec: {}"), Find: w.find})
	wantProblem(t, err, ChartNotFound, "spec.chart")
}

func TestRenderingEnds(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	// Some seconds of work, so that the test ends, too.
	if err := server.AddFiles(chartFiles("it", "1.0.0", `{{ range until 1000 }}{{ range until 300 }}{{ $x := sha256sum "a" }}{{ end }}{{ end }}`, nil)); err != nil {
		t.Fatal(err)
	}
	q := Request{Release: release(t, "it", "1.0.0", ""), Find: world{}.add(t, repository(server.URL())).find}
	r := renderer(t, Options{})
	r.limits.render = 10 * time.Millisecond
	_, err := r.Render(t.Context(), q)
	wantProblem(t, err, RenderFailed, "longer than 10ms")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = renderer(t, Options{}).Render(ctx, q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	_, err = renderFiles(t, chartFiles("it", "1.0.0", `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, nil), "", Request{})
	wantProblem(t, err, RenderFailed)
}

func TestRenderingsAreTheSame(t *testing.T) {
	t.Parallel()
	files := chartFiles("it", "1.0.0", `
{{- $ca := genCA "ca" 365 }}
{{- $cert := genSignedCert "web" nil (list "web") 365 $ca }}
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data:
  texts: {{ list (randAlphaNum 40) (randAlphaNum 40) (randAlpha 5) (randNumeric 5) (randAscii 3) (randBytes 9) uuidv4 uuidv4 (shuffle "abc") | toJson | quote }}
  number: {{ randInt 1 10 | quote }}
  time: {{ now | date "2006-01-02" | quote }}
  ca: {{ $ca.Cert | b64enc | quote }}
  cert: {{ $cert.Cert | b64enc | quote }}
  key: {{ genPrivateKey "rsa" | b64enc | quote }}
  hash: {{ htpasswd "user" "password" | quote }}
  bcrypt: {{ bcrypt "password" | quote }}
`, nil)
	first, err := renderFiles(t, files, "", Request{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := renderFiles(t, files, "", Request{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, first.Objects), text(t, second.Objects)); diff != "" {
		t.Error(diff)
	}
	data, _, _ := unstructured.NestedStringMap(first.Objects[0].Object, "data")
	var drawn []string
	if err := json.Unmarshal([]byte(data["texts"]), &drawn); err != nil {
		t.Fatal(err)
	}
	if len(drawn[0]) != 40 || drawn[0] == drawn[1] || drawn[6] == drawn[7] || len(drawn[6]) != 36 || data["ca"] == data["cert"] {
		t.Errorf("got %v", data)
	}
}

// What templates see of the API versions is what the version of Kubernetes serves.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	files := chartFiles("it", "1.0.0", `
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  old: {{ .Capabilities.APIVersions.Has "policy/v1beta1/PodDisruptionBudget" | quote }}
  new: {{ .Capabilities.APIVersions.Has "policy/v1" | quote }}
  more: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" | quote }}
`, nil)
	got, err := renderFiles(t, files, "", Request{KubeVersion: "1.34", APIVersions: []string{"monitoring.coreos.com/v1"}})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(got.Objects[0].Object, "data")
	if diff := cmp.Diff(map[string]string{"version": "v1.34", "old": "false", "new": "true", "more": "true"}, data); diff != "" {
		t.Error(diff)
	}
}
