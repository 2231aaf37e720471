// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// Remote is a cluster other than the one that Strata runs in, as a layer that
// belongs there sees it.
type Remote struct {
	// Name of the RemoteCluster.
	Name types.NamespacedName
	// Object is the RemoteCluster; nil where there is none.
	Object *v1alpha1.RemoteCluster
	// Connected is true where this process can read what is on the cluster.
	Connected bool
	// Mistaken says why nothing may be written to the cluster that answers, such as
	// that it is another one than before; empty where it may. Only people can mend
	// that.
	Mistaken string
	// Err says why something on the cluster could not be read; nil where all
	// could. It passes.
	Err error
}

// isForeign tells whether what the RemoteCluster says of itself does not count, so that it is not
// known whether it is away.
func (r *Remote) isForeign() bool {
	return r.Object != nil && v1alpha1.IsForeign(r.Object.Status.Conditions)
}

// defaultUnreachableAfter is how long a cluster may be away before its layers are
// Unknown, where the RemoteCluster does not say.
const defaultUnreachableAfter = 2 * time.Minute

// unreachableAfter returns how long a cluster may be away.
func unreachableAfter(cluster *v1alpha1.RemoteCluster) time.Duration {
	if after := cluster.Spec.Unreachable.After; after != nil {
		return after.Duration
	}
	return defaultUnreachableAfter
}

// awaySince returns since when a cluster has been away; zero where it is not.
func awaySince(cluster *v1alpha1.RemoteCluster) time.Time {
	reachable := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReachableCondition)
	if reachable == nil || reachable.Status != metav1.ConditionFalse {
		return time.Time{}
	}
	return reachable.LastTransitionTime.Time
}

// IsAway tells whether the layer's cluster has been away for so long that its
// releases are suspended, or is not the one that may be written to. Nothing else is
// done then.
func (o Observation) IsAway() bool {
	away, _ := o.isAway()
	return away
}

// isAway tells whether the layer's cluster has been away for so long that its
// releases are suspended, and until when it is not yet. One that is not the right
// one is away at once.
func (o Observation) isAway() (away bool, until time.Time) {
	if o.Remote == nil || o.Remote.Object == nil {
		return false, time.Time{}
	}
	if o.Remote.Mistaken != "" {
		return true, time.Time{}
	}
	since := awaySince(o.Remote.Object)
	if since.IsZero() {
		return false, time.Time{}
	}
	if until = since.Add(unreachableAfter(o.Remote.Object)); o.Now.Before(until) {
		return false, until
	}
	return true, time.Time{}
}

// IsMistaken returns what a RemoteCluster says of why nothing may be written to the
// cluster that answers; empty where it may. It is the RemoteCluster's report: the
// controller itself goes by what it has seen.
func IsMistaken(cluster *v1alpha1.RemoteCluster) string {
	if !v1alpha1.IsMistaken(cluster.Status.Conditions) {
		return ""
	}
	return meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition).Message
}

// clusterGate wants the layer's cluster to be there and to answer.
func clusterGate(o Observation) *Blocked {
	if o.Remote == nil {
		return nil
	}
	cluster := o.Remote.Object
	closed := func(blocked Blocked) *Blocked {
		blocked.Causes = o.remoteCause(blocked.Reason, blocked.Message)
		return &blocked
	}
	if cluster == nil {
		return closed(Blocked{
			State: v1alpha1.StatePending, Reason: v1alpha1.ReasonClusterNotFound,
			Message: fmt.Sprintf("waits for RemoteCluster %s, which does not exist", o.Remote.Name),
		})
	}
	if o.Remote.Mistaken != "" {
		return closed(Blocked{
			State: v1alpha1.StateUnknown, Reason: v1alpha1.ReasonClusterMistaken,
			Message: fmt.Sprintf("RemoteCluster %s: %s; what is deployed is as it was, and its releases are suspended until then", o.Remote.Name, o.Remote.Mistaken),
		})
	}
	said := ""
	if ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.Status != metav1.ConditionTrue {
		said = ready.Message
	}
	if o.Remote.isForeign() {
		said = "it " + said
	}
	if away, _ := o.isAway(); away {
		return closed(Blocked{
			State: v1alpha1.StateUnknown, Reason: v1alpha1.ReasonClusterUnreachable,
			Message: fmt.Sprintf("RemoteCluster %s has not answered since %s%s; what is deployed there is as it was, and its releases are suspended until it answers",
				o.Remote.Name, awaySince(cluster).UTC().Format(time.RFC3339), colon(said)),
		})
	}
	if !o.Remote.Connected || o.Remote.isForeign() {
		return closed(Blocked{
			State: v1alpha1.StatePending, Reason: v1alpha1.ReasonClusterNotReady,
			Message: fmt.Sprintf("waits for RemoteCluster %s: %s", o.Remote.Name, cmp.Or(said, "it has not been looked at yet")),
		})
	}
	if o.Remote.Err != nil {
		return closed(Blocked{
			State: v1alpha1.StatePending, Reason: v1alpha1.ReasonClusterNotReady, Retry: o.Remote.Err,
			Message: fmt.Sprintf("waits for RemoteCluster %s: %v", o.Remote.Name, o.Remote.Err),
		})
	}
	return nil
}

