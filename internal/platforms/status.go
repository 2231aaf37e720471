// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/rollout"
)

const (
	// mostWorst bounds how many clusters a status names.
	mostWorst = 10
	// maxReason bounds in bytes what it says of one, and maxMessage what a condition
	// says.
	maxReason, maxMessage = 512, 2048
)

// finish says how the platform fares, and puts an end to what a hold forbids.
func (d *decider) finish() {
	status := &d.decision.Status
	last := d.Platform.Status
	status.ObservedGeneration = d.Platform.Generation
	status.Version = d.target
	d.progress()
	d.count()
	if d.frozen {
		// Nobody can tell which clusters are meant.
		available := status.Available
		*status = *last.DeepCopy()
		status.ObservedGeneration, status.Available = d.Platform.Generation, available
	}
	if d.Platform.Spec.Hold {
		status.Rollout, status.Lock = last.Rollout, last.Lock
		d.decision = Decision{Status: *status, Until: d.decision.Until}
		status = &d.decision.Status
	}
	set := conditions.New(last.Conditions, d.Platform.Generation, d.Now)
	d.ready(set)
	status.Conditions = set.List
	status.MAC = last.MAC
}

// count counts clusters and layers, and finds those that are worst off.
func (d *decider) count() {
	status := &d.decision.Status
	clusters := &status.Clusters
	type ranked struct {
		v1alpha1.ClusterTrouble
		severity int
	}
	var troubles []ranked
	for _, m := range d.members {
		clusters.Total++
		status.Layers.Total += m.total
		status.Layers.Deployed += m.deployed
		rank := severity[m.Condition]
		switch {
		case m.Condition == rollout.Failed || m.Condition == rollout.Unhealthy:
			clusters.Failed++
		case m.Condition == rollout.Unreachable:
			clusters.Unreachable++
		case m.Condition == rollout.Progressing:
			clusters.Progressing++
		case (m.current == d.target || m.isAsFarAsItCan()) && !m.stale && !m.refused:
			clusters.Ready++
		default:
			clusters.Waiting++
		}
		if reason := m.trouble(d.target); reason != "" {
			trouble := v1alpha1.ClusterTrouble{Cluster: placement.ClusterName(m.target), Stage: d.stageName(m), Reason: reason}
			troubles = append(troubles, ranked{trouble, rank})
		}
	}
	slices.SortStableFunc(troubles, func(a, b ranked) int { return cmp.Compare(b.severity, a.severity) })
	for _, trouble := range troubles[:min(len(troubles), mostWorst)] {
		// Only what is told is cut: that takes its time, and in a bad hour all clusters fail.
		trouble.Reason = cut(trouble.Reason, maxReason)
		status.Worst = append(status.Worst, trouble.ClusterTrouble)
	}
}

// isAsFarAsItCan tells whether a cluster that cannot run the platform's version is at the
// newest that it can run and may have.
func (m *member) isAsFarAsItCan() bool {
	return m.unfit != "" && m.stuck == "" && m.next == "" && m.current != ""
}

// trouble says what is wrong with a cluster; empty where nothing is. One that is well
// and waits for its turn is not in trouble.
func (m *member) trouble(target string) string {
	stays := ""
	if m.untouched != "" && m.untouched != m.gone && m.untouched != m.early {
		stays = "its layers stay as they are: " + m.untouched
	}
	switch {
	case m.Condition == rollout.Ready && m.isAsFarAsItCan():
		return fmt.Sprintf("stays at %s: %s %s", m.current, target, m.unfit)
	case m.Condition == rollout.Ready && m.current != target && m.stuck != "":
		return "is not moved: " + m.stuck
	case m.Condition == rollout.Ready:
		return stays
	case m.Condition == rollout.Failed && m.moving != "":
		return fmt.Sprintf("the move to %s has failed: %s", m.moving, m.message)
	case m.Condition == rollout.Progressing && stays != "":
		return m.message + "; " + stays
	}
	return m.message
}

// stageName returns the name of the stage that a cluster is in; empty where the
// platform has none.
func (d *decider) stageName(m *member) string {
	stages := d.Platform.Spec.Rollout.Stages
	switch {
	case len(stages) == 0 || !d.hasBundle():
		return ""
	case m.stage < 0:
		return rollout.Rest
	}
	return stages[m.stage].Name
}

