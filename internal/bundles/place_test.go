// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

func TestPlaces(t *testing.T) {
	home, prod := types.NamespacedName{}, types.NamespacedName{Namespace: "fleet", Name: "prod"}
	at := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for _, tc := range []struct {
		layer string
		root  types.NamespacedName
		place types.NamespacedName
	}{
		{"network", home, home},
		{"network", prod, prod},
		{"inner", home, at("clusters-one", "one-tenant")},
		{"inner", prod, at("fleet", "one-tenant")},
		{"innermost", home, at("clusters-one", "one-inner")},
		{"innermost", prod, at("fleet", "one-inner")},
	} {
		if got, err := PlaceOf(loadBundle(t), tc.layer, "one", nil, tc.root); got != tc.place || err != nil {
			t.Errorf("%s of a bundle on %s goes to %s, %v; want %s", tc.layer, tc.root, got, err, tc.place)
		}
	}
	// What is rendered is where others are told that it is.
	for _, layer := range []string{"tenant", "inner"} {
		request := requestOf(t, layer)
		at, err := PlaceOf(request.Bundle, layer, "prod", nil, home)
		if err != nil {
			t.Fatal(err)
		}
		request.Cluster = Cluster{Name: at}
		cluster, err := clusterOf(request.Bundle, layer, "prod", nil, home, len(request.Bundle.Spec.Layers))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{cluster.String()}, namesOf(render(t, request), "RemoteCluster")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", layer, diff)
		}
	}
}

func TestPlacesThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		layer  string
		change func(*v1alpha1.ApplicationBundle)
		want   string
	}{
		"no layer":  {"mesh", func(*v1alpha1.ApplicationBundle) {}, "ApplicationBundle web-1: layers[mesh]: there is no such layer"},
		"a circle":  {"inner", func(b *v1alpha1.ApplicationBundle) { b.Spec.Layers[3].On = "inner" }, "the layer is on itself"},
		"no target": {"inner", func(b *v1alpha1.ApplicationBundle) { b.Spec.Layers[4].On = "network" }, "layers[network].remoteCluster: the layer has none"},
		"no namespace": {
			"inner", func(b *v1alpha1.ApplicationBundle) {
				b.Spec.Layers[3].RemoteCluster.KubeConfig.SecretRef.Namespace = "A b"
			},
			`layers[tenant].remoteCluster.kubeConfig.secretRef.namespace: "A b" is not the name of a namespace`,
		},
		"a template": {
			"inner", func(b *v1alpha1.ApplicationBundle) {
				b.Spec.Layers[3].RemoteCluster.KubeConfig.SecretRef.Namespace = "${inputs.x}"
			},
			"layers[tenant].remoteCluster.kubeConfig.secretRef.namespace: ${inputs.x}: there is no x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := loadBundle(t)
			tc.change(bundle)
			_, err := PlaceOf(bundle, tc.layer, "one", nil, types.NamespacedName{})
			var content *directories.ContentError
			if !errors.As(err, &content) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it says %v, want %q", err, tc.want)
			}
		})
	}
}

func TestHooks(t *testing.T) {
	bundle := loadBundle(t)
	layer := &bundle.Spec.Layers[4]
	waitFor, deleteBefore, err := Hooks(layer, "one", map[string]any{"domain": "d"})
	if err != nil {
		t.Fatal(err)
	}
	if waitFor[0].Name != "one" || waitFor[0].ReadyExpr != layer.WaitFor[0].ReadyExpr || deleteBefore[0].Namespace != "d" {
		t.Errorf("the hooks are %+v %+v", waitFor, deleteBefore)
	}
	if layer.WaitFor[0].Name != "${instance.name}" {
		t.Error("the bundle was changed")
	}
	if _, _, err = Hooks(layer, "one", nil); err == nil || err.Error() != "layers[inner].deleteBefore[0].namespace: ${inputs.domain}: there is no domain" {
		t.Errorf("without its input it says %v", err)
	}
	if waitFor, deleteBefore, err := Hooks(&bundle.Spec.Layers[0], "one", nil); waitFor != nil || deleteBefore != nil || err != nil {
		t.Errorf("a layer without hooks has %v %v %v", waitFor, deleteBefore, err)
	}
}

