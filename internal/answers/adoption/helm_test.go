// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

func deployed(namespace, name string, values map[string]any) Release {
	return Release{Namespace: namespace, Name: name, Revision: 1, Status: "deployed", Values: values, Chart: Chart{Name: "podinfo", Version: "1.2.3"}}
}

var charts = &Repository{Namespace: "flux-system", Name: "charts", URL: "https://charts.example.com", Lives: true}

// Whatever a release is called, what is written stands for it and no other.
func TestWhatIsWrittenStandsForTheRelease(t *testing.T) {
	for _, name := range []string{"web", "web.v1", "a", strings.Repeat("a", 53), "kustomization"} {
		r := deployed("shop", name, nil)
		if got := kinds.HelmReleaseIdentity(HelmRelease(r, charts)); got != "shop/"+name {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func liveRelease(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"+text)
}

func TestJudge(t *testing.T) {
	flux := liveRelease(t, "metadata: {name: front, namespace: shop}\nspec: {releaseName: web}\n")
	failed := deployed("shop", "api", nil)
	failed.Status = "failed"
	for _, test := range []struct {
		name    string
		release Release
		reason  string
		covered bool
	}{
		{"nobody has it", deployed("shop", "db", nil), "", false},
		{"a HelmRelease of another name stands for it", deployed("shop", "web", nil), "HelmRelease shop/front stands for it", true},
		{"the same name elsewhere", deployed("other", "web", nil), "", false},
		{"a HelmRelease of its name stands for another", deployed("shop", "front", nil), "HelmRelease shop/front is there, and stands for the Helm release shop/web", false},
		{"it has failed", failed, "its last revision has failed: mend it, or roll it back", false},
	} {
		if reason, covered := Judge(test.release, []*unstructured.Unstructured{flux}); reason != test.reason || covered != test.covered {
			t.Errorf("%s: %q, %v", test.name, reason, covered)
		}
	}
}

func TestKept(t *testing.T) {
	for text, want := range map[string][2]string{
		"metadata: {name: a}":                              {},
		"metadata: {name: a, labels: {kraan/layer: base}}": {"layer base has it", ""},
		"metadata: {name: a, ownerReferences: [{kind: AddonsLayer, name: base, controller: true}]}":                                 {"it belongs to AddonsLayer base", ""},
		"metadata: {name: a, ownerReferences: [{kind: Other, name: base}]}":                                                         {},
		"metadata: {name: a, deletionTimestamp: '2026-12-01T00:00:00Z'}":                                                            {"it is being deleted", ""},
		"metadata: {name: a}\nspec: {kubeConfig: {secretRef: {name: x}}}":                                                           {"it installs on another cluster: give that a RemoteCluster, and its layer spec.cluster", ""},
		"metadata: {name: a, labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}}": {"", "Kustomization flux-system/apps writes it, too: set spec.prune: false there, then take it out, before the layer is created"},
	} {
		by, note := Kept(liveRelease(t, text+"\n"))
		if by != want[0] || note != want[1] {
			t.Errorf("%s: %q, %q", text, by, note)
		}
	}
}

func files(list []File) map[string]string {
	found := map[string]string{}
	for _, file := range list {
		found[file.Path] = string(file.Data)
	}
	return found
}

func TestWrite(t *testing.T) {
	given := *charts
	given.Namespace, given.Lives = "shop", false
	live := liveRelease(t, `metadata:
  name: old
  namespace: ops
  uid: abc
  resourceVersion: "7"
  labels: {team: ops, kustomize.toolkit.fluxcd.io/name: apps}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
  finalizers: [finalizers.fluxcd.io]
spec: {interval: 5m, chart: {spec: {chart: podinfo, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}, values: {token: x}, valuesFrom: [{kind: ConfigMap, name: common}]}
status: {observedGeneration: 1}
`)
	what := Import{
		Options: Options{ByNamespace: true, Layer: "fleet", Version: "1.0.0", Source: "addons", SourceNamespace: "flux-system", Path: "./addons/"},
		Candidates: []Candidate{
			{Release: deployed("shop", "web", map[string]any{"replicas": int64(2)}), Repository: &given},
			{Release: deployed("shop", "api", map[string]any{"auth": map[string]any{"password": "x", "user": "me"}}), Repository: &given},
			{Release: deployed("shop", "lost", nil), Why: "nobody\nlists it"},
		},
		Live:    []*unstructured.Unstructured{live},
		Skipped: []Item{{Namespace: "shop", Name: "bad", Action: ActionSkip, Note: "it is being uninstalled"}},
	}
	got, err := what.Write()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fleet-ops", "fleet-shop"}, got.Layers); diff != "" {
		t.Errorf("layers -want +got:\n%s", diff)
	}
	wantFiles := map[string]string{
		"fleet-shop/shop/helmrelease-web.yaml": `# Helm release shop/web, at revision 1 when it was imported.
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: web
  namespace: shop
spec:
  chart:
    spec:
      chart: podinfo
      sourceRef:
        kind: HelmRepository
        name: charts
        namespace: shop
      version: 1.2.3
  interval: 1h
  maxHistory: 10
  releaseName: web
  storageNamespace: shop
  targetNamespace: shop
  values:
    replicas: 2
`,
		"fleet-shop/shop/helmrepository-charts.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: charts
  namespace: shop
spec:
  interval: 1h
  url: https://charts.example.com
`,
		"fleet-ops/ops/helmrelease-old.yaml": `# The HelmRelease that was there when it was imported.
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  annotations:
    note: kept
  labels:
    team: ops
  name: old
  namespace: ops
spec:
  chart:
    spec:
      chart: podinfo
      sourceRef:
        kind: HelmRepository
        name: charts
      version: 1.x
  interval: 5m
  valuesFrom:
  - kind: ConfigMap
    name: common
  - kind: Secret
    name: old-secret-values
`,
		LayersFile: `# The layers of what was imported. Create them when the folder is in their source.
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: fleet-ops
spec:
  source:
    name: addons
    namespace: flux-system
    path: ./addons/fleet-ops
  version: 1.0.0
---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: fleet-shop
spec:
  source:
    name: addons
    namespace: flux-system
    path: ./addons/fleet-shop
  version: 1.0.0
`,
	}
	written := files(got.Files)
	for name, want := range wantFiles {
		if diff := cmp.Diff(want, written[name]); diff != "" {
			t.Errorf("%s -want +got:\n%s", name, diff)
		}
	}
	if len(written) != 6 || !strings.Contains(written["incomplete/shop/helmrelease-lost.yaml"], "# nobody\n# lists it.\napiVersion") {
		t.Errorf("%d files, and %s", len(written), written["incomplete/shop/helmrelease-lost.yaml"])
	}
	for name, text := range written {
		if strings.Contains(text, "password") || strings.Contains(text, "token") {
			t.Errorf("%s holds a secret:\n%s", name, text)
		}
	}
	secrets := files(got.Secrets)
	if len(secrets) != 2 || !strings.Contains(secrets["shop/secret-api-secret-values.yaml"], "auth:\n      password: x\n") {
		t.Errorf("%v", secrets)
	}
	var actions []string
	for _, item := range got.Items {
		actions = append(actions, item.Namespace+"/"+item.Name+" "+item.Action+" "+strings.Join(item.SecretValues, ","))
	}
	if diff := cmp.Diff([]string{"ops/old adopt token", "shop/api adopt auth.password", "shop/bad skip ", "shop/lost incomplete ", "shop/web adopt "}, actions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What others have named must not become part of a manifest.
func TestCommentsStayComments(t *testing.T) {
	for _, end := range []string{"\r", "\r\n", "\n", "\u0085", "\u2028", "\u2029", "\x00", "\x1b"} {
		text, err := Text("it lacks x"+end+"kind: Secret", HelmRepository(*charts))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "Secret") && !strings.HasPrefix(line, "# ") || strings.ContainsAny(line, "\r\u0085\u2028\u2029\x00\x1b") {
				t.Errorf("%q", line)
			}
		}
		if kind := parse(t, string(text)).GetKind(); kind != "HelmRepository" {
			t.Errorf("%q makes a %s", end, kind)
		}
	}
}

func TestNamesOfLayers(t *testing.T) {
	const noName = "cannot be the name of a layer"
	for name, wrong := range map[string]string{
		"base": "", strings.Repeat("a", 63): "", strings.Repeat("a", 64): noName, "Base": noName, "a/b": noName, "..": noName,
		Incomplete: "import itself uses", LayersFile: "import itself uses",
	} {
		what := Import{Options: Options{Layer: name, Version: "1", Source: "a", Path: "./x"}, Candidates: []Candidate{{Release: deployed("shop", "web", nil), Repository: charts}}}
		if _, err := what.Write(); (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", name, err, wrong)
		}
	}
}

func directory(objs ...*unstructured.Unstructured) *directories.Directory {
	dir := &directories.Directory{Revision: "main@sha1:1", Digest: "some"}
	for _, obj := range objs {
		dir.Manifests = append(dir.Manifests, directories.Manifest{File: obj.GetName() + ".yaml", Line: 1, Object: obj})
	}
	return dir
}

func layer(name string) *v1alpha1.AddonsLayer {
	l := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	l.Spec.Version, l.Spec.Source = "1.0.0", v1alpha1.SourceSpec{Name: "addons", Path: "./" + name}
	return l
}

func world(live []*unstructured.Unstructured, made map[string]*directories.Directory, all ...*v1alpha1.AddonsLayer) World {
	w := World{Version: "v1.36.3", Namespace: "gotk-system", Layers: all, Directories: made, Scopes: FluxScopes(), Live: map[objects.ID]*unstructured.Unstructured{}}
	for _, obj := range live {
		w.Live[objects.IDOf(obj)] = obj
	}
	return w
}

func TestConflicts(t *testing.T) {
	mine := HelmRelease(deployed("shop", "web", nil), charts)
	other := liveRelease(t, "metadata: {name: front, namespace: shop, generation: 1}\nspec: {releaseName: web}\n")
	w := world(nil, map[string]*directories.Directory{"base": directory(mine)}, layer("base"))
	if got := w.Conflicts([]string{"base"}); len(got) != 0 {
		t.Errorf("%q", got)
	}
	w = world([]*unstructured.Unstructured{other}, w.Directories, layer("base"))
	if got := w.Conflicts([]string{"base"}); len(got) != 1 || !strings.Contains(got[0], "HelmRelease shop/front, which stands for the same Helm release and which no layer has") {
		t.Errorf("%q", got)
	}
}

func TestVerify(t *testing.T) {
	result := Result{Layers: []string{"base"}}
	wanted := []Candidate{{Release: deployed("shop", "web", nil), Repository: charts}, {Release: deployed("shop", "api", nil), Repository: charts}, {Release: deployed("shop", "lost", nil)}}
	got := result.Verify(map[string]*directories.Directory{"base": directory(HelmRelease(wanted[0].Release, charts))}, wanted)
	if diff := cmp.Diff([]string{"shop/api"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
