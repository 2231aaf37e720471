// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusters holds the rules of a RemoteCluster as pure functions: whether it
// is ready, what is wrong, and what Strata makes for it. It reads no clock, no
// cluster and no file.
package clusters

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/oldwords"
)

// Keys are the labels by which RemoteClusters own what is made for them.
var Keys = dependents.Keys{
	Owner:           v1alpha1.ClusterLabel,
	Orphaned:        v1alpha1.OrphanedLabel,
	SupersededBy:    v1alpha1.SupersededByAnnotation,
	SuspendedByHold: v1alpha1.SuspendedByHoldAnnotation,
}

const (
	// DefaultInterval is how often a cluster is asked that does not say.
	DefaultInterval = 30 * time.Second
	// sourceRetry is how soon it is seen whether a Secret can be read that could
	// not: a right that is given wakes nobody.
	sourceRetry = 30 * time.Second
	// expiringSoon is how long before their end credentials are said to end, where
	// that is less than a third of their lifetime: by then whoever rotates them
	// should have.
	expiringSoon = 14 * 24 * time.Hour
)

// CountLag is how long a status waits that differs in how many layers there are
// only: a roll-out changes that once for each layer.
const CountLag = 2 * time.Second

// OnlyCounted tells whether a status says nothing new but how many layers there
// are and are deployed.
func OnlyCounted(last, next v1alpha1.RemoteClusterStatus) bool {
	if last.Layers == next.Layers {
		return false
	}
	last.Layers = next.Layers
	return equality.Semantic.DeepEqual(last, next)
}

// IntervalOf returns how often a cluster is asked whether it answers.
func IntervalOf(cluster *v1alpha1.RemoteCluster) time.Duration {
	if cluster.Spec.Interval != nil {
		return cluster.Spec.Interval.Duration
	}
	return DefaultInterval
}

// Decision is what is to be done for a RemoteCluster, and what to say of it.
type Decision struct {
	Plan   dependents.Plan
	Status v1alpha1.RemoteClusterStatus
	// Verdict on which cluster it is.
	Verdict Verdict
	// Until is the next moment at which the decision may differ although nothing
	// else has changed; zero where there is none.
	Until time.Time
}

// Decide says what one RemoteCluster needs. It is deterministic.
func Decide(o Observation) Decision {
	in := dependents.Input{
		Owner: o.Cluster.Name, Keys: Keys, Now: o.Now,
		Inventory: layers.Inventory(o.Cluster.Status.Resources, o.live()),
		Keep:      map[objects.ID]bool{CopyOf(o.Cluster): true},
		Found:     dependents.Found{Live: o.live(), Stale: map[objects.ID]bool{CopyOf(o.Cluster): o.Stale}},
		Limits:    dependents.Limits{MayWrite: true, MayPrune: true},
	}
	verdict := Judge(o)
	if o.Access != nil && !o.Unlocated && !verdict.Keeps {
		wanted := o.wantedCopy(verdict.Record)
		in.Wanted = []dependents.Dependent{wanted}
		if o.Live != nil && !isCopy(o.Live, wanted.Manifest()) {
			// Whatever the status says, which others may write: this is not the copy.
			for i := range in.Inventory {
				in.Inventory[i].Digest = ""
			}
		}
	}
	decision := Decision{Plan: dependents.Make(in), Verdict: verdict}
	decision.Status, decision.Until = o.status(decision.Plan, verdict)
	if o.Source.Err != nil && !o.Source.Found {
		decision.Until = moments.Earlier(decision.Until, o.Now.Add(sourceRetry))
	}
	return decision
}

func (o Observation) live() map[objects.ID]*unstructured.Unstructured {
	live := map[objects.ID]*unstructured.Unstructured{}
	if o.Live != nil {
		live[CopyOf(o.Cluster)] = o.Live
	}
	return live
}

