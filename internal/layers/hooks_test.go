// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

func TestDecideWaitFor(t *testing.T) {
	dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	id := objects.ID{Kind: "ConfigMap", Namespace: "default", Name: "flags"}
	condition := "object.data.phase == 'done'"
	waits := func(l *v1alpha1.AddonsLayer) {
		l.Spec.WaitFor = []v1alpha1.WaitFor{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "flags", ReadyExpr: condition}}
	}
	configMap := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": data}}
	}
	saw := func(seen Awaited) func(*Observation) {
		return func(o *Observation) { seen.ID = id; o.Awaited = []Awaited{seen} }
	}
	since := func(ago time.Duration) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.State, l.Status.Attempt.StartTime = v1alpha1.StateApplying, metav1.NewTime(testNow.Add(-ago))
		}
	}
	both := lives(live("a"))
	for name, c := range map[string]struct {
		in      Observation
		state   v1alpha1.State
		message string
		stalled bool
	}{
		"met": {
			in: observation(layer(isDeployed(dir), waits), dir, both, saw(Awaited{Live: configMap(map[string]any{"phase": "done"})})), state: v1alpha1.StateDeployed, message: "version 1.0.0",
		},
		"not met": {
			in:    observation(layer(isDeployed(dir), waits), dir, both, saw(Awaited{Live: configMap(map[string]any{"phase": "begun"})})),
			state: v1alpha1.StateApplying, message: "ConfigMap default/flags is waited for until " + condition,
		},
		"a field that is not there yet": {
			in:    observation(layer(isDeployed(dir), waits), dir, both, saw(Awaited{Live: configMap(map[string]any{})})),
			state: v1alpha1.StateApplying, message: "there is no phase",
		},
		"missing": {
			in: observation(layer(isDeployed(dir), waits), dir, both, saw(Awaited{})), state: v1alpha1.StateApplying, message: "is waited for, and does not exist",
		},
		"not served": {
			in: observation(layer(isDeployed(dir), waits), dir, both, saw(Awaited{Unserved: true})), state: v1alpha1.StateApplying, message: "does not serve v1 ConfigMap",
		},
		"not readable": {
			in: observation(layer(isDeployed(dir), waits), dir, both, saw(Awaited{Err: errors.New("configmaps is forbidden")})), state: v1alpha1.StateApplying, message: "cannot be read: configmaps is forbidden",
		},
		"not looked at": {
			in: observation(layer(isDeployed(dir), waits), dir, both), state: v1alpha1.StateApplying, message: "has yet to be looked at",
		},
		"too late": {
			in: observation(layer(isDeployed(dir), waits, since(time.Hour)), dir, both, saw(Awaited{})), state: v1alpha1.StateFailed, message: "not deployed within 6m0s: ConfigMap default/flags",
		},
		"a release comes first": {
			in: observation(layer(isDeployed(dir), waits), dir, lives(live("a", failing)), saw(Awaited{})), state: v1alpha1.StateApplying, message: "HelmRelease default/a is not ready",
		},
		"no version": {
			in:    observation(layer(isDeployed(dir), waits, func(l *v1alpha1.AddonsLayer) { l.Spec.WaitFor[0].APIVersion = "a/b/c" }), dir, both),
			state: v1alpha1.StateFailed, message: "spec.waitFor[0].apiVersion: ", stalled: true,
		},
		"no condition": {
			in:    observation(layer(isDeployed(dir), waits, func(l *v1alpha1.AddonsLayer) { l.Spec.WaitFor[0].ReadyExpr = "object.data ==" }), dir, both),
			state: v1alpha1.StateFailed, message: "spec.waitFor[0].readyExpr: ", stalled: true,
		},
		"a selector that is none": {
			in: observation(layer(isDeployed(dir), func(l *v1alpha1.AddonsLayer) {
				l.Spec.DeleteBefore = []v1alpha1.DeleteBefore{{APIVersion: "v1", Kind: "Service", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}}
			}), dir, both), state: v1alpha1.StateFailed, message: "spec.deleteBefore[0].selector: ", stalled: true,
		},
		"a where that is none": {
			in: observation(layer(isDeployed(dir), func(l *v1alpha1.AddonsLayer) {
				l.Spec.DeleteBefore = []v1alpha1.DeleteBefore{{APIVersion: "v1", Kind: "Service", Where: "inputs.x"}}
			}), dir, both), state: v1alpha1.StateFailed, message: "spec.deleteBefore[0].where: ", stalled: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.in)
			if d.State != c.state || !strings.Contains(d.Message, c.message) || d.Stalled != c.stalled {
				t.Errorf("it is %s (stalled %t): %s", d.State, d.Stalled, d.Message)
			}
			if d.Plan.Writes() {
				t.Errorf("it does %s", verbs(d.Plan))
			}
			status, _ := Report(c.in, d, nil)
			if d.State != v1alpha1.StateDeployed && len(status.BlockedBy) == 0 {
				t.Error("nothing is said to stand in the way")
			}
			for _, resource := range status.Resources {
				if resource.Name == "flags" {
					t.Error("what is waited for is in the inventory")
				}
			}
		})
	}
}

