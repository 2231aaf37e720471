// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
)

// SystemNamespace is the namespace by whose UID a cluster is known. Every cluster
// has it, nobody makes it anew, and it is asked for in one request with the claim.
const SystemNamespace = "kube-system"

// Identity is what a connection has shown of the cluster that it leads to.
type Identity struct {
	// UID of the namespace kube-system; empty where it may not be read, or was not
	// yet.
	UID string
	// Forbidden is true where the user of the kubeconfig may not read it.
	Forbidden bool
	// Hub is what the claim on the cluster says; empty where there is none.
	Hub string
	// Unclaimable is true where the claim was to be written and must not be.
	Unclaimable bool
	// Version of the namespace as it was read, for a write that tests it.
	Version string
}

// Known tells whether the connection has shown anything yet.
func (i Identity) Known() bool { return i.UID != "" || i.Forbidden }

// Same tells whether two looks at a connection mean the same.
func (i Identity) Same(other Identity) bool {
	return i.UID == other.UID && i.Forbidden == other.Forbidden && i.Hub == other.Hub
}

// Verdict is what follows from the identity of a cluster.
type Verdict struct {
	// Open is true where the cluster may be written to over this connection.
	Open bool
	// Stops is true where people have to decide before it is written to again; its
	// layers are told so. A verdict that is neither waits for an answer.
	Stops bool
	// Record is the UID that Strata's own copy of the kubeconfig is to say; empty
	// for none. It is not said yet where Open is false.
	Record string
	// Keeps is true where the copy is to be left as it is: through another one Flux
	// would write to who knows which cluster.
	Keeps bool
	// Claim is true where the claim on the cluster is to be written first.
	Claim bool
	// Consume names annotations of the RemoteCluster that are used up.
	Consume []string

	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Judge says whether the cluster that answers is the one that may be written to.
// It is deterministic.
func Judge(o Observation) Verdict {
	v := judge(o)
	annotations := o.Cluster.Annotations
	if v.Open && annotations[v1alpha1.AcceptClusterAnnotation] == o.Recorded && o.Recorded != "" {
		v.Consume = append(v.Consume, v1alpha1.AcceptClusterAnnotation)
	}
	if v.Open && o.Hub != "" && o.Identity.Hub == o.Hub && annotations[v1alpha1.TakeOverAnnotation] != "" {
		v.Consume = append(v.Consume, v1alpha1.TakeOverAnnotation)
	}
	return v
}

func judge(o Observation) Verdict {
	seen, recorded := o.Identity, o.Recorded
	accepted := o.Cluster.Annotations[v1alpha1.AcceptClusterAnnotation]
	switch {
	case o.isRefused():
		return o.refused()
	case !seen.Known():
		return Verdict{
			Keeps: true, Record: recorded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending,
			Message: "the cluster has not said yet which one it is",
		}
	case seen.Forbidden && recorded == "":
		return Verdict{
			Open: true, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityForbidden,
			Message: forbidden + "; another cluster, or another hub on this one, would not be noticed",
		}
	case seen.Forbidden:
		return Verdict{
			Stops: true, Keeps: true, Record: recorded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityForbidden,
			Message: fmt.Sprintf("%s; nothing is written until it may, because the cluster was %s before and need not be any more", forbidden, recorded),
		}
	case recorded != "" && seen.UID != recorded && seen.UID != accepted:
		return Verdict{
			Stops: true, Keeps: true, Record: recorded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityChanged,
			Message: fmt.Sprintf("another cluster answers: it is %s, and was %s; nothing is written to it until somebody says that it is the right one: %s",
				seen.UID, recorded, o.annotate(v1alpha1.AcceptClusterAnnotation, seen.UID)),
		}
	case seen.Hub != "" && o.Hub != "" && seen.Hub != o.Hub && seen.Hub != o.Cluster.Annotations[v1alpha1.TakeOverAnnotation]:
		return Verdict{
			Stops:  true,
			Keeps:  true,
			Record: recorded,
			Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonClaimedByOther,
			Message: fmt.Sprintf(
				"the cluster is another hub's: its namespace %s names hub %s, and this one is %s; nothing is written to it; once that hub has let it go, or is gone: %s",
				SystemNamespace,
				seen.Hub,
				o.Hub,
				o.annotate(v1alpha1.TakeOverAnnotation, seen.Hub),
			),
		}
	case o.Hub != "" && seen.Hub != o.Hub && !seen.Unclaimable:
		return Verdict{
			Claim: true, Keeps: true, Record: recorded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending,
			Message: "the cluster is about to be claimed for this hub",
		}
	case seen.UID != recorded:
		return Verdict{
			Record: seen.UID, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending,
			Message: fmt.Sprintf("it is about to be recorded that the cluster is %s", seen.UID),
		}
	}
	return o.identified()
}

const forbidden = "the user of the kubeconfig may not get the namespace " + SystemNamespace + ", by whose UID a cluster is known"

// identified is the verdict on a cluster that may be written to, with what else
// there is to know of it.
func (o Observation) identified() Verdict {
	v := Verdict{Open: true, Record: o.Recorded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdentified, Message: "the cluster is " + o.Recorded}
	switch {
	case o.Hub == "":
		v.Reason = v1alpha1.ReasonClusterNotClaimed
		v.Message += "; it is not claimed for this hub, because the controller may not get the namespace " + SystemNamespace + " of its own cluster"
	case o.Identity.Unclaimable:
		v.Reason = v1alpha1.ReasonClusterNotClaimed
		v.Message += "; it is not claimed for this hub, because the user of the kubeconfig may not patch the namespace " +
			SystemNamespace + "; another hub would not notice this one"
	}
	if shared := o.shared(); shared != "" {
		v.Reason = v1alpha1.ReasonClusterShared
		v.Message += "; " + shared
	}
	return v
}

// shared says by what other names Strata knows the cluster; empty for none.
func (o Observation) shared() string {
	const most = 5
	var names []string
	for _, twin := range slices.Sorted(slices.Values(o.Twins)) {
		if twin != "" {
			names = append(names, twin)
		}
	}
	text := ""
	if len(names) > 0 {
		more := ""
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		text = fmt.Sprintf("RemoteCluster %s%s leads there, too", strings.Join(names, ", "), more)
	}
	if slices.Contains(o.Twins, "") {
		text = strings.Join(slices.DeleteFunc([]string{"it is the cluster that Strata runs in", text}, func(s string) bool { return s == "" }), ", and ")
	}
	return text
}

// annotate returns the command that sets an annotation of the RemoteCluster.
func (o Observation) annotate(key, value string) string {
	return fmt.Sprintf("kubectl annotate remotecluster -n %s %s %s=%s", o.Cluster.Namespace, o.Cluster.Name, key, value)
}

// identify reports which cluster answers. What was said before stays until the
// cluster has said something over this connection.
func (o Observation) identify(set *conditions.Set, status *v1alpha1.RemoteClusterStatus, v Verdict) {
	status.ClusterUID = cmp.Or(o.Identity.UID, o.Cluster.Status.ClusterUID)
	if was := meta.FindStatusCondition(o.Cluster.Status.Conditions, v1alpha1.IdentifiedCondition); was != nil && !o.Identity.Known() {
		set.Put(was.Type, was.Status, was.Reason, was.Message)
		return
	}
	set.Put(v1alpha1.IdentifiedCondition, v.Status, v.Reason, v.Message)
}

// LetsGo tells whether a claim is to be taken off a cluster whose RemoteCluster
// goes: only one's own, on the cluster that may be written to, and not while
// another RemoteCluster leads there.
func LetsGo(o Observation) bool {
	return o.Hub != "" && o.Identity.Hub == o.Hub && o.Identity.UID == o.Recorded && o.Recorded != "" && o.Answer.Err == nil &&
		!o.isGivenUp() && !slices.ContainsFunc(o.Twins, func(twin string) bool { return twin != "" })
}

// isGivenUp tells whether nothing is asked of the cluster any more.
func (o Observation) isGivenUp() bool {
	return o.Cluster.Spec.DeletionPolicy == v1alpha1.ClusterDeletionAbandon || o.Cluster.Annotations[v1alpha1.AbandonAnnotation] == "true"
}

// RecordedOn returns the UID that Strata's own copy of a kubeconfig says; empty for
// none, and for nil.
func RecordedOn(live *unstructured.Unstructured) string {
	if live == nil {
		return ""
	}
	return live.GetAnnotations()[v1alpha1.ClusterUIDAnnotation]
}
