// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discoveries holds the rules of a ClusterDiscovery as pure functions: which
// RemoteClusters are made of the clusters that others make, how these are changed, and
// when they go. It reads no clock, no cluster and no file.
package discoveries

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/dependents"
)

// maxName bounds the name of a RemoteCluster, in characters.
const maxName = 63

// Observation is everything that Decide decides from.
type Observation struct {
	Now time.Time
	// Discovery as it was read, with its last status.
	Discovery *v1alpha1.ClusterDiscovery
	// Unserved is true where the cluster does not serve the kind of the objects.
	Unserved bool
	// Unread says why the objects cannot be read; empty where they were.
	Unread string
	// Found are the objects of the discovery's kind in its namespace, selected or not.
	Found []Found
	// Clusters are the RemoteClusters of the namespace, by name.
	Clusters map[string]*v1alpha1.RemoteCluster
	// Silent are those of them that do not answer, as this process has asked them itself.
	Silent map[string]bool
	// MaxPrunePercent is how much of what there is may go at once, as for the releases of
	// layers; 0 is no limit.
	MaxPrunePercent int
}

// Change is a RemoteCluster that is to be another one.
type Change struct{ Before, After *v1alpha1.RemoteCluster }

// Decision is what becomes of the RemoteClusters, and what to say.
type Decision struct {
	// Make are the RemoteClusters to make, Change those to change, and Delete those to
	// delete. All are sorted by name.
	Make   []*v1alpha1.RemoteCluster
	Change []Change
	Delete []*v1alpha1.RemoteCluster
	// Consume is true where the annotation that allows to delete many is used up.
	Consume bool
	Status  v1alpha1.ClusterDiscoveryStatus
}

// Decide says what to do. It is deterministic. Where the objects were not read nothing is
// made, changed or deleted: what cannot be seen is not gone.
func Decide(o Observation) Decision {
	d := &decider{Observation: o}
	selector, err := metav1.LabelSelectorAsSelector(&o.Discovery.Spec.Selector)
	switch {
	case err != nil:
		d.blocked = &block{v1alpha1.ReasonInvalidSpec, v1alpha1.StalledCondition, fmt.Sprintf("selector: %v", err)}
	case o.Unserved:
		text := fmt.Sprintf("this cluster does not serve the kind %s yet", GroupKindOf(o.Discovery))
		d.blocked = &block{v1alpha1.ReasonKindNotServed, v1alpha1.ReconcilingCondition, text}
	case o.Unread != "":
		d.blocked = &block{v1alpha1.ReasonAccessDenied, v1alpha1.ReconcilingCondition, o.Unread}
	default:
		d.decide(selector)
	}
	d.Status = d.status()
	return d.Decision
}

// block is why nothing is made, changed or deleted.
type block struct{ reason, condition, message string }

type decider struct {
	Observation
	Decision

	blocked  *block
	selected int32
	// problems are for people to mend, and waits pass by themselves.
	problems, waits []string
}

func (d *decider) decide(selector labels.Selector) {
	slices.SortFunc(d.Found, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	wanted, there := map[string]bool{}, map[string]Found{}
	for _, found := range d.Found {
		there[found.Name] = found
		if !selector.Matches(labels.Set(found.Labels)) {
			continue
		}
		d.selected++
		wanted[found.Name] = !found.Deleting
		if !found.Deleting {
			d.want(found)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Clusters)) {
		cluster := d.Clusters[name]
		if !d.isMade(cluster) {
			continue
		}
		found, exists := there[name]
		gone := !exists || found.UID != uidOf(cluster) && !found.Coming
		switch {
		case !cluster.DeletionTimestamp.IsZero():
			d.abandon(cluster, gone)
		case !wanted[name]:
			d.Delete = append(d.Delete, cluster)
		}
	}
	d.guard()
}

// want sees to it that a cluster that was found has its RemoteCluster.
func (d *decider) want(found Found) {
	if len(found.Name) > maxName {
		d.problem("%s %s: a RemoteCluster cannot be named like it, for a name has at most %d characters", d.Discovery.Spec.Kind, found.Name, maxName)
		return
	}
	if found.Ambiguous != "" {
		d.problem("%s %s: %s", d.Discovery.Spec.Kind, found.Name, found.Ambiguous)
		return
	}
	cluster := d.Clusters[found.Name]
	switch {
	case found.Coming:
		d.waits = append(d.waits, fmt.Sprintf("%s %s has no cluster yet", d.Discovery.Spec.Kind, found.Name))
	case cluster == nil:
		made := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: d.Discovery.Namespace, Name: found.Name}}
		d.fill(made, found)
		d.Make = append(d.Make, made)
	case !d.isMade(cluster):
		d.problem("RemoteCluster %s is %s: it stays as it is; to have it kept after %s %s, set its label %s=%s",
			found.Name, madeBy(cluster), d.Discovery.Spec.Kind, found.Name, v1alpha1.DiscoveryLabel, d.Discovery.Name)
	case !cluster.DeletionTimestamp.IsZero():
		d.waits = append(d.waits, fmt.Sprintf("RemoteCluster %s is being deleted, and will be made anew", found.Name))
	case uidOf(cluster) != "" && uidOf(cluster) != found.UID:
		// Another cluster of the same name: nothing of the one before may be taken for
		// its own.
		d.waits = append(d.waits, fmt.Sprintf("%s %s was made anew: the RemoteCluster of the one before goes first", d.Discovery.Spec.Kind, found.Name))
		d.Delete = append(d.Delete, cluster)
	default:
		after := cluster.DeepCopy()
		d.fill(after, found)
		if !equality.Semantic.DeepEqual(cluster, after) {
			d.Change = append(d.Change, Change{cluster, after})
		}
	}
}

