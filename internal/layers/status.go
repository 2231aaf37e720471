// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// reconcileRequest is Flux's annotation that asks for a look at once.
const reconcileRequest = "reconcile.fluxcd.io/requestedAt"

// maxMessage bounds a layer's messages, in bytes.
const maxMessage = 1024

// Report returns the status of a layer after a decision and what became of its
// actions. Before they are carried out, results is nil. A decision with failed
// actions comes back as failed.
func Report(o Observation, d Decision, results []dependents.Result) (v1alpha1.AddonsLayerStatus, Decision) {
	d = d.withFailures(results, o.actor)
	last := o.Layer.Status
	status := v1alpha1.AddonsLayerStatus{
		MAC:   last.MAC,
		State: d.State, Version: last.Version, Revision: last.Revision, Digest: last.Digest, Cluster: last.Cluster,
		ObservedGeneration:     o.Layer.Generation,
		LastHandledReconcileAt: cmp.Or(o.Layer.Annotations[reconcileRequest], last.LastHandledReconcileAt),
		Attempt:                d.Attempt,
		Rollback:               d.Rollback,
		History:                historyAfter(o, d),
		Resources:              shortFiles(o.Layer, Resources(dependents.Record(d.Plan.Inventory, results))),
	}
	status.StateSince = last.StateSince
	if last.State != d.State {
		status.StateSince = metav1.NewTime(o.Now).Rfc3339Copy()
	}
	if d.Stalled && status.Attempt != nil && last.Attempt != nil && status.Attempt.Digest == last.Attempt.Digest &&
		status.Attempt.Version == last.Attempt.Version {
		// What is refused each time it is tried is one attempt.
		status.Attempt = status.Attempt.DeepCopy()
		status.Attempt.StartTime = last.Attempt.StartTime
	}
	if d.Stalled && len(results) > 0 && isContentOf(status.Attempt, d.Target.Version, d.Target.Digest) {
		status.Attempt = status.Attempt.DeepCopy()
		status.Attempt.Refused = true
	}
	if d.State == v1alpha1.StateDeployed {
		status.Version, status.Revision, status.Digest = d.Target.Version, d.Target.Revision, d.Target.Digest
		status.Cluster = o.cluster()
	}
	if o.isForsaken() && last.Cluster == o.cluster() {
		status.Version, status.Revision, status.Digest, status.Cluster = "", "", "", ""
	}
	status.Conditions = allConditions(o, d)
	status.BlockedBy = causesOf(o, d, results)
	if d.Stalled && len(results) > 0 && o.Layer.Spec.Rollback && d.Rollback == nil && !isStalled(o.Layer) {
		d.Until = o.Now // what has been refused is gone back from at the next look
	}
	return status, d
}

// withFailures turns a decision into the report of actions that failed. What
// was merely outdated is decided anew and not reported. actor names the account
// that acts on an object.
func (d Decision) withFailures(results []dependents.Result, actor func(objects.ID) types.NamespacedName) Decision {
	var failed []dependents.Result
	for _, result := range results {
		if result.Err != nil && !apierrors.IsConflict(result.Err) {
			failed = append(failed, result)
		}
	}
	if len(failed) == 0 {
		return d
	}
	first := failed[0]
	d.Retry = first.Err
	onlyInvalid := !slices.ContainsFunc(failed, func(r dependents.Result) bool {
		return r.Action.Verb != dependents.VerbWrite || !dependents.IsMistake(r.Err)
	})
	d.KeepsDeployed, d.Stalled = false, false // whatever it was: this has to be tried again
	why := accounts.FailureOf(actor(first.Action.ID), first.Err)
	d.State, d.Reason = v1alpha1.StateFailed, failureReason(first, why)
	verb := "cannot apply"
	switch d.Reason {
	case v1alpha1.ReasonPruneFailed:
		verb = "cannot remove"
	case v1alpha1.ReasonConflictsWithLiveState:
		why.Message += "; the manifest is not wrong: " + wayOut(first.Action.ID)
	case v1alpha1.ReasonInvalidManifest:
		// Other failures beside it may pass, so they are tried again.
		d.Stalled = onlyInvalid
	}
	origin := ""
	if first.Action.Wanted != nil && first.Action.Wanted.Origin != "" {
		origin = fmt.Sprintf(" (%s)", first.Action.Wanted.Origin)
	}
	d.Message = fmt.Sprintf("%s %s%s%s: %s", verb, first.Action.ID, origin, why.As, why.Message)
	if more := len(failed) - 1; more > 0 {
		d.Message += fmt.Sprintf("; %d more objects failed", more)
	}
	return d
}

