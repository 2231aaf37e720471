// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
)

// Decide says what one layer needs. It is deterministic.
func Decide(o Observation) Decision {
	decision := decideAny(o).withHealth(o).withRequests(o)
	_, back := o.isAway()
	decision.Until = moments.Earlier(decision.Until, moments.Earlier(back, o.AskAgain))
	return decision
}

func decideAny(o Observation) Decision {
	if o.isForsaken() {
		return decideForsaken(o)
	}
	if isDeleting(o.Layer) {
		return decideDeletion(o)
	}
	decision := decideLayer(o)
	if message := o.sourceMessage(); message != "" {
		decision.SourceMessage = message
	}
	return decision
}

func decideLayer(o Observation) Decision {
	if hold := HoldOf(o.Layer, o.Now); hold.Active {
		return decideHold(o, hold)
	}
	if blocked := firstClosed(beforePrune, o); blocked != nil {
		return decideBlocked(o, blocked)
	}
	if back, blocked := o.goesBack(); blocked != nil {
		return o.notGoingBack(blocked)
	} else if back != nil {
		return decideRollback(o, back)
	}
	if blocked := firstClosed(beforeMove, o); blocked != nil {
		return decideBlocked(o, blocked)
	}
	wanted, err := o.content(o.Directory, o.Layer.Spec.Version)
	if err != nil {
		return decideBlocked(o, contentProblem(err))
	}
	if problem := CheckInventory(o.Layer, wanted, o.inventory()); problem != nil {
		return decideBlocked(o, contentBlocked(problem))
	}
	consume, allowed, blocked := emptyGuard(o)
	if blocked != nil {
		return decideBlocked(o, blocked)
	}
	closed := firstClosed(beforeApply, o)
	in := o.input(o.Directory, wanted, closed == nil)
	plan := dependents.Make(in)
	if used, opened, blocked := reinstallGuard(o, o.Directory.Revision, plan, in.Wanted, allowed); blocked != nil {
		return decideBlocked(o, blocked)
	} else if opened != nil {
		consume, allowed = append(consume, used...), opened
	}
	if used, opened, blocked := pruneGuard(o, plan, allowed); blocked != nil {
		return decideBlocked(o, blocked)
	} else if opened != nil {
		consume, allowed = append(consume, used...), opened
	}
	if used, opened := doubtGuard(o, plan, allowed); opened != nil {
		consume, allowed = append(consume, used...), opened
	}
	slices.Sort(consume)
	consume = slices.Compact(consume)
	decision := decidePlan(o, plan, wanted, closed, o.target()).afterFailure(o).afterRefusal(o)
	if decision.Rollback != nil {
		return decision
	}
	if o.Layer.Annotations[v1alpha1.RollbackToAnnotation] != "" {
		decision.ClearAfter = []string{v1alpha1.RollbackToAnnotation}
	}
	return decision.allowing(o, consume, allowed)
}

// allowing records the guards that an annotation has opened in the attempt, and
// the annotations that this uses up. Nothing is recorded where nothing changes
// hands, and no longer than until the layer is deployed and they are used up.
func (d Decision) allowing(o Observation, consume, allowed []string) Decision {
	if len(d.Plan.Conflicts) > 0 {
		return d
	}
	d.ConsumeFirst = consume
	if d.State == v1alpha1.StateDeployed && len(consume) == 0 || len(allowed) == 0 {
		return d
	}
	if attempt := o.Layer.Status.Attempt; d.Attempt == attempt {
		d.Attempt = sameAttempt(o, d.Target)
	}
	d.Attempt.Allowed = allowed
	return d
}

// input returns what the plan is made from when the directory can be trusted:
// open layers apply it; waiting ones change hands and correct drift of what
// they have.
func (o Observation) input(directory *directories.Directory, wanted []dependents.Dependent, open bool) dependents.Input {
	in := o.baseInput()
	in.NotServed = o.notServed(directory)
	in.MayPrune, in.MayWrite = true, true
	in.EndDoubt = o.endsDoubt()
	in.Wanted = wanted
	if !open {
		in.RepairOnly = true
		in.Wanted = o.asDeployed(wanted)
	}
	return in
}

