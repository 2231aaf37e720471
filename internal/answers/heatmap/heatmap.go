// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heatmap lays clusters out by layers, those in trouble first, in windows: however
// many clusters there are, one window is what somebody looks at. It may import snapshot,
// summary and verdict, and reads nothing but objects that it is given.
package heatmap

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/placement"
)

// Map is a window of clusters by layers. No list is nil.
type Map struct {
	// Columns are names of layers; on clusters of a platform those that its bundle gives them.
	Columns []string `json:"columns"`
	// MoreColumns counts those that are left out.
	MoreColumns int `json:"moreColumns"`
	// From is the number of the first row, Total that of all rows.
	From  int `json:"from"`
	Total int `json:"total"`
	// Rows name the clusters in their order; those of Clusters.
	Rows []string `json:"rows"`
	// Counts are the clusters by state.
	Counts   map[verdict.State]int `json:"counts"`
	Clusters map[string]Row        `json:"-"`
}

// Row is a cluster.
type Row struct {
	// Name as namespace/name of a RemoteCluster; empty for the one that Strata runs in.
	Name string `json:"name"`
	// Fares is the worst of what the cluster and its layers say.
	Fares verdict.State `json:"fares"`
	// Ready is False and Reason and Message say why, where the cluster itself is not well.
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Kubernetes is the version that it has answered last.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Expires and Seen as RFC 3339; empty where they are not known.
	Expires string `json:"expires,omitempty"`
	Seen    string `json:"seen,omitempty"`
	// Ending is true where the credentials end soon.
	Ending bool `json:"ending,omitempty"`
	// Deployed and Layers count its layers.
	Deployed int `json:"deployed"`
	Layers   int `json:"layers"`
	// Cells are by column; null where it has no such layer.
	Cells []*Cell `json:"cells"`
	// Labels of the RemoteCluster.
	Labels map[string]string `json:"labels,omitempty"`
}

// Cell is the layers of a cluster that are of one column.
type Cell struct {
	// Layer is the worst of them, and More counts the others.
	Layer string        `json:"layer"`
	More  int           `json:"more,omitempty"`
	Fares verdict.State `json:"fares"`
	// State in the layer's own word.
	State   string `json:"state"`
	Version string `json:"version,omitempty"`
}

// Window says what is looked at.
type Window struct {
	// Wanted chooses layers by their labels, and Clusters chooses clusters by theirs; nil for
	// all. The cluster that Strata runs in has no labels.
	Wanted, Clusters labels.Selector
	// From is the number of the first row.
	From int
	// MostRows, MostColumns and MostCells bound what is laid out.
	MostRows, MostColumns, MostCells int
}

// Of lays out a window. Where it begins behind the last row, it shows the last rows.
func Of(s *snapshot.Snapshot, w Window) Map {
	rows, cells := rowsOf(s, w)
	m := Map{Rows: []string{}, Counts: map[verdict.State]int{}, Clusters: map[string]Row{}, Total: len(rows)}
	for _, row := range rows {
		m.Counts[row.Fares]++
	}
	slices.SortFunc(rows, func(a, b *Row) int {
		return cmp.Or(verdict.Compare(a.Fares, b.Fares), strings.Compare(a.Name, b.Name))
	})
	m.Columns, m.MoreColumns = columnsOf(cells, w.MostColumns)
	most := w.MostRows
	if len(m.Columns) > 0 {
		most = max(1, min(most, w.MostCells/len(m.Columns)))
	}
	m.From = max(0, min(w.From, len(rows)-most))
	for _, row := range rows[m.From:min(len(rows), m.From+most)] {
		row.Cells = make([]*Cell, len(m.Columns))
		for i, column := range m.Columns {
			row.Cells[i] = cells[row.Name][column]
		}
		m.Rows = append(m.Rows, row.Name)
		m.Clusters[row.Name] = *row
	}
	return m
}

