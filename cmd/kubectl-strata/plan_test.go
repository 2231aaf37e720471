// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/terminal"
	"github.com/strata-project/strata/test/controlplane"
)

// plannedRepository is a repository with three layers, and a Helm repository.
type plannedRepository struct {
	t      *testing.T
	charts *controlplane.ChartServer
	files  map[string]string
}

func newPlannedRepository(t *testing.T) *plannedRepository {
	t.Helper()
	server, err := controlplane.NewChartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if err := server.AddBuiltin("configmap", "1.0.0", "1.1.0"); err != nil {
		t.Fatal(err)
	}
	layer := func(name, version, more string) string {
		return fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: %[1]s, labels: {part: %[1]s}}\nspec:\n  version: %[2]s\n  source: {name: addons, namespace: flux-system, path: ./%[1]s}\n%[3]s---\n", name, version, more)
	}
	r := &plannedRepository{t: t, charts: server, files: map[string]string{
		"layers.yaml": layer("base", "1.0.0", "") + layer("apps", "1.0.0", "  prereqs: {dependsOn: [\"base@>=1.0 <2\"], k8sVersion: \">=1.30\"}\n"),
		"base/charts.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: platform}\n" +
			"spec: {url: " + server.URL() + ", interval: 1h}\n",
	}}
	for _, name := range []string{"base/gateway", "base/mesh", "base/metrics", "apps/shop"} {
		r.release(name, "1.0.0", "hello")
	}
	return r
}

// release writes a release.
func (r *plannedRepository) release(path, version, value string) {
	layer, name := filepath.Dir(path), filepath.Base(path)
	r.files[path+".yaml"] = fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  chart: {spec: {chart: configmap, version: %s, sourceRef: {kind: HelmRepository, name: charts, namespace: platform}}}
  values: {data: {value: %s}}
`, name, layer, version, value)
}

// folder writes the repository. Its path is wider than any screen of the tests, so
// that lines are broken in the same places wherever temporary files are.
func (r *plannedRepository) folder() string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), strings.Repeat("wide", 20))
	for name, text := range r.files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	return dir
}

// deployed returns an API server on which the repository is deployed as it is,
// with further objects.
func (r *plannedRepository) deployed(more ...*unstructured.Unstructured) *apitest.Server {
	r.t.Helper()
	with := newTool(io.Discard, io.Discard)
	with.Now = func() time.Time { return noon }
	g, err := with.Cluster.Plan(r.t.Context(), gather.PlanOptions{Offline: true, FromDir: r.folder(), Kubernetes: "1.34"})
	if err != nil {
		r.t.Fatal(err)
	}
	world, err := g.World(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	made := forecast.Make(world)
	objs := more
	for _, layer := range made.Layers {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(layer)
		if err != nil {
			r.t.Fatal(err)
		}
		objs = append(objs, &unstructured.Unstructured{Object: fields})
	}
	for _, id := range objects.SortIDs(idsOf(made.Objects)) {
		object := made.Objects[id].DeepCopy()
		if id.Kind == "HelmRelease" {
			_ = unstructured.SetNestedSlice(object.Object, []any{map[string]any{
				"chartName": "configmap", "chartVersion": "1.0.0", "name": id.Name, "namespace": id.Namespace,
			}}, "status", "history")
			_ = unstructured.SetNestedField(object.Object, id.Namespace, "status", "storageNamespace")
		}
		objs = append(objs, object)
	}
	objs = append(objs, apitest.Parse(r.t, `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: addons, namespace: flux-system, generation: 1}
