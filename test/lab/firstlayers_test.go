// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/hostplans"
)

// folder makes a folder with two layers: network, without which no Pod runs, with its charts
// beside it, and web. What it has is committed, and served to the cluster.
func (u *user) folder(t *testing.T) string {
	t.Helper()
	repo, service, address := u.serveGit(t)
	files := map[string]string{
		"cluster/source.yaml": fmt.Sprintf(addons, address),
		"cluster/layers.yaml": `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: network}
spec: {version: 1.0.0, interval: 1m, source: {name: addons, namespace: flux-system, path: ./network}}
---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: web}
spec: {version: 1.0.0, interval: 1m, prereqs: {dependsOn: ["network@1.0.0"]}, source: {name: addons, namespace: flux-system, path: ./web}}
`,
		"network/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: plugin, namespace: kube-system}
spec:
  interval: 10m
  releaseName: network
  chart: {spec: {chart: ./charts/network, sourceRef: {kind: GitRepository, name: addons, namespace: flux-system}}}
  driftDetection: {mode: enabled}
  commonMetadata: {labels: {team: network}}
  postRenderers:
  - kustomize:
      patches:
      - target: {kind: DaemonSet}
        patch: |
          - op: add
            path: /metadata/annotations
            value: {patched: by-the-release}
  valuesFrom: [{kind: ConfigMap, name: network-values}]
  values: {image: "lab/network-plugin:v1"}
`,
		"network/values.yaml":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: network-values, namespace: kube-system}\ndata: {values.yaml: \"account: network\"}\n",
		"network/git.yaml":          service,
		"charts/network/Chart.yaml": "apiVersion: v2\nname: network\nversion: 0.3.0\n",
		"charts/network/templates/plugin.yaml": strings.NewReplacer(`"lab/network-plugin:v1"`, "{{ .Values.image }}", "serviceAccountName: network", "serviceAccountName: {{ .Values.account }}").
			Replace(networkPlugin),
		"web/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: default}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: addons, namespace: flux-system}}}
`,
		"charts/web/Chart.yaml":         "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"charts/web/templates/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n",
	}
	if _, err := repo.Commit("layers", files); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(u.dir, "addons")
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(u.dir, "flux.yaml"), []byte(fluxManifests(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// filled are the flags that fill a cluster from the folder.
func (u *user) filled() []string {
	return []string{"--from-dir", "addons", "--install", "--timeout", "90s", "--flux", "flux.yaml", "--set", "image.repository=lab/strata,image.tag=v1,rbac.clusterAdmin=true"}
}

// checkFilled checks that both layers are deployed, and that the release of the first one
// was installed once, before anything of Flux ran.
func (u *user) checkFilled() {
	u.Helper()
	for _, name := range []string{"network", "web"} {
		if said := u.kubectl("", "get", "addonslayer", name, "-o", "jsonpath={.status.state}"); said != "Deployed" {
			u.Errorf("layer %s is %q", name, said)
		}
	}
	if said := u.kubectl("", "get", "secrets", "-n", "kube-system", "-l", "owner=helm", "-o", "name"); said != "secret/sh.helm.release.v1.network.v1\n" {
		u.Errorf("Helm has made %s", said)
	}
	if said := u.kubectl("", "get", "helmrelease", "plugin", "-n", "kube-system", "-o",
		"jsonpath={.status.conditions[?(@.type=='Ready')].status} {.spec.suspend} {.metadata.labels.kraan/layer} {.status.inventory.entries[*].id}"); said != "True  network kube-system_network__ServiceAccount _network_rbac.authorization.k8s.io_ClusterRoleBinding kube-system_network_apps_DaemonSet" {
		u.Errorf("the release is %q: %s", said, u.kubectl("", "get", "helmrelease", "plugin", "-n", "kube-system", "-o", "yaml"))
	}
	if said := u.kubectl("", "get", "daemonset", "network", "-n", "kube-system", "-o", "jsonpath={.metadata.generation} {.metadata.annotations.patched} {.metadata.labels.team} {.metadata.labels.helm\\.toolkit\\.fluxcd\\.io/name}"); said != "1 by-the-release network plugin" {
		u.Errorf("the network plug-in is %q", said)
	}
	if said := u.kubectl("", "get", "daemonset", "network", "-n", "kube-system", "-o", "jsonpath={.metadata.managedFields[*].manager}", "--show-managed-fields"); !strings.Contains(said, "helm-controller") || strings.Contains(said, "kubectl-strata") {
		u.Errorf("its fields are of %s", said)
	}
}

// Three hosts that have nothing become a cluster with its layers deployed, by one command.
// The network plug-in is a release of the first layer, without which neither Flux nor Strata
// would run; the layer has it as it is, and Helm upgrades nothing.
func TestEmptyHostsBecomeDeployedLayers(t *testing.T) {
	t.Parallel()
	u := userOf(t, labWithFlux(t, 3))
	u.add("  bootstrap: {layers: [network]}\n")
	u.folder(t)
	u.must(1, append([]string{"plan"}, u.filled()...), "neither Flux nor Strata would run: list workers, or give a host of spec.controlPlane taints: []")
	u.edit("kubelet: {", "taints: [], kubelet: {")
	u.must(2, []string{"plan"}, "Warning: spec.bootstrap.layers: the cluster lacks network: name the folder with its files with --from-dir")
	u.must(1, []string{"plan", "--from-dir", "addons", "--install", "--set", "image.repository=lab/strata"}, "--install needs Flux", "--flux")
	t.Log(u.must(2, append([]string{"plan"}, u.filled()...), "Install HelmRelease kube-system/plugin of layer network: network 0.3.0", "Await nodes: all of them are Ready",
		"Install Flux", "HandOver HelmRelease kube-system/plugin of layer network", "Install Strata", "Create AddonsLayer network", "Create GitRepository flux-system/addons", "Await layers: all of them are deployed"))
	t.Log(u.must(0, append([]string{"apply", "--yes"}, u.filled()...), "Done: there is nothing to do", "Flux is brought", "is installed in the namespace strata-system"))
	u.checkFilled()
	u.must(0, append([]string{"apply", "--yes"}, u.filled()...), "Done: there is nothing to do")
	u.must(0, []string{"plan"}, "Done: there is nothing to do")
}

// The same, on one host, with apply killed at every step that it reports.
func TestClusterIsFilledThoughApplyIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	u := userOf(t, labWithFlux(t, 1))
	u.edit("kubelet: {", "taints: [], kubelet: {")
	u.add("  bootstrap: {layers: [network]}\n")
	u.folder(t)
	u.must(0, []string{"apply", "--yes"}, "Done: there is nothing to do", "Warning: spec.bootstrap.layers")
	seen := map[string]bool{}
	kills := 0
	for u.applyUntil(seen, u.filled()...) {
		kills++
		if kills > 40 {
			t.Fatalf("it is not finished after %d kills: %v", kills, seen)
		}
	}
	for _, verb := range []hostplans.StepVerb{hostplans.Create, hostplans.Install, hostplans.HandOver} {
		if !strings.Contains(fmt.Sprint(seen), string(verb)) {
			t.Errorf("it was not killed at a step %s: %v", verb, seen)
		}
	}
	u.eventually("the layers are deployed", func(context.Context) error {
		if said := u.kubectl("", "get", "addonslayer", "-o", "jsonpath={.items[*].status.state}"); said != "Deployed Deployed" {
			return fmt.Errorf("they are %q", said)
		}
		return nil
	})
}
