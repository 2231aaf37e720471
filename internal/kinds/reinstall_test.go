// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestReinstallOf(t *testing.T) {
	from := func(kind, chart string) map[string]any {
		return map[string]any{"chart": map[string]any{"spec": map[string]any{
			"chart": chart, "version": "6.5.0", "sourceRef": map[string]any{"kind": kind, "name": "charts"},
		}}}
	}
	with := func(spec map[string]any, fields ...any) map[string]any {
		for i := 0; i < len(fields); i += 2 {
			spec[fields[i].(string)] = fields[i+1]
		}
		return spec
	}
	ref := func(name string) map[string]any {
		return map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": name}}
	}
	recorded := func(namespace, name, chart string) map[string]any {
		return map[string]any{"storageNamespace": "demo", "history": []any{
			map[string]any{"namespace": namespace, "name": name, "chartName": chart}, map[string]any{"namespace": "x", "name": "y", "chartName": "z"},
		}}
	}
	installed := recorded("demo", "web", "podinfo")
	inPlace := map[string]any{"chartNameChangeStrategy": "InPlaceUpdate"}
	for name, tc := range map[string]struct {
		reason       string
		was          map[string]any
		status       map[string]any
		wanted       map[string]any
		is           bool
		maybe        bool
		says, leaves string
	}{
		"values": {"an upgrade", from("HelmRepository", "podinfo"), installed, with(from("HelmRepository", "podinfo"), "values", "x"), false, false, "", ""},
		"another chart": {
			"the default strategy is to install anew", from("HelmRepository", "podinfo"), installed, from("HelmRepository", "other"), true, false,
			"Flux uninstalls Helm release demo/web and installs it anew (chart name: podinfo -> other)", "",
		},
		"another chart in place": {
			"the release says so", from("HelmRepository", "podinfo"), installed, with(from("HelmRepository", "other"), "upgrade", inPlace), false, false, "", "",
		},
		"another repository of the chart": {"the name counts", from("HelmRepository", "podinfo"), installed, from("GitRepository", "charts/podinfo"), false, false, "", ""},
		"another target namespace": {
			"Flux looks for objects without a namespace in the new one", from("HelmRepository", "podinfo"), installed,
			with(from("HelmRepository", "podinfo"), "targetNamespace", "shop", "upgrade", inPlace), true, false, "release namespace: demo -> shop", "demo",
		},
		"another name": {"Helm cannot rename", from("HelmRepository", "podinfo"), installed, with(from("HelmRepository", "podinfo"), "releaseName", "shop"), true, false, "release name: web -> shop", ""},
		"a longer name": {
			"it is recorded as it is shortened", with(from("HelmRepository", "podinfo"), "releaseName", strings.Repeat("x", 60)),
			recorded("demo", strings.Repeat("x", 40)+"-42f2d9733566", "podinfo"), with(from("HelmRepository", "podinfo"), "releaseName", strings.Repeat("x", 60)), false, false, "", "",
		},
		"another storage namespace": {
			"Helm would not find it", from("HelmRepository", "podinfo"), installed, with(from("HelmRepository", "podinfo"), "storageNamespace", "helm"), true, false,
			"storage namespace: demo -> helm", "",
		},
		"both namespaces": {
			"the first that differs is named, and what stays", from("HelmRepository", "podinfo"), installed,
			with(from("HelmRepository", "podinfo"), "storageNamespace", "helm", "targetNamespace", "shop"), true, false, "storage namespace: demo -> helm", "demo",
		},
		"never installed":       {"there is nothing to uninstall", from("HelmRepository", "podinfo"), nil, from("HelmRepository", "other"), false, false, "", ""},
		"without a record":      {"a cache keeps none", from("HelmRepository", "podinfo"), map[string]any{"storageNamespace": "demo"}, from("HelmRepository", "other"), true, false, "podinfo -> other", ""},
		"a folder":              {"its name is likely the chart's", from("GitRepository", "charts/podinfo"), installed, from("GitRepository", "charts/other"), true, true, "if the chart has another name", ""},
		"a folder of that name": {"it was moved", from("GitRepository", "charts/podinfo"), installed, from("GitRepository", "old/podinfo"), false, false, "", ""},
		"a folder of no name":   {"nothing changes", from("GitRepository", "charts/stable"), installed, from("GitRepository", "charts/stable"), false, false, "", ""},
		"another OCIRepository": {"what it holds is not known", ref("podinfo-oci"), installed, ref("other-oci"), true, true, "", ""},
		"an OCIRepository of another chart": {
			"its address ends in the name of the chart", ref("podinfo-oci"), installed, ref("redis"), true, false, "chart name: podinfo -> redis", "",
		},
		"another OCIRepository of the chart": {"the name of the chart counts", ref("podinfo-oci"), installed, ref("podinfo"), false, false, "", ""},
		"a HelmChart of another chart": {
			"it says so", ref("podinfo-oci"), installed,
			map[string]any{"chartRef": map[string]any{"kind": "HelmChart", "name": "valkey"}},
			true, false,
			"chart name: podinfo -> valkey", "",
		},
		"a HelmChart from a folder": {
			"which chart lies there is not known", ref("podinfo-oci"), installed,
			map[string]any{"chartRef": map[string]any{"kind": "HelmChart", "name": "folder"}},
			true, true,
			"if the chart has another name", "",
		},
		"the same OCIRepository": {"nothing changes", ref("podinfo-oci"), installed, with(ref("podinfo-oci"), "values", "x"), false, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(spec, status map[string]any) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"metadata": map[string]any{"namespace": "demo", "name": "web"}, "spec": spec, "status": status,
				}}
			}
			found, is := ReinstallOf(object(tc.was, tc.status), object(tc.wanted, nil), Charts{Wanted: sourcesOf("registry.example.com/charts")})
			if is != tc.is || found.Maybe != tc.maybe || found.LeftIn != tc.leaves || is && !strings.Contains(found.String(), tc.says) {
				t.Errorf("%s: %t, %+v: %s", tc.reason, is, found, found)
			}
		})
	}
}

