// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// ReinstallOf tells whether Flux uninstalls what a HelmRelease has installed once it is
// written as wanted. The rules are those of ReleaseTargetChanged and of the reconciler of
// helm-controller 1.6: it compares the storage namespace, the release namespace, the name
// of the release and that of the chart with what it has recorded, in this order, and the
// strategy for changed names of charts counts for the last alone. A release that was never
// installed is none.
func ReinstallOf(live, wanted *unstructured.Unstructured) (Reinstall, bool) {
	if live == nil || wanted == nil {
		return Reinstall{}, false
	}
	stored, _, _ := unstructured.NestedString(live.Object, "status", "storageNamespace")
	if stored == "" {
		return Reinstall{}, false
	}
	was := specified(live)
	was.storage = stored
	if history, _, _ := unstructured.NestedSlice(live.Object, "status", "history"); len(history) > 0 {
		newest, _ := history[0].(map[string]any)
		for field, value := range map[string]*string{"namespace": &was.namespace, "name": &was.name, "chartName": &was.chart} {
			if text, _ := newest[field].(string); text != "" {
				*value = text
			}
		}
	}
	return was.reinstall(live, wanted)
}

// ReinstallBySpec is ReinstallOf by what the specifications say alone, whatever the status
// says, and of any release: what is guarded by it nobody can forge who may write statuses.
func ReinstallBySpec(live, wanted *unstructured.Unstructured) (Reinstall, bool) {
	if live == nil || wanted == nil {
		return Reinstall{}, false
	}
	return specified(live).reinstall(live, wanted)
}

// installed is what identifies the Helm release of a HelmRelease to Flux.
type installed struct{ storage, namespace, name, chart string }

// specified returns what a specification says.
func specified(release *unstructured.Unstructured) installed {
	name, storage := HelmName(release)
	chart, _ := chartName(release)
	return installed{storage: storage, namespace: cmp.Or(specText(release, "targetNamespace"), release.GetNamespace()), name: name, chart: chart}
}

// reinstall compares what is installed with what is wanted.
func (was installed) reinstall(live, wanted *unstructured.Unstructured) (Reinstall, bool) {
	will := specified(wanted)
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
		return chartChange(found, was.chart, live, wanted)
	}
	return found, true
}

// chartChange tells whether the chart of a release has another name.
func chartChange(found Reinstall, was string, live, wanted *unstructured.Unstructured) (Reinstall, bool) {
	strategy, _, _ := unstructured.NestedString(wanted.Object, "spec", "upgrade", "chartNameChangeStrategy")
	name, known := chartName(wanted)
	if strategy == "InPlaceUpdate" || name == was || sameChart(live, wanted) && (was == "" || !known) {
		return Reinstall{}, false
	}
	found.What, found.From, found.To = "chart name", cmp.Or(was, "not known"), name
	found.Maybe = !known || was == ""
	return found, true
}

// chartName returns the name of the chart that a HelmRelease asks for. It is known where
// that comes from a HelmRepository; the name of a folder or of a source is only the likely
// one.
func chartName(release *unstructured.Unstructured) (name string, known bool) {
	chart, found, _ := unstructured.NestedString(release.Object, "spec", "chart", "spec", "chart")
	if !found {
		name, _, _ = unstructured.NestedString(release.Object, "spec", "chartRef", "name")
		return name, false
	}
	kind, _, _ := unstructured.NestedString(release.Object, "spec", "chart", "spec", "sourceRef", "kind")
	return path.Base(chart), kind == HelmRepositoryKind.Kind
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
