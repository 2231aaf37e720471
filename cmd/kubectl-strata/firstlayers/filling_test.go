// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/observe"
)

// folder has a first layer, with its chart, and the source that it is of.
func folder() map[string]string {
	return map[string]string{
		"layers.yaml": `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: network}
spec: {version: 1.0.0, source: {name: addons, namespace: flux-system, path: ./network}}
`,
		"source.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: addons, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/addons.git"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: unused, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/unused.git"}
`,
		"hosts.yaml": "apiVersion: kraan.io/v1alpha1\nkind: HostCluster\nmetadata: {name: edge, namespace: fleet}\nspec: {version: v1.36.3}\n",
		"network/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: plugin, namespace: kube-system}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/network, sourceRef: {kind: GitRepository, name: addons, namespace: flux-system}}}
  valuesFrom: [{kind: Secret, name: token}]
`,
		"network/more.yaml": `apiVersion: v1
kind: Secret
metadata: {name: token, namespace: kube-system}
stringData: {values.yaml: "token: true-value"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: kube-system}
spec: {interval: 1m, url: "https://charts.example.com"}
---
apiVersion: crd.example.com/v1
kind: Pool
metadata: {name: default}
`,
		"charts/network/Chart.yaml":            "apiVersion: v2\nname: network\nversion: 0.3.0\n",
		"charts/network/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: network}\ndata: {token: {{ required \"a token\" .Values.token }}}\n",
	}
}

func open(t *testing.T, files map[string]string, o Options) (*Filling, error) {
	t.Helper()
	o.Folder, o.Console, o.Now = t.TempDir(), console.New(io.Discard, io.Discard), time.Now
	for name, text := range files {
		path := filepath.Join(o.Folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(t.Context(), o)
}

// of is a cluster of a worker, with a first layer.
func of(layer string) *v1alpha1.HostCluster {
	return &v1alpha1.HostCluster{Spec: v1alpha1.HostClusterSpec{
		Version: "v1.36.3", Workers: []v1alpha1.ClusterHost{{Name: "w-0"}}, Bootstrap: v1alpha1.HostBootstrap{Layers: []string{layer}},
	}}
}

// What a folder has becomes what is done: not its sources that no layer uses, the manifest
// of the hosts, or what Flux or a chart has to bring first.
func TestFolder(t *testing.T) {
	f, err := open(t, folder(), Options{Cluster: of("network")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps, err := f.Steps(t.Context(), &observe.Sight{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range steps {
		got = append(got, step.String())
	}
	want := "Create Secret kube-system/token of layer network; Install HelmRelease kube-system/plugin of layer network: network 0.3.0; Await nodes: all of them are Ready"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	wanted, err := f.reader.read(t.Context(), []string{"network"}, true)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, object := range wanted.Objects {
		got = append(got, object.GetKind()+" "+object.GetName())
	}
	if text := strings.Join(got, ", "); text != "GitRepository addons, AddonsLayer network" {
		t.Error(text)
	}
	for _, chart := range f.reader.charts {
		if chart.Values["token"] != "true-value" {
			t.Errorf("the release gets the values %v", chart.Values)
		}
	}
}

// A mistake in the folder is named before a host is touched.
func TestMistakesInTheFolder(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(files map[string]string)
		options Options
		want    []string
	}{
		"no such layer": {options: Options{Cluster: of("other")}, want: []string{"spec.bootstrap.layers[0]: no file of the folder has an AddonsLayer other"}},
		"a layer of another cluster": {change: func(files map[string]string) {
			files["layers.yaml"] = strings.Replace(files["layers.yaml"], "spec: {", "spec: {cluster: {name: edge}, ", 1)
		}, want: []string{"layer network is for another cluster"}},
		"a release of another cluster": {change: func(files map[string]string) {
			files["network/release.yaml"] += "  kubeConfig: {secretRef: {name: edge}}\n"
		}, want: []string{"layer network", "kube-system/plugin is for another cluster (spec.kubeConfig)"}},
		"a release that is suspended": {
			change: func(files map[string]string) { files["network/release.yaml"] += "  suspend: true\n" },
			want:   []string{"layer network lists no HelmRelease"},
		},
		"a directory that is not there": {change: func(files map[string]string) {
			files["layers.yaml"] = strings.Replace(files["layers.yaml"], "./network", "./nowhere", 1)
		}, want: []string{"layer network", "nowhere"}},
		"a manifest that cannot be read": {change: func(files map[string]string) { files["network/bad.yaml"] = "a: [" }, want: []string{"layer network", "bad.yaml"}},
		"no release":                     {change: func(files map[string]string) { delete(files, "network/release.yaml") }, want: []string{"layer network lists no HelmRelease"}},
		"no chart": {
			change: func(files map[string]string) { delete(files, "charts/network/Chart.yaml") },
			want:   []string{"layer network", "kube-system/plugin", "charts/network"},
		},
		"a value that lacks": {change: func(files map[string]string) {
			files["network/more.yaml"] = strings.Replace(files["network/more.yaml"], "token: true-value", "tokens: true-value", 1)
		}, want: []string{"layer network", "kube-system/plugin", "a token"}},
		"a Secret that lacks": {
			change: func(files map[string]string) { delete(files, "network/more.yaml") },
			want:   []string{"there is no Secret kube-system/token, which spec.valuesFrom names"},
		},
		"Flux that is none": {
			change: func(files map[string]string) {
				files["flux.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"
			},
			options: Options{Cluster: of("network"), Install: true, Flux: "flux.yaml"}, want: []string{"holds no Flux that Strata can work with"},
		},
		"no host for Pods": {options: Options{Install: true, Cluster: &v1alpha1.HostCluster{Spec: v1alpha1.HostClusterSpec{
			ControlPlane: []v1alpha1.ClusterHost{{Name: "cp-0", Taints: []v1alpha1.HostTaint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}}},
		}}}, want: []string{"neither Flux nor Strata would run"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := folder()
			if row.change != nil {
				row.change(files)
			}
			if row.options.Cluster == nil {
				row.options.Cluster = of("network")
			}
			if row.options.Flux != "" {
				flux := filepath.Join(t.TempDir(), "flux.yaml")
				if err := os.WriteFile(flux, []byte(files["flux.yaml"]), 0o600); err != nil {
					t.Fatal(err)
				}
				row.options.Flux = flux
				delete(files, "flux.yaml")
			}
			f, err := open(t, files, row.options)
			if err == nil {
				f.Close()
				t.Fatal("it is opened")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "true-value") {
				t.Errorf("%v has a value of a Secret", err)
			}
		})
	}
}