// sourcesOf finds OCIRepositories below an address, podinfo and redis, and the HelmCharts
// valkey, of a HelmRepository, and folder, of a GitRepository.
func sourcesOf(below string) Find {
	return func(gk schema.GroupKind, key types.NamespacedName) *unstructured.Unstructured {
		spec := map[string]any{"url": "oci://" + below + "/" + key.Name}
		switch {
		case gk == HelmChartKind && key.Name == "valkey":
			spec = map[string]any{"chart": "valkey", "sourceRef": map[string]any{"kind": "HelmRepository"}}
		case gk == HelmChartKind:
			spec = map[string]any{"chart": "charts/any", "sourceRef": map[string]any{"kind": "GitRepository"}}
		case key.Namespace != "demo" || !slices.Contains([]string{"podinfo", "redis"}, key.Name):
			return nil
		}
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
}

// What a guard goes by is what specifications say: whoever may write a status opens none.
func TestReinstallBySpec(t *testing.T) {
	release := func(chart, stored string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "demo", "name": "web"},
			"spec":     map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": chart, "sourceRef": map[string]any{"kind": "HelmRepository"}}}},
			"status":   map[string]any{"storageNamespace": stored, "history": []any{map[string]any{"chartName": "other", "name": "web", "namespace": "demo"}}},
		}}
	}
	if found, is := ReinstallBySpec(release("podinfo", ""), release("other", ""), Charts{}); !is || found.From != "podinfo" {
		t.Errorf("a forged status hides it: %t, %s", is, found)
	}
	if found, is := ReinstallBySpec(release("podinfo", "x"), release("podinfo", "y"), Charts{}); is {
		t.Errorf("a status makes one: %s", found)
	}

	// What the release refers to may change under it.
	ref := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "demo", "name": "web"},
		"spec":     map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": "db"}},
	}}
	at := func(url string) Find {
		return func(schema.GroupKind, types.NamespacedName) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": url}}}
		}
	}
	if found, is := ReinstallBySpec(ref, ref, Charts{Live: at("oci://a.example.com/postgresql"), Wanted: at("oci://a.example.com/postgres-ha")}); !is || found.Maybe {
		t.Errorf("another address of the source: %t, %s", is, found)
	}
	for name, charts := range map[string]Charts{
		"a mirror":                 {Live: at("oci://a.example.com/postgresql"), Wanted: at("oci://b.example.com/mirror/postgresql")},
		"what was there not known": {Wanted: at("oci://a.example.com/postgresql")},
	} {
		if found, is := ReinstallBySpec(ref, ref, charts); is {
			t.Errorf("%s: %s", name, found)
		}
	}
}
