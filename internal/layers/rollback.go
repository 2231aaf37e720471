// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// maxRollbackMessage bounds what a status says of why a layer went back, in
// bytes.
const maxRollbackMessage = 1024

// RestoreID returns the entry of its history that a layer goes back to, or may
// have to at any moment; "" where there is none. Its content is needed as
// Observation.Restored.
func RestoreID(layer *v1alpha1.AddonsLayer) string {
	status := layer.Status
	switch asked := layer.Annotations[v1alpha1.RollbackToAnnotation]; {
	case isDeleting(layer):
		return ""
	case asked != "" && (status.Rollback == nil || status.Rollback.To != asked):
		return asked
	case status.Rollback != nil:
		return status.Rollback.To
	case !layer.Spec.Rollback || status.Attempt == nil || isContentOf(status.Attempt, status.Version, status.Digest):
		return ""
	}
	entry, _ := lastDeployed(status)
	return entry.ID
}

// lastDeployed returns the entry of what a layer has deployed.
func lastDeployed(status v1alpha1.AddonsLayerStatus) (v1alpha1.HistoryEntry, bool) {
	for _, entry := range status.History {
		if entry.Result == v1alpha1.ResultDeployed && entry.Version == status.Version && entry.Digest == status.Digest {
			return entry, true
		}
	}
	return v1alpha1.HistoryEntry{}, false
}

// goesBack returns the roll-back that the layer is in, or is asked for. It ends
// when the layer's specification or what its source holds for it is another.
func (o Observation) goesBack() (*v1alpha1.Rollback, *Blocked) {
	active := o.Layer.Status.Rollback
	if active != nil && (active.Generation != o.Layer.Generation || active.Digest != o.Directory.Digest) {
		active = nil
	}
	asked := o.Layer.Annotations[v1alpha1.RollbackToAnnotation]
	if asked == "" || active != nil && active.To == asked {
		return active, nil
	}
	entry, found := findEntry(o.Layer.Status.History, asked)
	switch {
	case !found:
		return nil, o.notPossible(asked, "there is no such deployment: status.history has "+o.deployments())
	case entry.Result != v1alpha1.ResultDeployed:
		return nil, o.notPossible(asked, fmt.Sprintf("that deployment of version %s is %s: name one that was Deployed, status.history has %s",
			entry.Version, entry.Result, o.deployments()))
	case entry.Version == o.Layer.Spec.Version && entry.Digest == o.Directory.Digest:
		return nil, nil // it is what the layer wants anyway
	case o.Restored == nil:
		blocked := o.notPossible(asked, "what it held cannot be read: "+o.RestoreError)
		blocked.Stalled, blocked.Retry = false, errors.New(o.RestoreError)
		return nil, blocked
	}
	if refused := o.refuses(entry.Version); refused != nil {
		return nil, refused
	}
	return o.rollback(entry, "it was asked for by the annotation "+v1alpha1.RollbackToAnnotation), nil
}

// deployments lists what a layer can go back to.
func (o Observation) deployments() string {
	var ids []string
	for _, entry := range o.Layer.Status.History {
		if entry.Result == v1alpha1.ResultDeployed {
			ids = append(ids, fmt.Sprintf("%s (version %s)", entry.ID, entry.Version))
		}
	}
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}

func (o Observation) notPossible(asked, why string) *Blocked {
	return &Blocked{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonRollbackNotPossible, Stalled: true,
		Message: fmt.Sprintf("annotation %s: cannot go back to deployment %q: %s", v1alpha1.RollbackToAnnotation, asked, why),
	}
}

// notGoingBack reports a request that is not met. A layer that has deployed what
// it asks for stays so, to those who depend on it, too.
func (o Observation) notGoingBack(blocked *Blocked) Decision {
	d := decideBlocked(o, blocked)
	status := o.Layer.Status
	is := deployed(o.Layer) && status.ObservedGeneration == o.Layer.Generation && status.Version == o.Layer.Spec.Version && status.Digest == o.Directory.Digest
	switch {
	case !is:
	case d.State == v1alpha1.StateFailed:
		d.State, d.Stalled = v1alpha1.StateDeployed, true
		d.Target = o.target()
		d.Attempt = sameAttempt(o, d.Target)
	default:
		d.KeepsDeployed = true
	}
	return d
}