func TestWhen(t *testing.T) {
	for _, tc := range []struct {
		when    string
		cluster Cluster
		want    bool
		err     string
		waits   bool
	}{
		{"", Cluster{}, true, "", false},
		{"inputs.replicas > 1", Cluster{}, true, "", false},
		{"inputs.replicas > 2", Cluster{}, false, "", false},
		{"inputs.pool == null && instance.name == 'one'", Cluster{}, true, "", false},
		{"'zone' in cluster.labels && cluster.labels.zone == 'a'", known, true, "", false},
		{"'zone' in cluster.labels", Cluster{}, false, "", false},
		{"cluster.name == ''", Cluster{}, true, "", false},
		{"cluster.version.startsWith('v1.33')", known, true, "", false},
		{"cluster.version.startsWith('v1.33')", Cluster{}, false, "waits for the version of the cluster that Strata runs in", true},
		{"cluster.port == 443", Cluster{Name: known.Name, Version: "v1"}, false, "waits for the port of RemoteCluster fleet/prod", true},
		{"has(cluster.version)", Cluster{}, false, "waits for the version", true},
		{"inputs.nothing", Cluster{}, false, "layers[x].when: ", false},
		{"1", Cluster{}, false, "layers[x].when: 1 is of the type int", false},
	} {
		layer := &v1alpha1.BundleLayer{Name: "x", When: tc.when}
		got, err := When(layer, "one", map[string]any{"replicas": int64(2), "pool": nil}, tc.cluster)
		var waiting *Waiting
		if got != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) || errors.As(err, &waiting) != tc.waits {
			t.Errorf("%q is %v, %v; want %v %q", tc.when, got, err, tc.want, tc.err)
		}
	}
}

func TestFactsOfAClustersEndpoint(t *testing.T) {
	for endpoint, want := range map[string]struct {
		host string
		port int64
	}{
		"https://10.0.0.1:6443": {"10.0.0.1", 6443}, "https://api.example.com": {"api.example.com", 443}, "http://x/path": {"x", 80},
		"https://[fd00::1]:6443/": {"fd00::1", 6443}, "https://[fd00::1]": {"fd00::1", 443}, "https://x:99999": {}, "https://": {}, "x:1": {}, "": {},
	} {
		host, port, ok := hostAndPort(endpoint)
		if ok != (want.host != "") || host != want.host && ok || port != want.port && ok {
			t.Errorf("%q is %s, %d, %v", endpoint, host, port, ok)
		}
	}
}

// A layer reads of the clusters that other layers of its bundle make, and waits until they
// are known. Whether something is there goes by no other cluster.
func TestClustersOfTheBundle(t *testing.T) {
	request := requestOf(t, "objects")
	layer := LayerOf(request.Bundle, "objects")
	layer.Objects = []v1alpha1.Manifest{{JSON: apiextensionsv1.JSON{Raw: []byte(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"at":"${clusters.tenant.host}:${clusters[\"tenant\"].port}"}}`,
	)}}}
	request.Bundle.Status.Digest = ""
	there := request.Cluster
	request.Cluster = Cluster{}
	names := request.ClustersFor()
	if want := (types.NamespacedName{Namespace: "clusters-prod", Name: "prod-tenant"}); names["tenant"] != want {
		t.Errorf("on the cluster that Strata runs in it may read of %v", names)
	}
	request.Cluster = there
	names = request.ClustersFor()
	if want := (types.NamespacedName{Namespace: "fleet", Name: "prod-tenant"}); names["tenant"] != want || len(names) != 2 {
		t.Errorf("it may read of %v", names)
	}
	request.Clusters = map[string]Cluster{"tenant": {Name: names["tenant"]}, "inner": {Name: names["inner"]}}
	var waits *Waiting
	if _, err := Render(request); !errors.As(err, &waits) || waits.Reason != "waits for the cluster of layer tenant, of which nothing is known yet" {
		t.Errorf("before it is there: %v", err)
	}
	request.Clusters["tenant"] = Cluster{Name: names["tenant"], Endpoint: "https://10.0.0.1:6443"}
	data, _, _ := unstructured.NestedString(render(t, request)[0].Object.Object, "data", "at")
	if data != "10.0.0.1:6443" {
		t.Errorf("it reads %q", data)
	}
	for want, change := range map[string]func(){
		"layers[objects].objects[0]: layer network makes no cluster": func() {
			layer.Objects[0].Raw = []byte(strings.ReplaceAll(string(layer.Objects[0].Raw), "clusters.tenant", "clusters.network"))
		},
		"layers[objects].when: ${has(clusters.tenant)} is no expression of CEL": func() { layer.When = "has(clusters.tenant)" },
	} {
		change()
		if problems := Check(request.Bundle, request.Applications); !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("%s: %v", want, problems)
		}
	}
}
