// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/api/v1alpha1"
)

// ClusterRow is a RemoteCluster in the columns of a table. Only Why may be empty.
type ClusterRow struct {
	// Name of the RemoteCluster, as namespace/name.
	Name string
	// Ready and Reachable are True, False or Unknown; - before the controller's
	// first look.
	Ready, Reachable string
	// Version of Kubernetes that the cluster has answered last.
	Version string
	// Layers counts those that are deployed, of those that name the cluster: 2/3.
	Layers string
	// Expires is how long the credentials last; ended where they do not any more.
	Expires string
	// LastSeen is how long ago the cluster has answered last: now while it
	// answers, never where it never has.
	LastSeen string
	// Why says what is waited for, or what is wrong.
	Why string
	// Reason of the condition Ready, in one word.
	Reason string
	// UID is what the cluster is known by: that of its namespace kube-system.
	UID string
	// Endpoint is the URL of the API server.
	Endpoint string
	// Secret that holds the kubeconfig, after the RemoteCluster that it lies on
	// where that is not this cluster: edge:tenants/inner.
	Secret string
	// Age of the RemoteCluster.
	Age string
	// Blocked is true for a cluster that is not ready.
	Blocked bool
}

// OfCluster returns the row of a RemoteCluster at a moment.
func OfCluster(cluster *v1alpha1.RemoteCluster, now time.Time) ClusterRow {
	status := cluster.Status
	row := ClusterRow{
		Name: cluster.Namespace + "/" + cluster.Name, Ready: nothing, Reachable: nothing, Reason: nothing,
		Version:  cmp.Or(status.Version, nothing),
		Layers:   fmt.Sprintf("%d/%d", status.Layers.Deployed, status.Layers.Total),
		Expires:  expires(status.CredentialsExpire, now),
		LastSeen: lastSeen(status, now),
		Why:      whyNotReady(cluster),
		UID:      cmp.Or(status.ClusterUID, nothing),
		Endpoint: cmp.Or(status.Endpoint, nothing),
		Secret:   secretOf(cluster),
		Age:      age(cluster.CreationTimestamp, now),
		Blocked:  true,
	}
	if reachable := meta.FindStatusCondition(status.Conditions, v1alpha1.ReachableCondition); reachable != nil {
		row.Reachable = string(reachable.Status)
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		row.Ready, row.Reason = string(ready.Status), ready.Reason
		row.Blocked = ready.Status != metav1.ConditionTrue || clusterOutdated(cluster)
	}
	return row
}

// expires returns how long credentials last.
func expires(at *metav1.Time, now time.Time) string {
	switch {
	case at.IsZero():
		return nothing
	case !now.Before(at.Time):
		return "ended"
	}
	return duration.HumanDuration(at.Sub(now))
}

// lastSeen returns how long ago a cluster has answered. Its status is not written
// at each answer.
func lastSeen(status v1alpha1.RemoteClusterStatus, now time.Time) string {
	reachable := meta.FindStatusCondition(status.Conditions, v1alpha1.ReachableCondition)
	switch {
	case reachable != nil && reachable.Status == metav1.ConditionTrue:
		return "now"
	case !status.LastSeen.IsZero():
		return age(*status.LastSeen, now)
	case reachable != nil && reachable.Status == metav1.ConditionFalse:
		return "never"
	}
	return nothing
}

// whyNotReady says what there is to know of a cluster beyond being ready.
func whyNotReady(cluster *v1alpha1.RemoteCluster) string {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition)
	switch {
	case ready == nil:
		return "the controller has not looked at it yet"
	case clusterOutdated(cluster):
		return fmt.Sprintf("the controller has not looked at generation %d yet", cluster.Generation)
	case ready.Status != metav1.ConditionTrue:
		return strings.Join(strings.Fields(ready.Message), " ")
	}
	ending := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.CredentialsExpiringCondition)
	if ending != nil && ending.Status == metav1.ConditionTrue {
		return strings.Join(strings.Fields(ending.Message), " ")
	}
	identified := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.IdentifiedCondition)
	if identified != nil &&
		(identified.Status == metav1.ConditionFalse || identified.Reason == v1alpha1.ReasonClusterShared || identified.Reason == v1alpha1.ReasonClusterNotClaimed) {
		return strings.Join(strings.Fields(identified.Message), " ")
	}
	return ""
}

func clusterOutdated(cluster *v1alpha1.RemoteCluster) bool {
	return cluster.Status.ObservedGeneration != cluster.Generation
}

func secretOf(cluster *v1alpha1.RemoteCluster) string {
	from := cluster.Spec.KubeConfig
	if from.ClusterRef != nil {
		return fmt.Sprintf("%s:%s/%s", from.ClusterRef.Name, cmp.Or(from.SecretRef.Namespace, cluster.Namespace), from.SecretRef.Name)
	}
	return cluster.Namespace + "/" + from.SecretRef.Name
}

// ClusterHeader returns the names of the columns.
func ClusterHeader(wide bool) []string {
	columns := []string{"NAME", "READY", "REACHABLE", "VERSION", "LAYERS", "EXPIRES", "LAST SEEN"}
	if wide {
		columns = append(columns, "UID", "ENDPOINT", "SECRET", "REASON", "AGE")
	}
	return append(columns, "WHY")
}

// Cells returns the row in the columns of ClusterHeader. What is long is shortened
// unless the table is wide.
func (r ClusterRow) Cells(wide bool) []string {
	cells := []string{r.Name, r.Ready, r.Reachable, r.Version, r.Layers, r.Expires, r.LastSeen}
	if wide {
		return append(cells, r.UID, r.Endpoint, r.Secret, r.Reason, r.Age, r.Why)
	}
	return append(cells, shorten(r.Why, shortWhy))
}

// Lasting returns the row without what the time alone changes.
func (r ClusterRow) Lasting() ClusterRow {
	if r.Expires != nothing && r.Expires != "ended" {
		r.Expires = ""
	}
	if r.LastSeen != "now" && r.LastSeen != "never" {
		r.LastSeen = ""
	}
	r.Age = ""
	return r
}