// rollback goes back from what the layer wants now to an entry.
func (o Observation) rollback(to v1alpha1.HistoryEntry, why string) *v1alpha1.Rollback {
	return &v1alpha1.Rollback{
		To: to.ID, Version: o.Layer.Spec.Version, Revision: o.Directory.Revision, Digest: o.Directory.Digest,
		Generation: o.Layer.Generation, Message: address.Line(why, maxRollbackMessage),
	}
}

// afterRefusal goes back from a content of which the API server has refused an
// object: to try again would not help, and nothing else is wrong.
func (d Decision) afterRefusal(o Observation) Decision {
	attempt := o.Layer.Status.Attempt
	if !d.Plan.Writes() || attempt == nil || !attempt.Refused || !isStalled(o.Layer) {
		return d
	}
	failed := d
	failed.State, failed.Reason, failed.Message = v1alpha1.StateFailed, v1alpha1.ReasonInvalidManifest, readyMessage(o.Layer)
	if failed = failed.afterFailure(o); failed.Rollback != nil {
		return failed
	}
	return d
}

// afterFailure turns a roll-out that has failed into a roll-back, where the
// layer is to go back: when a release has given up, when the API server refuses
// an object, and at the deadline when nothing is under way any more.
func (d Decision) afterFailure(o Observation) Decision {
	if !o.Layer.Spec.Rollback || d.State != v1alpha1.StateFailed || !isContentOf(o.Layer.Status.Attempt, d.Target.Version, d.Target.Digest) {
		return d
	}
	entry, found := lastDeployed(o.Layer.Status)
	if !found || entry.Version == d.Target.Version && entry.Digest == d.Target.Digest {
		return d
	}
	if d.Reason != v1alpha1.ReasonReleaseFailed && isUnderWay(o, d.Plan) {
		d.Message += fmt.Sprintf("; goes back to version %s when nothing of the roll-out is under way any more", entry.Version)
		return d
	}
	if o.Restored == nil || o.Restored.Digest != entry.Digest {
		d.Message += fmt.Sprintf("; cannot go back to version %s: what it held cannot be read: %s", entry.Version, o.RestoreError)
		return d
	}
	// Dependants have what they have on top of this very version: to go back to
	// it takes nothing from them, whatever they ask for now.
	return decideRollback(o, o.rollback(entry, d.Message))
}

// isUnderWay tells whether a roll-out still gets on: something is written that
// the API server does not refuse each time, or a release is being installed.
func isUnderWay(o Observation, plan dependents.Plan) bool {
	if plan.Writes() && !wasRefused(o.Layer) {
		return true
	}
	return slices.ContainsFunc(plan.Standings, func(s objects.Standing) bool {
		live := o.Live[s.ID]
		return !s.Unwanted && s.Health > objects.Ignored && live != nil && objects.IsReleaseKind(s.ID.GroupKind()) && objects.IsActing(live)
	})
}

// wasRefused tells whether the last look at a layer ended with writes that
// failed.
func wasRefused(layer *v1alpha1.AddonsLayer) bool {
	ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition)
	return ready != nil && slices.Contains([]string{
		v1alpha1.ReasonApplyFailed, v1alpha1.ReasonInvalidManifest, v1alpha1.ReasonConflictsWithLiveState,
	}, ready.Reason)
}

