// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// seen has the connection show something of the cluster.
func seen(identity Identity) func(*Observation) {
	return func(o *Observation) { o.Identity = identity }
}

// says sets an annotation of the RemoteCluster.
func says(key, value string) func(*Observation) {
	return func(o *Observation) { o.Cluster.Annotations = map[string]string{key: value} }
}

// unrecorded is a cluster that was never seen before.
func unrecorded(o *Observation) { o.Recorded, o.Live, o.Cluster.Status.Resources = "", nil, nil }

func TestJudge(t *testing.T) {
	another := Identity{UID: secondUID}
	for name, test := range map[string]struct {
		reason string
		o      Observation
		want   Verdict
		says   []string
	}{
		"as it was": {
			"the cluster that was recorded may be written to", observation(),
			Verdict{Open: true, Record: firstUID, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdentified},
			[]string{firstUID},
		},
		"nothing seen over this connection": {
			"what another connection has shown does not count, and the copy stays as it is",
			observation(seen(Identity{})),
			Verdict{Keeps: true, Record: firstUID, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending},
			nil,
		},
		"first sight": {
			"the first one is claimed before it is written to", observation(unrecorded, seen(Identity{UID: firstUID})),
			Verdict{Claim: true, Keeps: true, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending},
			nil,
		},
		"first sight, claimed": {
			"it is recorded, and written to once it is", observation(unrecorded),
			Verdict{Record: firstUID, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending},
			nil,
		},
		"another one": {
			"people have to say that it is the right one", observation(seen(another)),
			Verdict{Stops: true, Keeps: true, Record: firstUID, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityChanged},
			[]string{firstUID, secondUID, "kubectl annotate remotecluster -n fleet prod kraan.io/accept-cluster=" + secondUID},
		},
		"a third one": {
			"the annotation accepts one cluster and no other", observation(seen(Identity{UID: "33333333-cccc"}), says(v1alpha1.AcceptClusterAnnotation, secondUID)),
			Verdict{Stops: true, Keeps: true, Record: firstUID, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityChanged},
			[]string{"33333333-cccc"},
		},
		"another one that is accepted": {
			"it is claimed first, as any other", observation(seen(another), says(v1alpha1.AcceptClusterAnnotation, secondUID)),
			Verdict{Claim: true, Keeps: true, Record: firstUID, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending},
			nil,
		},
		"another one that is accepted and claimed": {
			"it is recorded before it is written to", observation(seen(Identity{UID: secondUID, Hub: hubUID}), says(v1alpha1.AcceptClusterAnnotation, secondUID)),
			Verdict{Record: secondUID, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending},
			nil,
		},
		"accepted and recorded": {
			"the annotation is used up", observation(says(v1alpha1.AcceptClusterAnnotation, firstUID)),
			Verdict{Open: true, Record: firstUID, Consume: []string{v1alpha1.AcceptClusterAnnotation}, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdentified},
			nil,
		},
		"accepted in advance": {
			"it waits for the cluster that it names", observation(says(v1alpha1.AcceptClusterAnnotation, secondUID)),
			Verdict{Open: true, Record: firstUID, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdentified},
			nil,
		},
		"forbidden before": {
			"work goes on, and the right is named", observation(unrecorded, seen(Identity{Forbidden: true})),
			Verdict{Open: true, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityForbidden},
			[]string{"may not get the namespace kube-system"},
		},
		"forbidden afterwards": {
			"a cluster was recorded, and need not be this one", observation(seen(Identity{Forbidden: true})),
			Verdict{Stops: true, Keeps: true, Record: firstUID, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonIdentityForbidden},
			[]string{firstUID},
		},
		"another hub's": {
			"nothing is written to it", observation(unrecorded, seen(Identity{UID: firstUID, Hub: otherHub})),
			Verdict{Stops: true, Keeps: true, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimedByOther},
			[]string{otherHub, hubUID, "kraan.io/take-over-from=" + otherHub},
		},
		"another hub's by now": {
			"the one that has lost it stops", observation(seen(Identity{UID: firstUID, Hub: otherHub})),
			Verdict{Stops: true, Keeps: true, Record: firstUID, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimedByOther},
			[]string{otherHub},
		},
		"taken over from another hub than it is": {
			"the annotation names one hub", observation(seen(Identity{UID: firstUID, Hub: otherHub}), says(v1alpha1.TakeOverAnnotation, "77777777-hub")),
			Verdict{Stops: true, Keeps: true, Record: firstUID, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimedByOther},
			[]string{otherHub},
		},
		"taken over": {
			"the claim is written first", observation(seen(Identity{UID: firstUID, Hub: otherHub}), says(v1alpha1.TakeOverAnnotation, otherHub)),
			Verdict{Claim: true, Keeps: true, Record: firstUID, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending},
			nil,
		},
		"was taken over": {
			"the annotation is used up", observation(says(v1alpha1.TakeOverAnnotation, otherHub)),
			Verdict{Open: true, Record: firstUID, Consume: []string{v1alpha1.TakeOverAnnotation}, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdentified},
			nil,
		},
		"may not be claimed": {
			"work goes on, and the right is named", observation(seen(Identity{UID: firstUID, Unclaimable: true})),
			Verdict{Open: true, Record: firstUID, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClusterNotClaimed},
			[]string{"may not patch the namespace kube-system"},
		},
		"the hub is not known": {
			"work goes on, and the right is named", observation(seen(Identity{UID: firstUID}), func(o *Observation) { o.Hub = "" }),
			Verdict{Open: true, Record: firstUID, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClusterNotClaimed},
			[]string{"of its own cluster"},
		},
		"shared": {
			"it may be written to, and says who leads there, too", observation(func(o *Observation) { o.Twins = []string{"fleet/b", "", "fleet/a"} }),
			Verdict{Open: true, Record: firstUID, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClusterShared},
			[]string{"the cluster that Strata runs in", "fleet/a, fleet/b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(test.o)
			for _, word := range test.says {
				if !strings.Contains(got.Message, word) {
					t.Errorf("the message lacks %q: %s", word, got.Message)
				}
			}
			got.Message = ""
			if got.Open != test.want.Open || got.Stops != test.want.Stops || got.Record != test.want.Record || got.Keeps != test.want.Keeps || got.Claim != test.want.Claim ||
				!slices.Equal(got.Consume, test.want.Consume) || got.Status != test.want.Status || got.Reason != test.want.Reason {
				t.Errorf("%s: it is %+v, want %+v", test.reason, got, test.want)
			}
		})
	}
}