// status says how the cluster fares.
func (o Observation) status(plan dependents.Plan, verdict Verdict) (v1alpha1.RemoteClusterStatus, time.Time) {
	last := o.Cluster.Status
	status := v1alpha1.RemoteClusterStatus{
		ObservedGeneration: o.Cluster.Generation, Version: cmp.Or(o.Answer.Version, last.Version), Endpoint: last.Endpoint,
		LastSeen: last.LastSeen, Layers: o.Layers, Resources: layers.Resources(plan.Inventory), MAC: last.MAC,
	}
	if o.Access != nil {
		status.Endpoint = o.Access.Endpoint
		if !o.Access.Expires.IsZero() {
			expire := metav1.NewTime(o.Access.Expires.UTC().Truncate(time.Second))
			status.CredentialsExpire = &expire
		}
	}
	set := conditions.New(last.Conditions, o.Cluster.Generation, o.Now)
	o.reachable(set, &status)
	o.identify(set, &status, verdict)
	until := o.expiring(set)
	o.ready(set, plan, verdict)
	status.Conditions = set.List
	return status, until
}

// reachable says whether the cluster answers.
func (o Observation) reachable(set *conditions.Set, status *v1alpha1.RemoteClusterStatus) {
	was := meta.FindStatusCondition(o.Cluster.Status.Conditions, v1alpha1.ReachableCondition)
	switch {
	case o.Answer.At.IsZero() && was != nil:
		set.Put(was.Type, was.Status, was.Reason, was.Message)
	case o.Answer.At.IsZero():
		set.Put(v1alpha1.ReachableCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "the cluster has not been asked yet")
	case o.Answer.Err == nil:
		if was == nil || was.Status != metav1.ConditionTrue {
			seen := metav1.NewTime(o.Answer.LastSeen.UTC().Truncate(time.Second))
			status.LastSeen = &seen
		}
		set.Put(v1alpha1.ReachableCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable, "the API server answers")
	default:
		if !o.Answer.LastSeen.IsZero() {
			seen := metav1.NewTime(o.Answer.LastSeen.UTC().Truncate(time.Second))
			status.LastSeen = &seen
		}
		reason := v1alpha1.ReasonUnreachable
		if o.Answer.Refused {
			reason = v1alpha1.ReasonCredentialsRefused
		}
		set.Put(v1alpha1.ReachableCondition, metav1.ConditionFalse, reason, o.Answer.Err.Error())
		if was == nil && v1alpha1.IsForeign(o.Cluster.Status.Conditions) && status.LastSeen != nil {
			// It is away for as long as it was before its status did not count.
			set.List[len(set.List)-1].LastTransitionTime = *status.LastSeen
		}
	}
}

// expiring says whether the credentials end soon, and returns when that changes.
func (o Observation) expiring(set *conditions.Set) time.Time {
	if o.Access == nil || o.Access.Expires.IsZero() {
		return time.Time{}
	}
	ends := o.Access.Expires.UTC().Format(time.RFC3339)
	warning := expiringSoon
	if !o.Access.Issued.IsZero() {
		warning = min(warning, o.Access.Expires.Sub(o.Access.Issued)/3)
	}
	soon := o.Access.Expires.Add(-warning)
	switch {
	case !o.Now.Before(o.Access.Expires):
		set.Put(v1alpha1.CredentialsExpiringCondition, metav1.ConditionTrue, v1alpha1.ReasonCredentialsExpiring, "the credentials have ended at "+ends)
	case !o.Now.Before(soon):
		set.Put(v1alpha1.CredentialsExpiringCondition, metav1.ConditionTrue, v1alpha1.ReasonCredentialsExpiring, "the credentials end at "+ends)
		return o.Access.Expires
	default:
		set.Put(v1alpha1.CredentialsExpiringCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsValid, "the credentials end at "+ends)
		return soon
	}
	return time.Time{}
}

