// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/printable"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/placement"
)

// clusterView is one RemoteCluster with its layers.
type clusterView struct {
	// Name as namespace/name.
	Name string `json:"name"`
	// Missing is true where there is no such cluster, and Near are the names that may be
	// meant.
	Missing bool              `json:"missing,omitempty"`
	Near    []string          `json:"near,omitempty"`
	Ready   bool              `json:"ready"`
	Reason  string            `json:"reason,omitempty"`
	Message string            `json:"message,omitempty"`
	Version string            `json:"kubernetes,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Seen is when the cluster answered last, where it does not, and Expires when its
	// credentials end; RFC 3339.
	Seen     string             `json:"seen,omitempty"`
	Expires  string             `json:"expires,omitempty"`
	Layers   listed[layerBrief] `json:"layers"`
	Happened happened           `json:"happened"`
	Commands []string           `json:"commands"`
}

// layerBrief is a layer in one line.
type layerBrief struct {
	Name    string        `json:"name"`
	Fares   verdict.State `json:"fares"`
	State   string        `json:"state"`
	Version string        `json:"version,omitempty"`
}

// clusterOf returns what is shown of a cluster, namespace/name.
func clusterOf(o Options, s *snapshot.Snapshot, name string) clusterView {
	namespace, short, _ := strings.Cut(name, "/")
	cluster := s.Cluster(types.NamespacedName{Namespace: namespace, Name: short})
	if cluster == nil {
		var names []string
		for _, each := range s.Clusters {
			names = append(names, each.Namespace+"/"+each.Name)
		}
		return clusterView{Name: name, Missing: true, Near: near.Near(name, names)}
	}
	view := clusterView{
		Name: name, Version: cluster.Status.Version, Labels: labelsOf(cluster.Labels),
		Commands: []string{printable.Command(o.Program, "clusters", name)},
	}
	if ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		view.Ready, view.Reason, view.Message = ready.Status == "True", ready.Reason, clip(ready.Message)
	}
	if seen := cluster.Status.LastSeen; !view.Ready && !seen.IsZero() {
		view.Seen = snapshot.Stamp(seen.Time)
	}
	if ends := cluster.Status.CredentialsExpire; !ends.IsZero() {
		view.Expires = snapshot.Stamp(ends.Time)
	}
	var on []*v1alpha1.AddonsLayer
	for _, layer := range s.Layers {
		if placement.ClusterName(placement.Of(layer, "")) == name {
			on = append(on, layer)
		}
	}
	view.Layers = briefsOf(on)
	ids := subjectsOf(v1alpha1.RemoteClusterKind, namespace, short, on)
	for _, made := range s.HostClusters {
		if made.Namespace == namespace && made.Name == short {
			ids = append(ids, subjectsOf(v1alpha1.HostClusterKind, namespace, short, nil)...)
		}
	}
	view.Happened = happenedTo(o, events.SubjectsNamed(ids...), on, nil, true)
	return view
}

// mostLabels is how many labels of a cluster are shown, by their names.
const mostLabels = 30

func labelsOf(all map[string]string) map[string]string {
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all))[:min(len(all), mostLabels)] {
		kept[name] = all[name]
	}
	return kept
}

// briefsOf returns layers in one line each, the worst first.
func briefsOf(layers []*v1alpha1.AddonsLayer) listed[layerBrief] {
	briefs := make([]layerBrief, 0, len(layers))
	for _, layer := range layers {
		row := summary.Of(layer, layer.Status.StateSince.Time)
		briefs = append(briefs, layerBrief{layer.Name, verdict.StateOf(layer), row.State, cmp.Or(layer.Status.Version, layer.Spec.Version)})
	}
	slices.SortStableFunc(briefs, func(a, b layerBrief) int {
		return cmp.Or(verdict.Compare(a.Fares, b.Fares), strings.Compare(a.Name, b.Name))
	})
	kept := briefs[:min(len(briefs), mostObjects)]
	return listed[layerBrief]{kept, len(briefs) - len(kept)}
}
