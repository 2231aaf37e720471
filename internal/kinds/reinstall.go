// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	// HelmChartKind is the kind of charts that Flux fetches.
	HelmChartKind = schema.GroupKind{Group: HelmRepositoryKind.Group, Kind: "HelmChart"}
	// OCIRepositoryKind is the kind of sources in a registry.
	OCIRepositoryKind = schema.GroupKind{Group: HelmRepositoryKind.Group, Kind: "OCIRepository"}
)

// Reinstall is a change of a HelmRelease for which Flux uninstalls the Helm release, and
// installs it again as another one.
type Reinstall struct {
	// What changes, in the words of helm-controller's log, and From and To what.
	What, From, To string
	// Release is the namespace and the name of the Helm release that is uninstalled.
	Release string
	// LeftIn is the namespace in which objects stay whose templates name none; empty
	// where all go.
	LeftIn string
	// Maybe is true where the chart comes from elsewhere, and it is not known whether its
	// name is another one.
	Maybe bool
}

// String says what Flux does.
func (r Reinstall) String() string {
	does := "Flux uninstalls Helm release " + r.Release + " and installs it anew"
	change := fmt.Sprintf("%s: %s -> %s", r.What, r.From, r.To)
	if r.Maybe {
		return fmt.Sprintf("%s if the chart has another name (%s)", does, change)
	}
	text := fmt.Sprintf("%s (%s)", does, change)
	if r.LeftIn != "" {
		text += fmt.Sprintf("; objects whose templates name no namespace stay in %s, and belong to nobody", r.LeftIn)
	}
	return text
}

// Find returns an object of a kind, namespace and name that a HelmRelease refers to; nil where
// it is not known.
type Find func(schema.GroupKind, types.NamespacedName) *unstructured.Unstructured

// Charts finds where the charts of a HelmRelease come from: Live as it is, and Wanted as it is
// to be. Either may be nil, which finds nothing.
type Charts struct{ Live, Wanted Find }

// ReinstallOf tells whether Flux uninstalls what a HelmRelease has installed once it, and where
// its chart comes from, are written as wanted. The rules are those of ReleaseTargetChanged and of
// the reconciler of helm-controller 1.6: it compares the storage namespace, the release namespace,
// the name of the release and that of the chart with what it has recorded, in this order, and the
// strategy for changed names of charts counts for the last alone. Wherever a chart comes from, its
// name is that of its Chart.yaml. A release that was never installed is none.
func ReinstallOf(live, wanted *unstructured.Unstructured, charts Charts) (Reinstall, bool) {
	if live == nil || wanted == nil {
		return Reinstall{}, false
	}
	stored, _, _ := unstructured.NestedString(live.Object, "status", "storageNamespace")
	if stored == "" {
		return Reinstall{}, false
	}
	was := specified(live, charts.Live)
	was.storage = stored
	if history, _, _ := unstructured.NestedSlice(live.Object, "status", "history"); len(history) > 0 {
		newest, _ := history[0].(map[string]any)
		for field, value := range map[string]*string{"namespace": &was.namespace, "name": &was.name, "chartName": &was.chart} {
			if text, _ := newest[field].(string); text != "" {
				*value = text
				was.likely = was.likely && field != "chartName"
			}
		}
	}
	return was.reinstall(live, wanted, charts.Wanted)
}

// ReinstallBySpec is ReinstallOf by what the specifications say alone, whatever the status
// says, and of any release: what is guarded by it nobody can forge who may write statuses.
func ReinstallBySpec(live, wanted *unstructured.Unstructured, charts Charts) (Reinstall, bool) {
	if live == nil || wanted == nil {
		return Reinstall{}, false
	}
	return specified(live, charts.Live).reinstall(live, wanted, charts.Wanted)
}

// installed is what identifies the Helm release of a HelmRelease to Flux.
type installed struct {
	storage, namespace, name, chart string
	// likely is true where the chart may have another name than this.
	likely bool
}

// specified returns what a specification says.
func specified(release *unstructured.Unstructured, find Find) installed {
	name, storage := HelmName(release)
	chart, known := chartName(release, find)
	return installed{
		storage: storage, namespace: cmp.Or(specText(release, "targetNamespace"), release.GetNamespace()), name: name, chart: chart, likely: !known,
	}
}

