// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/capabilities"
	"github.com/strata-project/strata/internal/answers/heatmap"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const (
	// mostRows, mostColumns and mostCells bound the map of clusters: each cell is three nodes
	// of the document, which is to have 5000 at most.
	mostRows, mostColumns, mostCells = 50, 50, 1000
	// mostListed is how many claims and HostClusters are listed, those in trouble first.
	mostListed = 20
)

// mapView is the map of clusters, but for its rows.
type mapView struct {
	heatmap.Map
	Says string `json:"says"`
	// Filter is what chooses the clusters; empty for all.
	Filter string `json:"filter,omitempty"`
}

// hostView is a cluster that is made of hosts.
type hostView struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Healthy and Etcd count hosts, and members of etcd, that are healthy: 2/3.
	Healthy string `json:"healthy,omitempty"`
	Etcd    string `json:"etcd,omitempty"`
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Ends is when the first certificate of a host ends, as RFC 3339.
	Ends string `json:"ends,omitempty"`
	// Bad are the hosts that are not healthy, with what there is to know of them.
	Bad []v1alpha1.HostStatus `json:"bad"`
}

// claimView is a claim of a capability.
type claimView struct {
	Name       string `json:"name"`
	Capability string `json:"capability"`
	Provider   string `json:"provider,omitempty"`
	Version    string `json:"version,omitempty"`
	Ready      bool   `json:"ready"`
	Reason     string `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	Layer      string `json:"layer,omitempty"`
}

// listed is a list of which the first are shown.
type listed[T any] struct {
	Items []T `json:"items"`
	More  int `json:"more"`
}

func listOf[T any](all []T) listed[T] {
	kept := append([]T{}, all[:min(len(all), mostListed)]...)
	return listed[T]{kept, len(all) - len(kept)}
}

// addClusters adds what the view of clusters shows.
func addClusters(all map[string]any, o Options, s *snapshot.Snapshot, q query) {
	window := heatmap.Window{Wanted: o.Cluster.Wanted(), From: q.from, MostRows: mostRows, MostColumns: mostColumns, MostCells: mostCells}
	if chosen, err := labels.Parse(q.clusters); err == nil && q.clusters != "" {
		window.Clusters = chosen
	}
	m := heatmap.Of(s, window)
	all["heat"] = mapView{m, m.Say(), q.clusters}
	for name, row := range m.Clusters {
		row.Message = clip(row.Message)
		all["row/"+name] = row
	}
	if len(s.HostClusters) > 0 {
		all["hosts"] = listOf(hostsOf(s))
	}
	if len(s.Claims) > 0 {
		all["claims"] = listOf(claimsOf(s))
	}
}

// hostsOf returns the clusters that are made of hosts, those that are not ready first.
func hostsOf(s *snapshot.Snapshot) []hostView {
	views := make([]hostView, 0, len(s.HostClusters))
	for _, cluster := range s.HostClusters {
		view := hostView{
			Name: cluster.Namespace + "/" + cluster.Name, Version: cluster.Status.Version,
			Healthy: cluster.Status.Healthy, Etcd: cluster.Status.Etcd, Bad: []v1alpha1.HostStatus{},
		}
		if ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
			view.Ready, view.Reason, view.Message = ready.Status == "True", ready.Reason, clip(ready.Message)
		}
		if at := cluster.Status.CertificatesEnd; !at.IsZero() {
			view.Ends = snapshot.Stamp(at.Time)
		}
		for _, host := range cluster.Status.Hosts {
			if host.Class != "Healthy" && len(view.Bad) < mostListed {
				host.Note = clip(host.Note)
				view.Bad = append(view.Bad, host)
			}
		}
		views = append(views, view)
	}
	slices.SortStableFunc(views, func(a, b hostView) int { return worseFirst(a.Ready, b.Ready) })
	return views
}

// claimsOf returns the claims, those that are not ready first.
func claimsOf(s *snapshot.Snapshot) []claimView {
	var views []claimView
	for _, claim := range capabilities.Claims(s) {
		views = append(views, claimView{
			Name: claim.Key(), Capability: claim.Capability, Provider: claim.Provider, Version: claim.Version, Ready: claim.IsReady(),
			Reason: claim.Reason, Message: clip(claim.Message), Layer: claim.Layer,
		})
	}
	slices.SortStableFunc(views, func(a, b claimView) int {
		return cmp.Or(worseFirst(a.Ready, b.Ready), strings.Compare(a.Name, b.Name))
	})
	return views
}

func worseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
