// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

// maxWorkloads is how many objects of its releases a layer watches the health of: each
// costs a watch.
const maxWorkloads = 30

// defaultUnwellAfter is how long an object may be other than ready before that counts,
// where nobody says otherwise: a node that is drained takes no longer.
const defaultUnwellAfter = 5 * time.Minute

// workloadKinds are the kinds whose health is watched without being named.
var workloadKinds = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
}

// Workload is an object that a release of the layer has made, as it was seen.
type Workload struct {
	ID objects.ID
	// APIVersion by which the release has made it, such as v1 of apps/v1.
	APIVersion string
	// Live is the object; nil where there is none.
	Live *unstructured.Unstructured
	// Err says why it could not be read; nil where it could.
	Err error
	// releases are the HelmReleases that list it, as namespace/name.
	releases map[string]bool
}

// isOurs tells whether the object says itself that one of the releases that list it has made
// it: helm-controller writes that on all that it makes. The lists are in the statuses of
// releases, which others may write, and the object is read with the controller's rights
// where the layer has no account: nothing is told of what is somebody else's.
func (w Workload) isOurs() bool {
	labels := w.Live.GetLabels()
	return w.releases[labels[reserved.ReleaseNamespaceLabel]+"/"+labels[reserved.ReleaseLabel]]
}

// watchesHealth tells whether the health of what the layer's releases have made is to be
// looked at.
func (o Observation) watchesHealth() bool {
	return o.Layer.Spec.WatchHealth != nil && !isDeleting(o.Layer) && !o.isForsaken()
}

// WatchedWorkloads returns the objects that the layer's releases have made and whose health is
// watched, sorted and at most maxWorkloads, and how many there are.
func (o Observation) WatchedWorkloads() (found []Workload, total int) {
	if !o.watchesHealth() {
		return nil, 0
	}
	watched := map[schema.GroupKind]bool{}
	for _, kind := range o.Layer.Spec.WatchHealth.Kinds {
		watched[schema.ParseGroupKind(kind)] = true
	}
	seen := map[objects.ID]Workload{}
	for id, release := range o.Live {
		if release == nil || id.GroupKind() != kinds.HelmReleaseKind || release.GetLabels()[v1alpha1.LayerLabel] != o.Layer.Name || objects.IsSuspended(release) {
			continue
		}
		for _, made := range kinds.InventoryOf(release) {
			gk, on := made.GroupKind(), made.On(TargetOf(release))
			if gk == (schema.GroupKind{Kind: "Secret"}) || !workloadKinds[gk] && !watched[gk] {
				continue
			}
			if _, known := seen[on]; !known {
				seen[on] = Workload{ID: on, APIVersion: made.Version, releases: map[string]bool{}}
				found = append(found, seen[on])
			}
			seen[on].releases[id.Namespace+"/"+id.Name] = true
		}
	}
	slices.SortFunc(found, func(a, b Workload) int { return a.ID.Compare(b.ID) })
	return found[:min(len(found), maxWorkloads)], len(found)
}

// health is how what the releases of a layer have made fares.
type health struct {
	// Status is True, False or, where it cannot be told or may yet recover, Unknown.
	Status metav1.ConditionStatus
	// Reason and Message say why, and Causes what it is.
	Reason, Message string
	Causes          []v1alpha1.Cause
	// Until is when that which is not ready counts as failed; zero where nothing is.
	Until time.Time
	// Deployed is what there is to say of the deployment alone.
	Deployed string
}

// healthOf judges what the layer's releases have made; nil where nobody asks.
func (o Observation) healthOf() *health {
	if !o.watchesHealth() {
		return nil
	}
	if o.IsAway() {
		return &health{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonHealthUnread, Message: "its cluster does not answer"}
	}
	var unwell []objects.Standing
	unread := ""
	for _, workload := range o.Workloads {
		if workload.Err != nil {
			unread = cmp.Or(unread, fmt.Sprintf("%s: %v", workload.ID, workload.Err))
			continue
		}
		standing := objects.Standing{Health: objects.Progressing, Status: objects.StatusMissing, Message: "does not exist"}
		if workload.Live != nil && !workload.isOurs() {
			unread = cmp.Or(unread, fmt.Sprintf("%s: does not say that a release of the layer has made it, and is not looked at", workload.ID))
			continue
		}
		if workload.Live != nil {
			standing = objects.AssessObject(objects.AssessStatus, workload.Live)
		}
		if standing.ID = workload.ID; standing.Health > objects.Ignored {
			unwell = append(unwell, standing)
		}
	}
	worst, found := objects.Worst(unwell)
	switch {
	case found:
		return o.unwell(worst, len(unwell))
	case unread != "":
		return &health{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonHealthUnread, Message: unread}
	}
	return &health{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHealthy, Message: o.wellMessage()}
}

func (o Observation) wellMessage() string {
	count := len(o.Workloads)
	switch {
	case count == 0:
		return "its releases have made nothing whose health is watched"
	case o.MoreWorkloads > 0:
		return fmt.Sprintf("%d objects of its releases are well; %d more are not watched", count, o.MoreWorkloads)
	case count == 1:
		return fmt.Sprintf("%s is well", o.Workloads[0].ID)
	}
	return fmt.Sprintf("%d objects of its releases are well", count)
}

// unwell judges what is not ready. What has failed counts at once; what may yet recover
// has its time, from when the layer first says so.
func (o Observation) unwell(worst objects.Standing, count int) *health {
	found := &health{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnhealthy, Message: fmt.Sprintf("%s %s", worst.ID, worst.Message),
		Causes: []v1alpha1.Cause{{
			Cluster: worst.ID.Cluster, Kind: worst.ID.Kind, Namespace: worst.ID.Namespace, Name: worst.ID.Name, Reason: worst.Status, Message: worst.Message,
		}},
	}
	if more := count - 1; more > 0 {
		found.Message += fmt.Sprintf(", and %d more", more)
	}
	last := meta.FindStatusCondition(o.Layer.Status.Conditions, v1alpha1.HealthyCondition)
	if worst.Health == objects.Failed || last != nil && last.Status == metav1.ConditionFalse {
		return found
	}
	since := o.Now
	if last != nil && last.Reason == v1alpha1.ReasonRecovering && last.LastTransitionTime.Time.Before(since) {
		since = last.LastTransitionTime.Time
	}
	after := defaultUnwellAfter
	if given := o.Layer.Spec.WatchHealth.After; given != nil {
		after = given.Duration
	}
	if until := since.Add(after); o.Now.Before(until) {
		found.Status, found.Reason, found.Until = metav1.ConditionUnknown, v1alpha1.ReasonRecovering, until
	}
	return found
}

// withHealth adds to a decision how what the releases have made fares. A layer that is
// deployed stays so, and those that depend on it are not disturbed; but it is not Ready.
func (d Decision) withHealth(o Observation) Decision {
	d.Health = o.healthOf()
	if d.Health == nil {
		return d
	}
	d.Until = moments.Earlier(d.Until, d.Health.Until)
	if d.isUnwell() {
		d.Reason, d.Causes = v1alpha1.ReasonUnhealthy, d.Health.Causes
		d.Health.Deployed = d.Message
		d.Message += "; " + d.Health.Message
	}
	return d
}

// isUnwell tells whether what is deployed is not well.
func (d Decision) isUnwell() bool {
	return d.State == v1alpha1.StateDeployed && !d.Stalled && d.Health != nil && d.Health.Status == metav1.ConditionFalse
}