// ready sums up, in the order of what somebody should see first: that it is held,
// what only the author can mend, what has failed, what is missing, and what is under
// way.
func (d *decider) ready(set *conditions.Set) {
	put := func(status metav1.ConditionStatus, reason, message string, also string) {
		message = cut(message, maxMessage)
		set.Put(v1alpha1.ReadyCondition, status, reason, message)
		switch {
		case also == v1alpha1.ReconcilingCondition && status == metav1.ConditionFalse:
			set.Put(also, metav1.ConditionTrue, v1alpha1.ReasonProgressingWithRetry, message)
		case also != "":
			set.Put(also, metav1.ConditionTrue, reason, message)
		}
	}
	clusters := d.decision.Status.Clusters
	worst := d.worst()
	switch {
	case d.Platform.Spec.Hold:
		put(metav1.ConditionUnknown, v1alpha1.ReasonHold, "spec.hold is true: layers stay as they are, and are looked after", v1alpha1.HeldCondition)
	case len(d.stalled) > 0:
		put(metav1.ConditionFalse, d.stalled[0].reason, summary(d.stalled), v1alpha1.StalledCondition)
	case d.plan.Halted != "" || d.plan.Progress.RolledBack != "":
		put(metav1.ConditionFalse, v1alpha1.ReasonHalted, cmp.Or(d.plan.Why, "goes back to what it had")+worst, v1alpha1.ReconcilingCondition)
	case clusters.Failed > 0:
		put(metav1.ConditionFalse, v1alpha1.ReasonClusterFailed, some(clusters.Failed, clusters.Total, "failed")+worst, v1alpha1.ReconcilingCondition)
	case len(d.waits) > 0:
		put(metav1.ConditionUnknown, d.waits[0].reason, summary(d.waits), v1alpha1.ReconcilingCondition)
	case clusters.Unreachable > 0:
		put(
			metav1.ConditionUnknown,
			v1alpha1.ReasonClusterUnreachable,
			some(clusters.Unreachable, clusters.Total, "cannot be reached")+worst,
			v1alpha1.ReconcilingCondition,
		)
	case clusters.Progressing > 0:
		put(metav1.ConditionUnknown, v1alpha1.ReasonProgressing, some(clusters.Progressing, clusters.Total, "under way")+worst, v1alpha1.ReconcilingCondition)
	case clusters.Waiting > 0:
		put(metav1.ConditionUnknown, v1alpha1.ReasonWaiting, some(clusters.Waiting, clusters.Total, "waiting")+colon(d.plan.Why)+worst, v1alpha1.ReconcilingCondition)
	case len(d.decision.Delete)+len(d.leaving()) > 0:
		put(metav1.ConditionUnknown, v1alpha1.ReasonProgressing, d.leavingMessage(), v1alpha1.ReconcilingCondition)
	case d.lacksClusters() != "":
		put(metav1.ConditionUnknown, v1alpha1.ReasonNoClusters, d.lacksClusters(), v1alpha1.ReconcilingCondition)
	default:
		put(metav1.ConditionTrue, v1alpha1.ReasonInstalled, d.installed(), "")
	}
}

// lacksClusters says that fewer clusters are selected than the platform is to be on; empty
// where they are enough.
func (d *decider) lacksClusters() string {
	selector := d.Platform.Spec.ClusterSelector
	least := int32(1)
	if selector != nil && selector.MinClusters != nil {
		least = *selector.MinClusters
	}
	total := d.decision.Status.Clusters.Total
	if selector == nil || total >= least {
		return ""
	}
	where := "any namespace"
	if selector.Namespace != "" {
		where = "namespace " + selector.Namespace
	}
	found := fmt.Sprintf("%d clusters are", total)
	switch total {
	case 0:
		found = "no cluster is"
	case 1:
		found = "1 cluster is"
	}
	return fmt.Sprintf("%s selected by spec.clusterSelector (%s, in %s), and %d is the least: label a RemoteCluster so, or set spec.clusterSelector.minClusters",
		found, cmp.Or(metav1.FormatLabelSelector(&selector.LabelSelector), "all"), where, least)
}