func (o Observation) baseInput() dependents.Input {
	idle, apart := o.rivals()
	return dependents.Input{
		Owner: o.Layer.Name, Keys: Keys, Now: o.Now, Grace: o.grace(), Waited: o.Waited, Inventory: o.inventory(), Others: o.Others,
		Found: dependents.Found{
			Live: o.Live, Stale: o.Stale, NotServed: o.notServed(nil), Twins: o.Twins, Exclusive: o.Exclusive, Idle: idle, Apart: apart, LeftAlone: o.leftAlone(),
			Disputes: o.Disputes,
		},
		Limits: dependents.Limits{
			Forsaken: o.Forsaken, Reserved: o.reserved(), Abandon: o.Layer.Annotations[v1alpha1.AbandonAnnotation] == "true",
		},
	}
}

// leftAlone says of live objects by which annotation somebody has them left as they are.
func (o Observation) leftAlone() map[objects.ID]string {
	found := map[objects.ID]string{}
	for id, live := range o.Live {
		if live == nil {
			continue
		}
		if why := kinds.LeftAlone(live); why != "" {
			found[id] = why
		}
	}
	return found
}

// deployedContent returns what is deployed, as far as it is known.
func (o Observation) deployedContent() []dependents.Dependent {
	if o.Deployed == nil {
		return nil
	}
	held := *o.Deployed
	held.Manifests = slices.DeleteFunc(slices.Clone(held.Manifests), func(m directories.Manifest) bool { return !o.mayHold(m) })
	content, err := o.content(&held, o.Layer.Status.Version)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(content, func(d dependents.Dependent) bool {
		object, written := d.Object.Get()
		return written && o.Unserved[objects.ServedVersion{Cluster: d.ID.Cluster, GroupVersionKind: object.GroupVersionKind()}]
	})
}

// asDeployed replaces what is wanted by what is deployed of it.
func (o Observation) asDeployed(wanted []dependents.Dependent) []dependents.Dependent {
	deployed := map[objects.ID]dependents.Dependent{}
	for _, d := range o.deployedContent() {
		deployed[d.ID] = d
	}
	result := slices.Clone(wanted)
	for i, d := range result {
		if was, found := deployed[d.ID]; found {
			result[i] = was
		}
	}
	return result
}

// keepEverything returns the input of a layer whose directory does not count
// for now: nothing leaves, nothing arrives, and drift of what is deployed is
// corrected, unless the layer is held.
func (o Observation) keepEverything() dependents.Input {
	in := o.baseInput()
	in.MayWrite, in.RepairOnly = true, true
	hold := HoldOf(o.Layer, o.Now)
	in.Held, in.SuspendHeld = hold.Active, hold.Releases
	if away, _ := o.isAway(); away {
		in.Away = o.cluster()
	}
	// As long as it is not known which cluster answers, nothing goes on that was
	// suspended because that was another one.
	in.Held = in.Held || o.Remote != nil && (!o.Remote.Connected || o.Remote.isForeign())
	in.Keep = map[objects.ID]bool{}
	for _, entry := range in.Inventory {
		in.Keep[entry.ID] = entry.Status != objects.StatusOrphaned && entry.Status != objects.StatusSuperseded
	}
	for _, d := range o.deployedContent() {
		if in.Keep[d.ID] && !o.leavesGone(d.ID) {
			in.Wanted = append(in.Wanted, d)
		}
	}
	in.Wanted = o.withoutReinstalls(in.Wanted)
	return in
}

// leavesGone tells whether an object that is not there is not made again: a RemoteCluster while
// the layer is being deleted. It went on purpose, and another one of its name would lead to the
// same cluster without what was said of the first, such as that it is given up.
func (o Observation) leavesGone(id objects.ID) bool {
	return isDeleting(o.Layer) && o.Live[id] == nil && id.Group == v1alpha1.GroupVersion.Group && id.Kind == v1alpha1.RemoteClusterKind
}

