// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// NeedsOthers tells whether what other layers list matters to a look: where an
// object of the layer belongs to somebody else, or is not listed any more, or is
// a release that is not there, since somebody else may be about to make one for
// the same Helm release; one that this very process has made, and that the cache
// has yet to see, is there. Where the layer may go back, an object that only one of
// both contents lists is not listed any more, either. It is asked when all else
// has been observed.
func (o Observation) NeedsOthers() bool {
	if isDeleting(o.Layer) || len(o.Taken) > 0 {
		return true
	}
	contents, listed, shared := 1, map[objects.ID]int{}, map[objects.ID]bool{}
	if o.Restored != nil {
		contents++
	}
	for _, directory := range []*directories.Directory{o.Directory, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			id := manifest.ID()
			listed[id]++
			if manifest.Ensured || manifest.Observed {
				shared[id] = true
			}
			if id.GroupKind() == kinds.HelmReleaseKind && o.Live[id] == nil && !o.Stale[id] {
				return true
			}
		}
	}
	for id, live := range o.Live {
		if shared[id] {
			continue
		}
		if owner := live.GetLabels()[v1alpha1.LayerLabel]; listed[id] < contents || owner != "" && owner != o.Layer.Name {
			return true
		}
	}
	return false
}

// AddOther adds that there is another layer.
func (o Observation) AddOther(others *dependents.Others, layer *v1alpha1.AddonsLayer) {
	others.Existing[layer.Name] = true
	if cluster, elsewhere := o.Elsewhere(layer); elsewhere {
		if others.Elsewhere == nil {
			others.Elsewhere = map[string]string{}
		}
		others.Elsewhere[layer.Name] = nameOfCluster(cluster)
	}
}

// AddClaims adds what another layer lists of the objects in question.
func (o Observation) AddClaims(others *dependents.Others, layer string, listing Listing) {
	for id := range o.Live {
		for _, twin := range o.Twins.IDs(id) {
			if file, listed := listing.Files[twin]; listed {
				others.Listed[id] = append(others.Listed[id], dependents.Claim{Owner: layer, Origin: file, ID: id})
			}
		}
	}
	for exclusive := range o.Exclusive {
		for _, twin := range o.Twins.Identities(exclusive) {
			for _, id := range listing.Exclusive[twin] {
				others.Exclusive[exclusive] = append(others.Exclusive[exclusive], dependents.Claim{Owner: layer, Origin: listing.Files[id], ID: id})
			}
		}
	}
}

// AddHeld adds what another layer's inventory has of the objects that stand for the
// Helm releases in question.
func (o Observation) AddHeld(others *dependents.Others, layer *v1alpha1.AddonsLayer) {
	labelled := false
	for _, ids := range o.Exclusive {
		for _, id := range ids {
			labelled = labelled || o.Live[id] != nil && o.Live[id].GetLabels()[v1alpha1.LayerLabel] == layer.Name
		}
	}
	if !labelled {
		return
	}
	if others.Holds == nil {
		others.Holds = map[objects.ID]string{}
	}
	for _, entry := range Inventory(layer.Status.Resources, nil) {
		if o.Live[entry.ID] != nil && o.Live[entry.ID].GetLabels()[v1alpha1.LayerLabel] == layer.Name {
			others.Holds[entry.ID] = layer.Name
		}
	}
}

// IsRefused tells whether a layer says that its version is refused for the sake
// of its dependants. Whether it still is, those say.
func IsRefused(layer *v1alpha1.AddonsLayer) bool {
	ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition)
	return ready != nil && ready.Reason == v1alpha1.ReasonWouldBreakDependants
}

// WaitsForOthers tells whether a change of what another layer lists may free a
// layer, and for which API groups it waits.
func (d Decision) WaitsForOthers(o Observation) (waits bool, groups map[string]bool) {
	waits = len(d.Plan.Conflicts) > 0 || isDeleting(o.Layer)
	groups = map[string]bool{}
	if o.SourceUnserved {
		groups[sources.Group] = true
	}
	for _, standing := range d.Plan.Standings {
		waits = waits || standing.Unwanted || standing.Health == objects.Blocked
		if standing.Status == objects.StatusNotServed {
			groups[standing.ID.Group] = true
		}
	}
	return waits, groups
}
