// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package heatmap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
)

func layer(name, state, cluster, column string) string {
	ready := map[bool]string{true: "True", false: "False"}[state == "Deployed"]
	spec := ""
	if cluster != "" {
		spec = fmt.Sprintf(", cluster: {namespace: fleet, name: %s}", cluster)
	}
	if column != "" {
		column = ", labels: {platform.kraan.io/layer: " + column + "}"
	}
	return fmt.Sprintf(`---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %s, generation: 1%s}
spec: {version: "1"%s}
status: {state: %s, version: "1", observedGeneration: 1, conditions: [{type: Ready, status: "%s", reason: X, message: m}]}
`, name, column, spec, state, ready)
}

func remote(name, ready, region string) string {
	return fmt.Sprintf(`---
apiVersion: kraan.io/v1alpha1
kind: RemoteCluster
metadata: {namespace: fleet, name: %s, generation: 1, labels: {region: %s}}
spec: {kubeConfig: {secretRef: {name: x}}}
status:
  observedGeneration: 1
  version: v1.36.3
  credentialsExpire: "2027-01-01T00:00:00Z"
  conditions: [{type: Ready, status: "%s", reason: Unreachable, message: no route}]
`, name, region, ready)
}

// written writes a map in a few lines.
func written(m Map) []string {
	lines := []string{fmt.Sprintf("%s +%d: %d of %d, %s", m.Columns, m.MoreColumns, m.From, m.Total, m.Say())}
	for _, name := range m.Rows {
		row := m.Clusters[name]
		text := fmt.Sprintf("%s %s %d/%d:", name, row.Fares, row.Deployed, row.Layers)
		for _, cell := range row.Cells {
			if cell == nil {
				text += " -"
				continue
			}
			text += " " + cell.Layer + "=" + string(cell.Fares)
			if cell.More > 0 {
				text += fmt.Sprintf("+%d", cell.More)
			}
		}
		lines = append(lines, strings.TrimSpace(text))
	}
	return lines
}

func TestMap(t *testing.T) {
	fleet := remote("a", "True", "east") + remote("b", "True", "west") + remote("c", "False", "east") +
		layer("p-a-base", "Deployed", "a", "base") + layer("p-a-mesh", "Failed", "a", "mesh") +
		layer("p-b-base", "Deployed", "b", "base") + layer("q-b-base", "ApplyPending", "b", "base") +
		layer("own", "Deployed", "", "")
	all := Window{MostRows: 9, MostColumns: 9, MostCells: 100}
	for name, test := range map[string]struct {
		change func(*Window)
		want   []string
	}{
		"those in trouble first": {func(*Window) {}, []string{
			"[base mesh own] +0: 0 of 4, 2 failed, 1 waiting, 1 well",
			"fleet/a Failed 1/2: p-a-base=Well p-a-mesh=Failed -",
			"fleet/c Failed 0/0: - - -",
			"fleet/b Waiting 1/2: q-b-base=Waiting+1 - -",
			"Well 1/1: - - own=Well",
		}},
		"clusters by their labels": {func(w *Window) { w.Clusters = labels.SelectorFromSet(labels.Set{"region": "west"}) }, []string{
			"[base] +0: 0 of 1, 1 waiting", "fleet/b Waiting 1/2: q-b-base=Waiting+1",
		}},
		"layers by theirs": {func(w *Window) { w.Wanted = labels.SelectorFromSet(labels.Set{"platform.kraan.io/layer": "mesh"}) }, []string{
			"[mesh] +0: 0 of 1, 1 failed", "fleet/a Failed 0/1: p-a-mesh=Failed",
		}},
		"a window": {func(w *Window) { w.From, w.MostRows, w.MostColumns = 1, 2, 1 }, []string{
			"[base] +2: 1 of 4, 2 failed, 1 waiting, 1 well", "fleet/c Failed 0/0: -", "fleet/b Waiting 1/2: q-b-base=Waiting+1",
		}},
		"a window behind the end": {func(w *Window) { w.From, w.MostRows = 1000, 1 }, []string{
			"[base mesh own] +0: 3 of 4, 2 failed, 1 waiting, 1 well", "Well 1/1: - - own=Well",
		}},
		"few cells": {func(w *Window) { w.MostCells = 3 }, []string{
			"[base mesh own] +0: 0 of 4, 2 failed, 1 waiting, 1 well", "fleet/a Failed 1/2: p-a-base=Well p-a-mesh=Failed -",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			window := all
			test.change(&window)
			if diff := cmp.Diff(test.want, trimmed(written(Of(snapshottest.New(t, fleet), window)))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := Of(snapshottest.New(t, ""), all); got.Total != 0 || len(got.Rows) != 0 || got.Columns == nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func trimmed(lines []string) []string {
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func TestRowsOfClusters(t *testing.T) {
	m := Of(snapshottest.New(t, remote("c", "False", "east")), Window{MostRows: 1, MostColumns: 1, MostCells: 1})
	want := Row{
		Name: "fleet/c", Fares: "Failed", Reason: "Unreachable", Message: "no route", Kubernetes: "v1.36.3", Expires: "2027-01-01T00:00:00Z",
		Cells: []*Cell{}, Labels: map[string]string{"region": "east"},
	}
	if diff := cmp.Diff(want, m.Clusters["fleet/c"]); diff != "" {
		t.Error(diff)
	}
}