// decideRollback takes a layer back to an earlier deployment, as a whole: what
// was changed becomes what it was, what was added goes the way of orphans, and
// what another layer has got meanwhile stays there.
func decideRollback(o Observation, back *v1alpha1.Rollback) Decision {
	entry, found := findEntry(o.Layer.Status.History, back.To)
	if !found || o.Restored == nil {
		why := cmp.Or(o.RestoreError, "it is not in status.history")
		if o.wentBack(back) {
			return o.staysBack(back, "what it has cannot be read, and is not repaired: "+why)
		}
		return decideBlocked(o, &Blocked{
			State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonRollbackFailed, Retry: errors.New(why),
			Message: fmt.Sprintf("cannot go back to deployment %s: what it held cannot be read: %s", back.To, why),
		})
	}
	read := o
	read.Directory = o.Restored
	if blocked := firstClosed(ofContent, read); blocked != nil {
		return decideBlocked(o, blocked)
	}
	restored := *o.Restored
	restored.Revision = entry.Revision
	wanted, err := o.content(&restored, entry.Version)
	if err != nil {
		return decideBlocked(o, contentProblem(err))
	}
	in := o.input(o.Restored, o.notHandedOver(wanted), true)
	for i := range in.Inventory {
		if kinds.HoldsOthers(in.Inventory[i].ID.GroupKind()) {
			in.Inventory[i].Deletion, in.Inventory[i].Spared = dependents.DeletionOrphan, ""
		}
	}
	target := Target{Version: entry.Version, Revision: entry.Revision, Digest: entry.Digest, Artifact: entry.Artifact}
	plan := dependents.Make(in)
	consume, _, blocked := reinstallGuard(o, entry.Revision, plan, in.Wanted, nil)
	if blocked != nil {
		return decideBlocked(o, blocked)
	}
	d := decidePlan(o, plan, in.Wanted, nil, target)
	d.ConsumeFirst = consume
	d.Rollback = back
	if len(d.Plan.Doubted) > 0 && o.Layer.Annotations[v1alpha1.AllowPruneAnnotation] == v1alpha1.AllowNext {
		d.ConsumeFirst = append(d.ConsumeFirst, v1alpha1.AllowPruneAnnotation)
	}
	if asked := o.Layer.Annotations[v1alpha1.RollbackToAnnotation]; asked != "" {
		d.ClearAfter = []string{v1alpha1.RollbackToAnnotation}
	}
	return d.goingBack(back)
}

// wentBack tells whether the layer is back at what it has deployed, whole, from
// what a roll-back says.
func (o Observation) wentBack(back *v1alpha1.Rollback) bool {
	status := o.Layer.Status
	return back != nil && back.Generation == o.Layer.Generation && deployed(o.Layer) && isContentOf(status.Attempt, status.Version, status.Digest)
}

// staysBack leaves a layer that went back as it is, while something keeps it
// from being looked after.
func (o Observation) staysBack(back *v1alpha1.Rollback, why string) Decision {
	status := o.Layer.Status
	d := decideBlocked(o, &Blocked{State: v1alpha1.StateDeployed})
	d.Target = Target{Version: status.Version, Revision: status.Revision, Digest: status.Digest, Artifact: status.Attempt.Artifact}
	d = d.goingBack(back)
	d.Message += "; " + why
	return d
}

// goingBack says of a roll-out that it is a roll-back, and why.
func (d Decision) goingBack(back *v1alpha1.Rollback) Decision {
	from := fmt.Sprintf("from version %s of revision %s to version %s of revision %s (deployment %s)",
		back.Version, back.Revision, d.Target.Version, d.Target.Revision, back.To)
	switch {
	case d.State == v1alpha1.StateDeployed:
		d.Reason, d.Stalled = v1alpha1.ReasonRolledBack, true
		d.Message = fmt.Sprintf("went back %s, because %s", from, back.Message)
	case d.State == v1alpha1.StateFailed && !d.Stalled:
		d.Reason = v1alpha1.ReasonRollbackFailed
		d.Message = fmt.Sprintf("cannot go back %s: %s", from, d.Message)
	case d.State == v1alpha1.StateApplying:
		d.Reason = v1alpha1.ReasonRollingBack
		d.Message = fmt.Sprintf("goes back %s: %s", from, d.Message)
	}
	return d
}

// notHandedOver leaves out what another layer lists or has, and what stands for
// a Helm release that another layer lists.
func (o Observation) notHandedOver(wanted []dependents.Dependent) []dependents.Dependent {
	return slices.DeleteFunc(wanted, func(d dependents.Dependent) bool {
		if len(o.Others.Listed[d.ID]) > 0 || d.Exclusive != "" && len(o.Others.Exclusive[d.Exclusive]) > 0 {
			return true
		}
		live := o.Live[d.ID]
		if live == nil {
			return false
		}
		owner := live.GetLabels()[v1alpha1.LayerLabel]
		return owner != "" && owner != o.Layer.Name && o.Others.Existing[owner]
	})
}
