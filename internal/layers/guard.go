// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// Guards that an annotation opens, as Attempt.Allowed records them.
const (
	allowedEmpty = "Empty"
	allowedPrune = "Prune"
	allowedDoubt = "Doubt"

	allowedReinstall = "Reinstall"
)

// emptyGuard stops a directory without objects from emptying a layer, unless
// somebody said that this revision may. A layer that was deployed as empty, and
// has got nothing since, stays so, and one that never had anything begins so.
func emptyGuard(o Observation) (consume, allowed []string, blocked *Blocked) {
	allowed = o.alreadyAllowed()
	if slices.Contains(allowed, allowedEmpty) {
		return o.leftOver(v1alpha1.AllowEmptyAnnotation), allowed, nil
	}
	isEmpty := o.Layer.Status.Digest == o.Directory.Digest && !slices.ContainsFunc(o.Layer.Status.Resources, stays)
	if len(o.Directory.Manifests) > 0 || isEmpty || o.isLeftOut() {
		return nil, allowed, nil
	}
	if consume, yes := o.allows(v1alpha1.AllowEmptyAnnotation); yes {
		return consume, append(allowed, allowedEmpty), nil
	}
	if o.neverHadAny() && !o.Directory.Missing {
		return nil, allowed, nil
	}
	blocked = &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonEmptyDirectory, Stalled: true}
	what := "holds no objects"
	if o.Directory.Missing {
		blocked.Reason = v1alpha1.ReasonPathNotFound
		what = "does not exist"
	}
	blocked.Message = fmt.Sprintf("spec.source.path: %s %s at revision %s, and an empty directory removes nothing by itself: "+
		"to empty the layer set the annotation %s to that revision or to %q",
		o.Layer.Spec.Source.Path, what, o.Directory.Revision, v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowNext)
	return nil, nil, blocked
}

// neverHadAny tells whether neither the status of the layer nor its cluster knows of an
// object that it has or had. A status that was lost is no proof while objects are there.
func (o Observation) neverHadAny() bool {
	status := o.Layer.Status
	return status.Digest == "" && len(status.Resources) == 0 && len(o.Live) == 0 && len(o.Taken) == 0
}

// pruneGuard stops a plan that would remove most of a layer's releases. What
// is moved to another layer, or renamed, is not removed; what will be removed a
// moment later is, or most would go one after another. What a published version of a
// bundle has left out was tested by whoever published it, and does not count.
func pruneGuard(o Observation, plan dependents.Plan, allowed []string) (consume, opened []string, blocked *Blocked) {
	if slices.Contains(allowed, allowedPrune) {
		return o.leftOver(v1alpha1.AllowPruneAnnotation), allowed, nil
	}
	if o.Settings.MaxPrunePercent <= 0 || slices.Contains(allowed, allowedEmpty) {
		return nil, allowed, nil
	}
	published := o.publishedBefore()
	removed := 0
	for _, action := range plan.Of(dependents.VerbMark) {
		if action.KeptFor == "" && o.guards(action.ID) && !published[action.ID] {
			removed++
		}
	}
	for _, id := range plan.Undecided {
		if o.guards(id) && !published[id] {
			removed++
		}
	}
	total := 0
	for _, entry := range Inventory(o.Layer.Status.Resources, nil) {
		// What is listed and is not the layer's on the cluster makes no removal
		// smaller.
		if live := o.Live[entry.ID]; o.guards(entry.ID) && live != nil && live.GetLabels()[v1alpha1.LayerLabel] == o.Layer.Name {
			total++
		}
	}
	if !dependents.IsMass(removed, total, o.Settings.MaxPrunePercent) {
		return nil, allowed, nil
	}
	if consume, yes := o.allows(v1alpha1.AllowPruneAnnotation); yes {
		return consume, append(allowed, allowedPrune), nil
	}
	return nil, nil, &Blocked{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonMassPrune, Stalled: true,
		Message: fmt.Sprintf("revision %s removes %d of the layer's %d releases, more than %d%%: "+
			"if that is meant set the annotation %s to that revision or to %q",
			o.Directory.Revision, removed, total, o.Settings.MaxPrunePercent, v1alpha1.AllowPruneAnnotation, v1alpha1.AllowNext),
	}
}

// publishedBefore returns what the version lists that the one to deploy is entered from.
func (o Observation) publishedBefore() map[objects.ID]bool {
	published := map[objects.ID]bool{}
	if o.Before != nil {
		for _, manifest := range o.Before.Manifests {
			published[manifest.ID()] = true
		}
	}
	return published
}

// isLeftOut tells whether all that a layer of a bundle has was left out by whoever published
// that. One that only waits, or whose applications are all off, never had anything.
func (o Observation) isLeftOut() bool {
	if !sources.IsOfBundle(o.Layer) {
		return false
	}
	published := o.publishedBefore()
	for _, entry := range Inventory(o.Layer.Status.Resources, nil) {
		if o.guards(entry.ID) && !published[entry.ID] {
			return false
		}
	}
	return true
}

// guards tells whether an object is a release that the layer has on the cluster that
// it belongs on, and has not let go. What it leaves on another one because it has
// moved was not removed from its directory.
func (o Observation) guards(id objects.ID) bool {
	live := o.Live[id]
	return objects.IsReleaseKind(id.GroupKind()) && !o.wasOrphaned(id) && (live == nil || TargetOf(live) == o.cluster())
}

// stays tells whether an object of the inventory is not on its way out.
func stays(resource v1alpha1.Resource) bool {
	switch resource.Status {
	case objects.StatusOrphaned, objects.StatusSuperseded, objects.StatusDeleting, objects.StatusKept:
		return false
	}
	return true
}

// wasOrphaned tells whether the inventory already has an object as an orphan that
// is marked as one, or gone.
func (o Observation) wasOrphaned(id objects.ID) bool {
	if live := o.Live[id]; live != nil && live.GetLabels()[v1alpha1.OrphanedLabel] == "" {
		return false
	}
	return slices.ContainsFunc(o.Layer.Status.Resources, func(r v1alpha1.Resource) bool {
		return r.Status == objects.StatusOrphaned && r.Cluster == id.Cluster && r.Namespace == id.Namespace && r.Name == id.Name &&
			kinds.ParseResourceKind(r.Kind) == id.GroupKind()
	})
}

// alreadyAllowed returns the guards that were opened for this very content.
func (o Observation) alreadyAllowed() []string {
	attempt := o.Layer.Status.Attempt
	if attempt == nil || attempt.Digest != o.Directory.Digest {
		return nil
	}
	return slices.Clone(attempt.Allowed)
}

// leftOver returns an annotation that has opened a guard for the roll-out that
// is under way and was to be removed then: whoever recorded that has died.
func (o Observation) leftOver(annotation string) []string {
	consume, _ := o.allows(annotation)
	return consume
}

// allows tells whether an annotation speaks of this revision, and which
// annotations that uses up.
func (o Observation) allows(annotation string) (consume []string, yes bool) {
	value, given := o.Layer.Annotations[annotation]
	switch {
	case !given:
		return nil, false
	case value == v1alpha1.AllowNext:
		return []string{annotation}, true
	}
	return nil, o.Directory != nil && value == o.Directory.Revision
}
