// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		"never installed":        {"there is nothing to uninstall", from("HelmRepository", "podinfo"), nil, from("HelmRepository", "other"), false, false, "", ""},
		"without a record":       {"a cache keeps none", from("HelmRepository", "podinfo"), map[string]any{"storageNamespace": "demo"}, from("HelmRepository", "other"), true, false, "podinfo -> other", ""},
		"a folder":               {"its name is likely the chart's", from("GitRepository", "charts/podinfo"), installed, from("GitRepository", "charts/other"), true, true, "if the chart has another name", ""},
		"a folder of that name":  {"it was moved", from("GitRepository", "charts/podinfo"), installed, from("GitRepository", "old/podinfo"), false, false, "", ""},
		"a folder of no name":    {"nothing changes", from("GitRepository", "charts/stable"), installed, from("GitRepository", "charts/stable"), false, false, "", ""},
		"another OCIRepository":  {"what it holds is not known", ref("podinfo-oci"), installed, ref("other-oci"), true, true, "", ""},
		"the same OCIRepository": {"nothing changes", ref("podinfo-oci"), installed, with(ref("podinfo-oci"), "values", "x"), false, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(spec, status map[string]any) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"metadata": map[string]any{"namespace": "demo", "name": "web"}, "spec": spec, "status": status,
				}}
			}
			found, is := ReinstallOf(object(tc.was, tc.status), object(tc.wanted, nil))
			if is != tc.is || found.Maybe != tc.maybe || found.LeftIn != tc.leaves || is && !strings.Contains(found.String(), tc.says) {
				t.Errorf("%s: %t, %+v: %s", tc.reason, is, found, found)
			}
		})
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
	if found, is := ReinstallBySpec(release("podinfo", ""), release("other", "")); !is || found.From != "podinfo" {
		t.Errorf("a forged status hides it: %t, %s", is, found)
	}
	if found, is := ReinstallBySpec(release("podinfo", "x"), release("podinfo", "y")); is {
		t.Errorf("a status makes one: %s", found)
	}
}