// cluster returns the cluster that the layer belongs on, as statuses name it.
func (o Observation) cluster() string {
	if o.Remote == nil {
		return ""
	}
	return placement.ClusterName(o.Remote.Name)
}

// ClustersLeft returns the other clusters, besides the one that a layer names,
// that it still has something on.
func ClustersLeft(layer *v1alpha1.AddonsLayer) []types.NamespacedName {
	var found []types.NamespacedName
	add := func(cluster string) {
		namespace, name, remote := strings.Cut(cluster, "/")
		if name := (types.NamespacedName{Namespace: namespace, Name: name}); remote && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	add(layer.Status.Cluster)
	for _, resource := range layer.Status.Resources {
		add(resource.Cluster)
	}
	return found
}

// TargetOf returns the RemoteCluster through whose kubeconfig a live release
// installs; empty for none.
func TargetOf(live *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(live.Object, "spec", "kubeConfig", "secretRef", "name")
	cluster, ours := strings.CutPrefix(name, reserved.KubeConfigName(""))
	if !ours {
		return ""
	}
	return types.NamespacedName{Namespace: live.GetNamespace(), Name: cluster}.String()
}

// MayBeThere tells whether a layer may have an object on another cluster that it
// does not list, although the cache of that cluster lacks it: the cluster may have
// been away ever since the object was written. What is not there is forgotten, so
// the word of a cache does not count.
func MayBeThere(o Observation, id objects.ID) bool {
	if id.Cluster == "" || !slices.ContainsFunc(o.Layer.Status.Resources, func(r v1alpha1.Resource) bool {
		return r.Cluster == id.Cluster && r.Namespace == id.Namespace && r.Name == id.Name && kinds.ParseResourceKind(r.Kind) == id.GroupKind()
	}) {
		return false
	}
	lists := func(dir *directories.Directory) bool {
		return dir != nil && slices.ContainsFunc(dir.Manifests, func(m directories.Manifest) bool { return m.ID() == id })
	}
	return isDeleting(o.Layer) || !lists(o.Directory) || o.Restored != nil && !lists(o.Restored)
}

// Targets returns the other clusters that the releases of a layer install on and
// that Forsaken has yet to speak of, in order.
func Targets(o Observation) []types.NamespacedName {
	found := map[string]bool{}
	for _, entry := range o.inventory() {
		if _, known := o.Forsaken[entry.Target]; entry.Target != "" && !known {
			found[entry.Target] = true
		}
	}
	var names []types.NamespacedName
	for _, target := range slices.Sorted(maps.Keys(found)) {
		namespace, name, _ := strings.Cut(target, "/")
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names
}

// IsForsaken tells whether what a layer has on a cluster is given up: cluster is
// nil where there is no such RemoteCluster any more.
func IsForsaken(layer *v1alpha1.AddonsLayer, cluster *v1alpha1.RemoteCluster) bool {
	if isDeleting(layer) && layer.Spec.DeletionPolicy == v1alpha1.DeletionPolicyAbandon {
		return true
	}
	if isDeleting(layer) && layer.Annotations[v1alpha1.AbandonAnnotation] == "true" &&
		(cluster == nil || !awaySince(cluster).IsZero() || IsMistaken(cluster) != "") {
		return true
	}
	return cluster != nil && !cluster.DeletionTimestamp.IsZero() && IsGivenUp(cluster)
}

// IsGivenUp tells whether what is on a cluster is given up once its RemoteCluster is deleted.
func IsGivenUp(cluster *v1alpha1.RemoteCluster) bool {
	return cluster.Spec.DeletionPolicy == v1alpha1.ClusterDeletionAbandon || cluster.Annotations[v1alpha1.AbandonAnnotation] == "true"
}

// isForsaken tells whether the layer's own cluster is given up.
func (o Observation) isForsaken() bool { return o.Remote != nil && o.Forsaken[o.cluster()] }

// isForCluster tells whether an object is on a RemoteCluster's cluster, or here
// because of it: by what it installs on, or by what Place has noted on it. Names do
// not tell, as that of one cluster may begin with that of another; they count for
// what is not there any more, of which nothing can be taken away.
func (o Observation) isForCluster(entry dependents.Entry, cluster types.NamespacedName) bool {
	if entry.ID.Cluster != "" || entry.Target != "" {
		return entry.ID.Cluster == cluster.String() || entry.Target == cluster.String()
	}
	if live := o.Live[entry.ID]; live != nil {
		return live.GetAnnotations()[v1alpha1.PlacedForAnnotation] == cluster.String()
	}
	return entry.ID.Namespace == cluster.Namespace && strings.HasPrefix(strings.TrimPrefix(entry.ID.Name, reserved.CopyPrefix), cluster.Name+"-")
}

// decideForsaken takes the layer off a cluster that is given up, and asks that one
// for nothing. A hold does not stop it. What the layer has elsewhere, because it was
// about to move, stays as it is; where it is being deleted that goes as it always
// does.
func decideForsaken(o Observation) Decision {
	in := o.baseInput()
	in.MayPrune, in.Grace = true, 0
	elsewhere := map[objects.ID]bool{}
	for _, entry := range in.Inventory {
		if !o.isForCluster(entry, o.Remote.Name) {
			elsewhere[entry.ID] = true
		}
	}
	if !isDeleting(o.Layer) {
		in.Keep = elsewhere
	} else if len(elsewhere) > 0 {
		in.Grace = o.grace()
	}
	decision := Decision{
		State: v1alpha1.StatePending, Reason: v1alpha1.ReasonClusterAbandoned, Plan: dependents.Make(in), Attempt: o.Layer.Status.Attempt,
		Rollback: o.Layer.Status.Rollback,
	}
	decision.Plan.Actions = slices.DeleteFunc(decision.Plan.Actions, func(a dependents.Action) bool { return in.Keep[a.ID] })
	left := len(decision.Plan.Inventory) - len(in.Keep)
	decision.Message = fmt.Sprintf("RemoteCluster %s is given up: what the layer has there is left behind", o.Remote.Name)
	if left > 0 {
		decision.Message += fmt.Sprintf(", and %d objects here are being removed", left)
	}
	decision.Until = decision.Plan.Until
	if isDeleting(o.Layer) {
		decision.State, decision.Deleting = v1alpha1.StatePruning, true
		// The status reports what is given up before the layer goes.
		decision.Finalized = left == 0 && len(o.Layer.Status.Resources) == 0
		if left == 0 {
			decision.Until = o.Now
		}
	}
	return decision
}

// deletionOnRemote says what the deletion of a layer waits for on its cluster; nil
// for nothing. Without the cluster nothing can be uninstalled.
func deletionOnRemote(o Observation) *Decision {
	blocked := clusterGate(o)
	if blocked == nil || len(o.Layer.Status.Resources) == 0 {
		return nil
	}
	in := o.keepEverything()
	in.MayWrite = false
	decision := Decision{
		State: v1alpha1.StatePruning, Reason: blocked.Reason, Retry: blocked.Retry, Plan: dependents.Make(in), Attempt: o.Layer.Status.Attempt,
		Rollback: o.Layer.Status.Rollback, Hold: HoldOf(o.Layer, o.Now),
		Message: fmt.Sprintf("cannot be deleted: %s; to leave behind what is there set the annotation %s to \"true\"", blocked.Message, v1alpha1.AbandonAnnotation),
	}
	if blocked.State == v1alpha1.StateUnknown {
		decision.State = v1alpha1.StateUnknown
	}
	decision.Plan.Conflicts = nil
	return &decision
}