func decideHold(o Observation, hold Hold) Decision {
	message := "held"
	if hold.Reason != "" {
		message += ": " + hold.Reason
	}
	if !hold.Until.IsZero() {
		message += fmt.Sprintf(" (until %s)", hold.Until.UTC().Format(time.RFC3339))
	}
	cause := layerCause(o.Layer.Name, v1alpha1.ReasonHold, message)
	cause.Until = secondsOf(hold.Until)
	return Decision{
		State: v1alpha1.StateHold, Reason: v1alpha1.ReasonHold, Message: message, Hold: hold, Causes: []v1alpha1.Cause{cause},
		Plan: dependents.Make(o.keepEverything()), KeepsDeployed: true, Until: hold.Until, Attempt: o.Layer.Status.Attempt,
		Rollback: o.Layer.Status.Rollback,
	}
}

// decideBlocked reports a closed gate. What is deployed stays and is repaired,
// except while the source has nothing to go by, or may not be used.
func decideBlocked(o Observation, blocked *Blocked) Decision {
	if decision, decided := decideUnfetched(o, blocked); decided {
		return decision
	}
	in := o.keepEverything()
	if blocked.State == v1alpha1.StatePending || blocked.State == v1alpha1.StateUnknown || blocked.Reason == v1alpha1.ReasonAccessDenied {
		in.MayWrite = false
	}
	decision := Decision{
		State: blocked.State, Reason: blocked.Reason, Message: blocked.Message,
		Stalled: blocked.Stalled, Retry: blocked.Retry, Causes: blocked.Causes,
		Attempt: o.Layer.Status.Attempt, Rollback: o.Layer.Status.Rollback,
		Plan: planOfBlocked(in), Until: blocked.Again,
	}
	switch blocked.State {
	case v1alpha1.StateUnknown:
		decision.KeepsDeployed = true
	case v1alpha1.StateK8sVersion:
		status := o.Layer.Status
		decision.KeepsDeployed = status.ObservedGeneration == o.Layer.Generation && o.Directory != nil && o.Directory.Digest == status.Digest
	}
	return decision
}

// decideUnfetched decides for a source that cannot be fetched from right now. That
// undeploys nothing that came from the very revision that the source still shows, or
// that was gone back from. It is false where something else closes the gate, and where
// the source shows another revision.
func decideUnfetched(o Observation, blocked *Blocked) (Decision, bool) {
	if blocked.Reason != v1alpha1.ReasonArtifactFailed {
		return Decision{}, false
	}
	status := o.Layer.Status
	if back := status.Rollback; o.wentBack(back) && o.Source.Revision == back.Revision {
		decision := o.staysBack(back, "whether its source holds something else cannot be read")
		decision.SourceMessage = blocked.Message
		return decision, true
	}
	if status.ObservedGeneration != o.Layer.Generation || !deployed(o.Layer) || o.Source.Revision != status.Revision {
		return Decision{}, false
	}
	decision := Decision{
		State: v1alpha1.StateDeployed, Reason: v1alpha1.ReasonDeployed, SourceMessage: blocked.Message,
		Target:  Target{Version: status.Version, Revision: status.Revision, Digest: status.Digest},
		Stalled: blocked.Stalled, Retry: blocked.Retry, Causes: blocked.Causes,
		Attempt: status.Attempt, Rollback: status.Rollback,
		Plan: planOfBlocked(o.keepEverything()),
	}
	decision.Message = deployedMessage(decision.Plan.Standings, decision.Target)
	return decision, true
}

// planOfBlocked is the plan of a layer that nothing new is made for. What others have of
// what it lists is no conflict until it is to be made.
func planOfBlocked(in dependents.Input) dependents.Plan {
	plan := dependents.Make(in)
	plan.Conflicts = nil
	return plan
}

func contentProblem(err error) *Blocked {
	var content *directories.ContentError
	if errors.As(err, &content) {
		return contentBlocked(content)
	}
	return &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidManifest, Message: err.Error(), Stalled: true}
}