// rowsOf returns the clusters, and their cells by column.
func rowsOf(s *snapshot.Snapshot, w Window) ([]*Row, map[string]map[string]*Cell) {
	by := map[string]*Row{}
	for _, cluster := range s.Clusters {
		if w.Clusters == nil || w.Clusters.Matches(labels.Set(cluster.Labels)) {
			row := rowOf(cluster, s)
			by[row.Name] = &row
		}
	}
	known := map[string]bool{}
	for _, cluster := range s.Clusters {
		known[cluster.Namespace+"/"+cluster.Name] = true
	}
	cells := map[string]map[string]*Cell{}
	for _, layer := range s.Layers {
		if w.Wanted != nil && !w.Wanted.Matches(labels.Set(layer.Labels)) {
			continue
		}
		name := placement.ClusterName(placement.Of(layer, ""))
		row := by[name]
		if row == nil {
			if known[name] || w.Clusters != nil && !w.Clusters.Empty() {
				continue
			}
			// The cluster that Strata runs in, or one whose RemoteCluster is not there or not seen.
			row = &Row{Name: name, Fares: verdict.Well, Ready: true}
			by[name] = row
		}
		if cells[name] == nil {
			cells[name] = map[string]*Cell{}
		}
		row.add(layer, cells[name])
	}
	rows := slices.Collect(maps.Values(by))
	if w.Wanted != nil {
		rows = slices.DeleteFunc(rows, func(row *Row) bool { return row.Layers == 0 })
	}
	return rows, cells
}

// add counts a layer, and puts it into its cell.
func (r *Row) add(layer *v1alpha1.AddonsLayer, cells map[string]*Cell) {
	fares := verdict.StateOf(layer)
	r.Layers++
	if fares == verdict.Well {
		r.Deployed++
	}
	if verdict.Compare(fares, r.Fares) < 0 {
		r.Fares = fares
	}
	column := cmp.Or(layer.Labels[v1alpha1.PlatformLayerLabel], layer.Name)
	version := layer.Status.Version
	cell := &Cell{Layer: layer.Name, Fares: fares, State: cmp.Or(string(layer.Status.State), "New"), Version: cmp.Or(version, layer.Spec.Version)}
	if other := cells[column]; other != nil {
		if verdict.Compare(other.Fares, cell.Fares) <= 0 {
			other.More++
			return
		}
		cell.More = other.More + 1
	}
	cells[column] = cell
}

// rowOf returns what a RemoteCluster says of itself.
func rowOf(cluster *v1alpha1.RemoteCluster, s *snapshot.Snapshot) Row {
	said := summary.OfCluster(cluster, s.Now)
	row := Row{
		Name: said.Name, Fares: verdict.Well, Ready: !said.Blocked, Message: said.Why,
		Kubernetes: cluster.Status.Version, Labels: cluster.Labels,
	}
	if said.Blocked {
		row.Fares, row.Reason = verdict.Failed, said.Reason
	}
	if at := cluster.Status.CredentialsExpire; !at.IsZero() {
		row.Expires = snapshot.Stamp(at.Time)
	}
	if at := cluster.Status.LastSeen; !at.IsZero() && said.Blocked {
		row.Seen = snapshot.Stamp(at.Time)
	}
	for _, condition := range cluster.Status.Conditions {
		if condition.Type == v1alpha1.CredentialsExpiringCondition && condition.Status == "True" {
			row.Ending = true
		}
	}
	return row
}

// columnsOf returns the columns that most clusters have, in order, and counts the others.
func columnsOf(cells map[string]map[string]*Cell, most int) ([]string, int) {
	counts := map[string]int{}
	for _, of := range cells {
		for column := range of {
			counts[column]++
		}
	}
	columns := slices.Collect(maps.Keys(counts))
	slices.SortFunc(columns, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	kept := columns[:min(len(columns), most)]
	slices.Sort(kept)
	return append([]string{}, kept...), len(columns) - len(kept)
}

// Say writes in a few words how the clusters stand: 3 failed, 997 well.
func (m Map) Say() string { return verdict.Counted(m.Counts, "well") }