// wayOut says how a live object that is in the way of its manifest gets out of it.
func wayOut(id objects.ID) string {
	if !kinds.MayRecreate(id.GroupKind()) {
		return "take off by kubectl edit what the live object has and git does not"
	}
	return "take off by kubectl edit what the live object has and git does not, or have the object made again by its annotation " +
		v1alpha1.FluxForceAnnotation + ": enabled in git"
}

// allConditions computes every condition of a layer in one place; see the table
// in docs/layers-reference.md.
func allConditions(o Observation, d Decision) []metav1.Condition {
	set := conditions.New(o.Layer.Status.Conditions, o.Layer.Generation, o.Now)
	message := truncate(d.Message)
	switch {
	case d.Stalled:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, d.Reason, message)
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, d.Reason, message)
	case d.isUnwell():
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, d.Reason, message)
	case d.State == v1alpha1.StateDeployed:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, d.Reason, message)
	case d.State == v1alpha1.StateHold:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionUnknown, d.Reason, message)
	case d.State == v1alpha1.StateFailed:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, d.Reason, message)
		set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressingWithRetry, message)
	default:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionUnknown, d.Reason, message)
		set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, d.Reason, message)
	}
	if d.Hold.Active {
		set.Put(v1alpha1.HeldCondition, metav1.ConditionTrue, v1alpha1.ReasonHold, truncate(cmp.Or(d.Hold.Reason, message)))
	}
	if d.Deleting || hasBegun(o.Layer) {
		set.Put(v1alpha1.DeletingCondition, metav1.ConditionTrue, v1alpha1.ReasonDeleting, "the objects of the layer are being removed")
	}
	if d.isUnwell() {
		putDeployed(set, o, d, truncate(d.Health.Deployed))
	} else {
		putDeployed(set, o, d, message)
	}
	if d.Health != nil {
		set.Put(v1alpha1.HealthyCondition, d.Health.Status, d.Health.Reason, truncate(d.Health.Message))
	}
	if contested := contestedMessage(d.Plan.Contested); contested != "" {
		set.Put(v1alpha1.ContestedCondition, metav1.ConditionTrue, v1alpha1.ReasonForeignRelease, truncate(contested))
	} else if disputed := disputedMessage(d.Plan.Disputes); disputed != "" {
		set.Put(v1alpha1.ContestedCondition, metav1.ConditionTrue, v1alpha1.ReasonContestedFields, truncate(disputed))
	}
	if unset := unsetMessage(o.Directory); unset != "" {
		set.Put(v1alpha1.VariablesUnsetCondition, metav1.ConditionTrue, v1alpha1.ReasonVariablesUnset, truncate(unset))
	}
	if named := namedMessage(o.Directory); named != "" {
		set.Put(v1alpha1.SecretsInNamesCondition, metav1.ConditionTrue, v1alpha1.ReasonSecretsInNames, truncate(named))
	}
	if unshared := unsharedMessage(o.Directory); unshared != "" {
		set.Put(v1alpha1.UnsharedSecretsCondition, metav1.ConditionTrue, v1alpha1.ReasonGivenWithoutLeave, truncate(unshared))
	}
	if d.SourceMessage != "" {
		set.Put(v1alpha1.SourceReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSourceNotReady,
			truncate("the last artifact is used: "+d.SourceMessage))
	}
	return set.List
}

// mostDisputed is how many objects are named that others change again and again.
const mostDisputed = 3

// disputedMessage says who changes which fields of a layer's objects again and again; empty
// where nobody does.
func disputedMessage(disputes []dependents.Dispute) string {
	var said []string
	for _, dispute := range disputes[:min(len(disputes), mostDisputed)] {
		said = append(said, fmt.Sprintf("%s of %s is changed by %s each time it is corrected (%d times); it is corrected again at %s",
			dispute.Field, dispute.ID, dispute.Manager, dispute.Times, dispute.Until.UTC().Format(time.RFC3339)))
	}
	if more := len(disputes) - mostDisputed; more > 0 {
		said = append(said, fmt.Sprintf("and %d more objects", more))
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, "; ") + ". Leave the field out in git, or have the other one leave it alone"
}

// putDeployed sets the condition that Kraan's users wait for. It exists from
// the first look on.
func putDeployed(c *conditions.Set, o Observation, d Decision, message string) {
	was := meta.FindStatusCondition(o.Layer.Status.Conditions, v1alpha1.DeployedCondition)
	switch {
	case d.State == v1alpha1.StateDeployed:
		c.Put(v1alpha1.DeployedCondition, metav1.ConditionTrue, v1alpha1.ReasonDeployed, message)
	case d.KeepsDeployed && was != nil && was.Status == metav1.ConditionTrue:
		c.Put(v1alpha1.DeployedCondition, metav1.ConditionTrue, v1alpha1.ReasonDeployed, was.Message)
	default:
		c.Put(v1alpha1.DeployedCondition, metav1.ConditionFalse, d.Reason, message)
	}
}

