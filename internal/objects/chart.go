// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ChartOf returns the HelmChart that Flux makes for a HelmRelease; false where it makes none,
// because the release refers to what holds its chart.
func ChartOf(live *unstructured.Unstructured) (ID, bool) {
	spec, found, _ := unstructured.NestedMap(live.Object, "spec", "chart", "spec")
	if !found {
		return ID{}, false
	}
	of, _, _ := unstructured.NestedString(spec, "sourceRef", "namespace")
	return ID{
		Group: "source.toolkit.fluxcd.io", Kind: "HelmChart",
		Namespace: cmp.Or(of, live.GetNamespace()), Name: live.GetNamespace() + "-" + live.GetName(),
	}, true
}

// WaitsForChart returns since when a HelmRelease waits for its HelmChart of which Flux does not
// tell it: one with the version that Flux has tried last. It is false where the release waits for
// nothing, or for a chart of another version, with which Flux goes on by itself.
func WaitsForChart(live *unstructured.Unstructured) (since time.Time, waits bool) {
	ready, _ := ConditionOf(live, "Ready")
	tried, _, _ := unstructured.NestedString(live.Object, "status", "lastAttemptedRevision")
	if ready.Status != "False" || ready.Reason != "SourceNotReady" || tried == "" || olderChart(live) != "" ||
		IsSuspended(live) || live.GetDeletionTimestamp() != nil {
		return time.Time{}, false
	}
	return ready.Since, true
}

// IsChartOf tells whether a live HelmChart is what Flux has made for a HelmRelease: by its name
// alone it may be somebody's own, or that of another release whose name comes to the same.
func IsChartOf(chart, release *unstructured.Unstructured) bool {
	id, made := ChartOf(release)
	if !made || IDOf(chart) != id {
		return false
	}
	for _, path := range [][]string{{"chart"}, {"sourceRef", "kind"}, {"sourceRef", "name"}} {
		is, _, _ := unstructured.NestedString(chart.Object, append([]string{"spec"}, path...)...)
		wanted, _, _ := unstructured.NestedString(release.Object, append([]string{"spec", "chart", "spec"}, path...)...)
		if is != wanted {
			return false
		}
	}
	return slices.ContainsFunc(chart.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "helm-controller" })
}