func TestDecideDeleteBefore(t *testing.T) {
	dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	going := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return layer(append([]layerChange{isDeployed(dir), deleted, func(l *v1alpha1.AddonsLayer) {
			l.Spec.DeleteBefore = []v1alpha1.DeleteBefore{{APIVersion: "v1", Kind: "Service"}}
		}}, changes...)...)
	}
	doomed := func(list ...Doomed) func(*Observation) {
		return func(o *Observation) {
			for i := range list {
				list[i].ID = objects.ID{Kind: "Service", Namespace: "default", Name: fmt.Sprintf("s%d", i)}
			}
			o.Doomed = list
		}
	}
	since := func(ago time.Duration) Doomed {
		return Doomed{UID: "x", Since: testNow.Add(-ago), Kept: "cloud.example/balancer"}
	}
	begun := func(l *v1alpha1.AddonsLayer) {
		l.Status.Conditions = append(l.Status.Conditions, metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue})
	}
	orphan := func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }
	force := annotation(v1alpha1.ForceDeleteAnnotation, "true")
	confirm := annotation(v1alpha1.ConfirmDeletionAnnotation, "true")
	both := lives(live("a"))
	many := make([]Doomed, 7)
	for name, c := range map[string]struct {
		in               Observation
		actions, message string
		state            v1alpha1.State
		again            time.Duration
	}{
		"none is left": {in: observation(going(), dir, both), actions: "Mark a", message: "is being deleted", again: time.Minute},
		"one is there": {
			in: observation(going(), dir, both, doomed(Doomed{UID: "x"})), actions: "Delete s0", again: soonest,
			message: "waits until Service default/s0 is gone before anything is uninstalled",
		},
		"one is going": {
			in: observation(going(), dir, both, doomed(since(time.Second))), again: soonest,
			message: "waits until Service default/s0 (kept by cloud.example/balancer) is gone before anything is uninstalled",
		},
		"one is going, another is there": {
			in: observation(going(), dir, both, doomed(since(time.Minute), Doomed{UID: "y"})), actions: "Delete s1", again: 15 * time.Second, message: "Service default/s1 are gone",
		},
		"many": {
			in: observation(going(), dir, both, doomed(many...)), actions: "Delete s0, Delete s1, Delete s2, Delete s3, Delete s4, Delete s5, Delete s6", again: soonest,
			message: "Service default/s4, 2 more are gone",
		},
		"too long": {
			in: observation(going(), dir, both, doomed(since(10*time.Minute))), state: v1alpha1.StateFailed, again: latest, message: "takes longer than spec.deleteBefore allows",
		},
		"longer than its own timeout": {
			in: observation(going(), dir, both, doomed(Doomed{Since: testNow.Add(-time.Minute), Timeout: time.Minute})), state: v1alpha1.StateFailed, again: 15 * time.Second,
			message: "takes longer than spec.deleteBefore allows",
		},
		"not known": {
			in:      observation(going(), dir, both, func(o *Observation) { o.DoomedError = errors.New("services is forbidden") }),
			message: "it is not known which objects of spec.deleteBefore are left: services is forbidden",
		},
		"forced":        {in: observation(going(force), dir, both, doomed(Doomed{UID: "x"})), actions: "Mark a", message: "is being deleted", again: time.Minute},
		"begun":         {in: observation(going(begun), dir, both, doomed(Doomed{UID: "x"})), actions: "Mark a", message: "is being deleted", again: time.Minute},
		"policy Orphan": {in: observation(going(orphan), dir, both, doomed(Doomed{UID: "x"})), actions: "Release a", message: "is being deleted"},
		"nothing there": {
			in: observation(going(func(l *v1alpha1.AddonsLayer) { l.Status.Resources = nil }), dir, doomed(Doomed{UID: "x"})), message: "has nothing left",
		},
		"what would be lost comes first": {
			in:      observation(going(), dir, both, doomed(Doomed{UID: "x"}), func(o *Observation) { o.Blockers = []Blocker{{Fate: FateDeleted, Count: 1}} }),
			message: "is not deleted while", again: blockersPeriod,
		},
		"what would be lost, confirmed": {
			in:      observation(going(confirm), dir, both, doomed(Doomed{UID: "x"}), func(o *Observation) { o.Blockers = []Blocker{{Fate: FateDeleted, Count: 1}} }),
			actions: "Delete s0", message: "waits until Service default/s0 is gone", again: soonest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.in)
			if c.state == "" {
				c.state = v1alpha1.StatePruning
			}
			if d.State != c.state || !strings.Contains(d.Message, c.message) {
				t.Errorf("it is %s: %s", d.State, d.Message)
			}
			if got := verbs(d.Plan); got != c.actions {
				t.Errorf("it does %q, want %q", got, c.actions)
			}
			if got := d.Until; !got.IsZero() && got.Sub(testNow).Round(time.Second) != c.again || got.IsZero() != (c.again == 0) {
				t.Errorf("it is looked at again at %s, want after %s", got, c.again)
			}
		})
	}
}
