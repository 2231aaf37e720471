// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

const kraanCluster = `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: base, uid: base-uid, generation: 2, finalizers: [finalizers.kraan.io]}
spec: {version: 1.0.0, interval: 1m0s, prereqs: {k8sVersion: "v1.16"}, source: {name: addons, namespace: gotk-system, path: ./base}}
status:
  state: Deployed
  version: 1.0.0
  revision: main@sha1:0123
  observedGeneration: 2
  conditions: [{type: Deployed, status: "True", reason: Deployed, message: ok, lastTransitionTime: "2026-12-01T00:00:00Z"}]
  resources: [{namespace: shop, name: web, kind: helmreleases.helm.toolkit.fluxcd.io, status: Deployed, lastTransitionTime: "2026-12-01T00:00:00Z"}]
---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: apps, generation: 1}
spec: {version: 1.0.0, source: {name: addons, path: ./apps, kind: ""}, prereqs: {k8sVersion: "1.16", dependsOn: [base@1.0.0]}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  {name: web, namespace: shop, generation: 1, labels: {kraan/layer: base}, ownerReferences: [{apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, name: base, uid: base-uid, controller: true}]}
spec: {interval: 1m0s, chart: {spec: {chart: podinfo, version: 1.2.3, reconcileStrategy: ChartVersion, sourceRef: {kind: HelmRepository, name: charts}}}, values: {a: 1}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: api, namespace: shop, generation: 1, labels: {kraan/layer: apps}}
spec: {chart: {spec: {chart: podinfo, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}}}}
`

func gitRelease(name, version, more string) string {
	return `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: shop}
spec: {interval: 1m, chart: {spec: {chart: podinfo, version: ` + version + `, sourceRef: {kind: HelmRepository, name: charts}}}` + more + `}
`
}

// checkedOut returns a folder with files.
func checkedOut(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestImportKraanIsGolden(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, kraanCluster)...)
	same := checkedOut(t, map[string]string{"base/web.yaml": gitRelease("web", "1.2.3", ", values: {a: 1}"), "apps/api.yaml": gitRelease("api", "1.2.3", "")})
	other := checkedOut(t, map[string]string{
		"base/web.yaml": gitRelease("web", "1.2.4", ", values: {a: 2}"), "base/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
		"apps/new.yaml": gitRelease("new", "1.2.3", ""),
	})
	home := t.TempDir()
	t.Chdir(home)
	code, fine, errOut := commandLine(t, server, terminal.Screen{}, "import kraan --repository-dir "+same)
	if code != exitFine || errOut != "" {
		t.Errorf("exit code %d: %s %s", code, fine, errOut)
	}
	files := written(t, "layers")
	want := `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: base
spec:
  interval: 1m0s
  prereqs:
    k8sVersion: v1.16
  source:
    name: addons
    namespace: gotk-system
    path: ./base
  version: 1.0.0
`
	if diff := cmp.Diff(want, files["base.yaml"]); diff != "" || len(files) != 2 {
		t.Errorf("%d files, -want +got:\n%s", len(files), diff)
	}
	code, changes, _ := commandLine(t, server, terminal.Screen{}, "import kraan --dry-run --repository-dir "+other)
	if code != exitBlocked {
		t.Errorf("exit code %d: %s", code, changes)
	}
	code, narrow, _ := commandLine(t, server, terminal.Screen{Width: 40}, "import kraan --dry-run --repository-dir gotk-system/addons="+other)
	if code != exitBlocked {
		t.Errorf("exit code %d: %s", code, narrow)
	}
	_, asJSON, _ := commandLine(t, server, terminal.Screen{}, "import kraan base --dry-run -o json --repository-dir "+other)
	code, blind, _ := commandLine(t, server, terminal.Screen{}, "import kraan --dry-run")
	if code != exitBlocked || !strings.Contains(blind, "compare it with git, by --repository-dir gotk-system/addons=DIR") {
		t.Errorf("exit code %d: %s", code, blind)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
	chdirBack(t)
	golden(t, "import-kraan.txt", fine)
	golden(t, "import-kraan-changes.txt", changes)
	golden(t, "import-kraan-40.txt", narrow)
	golden(t, "import-kraan.json", asJSON)
}

func TestImportKraanOfHostileInput(t *testing.T) {
	layer := func(name, spec string) *unstructured.Unstructured {
		return apitest.Parse(t, "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: "+name+"}\nspec: "+spec+"\n")[0]
	}
	checkout := checkedOut(t, map[string]string{"base/broken.yaml": "kind: [\n", "fine/web.yaml": gitRelease("web", "1.2.3", "")})
	if err := os.Symlink("/etc", filepath.Join(checkout, "linked")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ spec, want string }{
		"a path that leaves":        {"{version: 1.0.0, source: {name: a, path: ./../../etc}}", "stay inside of the source"},
		"YAML that is broken":       {"{version: 1.0.0, source: {name: a, path: ./base}}", "base/broken.yaml"},
		"a directory that is gone":  {"{version: 1.0.0, source: {name: a, path: ./gone}}", "there is no directory ./gone"},
		"a version with a sequence": {`{version: "1\e[31m", source: {name: a, path: ./gone}}`, "there is no directory"},
		"no version":                {"{source: {name: a, path: ./fine}}", "version is empty"},
	} {
		into := filepath.Join(t.TempDir(), "layers")
		code, out, errOut := commandLine(t, apitest.New(t, layer("base", test.spec)), terminal.Screen{}, "import kraan --into "+into+" --repository-dir "+checkout)
		if code != exitBlocked || errOut != "" || !strings.Contains(out, test.want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: exit code %d: %s %s", name, code, out, errOut)
		}
	}
	code, out, errOut := commandLine(t, apitest.New(t, layer("base", "{version: 1.0.0, source: {name: a, path: ./linked}}")), terminal.Screen{}, "import kraan --dry-run --repository-dir "+checkout)
	if code == exitFine || strings.Contains(out, "passwd") {
		t.Errorf("a link out of the folder: exit code %d: %s %s", code, out, errOut)
	}
}

func TestImportKraanSaysWhatIsWrong(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, kraanCluster)...)
	empty := t.TempDir()
	for args, want := range map[string]string{
		"bse --dry-run":                                     "did you mean base",
		"--repository-dir a=b":                              "must be DIR or NAMESPACE/NAME=DIR",
		"--repository-dir nowhere":                          "cannot be used",
		"--repository-dir " + empty + " --repository-dir .": "given twice",
		"--into /dev/null/x":                                "cannot",
	} {
		code, out, errOut := commandLine(t, server, terminal.Screen{}, "import kraan "+args)
		if code != exitError || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d: %s %s", args, code, out, errOut)
		}
	}
	server = apitest.New(t, apitest.Parse(t, kraanCluster)...)
	server.Refuse["helmreleases.helm.toolkit.fluxcd.io"] = http.StatusForbidden
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "import kraan"); code != exitError || !strings.Contains(errOut, "you may not list helmreleases") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if code, out, _ := commandLine(t, apitest.New(t), terminal.Screen{}, "import kraan"); code != exitFine || !strings.Contains(out, "No layers found") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
