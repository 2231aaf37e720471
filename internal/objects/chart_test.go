// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const waitingRelease = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: shop, name: web}
spec: {chart: {spec: {chart: podinfo, version: 6.0.0, sourceRef: {kind: HelmRepository, name: charts}}}}
status:
  lastAttemptedRevision: 6.0.0
  conditions:
  - {type: Ready, status: "False", reason: SourceNotReady, lastTransitionTime: "2026-01-02T03:04:05Z"}
  - {type: Reconciling, status: "True", reason: Progressing}
`

func TestWaitsForChart(t *testing.T) {
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	}
	for name, test := range map[string]struct {
		reason string
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"the version that was tried": {"Flux takes its chart for one that it has seen", func(*unstructured.Unstructured) {}, true},
		"another version":            {"the chart has another revision, of which Flux is told", set("6.1.0", "spec", "chart", "spec", "version"), false},
		"a range":                    {"which version there is nobody knows yet", set(">=6", "spec", "chart", "spec", "version"), true},
		"never tried":                {"Flux is told of the first chart", set("", "status", "lastAttemptedRevision"), false},
		"suspended":                  {"Flux does not look", set(true, "spec", "suspend"), false},
		"going": {"it is uninstalled", func(u *unstructured.Unstructured) {
			u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}, false},
		"another reason": {"it has its chart", set([]any{map[string]any{"type": "Ready", "status": "False", "reason": "UpgradeFailed"}}, "status", "conditions"), false},
		"no status":      {"Flux has yet to look", set(map[string]any{}, "status"), false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(waitingRelease), &live.Object); err != nil {
				t.Fatal(err)
			}
			test.change(live)
			since, waits := WaitsForChart(live)
			if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); waits != test.want || waits && !since.Equal(want) {
				t.Errorf("%s: it waits: %t, since %s", test.reason, waits, since)
			}
		})
	}
}

func TestChartOf(t *testing.T) {
	live := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(waitingRelease), &live.Object); err != nil {
		t.Fatal(err)
	}
	if chart, made := ChartOf(live); !made || chart.String() != "HelmChart shop/shop-web" {
		t.Errorf("its chart is %s, %t", chart, made)
	}
	_ = unstructured.SetNestedField(live.Object, "flux-system", "spec", "chart", "spec", "sourceRef", "namespace")
	if chart, made := ChartOf(live); !made || chart.String() != "HelmChart flux-system/shop-web" {
		t.Errorf("its chart is %s, %t", chart, made)
	}
	unstructured.RemoveNestedField(live.Object, "spec", "chart")
	if chart, made := ChartOf(live); made {
		t.Errorf("its chart is %s", chart)
	}
}

func TestIsChartOf(t *testing.T) {
	release := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(waitingRelease), &release.Object); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"what Flux has made": {func(*unstructured.Unstructured) {}, true},
		"with values of its own": {func(c *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(c.Object, "5m", "spec", "interval")
		}, true},
		"another chart": {func(c *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(c.Object, "other", "spec", "chart")
		}, false},
		"another repository": {func(c *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(c.Object, "other", "spec", "sourceRef", "name")
		}, false},
		"another name": {func(c *unstructured.Unstructured) { c.SetName("shop-api") }, false},
		"somebody's own": {func(c *unstructured.Unstructured) {
			c.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			chart := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {namespace: shop, name: shop-web, managedFields: [{manager: helm-controller}]}
spec: {chart: podinfo, version: 6.0.0, sourceRef: {kind: HelmRepository, name: charts}}
`), &chart.Object); err != nil {
				t.Fatal(err)
			}
			test.change(chart)
			if got := IsChartOf(chart, release); got != test.want {
				t.Errorf("it is its chart: %t", got)
			}
		})
	}
}