status: {observedGeneration: 1, artifact: {digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", revision: "main@sha1:1", url: "http://127.0.0.1:1/gone.tar.gz"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: strata, namespace: strata-system, labels: {app.kubernetes.io/name: strata}}
`)...)
	server := apitest.New(r.t, objs...)
	server.Version = "v1.34.2"
	return server
}

func idsOf(objs map[objects.ID]*unstructured.Unstructured) []objects.ID {
	var ids []objects.ID
	for id := range maps.Keys(objs) {
		ids = append(ids, id)
	}
	return ids
}

// stable takes out of an output what is another each time.
func (r *plannedRepository) stable(output, folder string, server *apitest.Server) string {
	pairs := []string{r.charts.URL(), "http://charts.example", folder, "FOLDER"}
	if server != nil {
		pairs = append(pairs, server.URL, "https://cluster.example")
	}
	return strings.NewReplacer(pairs...).Replace(output)
}

func (r *plannedRepository) plan(server *apitest.Server, screen terminal.Screen, args string) (code int, out, errOut string) {
	r.t.Helper()
	r.t.Setenv("XDG_CACHE_HOME", r.t.TempDir())
	folder := r.folder()
	code, out, errOut = commandLine(r.t, server, screen, strings.ReplaceAll(args, "FOLDER", folder))
	return code, r.stable(out, folder, server), r.stable(errOut, folder, server)
}

func TestPlanOffline(t *testing.T) {
	r := newPlannedRepository(t)
	code, out, errOut := r.plan(nil, terminal.Screen{}, "plan --offline --fetch-charts --from-dir FOLDER --k8s 1.34")
	if code != exitBlocked || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	golden(t, "plan-offline.txt", out)
	if code, out, _ := r.plan(nil, terminal.Screen{}, "plan --offline --from-dir FOLDER --k8s 1.20 apps"); code != exitBlocked || !strings.Contains(out, "waits for Kubernetes >=1.30: the cluster is at 1.20") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// What brings a kind is not known where a chart cannot be had. A plan says that, and not
// when the kind is given up, nor that everything behind it waits.
func TestPlanOfKindsThatNobodyKnows(t *testing.T) {
	layer := func(name, more string) string {
		return "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: " + name + "}\nspec: {version: 1.0.0, source: {name: platform, path: ./" + name + "}" + more + "}\n"
	}
	folder := checkedOut(t, map[string]string{
		"layers.yaml":     layer("base", "") + "---\n" + layer("apps", ", prereqs: {dependsOn: [base]}"),
		"base/web.yaml":   gitRelease("web", "1.2.3", ""),
		"base/issue.yaml": "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: all}\n",
		"apps/api.yaml":   gitRelease("api", "1.2.3", ""),
	})
	code, out, errOut := commandLine(t, nil, terminal.Screen{}, "plan --offline --k8s 1.34 --from-dir "+folder)
	if code != exitBlocked || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	for _, want := range []string{"it is not known what brings ClusterIssuer.cert-manager.io: they are taken to come with a chart that could not be rendered", "ClusterIssuer all", "HelmRelease shop/api"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	for _, never := range []string{"KindNotServed", "until", "waits for base"} {
		if strings.Contains(out, never) {
			t.Errorf("there is %q in\n%s", never, out)
		}
	}

	// Where no chart is left that may bring it, it is taken to be there, and a note says so.
	folder = checkedOut(t, map[string]string{
		"layers.yaml": layer("base", ""), "base/issue.yaml": "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: all}\n",
		"crds/crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: clusterissuers.cert-manager.io}\n" +
			"spec: {group: cert-manager.io, scope: Cluster, names: {kind: ClusterIssuer, plural: clusterissuers}, versions: []}\n",
	})
	const taken = "nothing in the folder brings ClusterIssuer.cert-manager.io: they are taken to be there"
	for _, args := range []string{"", " --no-charts"} {
		code, out, _ = commandLine(t, nil, terminal.Screen{}, "plan --offline --k8s 1.34 --from-dir "+folder+args)
		if code != exitBlocked || !strings.Contains(out, taken) || !strings.Contains(out, "create   ClusterIssuer all") {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
	code, out, _ = commandLine(t, nil, terminal.Screen{}, "plan --offline --k8s 1.34 --from-dir "+folder+" --crds "+folder+"/crds")
	if code != exitBlocked || strings.Contains(out, taken) || !strings.Contains(out, "create   ClusterIssuer all") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A plan without a cluster knows the kinds of Kubernetes, of Flux and of Strata, and the
// variables that files give.
func TestPlanOfflineOfWhatIsKnown(t *testing.T) {
	layer := func(name, more string) string {
		return "---\napiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: " + name + "}\n" +
			"spec: {version: 1.0.0, source: {name: flux-system, namespace: flux-system, path: ./" + name + "}" + more + "}\n"
	}
	object := func(version, kind, name, more string) string {
		return "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" + more
	}
	folder := checkedOut(t, map[string]string{
		"layers.yaml": layer("kinds", ", targetNamespace: shop") +
			layer("one", ", postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}") +
			layer("two", ", postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}], substitute: {SIZE: small}}") +
			layer("three", ", postBuild: {substituteFrom: [{kind: ConfigMap, name: unknown}], substitute: {SIZE: small}}"),
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata: {CLASS: fast}\n",
		"kinds/all.yaml": object("autoscaling/v2", "HorizontalPodAutoscaler", "hpa", "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, maxReplicas: 3}\n") +
			object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "policy", "") + object("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flow", "") +
			object("networking.k8s.io/v1", "ServiceCIDR", "cidr", "") + object("storage.k8s.io/v1", "VolumeAttributesClass", "class", "driverName: x\n") +
			object("notification.toolkit.fluxcd.io/v1beta3", "Alert", "alert", "") + object("image.toolkit.fluxcd.io/v1", "ImagePolicy", "policy", "") +
			object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "ks", ""),
		"one/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLASS}', namespace: one}\n",
		"two/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLASS}-${SIZE}', namespace: two}\n",
		"three/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a-${CLASS}-${SIZE}', namespace: three}\n",
	})
	code, out, errOut := commandLine(t, nil, terminal.Screen{}, "plan --offline --k8s 1.34 --from-dir "+folder)
	if code != exitBlocked || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	for _, want := range []string{
		"HorizontalPodAutoscaler shop/hpa", "ValidatingAdmissionPolicy policy", "FlowSchema flow", "ServiceCIDR cidr", "VolumeAttributesClass class", "Alert shop/alert", "ImagePolicy shop/policy",
		"Kustomization shop/ks", "ConfigMap one/fast", "ConfigMap two/fast-small", "ConfigMap three/a-${CLASS}-small",
		"layer one: the variables of ConfigMap flux-system/settings are those of the folder",
		"layer three: the variables of ConfigMap flux-system/unknown are not known without a cluster, and stay as they are written",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "does not serve") || strings.Contains(out, "fail") {
		t.Errorf("something is not planned:\n%s", out)
	}
}

func TestPlan(t *testing.T) {
	r := newPlannedRepository(t)
	server := r.deployed()
	if code, out, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER"); code != exitFine || !strings.Contains(out, "Nothing would change.") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	r.release("base/gateway", "1.1.0", "hello")
	r.release("base/tracing", "1.0.0", "hello")
	r.release("apps/shop", "1.0.0", "changed")
	delete(r.files, "base/mesh.yaml")
	r.files["base/flags.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flags, namespace: base}\ndata: {a: b}\n"
	for name, c := range map[string]struct {
		screen terminal.Screen
		args   string
	}{
		"plan.txt":      {terminal.Screen{}, ""},
		"plan-40.txt":   {terminal.Screen{Width: 40, Colour: true}, ""},
		"plan.md":       {terminal.Screen{}, "-o markdown"},
		"plan.json":     {terminal.Screen{}, "-o json"},
		"plan-apps.txt": {terminal.Screen{}, "-l part=apps"},
	} {
		code, out, errOut := r.plan(server, c.screen, "plan --from-dir FOLDER "+c.args)
		if code != exitBlocked || errOut != "" {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
		golden(t, name, out)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("a plan writes: %q", writes)
	}
}

// The plan names a release that Flux would uninstall and install again, also where its chart
// makes the same objects. A change of a HelmRelease that makes the same says what changes.
func TestPlanSaysWhatFluxUninstalls(t *testing.T) {
	r := newPlannedRepository(t)
	tree, err := fs.Sub(controlplane.Charts(), "configmap")
	if err != nil {
		t.Fatal(err)
	}
	renamed := map[string]string{}
	if err := fs.WalkDir(tree, ".", func(name string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		renamed[name] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	renamed["Chart.yaml"] = "apiVersion: v2\nname: other\nversion: 1.0.0\n"
	if err := r.charts.AddFiles(renamed); err != nil {
		t.Fatal(err)
	}
	server := r.deployed()
	change := func(name, from, to string) {
		if !strings.Contains(r.files[name], from) {
			t.Fatalf("%s has no %q", name, from)
		}
		r.files[name] = strings.Replace(r.files[name], from, to, 1)
	}
	change("base/gateway.yaml", "chart: configmap", "chart: other")
	change("base/mesh.yaml", "interval: 1h", "targetNamespace: elsewhere\n  interval: 1h")
	change("base/metrics.yaml", "interval: 1h", "interval: 2h")
	change("apps/shop.yaml", "interval: 1h", "releaseName: store\n  interval: 1h")
	for _, charts := range []string{"", "--no-charts "} {
		code, out, errOut := r.plan(server, terminal.Screen{}, "plan "+charts+"--from-dir FOLDER")
		if code != exitBlocked || errOut != "" {
			t.Errorf("exit code %d: %s", code, errOut)
		}
		flat := strings.Join(strings.Fields(out), " ")
		for _, want := range []string{
			"base@1.0.0 reinstall HelmRelease base/gateway 1.0.0 Flux uninstalls Helm release base/gateway and installs it anew (chart name: configmap -> other)",
			"reinstall HelmRelease base/mesh 1.0.0 Flux uninstalls Helm release base/mesh and installs it anew (release namespace: base -> elsewhere)",
			"objects whose templates name no namespace stay in base, and belong to nobody",
			"reinstall HelmRelease apps/shop 1.0.0 Flux uninstalls Helm release apps/shop and installs it anew (release name: shop -> store)",
			"change HelmRelease base/metrics 1.0.0", "spec.interval: 1h", "spec.chart.spec.chart: configmap -> other", "3 to reinstall, 1 to change.",
		} {
			if !strings.Contains(flat, want) {
				t.Errorf("with %q it does not say %q:\n%s", charts, want, out)
			}
		}
	}
}

// A hold that is written in the repository is one of what would be committed.
func TestPlanOfAHold(t *testing.T) {
	r := newPlannedRepository(t)
	server := r.deployed()
	r.files["layers.yaml"] = strings.Replace(r.files["layers.yaml"], "labels: {part: base}", "annotations: {kraan.io/hold: freeze}", 1)
	r.release("base/gateway", "1.1.0", "hello")
	code, out, _ := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER")
	if code != exitBlocked || !strings.Contains(out, "-      base@1.0.0   held     -        -         held: freeze") || strings.Contains(out, "upgrade") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// What the source leaves out of its artifacts would be pruned.
func TestPlanLeavesOutWhatTheSourceIgnores(t *testing.T) {
	r := newPlannedRepository(t)
	server := r.deployed()
	ignore, err := http.NewRequestWithContext(t.Context(), http.MethodPatch,
		server.URL+"/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/addons", strings.NewReader(`{"spec": {"ignore": "mesh.yaml"}}`))
	if err != nil {
		t.Fatal(err)
	}
	ignore.Header.Set("Content-Type", "application/merge-patch+json")
	answer, err := http.DefaultClient.Do(ignore)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Body.Close() != nil {
		t.Fatalf("%+v, %v", answer, err)
	}
	r.files["base/.sourceignore"] = "/metrics.yaml\n"
	code, out, errOut := r.plan(server, terminal.Screen{}, "plan --no-charts --from-dir FOLDER")
	for _, name := range []string{"mesh", "metrics"} {
		if !strings.Contains(out, "prune    HelmRelease base/"+name) {
			t.Errorf("release %s is not pruned", name)
		}
	}
	if code != exitBlocked || strings.Contains(out, "base/gateway") || strings.Contains(out, "apps/shop") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

func TestPlanGoesOnWithoutCharts(t *testing.T) {
	r := newPlannedRepository(t)
	server := r.deployed()
	r.release("base/gateway", "1.1.0", "hello")
	if err := r.charts.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, _ := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER")
	if code != exitBlocked || !strings.Contains(out, "upgrade   HelmRelease base/gateway   1.0.0 -> 1.1.0   objects not known") || !strings.Contains(out, "what changes with base/gateway is not known: ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out, _ := r.plan(server, terminal.Screen{}, "plan --no-charts --from-dir FOLDER"); code != exitBlocked || strings.Contains(out, "not known") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestPlanRefusesWhatItCannotDo(t *testing.T) {
	r := newPlannedRepository(t)
	server := r.deployed()
	for args, want := range map[string]string{
		"plan --from-dir /no/where":                        "there is no folder /no/where",
		"plan --from-dir FOLDER/layers.yaml":               "is no folder",
		"plan --from-git /tmp":                             "is in no git repository; --from-dir reads it as it is",
		"plan --from-dir FOLDER --from-git main":           "give --from-dir or --from-git, not both",
		"plan --crds .":                                    "--crds is for --offline",
		"plan --offline":                                   "--offline needs --from-dir or --from-git",
		"plan --source x":                                  "--source is for --from-dir and --from-git",
		"plan --from-dir FOLDER --source adons":            "no layer has the source adons; did you mean addons?",
		"plan --from-dir FOLDER --k8s new":                 `--k8s is "new": it must be a version such as 1.34`,
		"plan --from-dir FOLDER -l team=b":                 "no layer has the labels team=b",
		"plan --from-dir FOLDER -l team=a apps":            "give names or --selector, not both",
		"diff -l !":                                        `--selector is "!"`,
		"plan --from-dir FOLDER aps":                       "there is no layer aps; did you mean apps?",
		"plan --from-dir FOLDER --layers nowhere":          "has no nowhere; --layers says which files and folders",
		"plan --from-dir FOLDER -o xml":                    `--output is "xml": it must be json, yaml or markdown`,
		"plan":                                             "cannot fetch what GitRepository flux-system/addons holds",
		"rollback base --to 9 --plan":                      "layer base has no deployment 9",
		"rollback base --to 1 -o json":                     "--output is for --plan",
		"plan --offline --from-dir FOLDER --from-git HEAD": "not both",
	} {
		if code, out, errOut := r.plan(server, terminal.Screen{}, args); code != exitError || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, %s%s, want %q", args, code, out, errOut, want)
		}
	}
	r.files["dev/layers.yaml"] = strings.Replace(r.files["layers.yaml"], "1.0.0", "7.0.0", 1)
	if _, _, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER"); !strings.Contains(errOut, "AddonsLayer base is in dev/layers.yaml and in layers.yaml, and they differ: say with --layers") {
		t.Errorf("two clusters in one repository: %s", errOut)
	}
	if code, _, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER --layers layers.yaml"); code != exitFine {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	r.files["bad.yaml"] = "apiVersion: kraan.io/v1alpha1\nkind: [\n"
	if _, _, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER --layers bad.yaml"); !strings.Contains(errOut, "bad.yaml: ") {
		t.Errorf("a file that is broken: %s", errOut)
	}
	server.Refuse["helmreleases.helm.toolkit.fluxcd.io"] = http.StatusForbidden
	if _, _, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER --layers layers.yaml"); !strings.Contains(errOut, "without HelmReleases there is no plan") {
		t.Errorf("without rights: %s", errOut)
	}
}

func TestDiff(t *testing.T) {
	r := newPlannedRepository(t)
	var live []*unstructured.Unstructured
	for _, name := range []string{"base/gateway", "base/metrics", "apps/shop"} {
		namespace, name, _ := strings.Cut(name, "/")
		live = append(live, apitest.Parse(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s, namespace: %[2]s, uid: u, labels: {helm.toolkit.fluxcd.io/name: %[1]s, helm.toolkit.fluxcd.io/namespace: %[2]s, other: label}}
data: {value: hello, chartVersion: 1.0.0}
`, name, namespace))...)
	}
	_ = unstructured.SetNestedField(live[1].Object, "by hand", "data", "value")
	server := r.deployed(live...)
	for name, c := range map[string]struct {
		screen terminal.Screen
		args   string
	}{"diff.txt": {}, "diff-40.txt": {screen: terminal.Screen{Width: 40, Colour: true}}, "diff.json": {args: "-o json"}} {
		code, out, errOut := r.plan(server, c.screen, "diff "+c.args)
		if code != exitBlocked || errOut != "" {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
		golden(t, name, out)
	}
	if code, out, _ := r.plan(server, terminal.Screen{}, "diff apps"); code != exitFine || !strings.Contains(out, "What could be compared is as it is wanted.\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, _, errOut := r.plan(server, terminal.Screen{}, "diff bse"); code != exitError || !strings.Contains(errOut, "did you mean base?") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// Layers that wait for each other by what is in them are found before they do.
func TestPlanFindsADeadlock(t *testing.T) {
	layer := func(name, more string) string {
		return "---\napiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: " + name + "}\n" +
			"spec: {version: 1.0.0, source: {name: flux-system, namespace: flux-system, path: ./" + name + "}" + more + "}\n"
	}
	release := func(name, more string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: shop}\n" +
			"spec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}" + more + "}\n"
	}
	files := map[string]string{
		"layers.yaml": layer("apps", "") + layer("db", ", prereqs: {dependsOn: [apps]}"),
		"apps/r.yaml": release("web", ", dependsOn: [{name: db}]"), "db/r.yaml": release("db", ""),
	}
	const want = "layers wait for each other through their releases, and none of them is ever deployed: " +
		"layer apps -> HelmRelease shop/web -> HelmRelease shop/db -> layer apps: remove one of the dependencies"
	code, out, errOut := commandLine(t, nil, terminal.Screen{}, "plan --offline --no-charts --k8s 1.34 --from-dir "+checkedOut(t, files))
	if code != exitBlocked || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if strings.Count(out, "layers wait for each other") != 1 {
		t.Errorf("it is told more than once:\n%s", out)
	}
	files["layers.yaml"] = layer("apps", ", wait: false") + layer("db", ", prereqs: {dependsOn: [apps]}")
	if _, out, _ := commandLine(t, nil, terminal.Screen{}, "plan --offline --no-charts --k8s 1.34 --from-dir "+checkedOut(t, files)); strings.Contains(out, "wait for each other") {
		t.Errorf("nothing waits for itself:\n%s", out)
	}
}