// ready sums up, the worst first: what is wrong with the credentials, whether the
// cluster answers and is the right one, what is waited for, and whether the copy is
// in place.
func (o Observation) ready(set *conditions.Set, plan dependents.Plan, verdict Verdict) {
	not := func(status metav1.ConditionStatus, reason, message string) {
		set.Put(v1alpha1.ReadyCondition, status, reason, message)
		if status == metav1.ConditionUnknown {
			set.Put(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, reason, message)
		}
	}
	if len(o.Left) > 0 {
		not(metav1.ConditionFalse, v1alpha1.ReasonLayersLeft, o.leftMessage())
		return
	}
	if old := oldwords.InCluster(o.Cluster); old != "" {
		not(metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, old)
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec, old)
		return
	}
	secret := o.secret()
	away := meta.FindStatusCondition(set.List, v1alpha1.ReachableCondition)
	switch {
	case o.isRefused():
		not(metav1.ConditionFalse, verdict.Reason, verdict.Message)
	case o.Source.Empty && o.Access == nil:
		not(metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for "+secret+", which is empty yet")
	case o.Source.Found && o.Source.Err != nil:
		not(metav1.ConditionFalse, v1alpha1.ReasonInvalidKubeConfig, secret+" "+o.Source.Err.Error())
	case o.Source.Err != nil:
		hint := ""
		if apierrors.IsForbidden(o.Source.Err) && o.Cluster.Spec.KubeConfig.ClusterRef == nil {
			hint = "; remoteClusters.enabled of the chart gives the controller that right"
		}
		not(metav1.ConditionFalse, v1alpha1.ReasonInvalidKubeConfig, o.Source.Err.Error()+hint)
	case o.Via != "":
		not(metav1.ConditionUnknown, v1alpha1.ReasonPending, o.Via)
	case o.Access == nil:
		not(metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for "+secret+", which does not exist")
	case away.Status == metav1.ConditionFalse:
		not(metav1.ConditionFalse, away.Reason, "the cluster cannot be reached: "+away.Message)
	case verdict.Stops:
		not(metav1.ConditionFalse, verdict.Reason, verdict.Message)
	case verdict.Claim:
		not(metav1.ConditionUnknown, verdict.Reason, verdict.Message)
	case o.Source.Known && !o.Source.Found:
		not(metav1.ConditionFalse, v1alpha1.ReasonCredentialsSourceGone, secret+" has gone; the copy of it is used")
	case away.Status != metav1.ConditionTrue:
		not(metav1.ConditionUnknown, v1alpha1.ReasonPending, away.Message)
	case o.Unlocated:
		not(metav1.ConditionUnknown, v1alpha1.ReasonPending, "the address of the API server is being looked up")
	case !o.Identity.Known() && !o.leadsWhereItDid():
		not(metav1.ConditionUnknown, v1alpha1.ReasonPending, verdict.Message)
	default:
		// A copy that is to stay as it is for now is not waited for.
		if worst, found := objects.Worst(plan.Standings); found && worst.Health > objects.Ignored && (o.Live == nil || !verdict.Keeps) {
			not(metav1.ConditionUnknown, v1alpha1.ReasonPending, fmt.Sprintf("%s %s", worst.ID, worst.Message))
			return
		}
		message := fmt.Sprintf("the API server at %s answers, Kubernetes %s", o.Access.Endpoint, cmp.Or(o.Answer.Version, o.Cluster.Status.Version))
		if shared := o.shared(); shared != "" {
			message += "; " + shared
		}
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable, message)
	}
}

// leadsWhereItDid tells whether the kubeconfig is that of Strata's own copy, which was made for the
// cluster that is recorded: after a restart nothing else is to be expected.
func (o Observation) leadsWhereItDid() bool {
	if o.Recorded == "" || o.Live == nil {
		return false
	}
	wanted := o.wantedCopy(o.Recorded)
	return isCopy(o.Live, wanted.Manifest())
}

// leftMessage says what a deletion waits for.
func (o Observation) leftMessage() string {
	const most = 5
	names := o.Left
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Sprintf("is not deleted while something is on the cluster: %s%s; delete those layers or move them to another cluster",
		strings.Join(names, ", "), more)
}

// secret names the Secret of the kubeconfig.
func (o Observation) secret() string {
	from := o.Cluster.Spec.KubeConfig
	if from.ClusterRef != nil {
		return fmt.Sprintf(
			"Secret %s/%s on RemoteCluster %s", cmp.Or(from.SecretRef.Namespace, o.Cluster.Namespace), from.SecretRef.Name, from.ClusterRef.Name,
		)
	}
	return fmt.Sprintf("Secret %s/%s", o.Cluster.Namespace, from.SecretRef.Name)
}
