// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
	"github.com/strata-project/strata/test/controlplane"
)

// upgradeCharts starts a Helm repository with a chart that is fine, one that renders
// an API version that goes, one that is for old versions of Kubernetes, one that
// fails with new ones only, and one whose newest version is fine.
func upgradeCharts(t *testing.T) *controlplane.ChartServer {
	t.Helper()
	server, err := controlplane.NewChartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\ndata: {colour: {{ .Values.colour | quote }}}\n"
	const budget = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: it}\n"
	for _, chart := range []struct{ name, version, more, template string }{
		{"fine", "1.0.0", "", config},
		{"old", "1.0.0", "", budget},
		{"old", "1.1.0", "", config},
		{"strict", "2.0.0", "kubeVersion: '<1.25.0-0'\n", config},
		{"fails", "3.0.0", "", "{{ if semverCompare \">=1.25\" .Capabilities.KubeVersion.Version }}{{ fail \"not with PodSecurityPolicies\" }}{{ end }}"},
		{"broken", "3.0.0", "", "{{ fail \"never\" }}"},
	} {
		err := server.AddFiles(map[string]string{
			"Chart.yaml":        "apiVersion: v2\nname: " + chart.name + "\nversion: " + chart.version + "\n" + chart.more,
			"templates/it.yaml": chart.template,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return server
}

func layerWith(name, spec string, releases ...string) string {
	text := "---\napiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: " + name + "}\nspec:\n  version: 1.0.0\n" + spec + "\nstatus:\n  resources:\n"
	for _, release := range releases {
		text += "  - {kind: helmreleases.helm.toolkit.fluxcd.io, namespace: apps, name: " + release + ", status: Deployed}\n"
	}
	return text
}

func releaseOf(name, chart, version, deployed, more, status string) string {
	return `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: apps}
spec:
  interval: 1m
  chart: {spec: {chart: ` + chart + `, version: "` + version + `", sourceRef: {kind: HelmRepository, name: ` + more + `}}}
  ` + map[bool]string{true: "valuesFrom: [{kind: Secret, name: values}]"}[name == "secretive"] + `
status:
  history: [{version: 3, status: deployed, chartName: ` + chart + `, chartVersion: "` + deployed + `"}]
` + status
}

const gitSource = "  source: {name: addons, path: ./a}"

func upgradeServer(t *testing.T) *apitest.Server {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	repository := func(name, url string) string {
		return "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: " + name + ", namespace: apps}\nspec: {url: \"" + url + "\"}\n"
	}
	text := repository("charts", upgradeCharts(t).URL()) + repository("away", "http://127.0.0.1:1") +
		layerWith("base", gitSource, "fine") +
		layerWith("ranged", gitSource+"\n  prereqs: {k8sVersion: \"<1.25\"}") +
		layerWith("removed", gitSource, "old", "lives") +
		layerWith("refuses", gitSource, "strict", "fails") +
		layerWith("unclear", gitSource, "broken", "away", "gone", "secretive") +
		layerWith("bundled", "  source: {kind: ApplicationBundle, name: shop-1, path: ./front}", "fine") +
		releaseOf("fine", "fine", "1.x", "1.0.0", "charts", "") +
		releaseOf("old", "old", "1.x", "1.0.0", "charts", "  inventory: {entries: [{id: apps_it_policy_PodDisruptionBudget, v: v1beta1}]}\n") +
		releaseOf("lives", "fine", "1.x", "1.0.0", "charts", "  inventory: {entries: [{id: apps_web_extensions_Ingress, v: v1beta1}, {id: apps_it__ConfigMap, v: v1}]}\n") +
		releaseOf("strict", "strict", "2.x", "2.0.0", "charts", "") +
		releaseOf("fails", "fails", "3.x", "3.0.0", "charts", "") +
		releaseOf("broken", "broken", "3.x", "3.0.0", "charts", "") +
		releaseOf("away", "fine", "1.x", "1.0.0", "away", "") +
		releaseOf("secretive", "fine", "1.x", "1.0.0", "charts", "") + `---
apiVersion: v1
kind: Secret
metadata: {name: values, namespace: apps}
data: {values.yaml: Y29sb3VyOiByZWQK}
---
apiVersion: kraan.io/v1alpha1
kind: ApplicationBundle
metadata: {name: shop-1}
spec:
  family: shop
  version: 1.0.0
  kubeVersion: ">=1.20 <1.30"
  layers:
  - name: front
    applications: [{name: web, version: 1.0.0}, {name: missing, version: 1.0.0}]
---
apiVersion: kraan.io/v1alpha1
kind: HelmApplication
metadata: {name: web}
spec:
  versions: [{version: 1.0.0, kubeVersion: "<1.25", chart: {}}]
`
	server := apitest.New(t, apitest.Parse(t, text)...)
	server.Version = "v1.24.9"
	return server
}

func TestCanUpgrade(t *testing.T) {
	server := upgradeServer(t)
	server.Refuse["secrets"] = http.StatusForbidden
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s 1.25")
	if code != exitBlocked || errOut != "" {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	golden(t, "can-upgrade.txt", out)
	code, out, _ = commandLine(t, server, terminal.Screen{Width: 40}, "can-upgrade --k8s 1.25 removed base")
	if code != exitBlocked {
		t.Errorf("exit code %d", code)
	}
	for line := range strings.Lines(out) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 40 {
			t.Errorf("a line is too long: %q", line)
		}
	}
	golden(t, "can-upgrade-40.txt", out)
	code, out, _ = commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s 1.25 base bundled -o json")
	if code != exitBlocked {
		t.Errorf("exit code %d", code)
	}
	golden(t, "can-upgrade.json", out)
}

func TestCanUpgradeSaysYes(t *testing.T) {
	server := upgradeServer(t)
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s 1.25 base")
	if want := "LAYER   UPGRADE\nbase    yes\n\nYes: 1 layer is ready for Kubernetes 1.25.\n"; code != exitFine || out != want || errOut != "" {
		t.Errorf("exit code %d, got %q, %s", code, out, errOut)
	}
	// To the version that there is, all that is deployed can go.
	code, out, _ = commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s v1.24.9 removed refuses")
	if code != exitBlocked || !strings.Contains(out, "extensions/v1beta1") || strings.Contains(out, "policy/v1beta1") || !strings.Contains(out, "refuses   yes") {
		t.Errorf("exit code %d, got %s", code, out)
	}
	code, out, _ = commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s 1.25 unclear")
	if code != exitBlocked || strings.Contains(out, "secretive") {
		t.Errorf("with the right to read the Secret: exit code %d, got %s", code, out)
	}
}

func TestCanUpgradeWithoutWhatItNeeds(t *testing.T) {
	server := upgradeServer(t)
	for _, c := range []struct{ args, want string }{
		{"can-upgrade", "--k8s is missing"},
		{"can-upgrade --k8s latest", `"latest" is no version of Kubernetes`},
		{"can-upgrade --k8s 1.25 bas", "base"},
		{"can-upgrade --k8s 1.25 --cluster fleet/none", "no layer belongs on RemoteCluster fleet/none"},
		{"can-upgrade --k8s 1.25 -o table", "json or yaml"},
	} {
		if code, _, errOut := commandLine(t, server, terminal.Screen{}, c.args); code != exitError || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit code %d, %q lacks %q", c.args, code, errOut, c.want)
		}
	}
	server.Refuse["helmreleases.helm.toolkit.fluxcd.io"] = http.StatusForbidden
	server.Refuse["applicationbundles.kraan.io"] = http.StatusForbidden
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s 1.25 base bundled")
	if code != exitBlocked || strings.Count(out, "you may not read") != 3 || !strings.Contains(errOut, "you may not list applicationbundles.kraan.io, helmreleases") {
		t.Errorf("without rights: exit code %d\n%s%s", code, out, errOut)
	}
	server.Refuse["addonslayers.kraan.io"] = http.StatusForbidden
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "can-upgrade --k8s 1.25"); code != exitError || !strings.Contains(errOut, "strata-view") {
		t.Errorf("without layers: exit code %d, %s", code, errOut)
	}
	empty := apitest.New(t)
	if code, out, _ := commandLine(t, empty, terminal.Screen{}, "can-upgrade --k8s 1.25"); code != exitFine || out != "No layers found.\n" {
		t.Errorf("no layers: exit code %d, %s", code, out)
	}
}

// The help names the version of Kubernetes whose types are asked.
func TestCanUpgradeNamesItsLibrary(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s.io/api v0\.([0-9]+)\.`).FindSubmatch(text)
	if len(found) != 2 || !strings.Contains(canUpgradeLong, "Kubernetes 1."+string(found[1])+" say") {
		t.Errorf("the library is %s", found)
	}
}
