// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// chartPatience is how long a release may wait for its chart before that is looked at: as
	// a rule the chart is there by then.
	chartPatience = 2 * time.Second
	// requestPause is how soon Flux is asked again to look at a release at the earliest.
	requestPause = 10 * time.Second
)

// AwaitedCharts returns the HelmCharts that releases of the layer wait for and that Flux may
// not tell them of, by the releases.
func (o Observation) AwaitedCharts() map[objects.ID]objects.ID {
	found := map[objects.ID]objects.ID{}
	if HoldOf(o.Layer, o.Now).Active || isDeleting(o.Layer) || o.IsAway() {
		return found
	}
	for id, live := range o.Live {
		if !o.mayAsk(id, live) {
			continue
		}
		if since, waits := objects.WaitsForChart(live); waits && !o.Now.Before(since.Add(chartPatience)) {
			if chart, made := objects.ChartOf(live); made {
				found[id] = chart
			}
		}
	}
	return found
}

// mayAsk tells whether a live object is a release of the layer.
func (o Observation) mayAsk(id objects.ID, live *unstructured.Unstructured) bool {
	return live != nil && id.GroupKind() == kinds.HelmReleaseKind && live.GetLabels()[v1alpha1.LayerLabel] == o.Layer.Name && !o.Stale[id]
}

// withRequests has Flux look at releases whose charts are there although Flux, which has taken
// them for what it had before, would look only when its own patience ends. Where a release may
// come to that, the layer is looked at in time.
func (d Decision) withRequests(o Observation) Decision {
	if len(d.Plan.Conflicts) > 0 || d.Finalized || HoldOf(o.Layer, o.Now).Active || isDeleting(o.Layer) {
		return d
	}
	var asked []dependents.Action
	for id, live := range o.Live {
		if !o.mayAsk(id, live) {
			continue
		}
		since, waits := objects.WaitsForChart(live)
		if due := since.Add(chartPatience); waits && o.Now.Before(due) {
			d.Until = moments.Earlier(d.Until, due)
		}
		if !waits || !o.Charts[id] || d.touches(id) {
			continue
		}
		last, err := time.Parse(time.RFC3339Nano, live.GetAnnotations()[v1alpha1.ReconcileRequestAnnotation])
		if next := last.Add(requestPause); err == nil && o.Now.Before(next) && !last.After(o.Now) {
			d.Until = moments.Earlier(d.Until, next)
			continue
		}
		asked = append(asked, dependents.Action{
			Verb: dependents.VerbRequest, ID: id, UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Moment: o.Now,
		})
	}
	slices.SortFunc(asked, func(a, b dependents.Action) int { return a.ID.Compare(b.ID) })
	d.Plan.Actions = append(slices.Clip(d.Plan.Actions), asked...)
	return d
}

// touches tells whether the plan does something to an object: it is looked at again then.
func (d Decision) touches(id objects.ID) bool {
	return slices.ContainsFunc(d.Plan.Actions, func(a dependents.Action) bool { return a.ID == id })
}
