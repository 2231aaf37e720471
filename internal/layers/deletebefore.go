// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// defaultDeleteBefore is how long the objects of deleteBefore may take to be
	// gone where the layer does not say.
	defaultDeleteBefore = 10 * time.Minute
	// soonest and latest bound how soon it is asked again whether they are: they
	// may be many and of any kind, so nothing watches them.
	soonest, latest = 2 * time.Second, 30 * time.Second
	// maxDoomed bounds how many of them a message names.
	maxDoomed = 5
)

// Doomed is an object that is to be gone before a layer is uninstalled.
type Doomed struct {
	ID              objects.ID
	UID             types.UID
	ResourceVersion string
	// Since is when its deletion began; zero where it has not.
	Since time.Time
	// Kept says what keeps it, as objects.KeptBy does.
	Kept string
	// Timeout of the entry of deleteBefore that found it; 0 for the default.
	Timeout time.Duration
}

// AsksForDoomed tells whether Decide needs to know which objects are to be gone
// before the layer is uninstalled: when nothing else stands in the way of its
// deletion, until that has begun.
func (o Observation) AsksForDoomed() bool {
	return len(o.Layer.Spec.DeleteBefore) > 0 && o.mayBegin() && len(o.inventory()) > 0 &&
		o.Layer.Annotations[v1alpha1.ForceDeleteAnnotation] != "true" &&
		o.BlockersError == nil && (len(o.Blockers) == 0 || !o.AsksForBlockers())
}

// beforeDeletion has the objects of deleteBefore deleted, and waits until they are
// gone; it returns false where there are none. The layer is kept as it is
// meanwhile: what looks after those objects must be there until the end.
func (d Decision) beforeDeletion(o Observation) (Decision, bool) {
	if !o.AsksForDoomed() || len(o.Doomed) == 0 && o.DoomedError == nil {
		return d, false
	}
	d.Reason = v1alpha1.ReasonDeletionBlocked
	d.Plan = dependents.Make(o.keepEverything())
	d.Plan.Conflicts = nil
	if o.DoomedError != nil {
		d.Retry = o.DoomedError
		d.Message = fmt.Sprintf("is not deleted while it is not known which objects of spec.deleteBefore are left: %v; the annotation %s=\"true\" lets them stay",
			o.DoomedError, v1alpha1.ForceDeleteAnnotation)
		return d, true
	}
	var late bool
	since := o.Now
	for _, doomed := range o.Doomed {
		if doomed.Since.IsZero() {
			d.Plan.Actions = append(d.Plan.Actions, dependents.Action{
				Verb: dependents.VerbDelete, ID: doomed.ID, UID: doomed.UID, ResourceVersion: doomed.ResourceVersion,
			})
			continue
		}
		if doomed.Since.Before(since) {
			since = doomed.Since
		}
		late = late || o.Now.Sub(doomed.Since) >= cmp.Or(doomed.Timeout, defaultDeleteBefore)
	}
	d.Message = fmt.Sprintf("waits until %s gone before anything is uninstalled", doomedMessage(o.Doomed))
	if late {
		d.State = v1alpha1.StateFailed
		d.Message = fmt.Sprintf("%s, which takes longer than spec.deleteBefore allows: see what keeps them, or let them stay with the annotation %s=\"true\"",
			d.Message, v1alpha1.ForceDeleteAnnotation)
	}
	d.Until = moments.Earlier(d.Until, o.Now.Add(min(max(o.Now.Sub(since)/4, soonest), latest)))
	return d, true
}

// doomedMessage names the first few objects, with what keeps them.
func doomedMessage(doomed []Doomed) string {
	sorted := slices.Clone(doomed)
	slices.SortFunc(sorted, func(a, b Doomed) int { return a.ID.Compare(b.ID) })
	var names []string
	for i, one := range sorted {
		if i == maxDoomed {
			names = append(names, fmt.Sprintf("%d more", len(sorted)-maxDoomed))
			break
		}
		name := one.ID.String()
		if one.Kept != "" && !one.Since.IsZero() {
			name += fmt.Sprintf(" (kept by %s)", address.Line(one.Kept, maxCarriedCause))
		}
		names = append(names, name)
	}
	verb := " are"
	if len(sorted) == 1 {
		verb = " is"
	}
	return strings.Join(names, ", ") + verb
}