// maxUnsetNamed is how many objects with variables that nobody gives are named.
const maxUnsetNamed = 5

// unsetMessage names the variables that objects of a directory read and that nobody gives;
// empty where there are none.
func unsetMessage(directory *directories.Directory) string {
	return listing(directory, maxUnsetNamed, "nobody gives these variables, so they are empty: ", func(manifest *directories.Manifest) string {
		if len(manifest.Unset) == 0 {
			return ""
		}
		return fmt.Sprintf("%s in %s", strings.Join(manifest.Unset, ", "), manifest.ID())
	})
}

// listing says something of the objects of a directory, of most of them at most, and how many
// more there are; empty where there is nothing to say of any.
func listing(directory *directories.Directory, most int, begin string, say func(*directories.Manifest) string) string {
	if directory == nil {
		return ""
	}
	var said []string
	count := 0
	for i := range directory.Manifests {
		text := say(&directory.Manifests[i])
		if text == "" {
			continue
		}
		count++
		if count <= most {
			said = append(said, text)
		}
	}
	switch {
	case count == 0:
		return ""
	case count > most:
		said = append(said, fmt.Sprintf("and %d more objects", count-most))
	}
	return begin + strings.Join(said, "; ")
}

// namedMessage names the variables of Secrets that names of objects are made of; empty where
// there are none. It does not name the objects.
func namedMessage(directory *directories.Directory) string {
	if directory == nil {
		return ""
	}
	var variables, named []string
	for i := range directory.Manifests {
		if manifest := &directory.Manifests[i]; len(manifest.Named) > 0 {
			variables, named = append(variables, manifest.Named...), append(named, manifest.Object.GetKind())
		}
	}
	if len(variables) == 0 {
		return ""
	}
	slices.Sort(variables)
	slices.Sort(named)
	return fmt.Sprintf("names of %s are made of %s, which a Secret gives: statuses and messages tell names, so give that from a ConfigMap, or name the objects otherwise",
		strings.Join(slices.Compact(named), ", "), strings.Join(slices.Compact(variables), ", "))
}

// maxUnsharedNamed is how many Secrets are named that nobody has shared: each with a command.
const maxUnsharedNamed = 3

// unsharedMessage names the Secrets that releases of another cluster still have although
// nobody has shared them; empty where there are none.
func unsharedMessage(directory *directories.Directory) string {
	const begin = "copies of Secrets are used that nobody has shared, and go with the next minor version of Strata: "
	return listing(directory, maxUnsharedNamed, begin, func(manifest *directories.Manifest) string {
		if manifest.Unshared == "" {
			return ""
		}
		of := strings.TrimPrefix(manifest.Object.GetAnnotations()[v1alpha1.CopyOfAnnotation], "Secret/")
		return fmt.Sprintf("of Secret %s: %s", of, manifest.Unshared)
	})
}

func truncate(message string) string { return address.Line(message, maxMessage) }

// NeedsRecord tells whether a status must be persisted before the actions of
// its decision: when they concern objects that the layer's inventory lacks, or
// a roll-out that it does not know, or begin its deletion.
func NeedsRecord(last, next v1alpha1.AddonsLayerStatus) bool {
	if meta.IsStatusConditionTrue(next.Conditions, v1alpha1.DeletingCondition) && !meta.IsStatusConditionTrue(last.Conditions, v1alpha1.DeletingCondition) {
		return true
	}
	if (last.Attempt == nil) != (next.Attempt == nil) ||
		next.Attempt != nil && (last.Attempt.Digest != next.Attempt.Digest || last.Attempt.Version != next.Attempt.Version ||
			!slices.Equal(last.Attempt.Allowed, next.Attempt.Allowed)) {
		return true
	}
	if next.Rollback != nil && !sameRollback(last.Rollback, next.Rollback) {
		return true
	}
	type key struct{ cluster, kind, namespace, name string }
	known := make(map[key]bool, len(last.Resources))
	for _, r := range last.Resources {
		known[key{r.Cluster, r.Kind, r.Namespace, r.Name}] = true
	}
	return slices.ContainsFunc(next.Resources, func(r v1alpha1.Resource) bool {
		return !known[key{r.Cluster, r.Kind, r.Namespace, r.Name}]
	})
}