// decidePlan says where a layer stands whose directory counts, from the plan
// for its objects.
func decidePlan(o Observation, plan dependents.Plan, wanted []dependents.Dependent, closed *Blocked, target Target) Decision {
	decision := Decision{Plan: plan, Until: plan.Until, Attempt: o.Layer.Status.Attempt, Target: target}
	if len(plan.Conflicts) > 0 {
		decision.State, decision.Reason, decision.Stalled = v1alpha1.StateFailed, v1alpha1.ReasonOwnershipConflict, true
		decision.Message, decision.Causes = o.conflictMessage(plan.Conflicts), o.conflictCauses(plan.Conflicts)
		return decision
	}
	if closed != nil {
		decision.State, decision.Reason, decision.Message = closed.State, closed.Reason, closed.Message
		decision.Stalled, decision.Retry, decision.Causes = closed.Stalled, closed.Retry, closed.Causes
		return decision
	}
	var arriving, leaving []objects.Standing
	for _, standing := range plan.Standings {
		if standing.Unwanted {
			leaving = append(leaving, standing)
		} else {
			arriving = append(arriving, standing)
		}
	}
	if worst, found := objects.Worst(arriving); found && worst.Health > objects.Ignored {
		return decision.progressing(o, wanted, worst)
	}
	if standing := o.awaiting(); standing != nil {
		decision.Plan.Standings = append(slices.Clip(plan.Standings), *standing)
		return decision.progressing(o, wanted, *standing)
	}
	if worst, found := objects.Worst(leaving); found && worst.Health > objects.Ignored {
		decision.Attempt = nextAttempt(o, decision.Target)
		decision.State, decision.Reason, decision.Waits = v1alpha1.StatePruning, cmp.Or(worst.Reason, v1alpha1.ReasonPruning), true
		decision.Message = fmt.Sprintf("%s %s", worst.ID, worst.Message)
		return decision
	}
	decision.State, decision.Reason = v1alpha1.StateDeployed, v1alpha1.ReasonDeployed
	decision.Message = deployedMessage(plan.Standings, decision.Target)
	decision.Attempt = sameAttempt(o, decision.Target)
	return decision
}

// target returns what the layer's specification and source ask for.
func (o Observation) target() Target {
	target := Target{Version: o.Layer.Spec.Version, Revision: o.Directory.Revision, Digest: o.Directory.Digest}
	if o.Source != nil && o.Source.URL != "" {
		target.Artifact = &v1alpha1.ArtifactReference{URL: kept(o.Source.URL), Digest: o.Source.Digest, Path: o.Layer.Spec.Source.Path}
	}
	return target
}

// kept returns an address as a status may keep it: not at all where it holds more than
// may be shown, such as the signature that lets anybody read what lies there.
func kept(url string) string {
	if !address.IsPlain(url) {
		return ""
	}
	return url
}

// sameAttempt is a roll-out that nothing is written for, because it is done or
// waits; it stays as it was however often that is found to be so.
func sameAttempt(o Observation, target Target) *v1alpha1.Attempt {
	attempt := nextAttempt(o, target)
	if last := o.Layer.Status.Attempt; last != nil && last.Version == target.Version && last.Digest == target.Digest {
		attempt.StartTime = last.StartTime
	}
	attempt.Allowed = nil
	return attempt
}

// progressing says how a roll-out fares whose worst object is not ready.
func (d Decision) progressing(o Observation, wanted []dependents.Dependent, worst objects.Standing) Decision {
	d.Attempt, d.Waits = nextAttempt(o, d.Target), true
	timeout := timeoutOf(o.Layer, o.interval(), wanted)
	deadline := o.deadline(d.Attempt, timeout)
	d.Message = fmt.Sprintf("%s %s", worst.ID, cmp.Or(worst.Message, "is "+worst.Status))
	if worst.Origin != "" && worst.Reason != "" {
		d.Message += fmt.Sprintf(" (%s)", worst.Origin)
	}
	switch {
	case worst.Health == objects.Failed:
		d.State, d.Reason = v1alpha1.StateFailed, v1alpha1.ReasonReleaseFailed
	case !o.Now.Before(deadline):
		d.State, d.Reason = v1alpha1.StateFailed, cmp.Or(worst.Reason, v1alpha1.ReasonTimeout)
		d.Message = fmt.Sprintf("not deployed within %s: %s", timeout, d.Message)
	default:
		d.State, d.Reason, d.Deadline = v1alpha1.StateApplying, v1alpha1.ReasonApplying, deadline
		d.Until = moments.Earlier(d.Until, deadline)
	}
	return d
}

