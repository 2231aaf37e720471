// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// cycle spells out a cycle as messages do.
func (f *fixture) cycle(layers ...string) string {
	names := make([]string, 0, len(layers))
	for _, layer := range layers {
		names = append(names, f.name(layer))
	}
	return "layers depend on each other: " + strings.Join(names, " -> ")
}

// Members of a cycle are Stalled, each with the way around from itself. All
// others go on, or wait for a reason of their own, and the cycle is mended in
// any of its members.
func TestCycleIsSpelledOutAndOthersGoOn(t *testing.T) {
	f := newFixture(t)
	revision := f.push(f.oneRelease("x", "a", "b", "c", "self", "after", "lost", "wrong", "free"))
	f.layer("a", f.dependsOn("b@1.0.0"))
	f.layer("b", f.dependsOn("c@^1"))
	f.layer("c", f.dependsOn("a", "free"))
	f.layer("self", f.dependsOn("self@>=1"))
	f.layer("after", f.dependsOn("a@1.0.0"))
	f.layer("lost", f.dependsOn("nowhere@1.0.0"))
	f.layer("wrong", f.dependsOn("free@^2"))
	f.layer("free")
	f.deployed("free", revision)

	f.stalled("a", v1alpha1.ReasonDependencyCycle, f.cycle("a", "b", "c", "a"))
	f.stalled("b", v1alpha1.ReasonDependencyCycle, f.cycle("b", "c", "a", "b"))
	f.stalled("c", v1alpha1.ReasonDependencyCycle, f.cycle("c", "a", "b", "c"))
	f.stalled("self", v1alpha1.ReasonDependencyCycle, f.cycle("self", "self"))
	f.reason("after", v1alpha1.ReasonDependencyNotDeployed, f.name("a")+" has deployed no version yet, Failed: "+f.cycle("a", "b", "c", "a"))
	f.reason("lost", v1alpha1.ReasonDependencyNotFound, "there is no layer "+f.name("nowhere"))
	f.reason("wrong", v1alpha1.ReasonDependencyVersion, f.name("free")+" is at 1.0.0, Deployed")
	for _, layer := range []string{"after", "lost", "wrong"} {
		f.state(layer, v1alpha1.StateApplyPending)
	}

	f.asks("c", "free")
	f.asks("self", "free")
	for _, layer := range []string{"c", "b", "a", "after", "self"} {
		f.deployed(layer, revision)
	}
}

// A cycle that appears among deployed layers takes nothing away: what they have
// stays and is repaired, and a commit changes nothing of it until the cycle is
// mended. A layer that is not in it goes on.
func TestCycleThatAppearsWhileDeployed(t *testing.T) {
	f := newFixture(t)
	first := f.push(f.oneRelease("first", "a", "b", "c", "free"))
	f.layer("a")
	f.layer("b", f.dependsOn("a@^1"))
	f.layer("c", f.dependsOn("b@^1"))
	f.layer("free")
	for _, layer := range []string{"c", "free"} {
		f.deployed(layer, first)
	}
	f.asks("a", "c@^1")
	f.stalled("a", v1alpha1.ReasonDependencyCycle, f.cycle("a", "c", "b", "a"))
	f.stalled("b", v1alpha1.ReasonDependencyCycle, f.cycle("b", "a", "c", "b"))
	f.stalled("c", v1alpha1.ReasonDependencyCycle, f.cycle("c", "b", "a", "c"))
	before := f.footprints()
	delete(before, "free")

	second := f.push(f.oneRelease("second", "a", "b", "c", "free"))
	f.deployed("free", second)
	f.throughout(3*aWhile, "what is deployed stays", func() error {
		for name, was := range before {
			if now := f.footprints()[name]; now.Written != was.Written || now.Made != was.Made || now.Deleted {
				return fmt.Errorf("%s was %+v and is %+v", name, was, now)
			}
		}
		return nil
	})
	f.patch(f.release("b"), `{"spec":{"values":{"data":{"value":"drifted"}}}}`)
	f.within(promptly, "drift is repaired", func() error {
		if values := string(f.release("b").Spec.Values.Raw); !strings.Contains(values, `"first"`) {
			return fmt.Errorf("the values are %s", values)
		}
		return nil
	})
	w := f.witness()
	f.asks("a")
	for _, layer := range []string{"a", "b", "c"} {
		f.deployed(layer, second)
	}
	w.after(w.holds("b", "second"), w.firstDeployed("a", "1.0.0", second), "b is changed")
	w.after(w.holds("c", "second"), w.firstDeployed("b", "1.0.0", second), "c is changed")
}

// Every member hears of a cycle that opens or closes, also where those between
// it and the change have nothing to say because they are held.
func TestCycleIsToldToAllOfItsMembers(t *testing.T) {
	f := newFixture(t)
	f.push(f.oneRelease("x", "a", "b", "c", "d", "e"))
	held := func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true }
	f.layer("a", f.dependsOn("b"))
	f.layer("b", f.dependsOn("c"), held)
	f.layer("c", f.dependsOn("d"))
	f.layer("d", f.dependsOn("e"), held)
	f.layer("e", f.dependsOn("a"))
	around := func() {
		t.Helper()
		f.stalled("a", v1alpha1.ReasonDependencyCycle, f.cycle("a", "b", "c", "d", "e", "a"))
		f.stalled("c", v1alpha1.ReasonDependencyCycle, f.cycle("c", "d", "e", "a", "b", "c"))
		f.stalled("e", v1alpha1.ReasonDependencyCycle, f.cycle("e", "a", "b", "c", "d", "e"))
	}
	around()
	f.asks("c", "missing")
	f.reason("c", v1alpha1.ReasonDependencyNotFound)
	f.reason("a", v1alpha1.ReasonDependencyNotDeployed, f.name("b")+" has deployed no version yet, Hold")
	f.reason("e", v1alpha1.ReasonDependencyNotDeployed, f.name("a")+" has deployed no version yet, ApplyPending")
	f.asks("c", "d")
	around()
}