// installed says what there is where all is well.
func (d *decider) installed() string {
	count := d.decision.Status
	message := fmt.Sprintf("%d layers are deployed", count.Layers.Deployed)
	if count.Layers.Deployed == 1 {
		message = "1 layer is deployed"
	}
	if count.Clusters.Total != 1 {
		message += fmt.Sprintf(" on %d clusters", count.Clusters.Total)
	}
	if d.target != "" {
		message = d.family.name + " " + d.target + ": " + message
	}
	if d.notice != "" {
		message += "; " + d.notice
	}
	if at := slices.IndexFunc(d.members, (*member).isAsFarAsItCan); at >= 0 {
		message += "; " + d.members[at].name() + " " + d.members[at].trouble(d.target)
	}
	return message
}

// worst says what is wrong with the cluster that is worst off.
func (d *decider) worst() string {
	if len(d.decision.Status.Worst) == 0 {
		return ""
	}
	first := d.decision.Status.Worst[0]
	if first.Cluster == "" {
		return ": " + first.Reason
	}
	return ": " + first.Cluster + ": " + first.Reason
}

// leaving returns the layers of clusters that are no longer meant that are being
// removed.
func (d *decider) leaving() []*v1alpha1.AddonsLayer {
	var leaving []*v1alpha1.AddonsLayer
	for _, layer := range d.Layers {
		if IsMade(layer) && !d.keep[layer.Name] {
			leaving = append(leaving, layer)
		}
	}
	return leaving
}

// leavingMessage names the layers that are being removed, those that have failed
// first.
func (d *decider) leavingMessage() string {
	const most = 5
	leaving := d.leaving()
	slices.SortStableFunc(leaving, func(a, b *v1alpha1.AddonsLayer) int {
		return cmp.Compare(failedFirst(a), failedFirst(b))
	})
	var names []string
	for _, layer := range leaving[:min(len(leaving), most)] {
		name := layer.Name
		if layer.DeletionTimestamp != nil {
			name += " (" + cut(messageOf(layer), maxReason/2) + ")"
		}
		names = append(names, name)
	}
	if more := len(leaving) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	count := fmt.Sprintf("waits for %d layers", len(leaving))
	if len(leaving) == 1 {
		count = "waits for 1 layer"
	}
	return count + " to be removed: " + strings.Join(names, ", ") + d.toConfirm(leaving) + d.toLeaveBehind(leaving)
}

// toLeaveBehind says that the platform can leave behind what is on the clusters of layers that
// are being removed and that do not answer; empty where it is not being deleted.
func (d *decider) toLeaveBehind(leaving []*v1alpha1.AddonsLayer) string {
	if d.Platform.DeletionTimestamp == nil {
		return ""
	}
	var places []types.NamespacedName
	for _, layer := range leaving {
		place := placement.Of(layer, d.Namespace)
		// Without its RemoteCluster a layer may have nothing left, and go in a moment.
		if layer.DeletionTimestamp != nil && (d.Clusters[place] != nil || strings.Contains(messageOf(layer), v1alpha1.AbandonAnnotation)) {
			places = append(places, place)
		}
	}
	return d.toAbandon(places)
}

// toConfirm says that the platform can confirm what its layers wait for; empty where they
// wait for no such thing.
func (d *decider) toConfirm(leaving []*v1alpha1.AddonsLayer) string {
	if d.Platform.DeletionTimestamp == nil || d.Platform.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" ||
		!slices.ContainsFunc(leaving, func(layer *v1alpha1.AddonsLayer) bool {
			return layer.DeletionTimestamp != nil && strings.Contains(messageOf(layer), v1alpha1.ConfirmDeletionAnnotation)
		}) {
		return ""
	}
	return fmt.Sprintf("; the annotation %s: \"true\" on the Platform confirms that for all of them", v1alpha1.ConfirmDeletionAnnotation)
}

func failedFirst(layer *v1alpha1.AddonsLayer) int {
	if hasFailed(layer) {
		return 0
	}
	return 1
}

// some says how many clusters something holds for; of one alone it goes without
// saying.
func some(of, total int32, what string) string {
	if total == 1 {
		return what
	}
	return fmt.Sprintf("%d of %d clusters %s", of, total, what)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// summary says the first complaint, and how many more there are.
func summary(all []complaint) string {
	if more := len(all) - 1; more > 0 {
		return fmt.Sprintf("%s, and %d more", all[0].message, more)
	}
	return all[0].message
}

// cut bounds a message, which may repeat what others say, to a number of bytes of
// one printable line.
func cut(message string, limit int) string { return address.Line(message, limit) }
