// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hosts"
)

func pod(name string, phase corev1.PodPhase, owner string) corev1.Pod {
	made := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	if owner != "" {
		isController := owner == "controller"
		made.OwnerReferences = []metav1.OwnerReference{{Name: "owner", Controller: &isController}}
	}
	return made
}

// Only Pods that go on, and that a controller makes again, may be sent away.
func TestPodsThatNothingWouldMakeAgain(t *testing.T) {
	got := withoutController([]corev1.Pod{
		pod("owned", corev1.PodRunning, "controller"), pod("kept", corev1.PodRunning, "owner"), pod("alone", corev1.PodPending, ""),
		pod("done", corev1.PodSucceeded, ""), pod("failed", corev1.PodFailed, ""),
	})
	if diff := cmp.Diff([]string{"apps/alone", "apps/kept"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNodesThatTakePods(t *testing.T) {
	node := func(ready corev1.ConditionStatus, cordoned bool) corev1.Node {
		return corev1.Node{
			Spec:   corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	for name, test := range map[string]struct {
		node corev1.Node
		want bool
	}{
		"ready":    {node(corev1.ConditionTrue, false), true},
		"cordoned": {node(corev1.ConditionTrue, true), false},
		"lost":     {node(corev1.ConditionUnknown, false), false},
		"new":      {corev1.Node{}, false},
	} {
		if got := takesPods(test.node); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What holds a Pod is told once, however often it is tried, and again when the time is over,
// with the Pods that are still there. What a Pod's name might do to a terminal it does not.
func TestPodsThatDoNotLeave(t *testing.T) {
	var heard []string
	l := &leaving{host: "cp-0", until: time.Unix(9, 0), pods: map[string]bool{}, report: func(e Event) {
		heard = append(heard, e.Host+" "+e.Message)
	}}
	held, gone := pod("held", corev1.PodRunning, ""), pod("gone", corev1.PodRunning, "")
	l.add(&held)
	l.add(&gone)
	l.remove(&gone, nil)
	l.remove(&held, context.DeadlineExceeded)
	const said = "error when evicting pods/\"held\" (will retry after 5s): it would violate the budget\x1b[31m\nWARNING: deleting Pods\n"
	for range 3 {
		if n, err := l.Write([]byte(said)); n != len(said) || err != nil {
			t.Fatal(n, err)
		}
	}
	const line = `error when evicting pods/"held" (will retry after 5s): it would violate the budget [31m`
	if diff := cmp.Diff([]string{"cp-0 " + line}, heard); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := l.why(errors.New("timeout")), "apps/held: "+line; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Workers are upgraded side by side, as many as the manifest says; nothing else is.
func TestActionsThatAreTakenTogether(t *testing.T) {
	upgrade := func(names ...string) []hosts.Action {
		var made []hosts.Action
		for _, name := range names {
			made = append(made, hosts.Action{Verb: hosts.VerbUpgrade, Host: name})
		}
		return made
	}
	percent := func(text string) *intstr.IntOrString { return new(intstr.FromString(text)) }
	for name, tc := range map[string]struct {
		most    *intstr.IntOrString
		actions []hosts.Action
		want    int
	}{
		"no number":             {nil, upgrade("w-0", "w-1", "w-2"), 1},
		"two":                   {new(intstr.FromInt32(2)), upgrade("w-0", "w-1", "w-2"), 2},
		"more than there are":   {new(intstr.FromInt32(9)), upgrade("w-0", "w-1"), 2},
		"a part":                {percent("50%"), upgrade("w-0", "w-1", "w-2", "w-3"), 2},
		"a part of less than 1": {percent("10%"), upgrade("w-0", "w-1", "w-2", "w-3"), 1},
		"the control plane":     {new(intstr.FromInt32(3)), upgrade("cp-0", "w-0", "w-1"), 1},
		"a join after":          {new(intstr.FromInt32(3)), append(upgrade("w-0"), hosts.Action{Verb: hosts.VerbJoinWorker, Host: "w-1"}), 1},
		"joins":                 {new(intstr.FromInt32(3)), []hosts.Action{{Verb: hosts.VerbJoinWorker, Host: "w-0"}, {Verb: hosts.VerbJoinWorker, Host: "w-1"}}, 1},
	} {
		spec := v1alpha1.HostClusterSpec{Workers: []v1alpha1.ClusterHost{{Name: "w-0"}, {Name: "w-1"}, {Name: "w-2"}, {Name: "w-3"}}}
		spec.Upgrade.MaxUnavailable = tc.most
		if got := together(spec, tc.actions); len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