// abandon gives up the cluster of a RemoteCluster that is being deleted where its object
// is gone and it does not answer: it will not answer any more. A status alone does not say so.
func (d *decider) abandon(cluster *v1alpha1.RemoteCluster, gone bool) {
	policy := cluster.Spec.DeletionPolicy
	if !gone || policy != v1alpha1.ClusterDeletionDelete && policy != v1alpha1.ClusterDeletionOrphan ||
		!meta.IsStatusConditionFalse(cluster.Status.Conditions, v1alpha1.ReachableCondition) || !d.Silent[cluster.Name] {
		return
	}
	after := cluster.DeepCopy()
	after.Spec.DeletionPolicy = v1alpha1.ClusterDeletionAbandon
	d.Change = append(d.Change, Change{cluster, after})
}

// guard keeps all RemoteClusters where so many would go at once that a selector may be
// wrong, or a definition was deleted with its objects.
func (d *decider) guard() {
	total := 0
	for _, cluster := range d.Clusters {
		if d.isMade(cluster) && cluster.DeletionTimestamp.IsZero() {
			total++
		}
	}
	going := len(d.Delete)
	if !dependents.IsMass(going, total, d.MaxPrunePercent) {
		return
	}
	if d.Discovery.Annotations[v1alpha1.AllowPruneAnnotation] == v1alpha1.AllowNext {
		d.Consume = true
		return
	}
	d.blocked = &block{
		v1alpha1.ReasonMassPrune, v1alpha1.StalledCondition,
		fmt.Sprintf("%d of the %d RemoteClusters would go, more than %d%%: if that is meant set the annotation %s to %q",
			going, total, d.MaxPrunePercent, v1alpha1.AllowPruneAnnotation, v1alpha1.AllowNext),
	}
	d.Delete = nil
}

// isMade tells whether a RemoteCluster is the discovery's.
func (d *decider) isMade(cluster *v1alpha1.RemoteCluster) bool {
	return cluster.Labels[v1alpha1.DiscoveryLabel] == d.Discovery.Name
}

func madeBy(cluster *v1alpha1.RemoteCluster) string {
	switch {
	case cluster.Labels[v1alpha1.DiscoveryLabel] != "":
		return "made by ClusterDiscovery " + cluster.Labels[v1alpha1.DiscoveryLabel]
	case cluster.Labels[v1alpha1.LayerLabel] != "":
		return "made by layer " + cluster.Labels[v1alpha1.LayerLabel]
	}
	return "there already"
}

func uidOf(cluster *v1alpha1.RemoteCluster) string {
	return cluster.Annotations[v1alpha1.DiscoveredUIDAnnotation]
}

func (d *decider) problem(format string, values ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, values...))
}

func (d *decider) status() v1alpha1.ClusterDiscoveryStatus {
	status := v1alpha1.ClusterDiscoveryStatus{
		ObservedGeneration: d.Discovery.Generation, Selected: d.selected, Problems: catalogue.FirstOf(d.problems),
	}
	for _, cluster := range d.Clusters {
		if d.isMade(cluster) && cluster.DeletionTimestamp.IsZero() {
			status.Clusters++
			if meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ReadyCondition) {
				status.Ready++
			}
		}
	}
	set := conditions.New(d.Discovery.Status.Conditions, d.Discovery.Generation, d.Now)
	switch {
	case d.blocked != nil:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, d.blocked.reason, d.blocked.message)
		set.Put(d.blocked.condition, metav1.ConditionTrue, d.blocked.reason, d.blocked.message)
	case len(d.problems) > 0:
		text := strings.Join(status.Problems, "; ")
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonProblems, text)
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonProblems, text)
	case len(d.waits) > 0 || len(d.Make) > 0:
		waits := d.waits
		if len(d.Make) > 0 {
			waits = append([]string{fmt.Sprintf("makes %d of %d RemoteClusters", len(d.Make), d.selected)}, waits...)
		}
		text := strings.Join(catalogue.FirstOf(waits), "; ")
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, text)
		set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing, text)
	default:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonDiscovered,
			fmt.Sprintf("%d of %d RemoteClusters are ready", status.Ready, status.Clusters))
	}
	status.Conditions = set.List
	return status
}

// Failed returns the conditions of a discovery of which something could not be written.
func Failed(discovery *v1alpha1.ClusterDiscovery, message string, now time.Time) []metav1.Condition {
	set := conditions.New(discovery.Status.Conditions, discovery.Generation, now)
	set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, message)
	set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressingWithRetry, message)
	return set.List
}