// reinstall compares what is installed with what is wanted.
func (was installed) reinstall(live, wanted *unstructured.Unstructured, find Find) (Reinstall, bool) {
	will := specified(wanted, find)
	found := Reinstall{Release: was.namespace + "/" + was.name}
	if will.namespace != was.namespace {
		found.LeftIn = was.namespace
	}
	switch {
	case will.storage != was.storage:
		found.What, found.From, found.To = "storage namespace", was.storage, will.storage
	case will.namespace != was.namespace:
		found.What, found.From, found.To = "release namespace", was.namespace, will.namespace
	case will.name != was.name:
		found.What, found.From, found.To = "release name", was.name, will.name
	default:
		return was.chartChange(found, will, live, wanted)
	}
	return found, true
}

// chartChange tells whether the chart of a release has another name.
func (was installed) chartChange(found Reinstall, will installed, live, wanted *unstructured.Unstructured) (Reinstall, bool) {
	strategy, _, _ := unstructured.NestedString(wanted.Object, "spec", "upgrade", "chartNameChangeStrategy")
	if strategy == "InPlaceUpdate" || will.chart == was.chart || sameChart(live, wanted) && (was.chart == "" || was.likely || will.likely) {
		return Reinstall{}, false
	}
	found.What, found.From, found.To = "chart name", cmp.Or(was.chart, "not known"), will.chart
	found.Maybe = will.likely || was.chart == ""
	return found, true
}

// chartName returns the name of the chart that a HelmRelease asks for. It is known of a chart
// from a HelmRepository, and of one in an OCIRepository that can be found: helm push names the
// repository after the chart. Of a folder, and of what cannot be found, it is the likely one.
func chartName(release *unstructured.Unstructured, find Find) (name string, known bool) {
	if spec, found, _ := unstructured.NestedMap(release.Object, "spec", "chart", "spec"); found {
		return templateName(spec)
	}
	gk, key := ChartRef(release)
	if find == nil {
		return key.Name, false
	}
	of := find(gk, key)
	if of == nil {
		return key.Name, false
	}
	switch gk {
	case HelmChartKind:
		spec, _, _ := unstructured.NestedMap(of.Object, "spec")
		return templateName(spec)
	case OCIRepositoryKind:
		return path.Base(specText(of, "url")), true
	}
	return key.Name, false
}

// templateName returns the name of the chart by the specification of a HelmChart.
func templateName(spec map[string]any) (name string, known bool) {
	chart, _, _ := unstructured.NestedString(spec, "chart")
	kind, _, _ := unstructured.NestedString(spec, "sourceRef", "kind")
	return path.Base(chart), kind == HelmRepositoryKind.Kind
}

// ChartRef returns what spec.chartRef of a HelmRelease names; its name is empty where there is
// none.
func ChartRef(release *unstructured.Unstructured) (schema.GroupKind, types.NamespacedName) {
	of := func(field string) string {
		value, _, _ := unstructured.NestedString(release.Object, "spec", "chartRef", field)
		return value
	}
	return schema.GroupKind{Group: HelmRepositoryKind.Group, Kind: of("kind")},
		types.NamespacedName{Namespace: cmp.Or(of("namespace"), release.GetNamespace()), Name: of("name")}
}

// sameChart tells whether two releases ask for the chart of one name at one place.
func sameChart(a, b *unstructured.Unstructured) bool {
	place := func(release *unstructured.Unstructured) []any {
		chart, _, _ := unstructured.NestedString(release.Object, "spec", "chart", "spec", "chart")
		ref, _, _ := unstructured.NestedFieldNoCopy(release.Object, "spec", "chart", "spec", "sourceRef")
		of, _, _ := unstructured.NestedFieldNoCopy(release.Object, "spec", "chartRef")
		return []any{chart, ref, of}
	}
	return equality.Semantic.DeepEqual(place(a), place(b))
}

func specText(release *unstructured.Unstructured, field string) string {
	value, _, _ := unstructured.NestedString(release.Object, "spec", field)
	return value
}