// nextAttempt goes on with the roll-out that is under way, or begins one: when
// the content is another, when the layer was deployed or waited before, and
// when an author has mended it.
func nextAttempt(o Observation, target Target) *v1alpha1.Attempt {
	status := o.Layer.Status
	if last := status.Attempt; last != nil && last.Version == target.Version && last.Digest == target.Digest {
		goesOn := status.State == v1alpha1.StateApplying || status.State == v1alpha1.StatePruning ||
			status.State == v1alpha1.StateFailed && !isStalled(o.Layer)
		if goesOn {
			attempt := last.DeepCopy()
			attempt.Revision, attempt.Artifact = target.Revision, target.Artifact
			if attempt.StartTime.After(o.Now) { // the clock was set back
				attempt.StartTime = metav1.NewTime(o.Now.Truncate(time.Second))
			}
			return attempt
		}
	}
	return &v1alpha1.Attempt{
		Version: target.Version, Revision: target.Revision, Digest: target.Digest, Artifact: target.Artifact,
		StartTime: metav1.NewTime(o.Now.Truncate(time.Second)),
	}
}

func isStalled(layer *v1alpha1.AddonsLayer) bool {
	for _, condition := range layer.Status.Conditions {
		if condition.Type == v1alpha1.StalledCondition {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return false
}

func deployedMessage(standings []objects.Standing, target Target) string {
	releases, suspended, paused, kept := 0, 0, 0, 0
	for _, standing := range standings {
		isRelease, isSuspended := objects.IsReleaseKind(standing.ID.GroupKind()), standing.Status == objects.StatusSuspended
		switch {
		case standing.Unwanted && standing.Status == objects.StatusOrphaned:
			kept++
		case standing.Unwanted:
		case isRelease && isSuspended:
			suspended++
			releases++
		case isRelease:
			releases++
		case isSuspended:
			paused++
		}
	}
	noun := "releases"
	if releases == 1 {
		noun = "release"
	}
	message := fmt.Sprintf("version %s of revision %s is deployed: %d %s", target.Version, target.Revision, releases, noun)
	if suspended > 0 {
		message += fmt.Sprintf(", %d of them suspended", suspended)
	}
	if paused == 1 {
		message += ", 1 other object suspended"
	} else if paused > 1 {
		message += fmt.Sprintf(", %d other objects suspended", paused)
	}
	if kept > 0 {
		message += fmt.Sprintf(", %d objects kept for other layers", kept)
	}
	return message
}

// conflictMessage names both layers and both files of every conflict, up to a
// few, and both names of a cluster where they reach it by different ones.
func (o Observation) conflictMessage(conflicts []dependents.Conflict) string {
	const most = 5
	layer := o.Layer.Name
	var messages []string
	for i, c := range conflicts {
		if i == most {
			messages = append(messages, fmt.Sprintf("and %d more", len(conflicts)-most))
			break
		}
		switch {
		case c.With != c.ID:
			messages = append(messages, fmt.Sprintf("%s of layer %s (%s) stands for the same Helm release as %s, which layer %s %s",
				c.ID, layer, c.Origin, c.With, c.Owner, o.ownership("lists", c)))
		default:
			messages = append(messages, fmt.Sprintf("%s is listed by layer %s (%s) and belongs to layer %s",
				c.ID, layer, c.Origin, strings.TrimSpace(c.Owner+" "+o.ownership("", c))))
		}
	}
	return strings.Join(messages, "; ")
}

// ownership says where the owner of a conflict lists or has what it is about.
func (o Observation) ownership(verb string, c dependents.Conflict) string {
	var words []string
	if c.OwnerOrigin != "" {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s (%s)", verb, c.OwnerOrigin)))
	} else if verb != "" {
		words = append(words, "has")
	}
	if there := o.Others.Elsewhere[c.Owner]; there != "" {
		words = append(words, fmt.Sprintf("on %s, which is the same cluster as %s: let one of them have it, or both layers name one RemoteCluster",
			there, strings.TrimPrefix(nameOfCluster(o.cluster()), "RemoteCluster ")))
	}
	return strings.Join(words, " ")
}