// Whatever is written to a status, it is not what the rules go by.
func TestForgedStatusAcceptsNoCluster(t *testing.T) {
	o := observation(seen(Identity{UID: secondUID, Hub: hubUID}), func(o *Observation) {
		o.Access = &Access{KubeConfig: []byte("token: other"), Digest: "two", Endpoint: "https://evil.example.com:6443"}
		o.Cluster.Status.ClusterUID = secondUID
		o.Cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.IdentifiedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdentified}}
	})
	decision := Decide(o)
	if decision.Verdict.Open || !decision.Verdict.Stops || decision.Plan.Writes() {
		t.Errorf("it is %+v and does %v", decision.Verdict, decision.Plan.Actions)
	}
	for _, kind := range []string{v1alpha1.ReadyCondition, v1alpha1.IdentifiedCondition} {
		if found := meta.FindStatusCondition(decision.Status.Conditions, kind); found == nil || found.Status != metav1.ConditionFalse || found.Reason != v1alpha1.ReasonIdentityChanged {
			t.Errorf("%s is %+v", kind, found)
		}
	}
}

// Flux writes through the copy of a kubeconfig: it does not follow the Secret before
// the cluster behind that is known to be the right one.
func TestCopyFollowsNoUnknownCluster(t *testing.T) {
	swapped := func(o *Observation) {
		o.Access = &Access{KubeConfig: []byte("token: other"), Digest: "two", Endpoint: "https://other.example.com:6443"}
	}
	deleted := func(o *Observation) {
		gone := metav1.NewTime(now)
		o.Live.SetDeletionTimestamp(&gone)
	}
	for name, test := range map[string]struct {
		identity Identity
		want     bool
	}{
		"not asked":      {Identity{}, false},
		"the same":       {Identity{UID: firstUID, Hub: hubUID}, true},
		"another one":    {Identity{UID: secondUID, Hub: hubUID}, false},
		"forbidden":      {Identity{Forbidden: true}, false},
		"another hub's":  {Identity{UID: firstUID, Hub: otherHub}, false},
		"without claim":  {Identity{UID: firstUID}, false},
		"no right to it": {Identity{UID: firstUID, Unclaimable: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(observation(swapped, seen(test.identity))).Plan.Writes(); got != test.want {
				t.Errorf("the copy is written: %t, want %t", got, test.want)
			}
			o := observation(swapped, deleted, seen(test.identity))
			if got := Refreshed(o) != nil; got != test.want {
				t.Errorf("a copy that is deleted is refreshed: %t, want %t", got, test.want)
			}
			if got := LetsCopyGo(o, nil); got != test.want {
				t.Errorf("a copy that is deleted may go: %t, want %t", got, test.want)
			}
		})
	}
}

// A claim is taken off by whom it names, and not while somebody else needs it.
func TestClaimIsLetGo(t *testing.T) {
	for name, test := range map[string]struct {
		o    Observation
		want bool
	}{
		"one's own":             {observation(), true},
		"another hub's":         {observation(seen(Identity{UID: firstUID, Hub: otherHub})), false},
		"on another cluster":    {observation(seen(Identity{UID: secondUID, Hub: hubUID})), false},
		"nobody's":              {observation(seen(Identity{UID: firstUID})), false},
		"of two RemoteClusters": {observation(func(o *Observation) { o.Twins = []string{"fleet/b"} }), false},
		"of the hub itself":     {observation(func(o *Observation) { o.Twins = []string{""} }), true},
		"away":                  {observation(func(o *Observation) { o.Answer.Err = errors.New("refused") }), false},
		"given up":              {observation(says(v1alpha1.AbandonAnnotation, "true")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LetsGo(test.o); got != test.want {
				t.Errorf("it is %t, want %t", got, test.want)
			}
		})
	}
}

// What was said of a cluster stays until it has said something itself, so that a
// restart of the controller writes nothing.
func TestIdentifiedStaysUntilAsked(t *testing.T) {
	o := observation()
	o.Cluster.Status = Decide(o).Status
	o.Identity, o.Answer, o.Now = Identity{}, Answer{}, now.Add(time.Minute)
	decision := Decide(o)
	was, is := o.Cluster.Status.Conditions, decision.Status.Conditions
	if !slices.Equal(was, is) || decision.Plan.Writes() || decision.Verdict.Open {
		t.Errorf("the conditions were %+v, and are %+v; it does %v", was, is, decision.Plan.Actions)
	}
}
