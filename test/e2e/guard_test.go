// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// refuses waits until a layer is refused 2.0.0 for the sake of others, each as
// name (range).
func (f *fixture) refuses(layer string, dependants ...string) *v1alpha1.AddonsLayer {
	f.Helper()
	words := make([]string, 0, len(dependants)+2)
	words = append(words, "stays at 1.0.0, because 2.0.0 is outside of what its dependants take: ", `set the annotation kraan.io/allow-break to "true"`)
	for _, dependant := range dependants {
		words = append(words, f.prefix+"-"+strings.Replace(dependant, "(", "("+f.prefix+"-", 1))
	}
	f.reason(layer, v1alpha1.ReasonWouldBreakDependants, words...)
	return f.state(layer, v1alpha1.StateApplyPending)
}

// pair deploys the layers base and apps, the latter with a range of the former.
func (f *fixture) pair(asks string) (revision string) {
	f.Helper()
	revision = f.push(f.oneRelease("first", "base", "apps"))
	f.layer("base")
	f.layer("apps", f.dependsOn(asks))
	f.deployed("apps", revision)
	return revision
}

// A new version that a deployed dependant does not take changes nothing: no
// release is written, none comes or goes. What is deployed is repaired, counts
// for others as what it is, and moves on at once when the range is wider, and
// before the dependant does.
func TestUpgradeThatWouldBreakADependantIsRefused(t *testing.T) {
	f := newFixture(t)
	files := f.oneRelease("first", "base", "apps")
	files["base/leaves.yaml"] = f.configMapRelease("leaves", "first")
	first := f.push(files)
	f.layer("base")
	f.layer("apps", f.dependsOn("base@>=1 <2"))
	f.deployed("apps", first)
	w := f.witness()
	before := f.footprints()

	f.moves("base", "2.0.0")
	f.refuses("base", "apps (base@>=1 <2)")
	_, err := f.repo.Remove("remove", "base/leaves.yaml")
	f.must(err)
	files = f.oneRelease("second", "base", "apps", "web")
	files["base/comes.yaml"] = f.configMapRelease("comes", "second")
	f.hold("apps")
	second := f.push(files)
	base := f.refuses("base", "apps (base@>=1 <2)")
	f.untouched(before)
	if base.Status.Version != "1.0.0" || base.Status.Revision != first {
		t.Errorf("base is said to have %s of %s", base.Status.Version, base.Status.Revision)
	}

	f.patch(f.release("base"), `{"spec":{"values":{"data":{"value":"drifted"}}}}`)
	f.within(promptly, "drift is repaired", func() error {
		if values := string(f.release("base").Spec.Values.Raw); !strings.Contains(values, `"first"`) {
			return fmt.Errorf("the values are %s", values)
		}
		return nil
	})
	f.layer("web", f.dependsOn("base@1.0.0"))
	f.deployed("web", second)
	f.refuses("base", "apps (base@>=1 <2)")
	if !f.absent(&helmv2.HelmRelease{}, "comes") || f.absent(&helmv2.HelmRelease{}, "leaves") {
		t.Error("a release came or went with a revision that is refused")
	}

	f.resume("apps")
	f.asks("apps", "base@>=1 <3")
	w.follows(w.holds("base", "second"), w.changed("apps"), "base moves on")
	f.deployed("apps", second)
	moved := w.firstDeployed("base", "2.0.0", second)
	w.after(w.firstDeployed("apps", "1.0.0", second), moved, "apps is deployed")
	w.gone("leaves")
	f.reason("web", v1alpha1.ReasonDependencyVersion, f.name("base")+" is at 2.0.0, Deployed")
}

func (f *fixture) hold(layer string) {
	f.Helper()
	f.edit(layer, `{"metadata":{"annotations":{"kraan.io/hold":"test"}}}`)
	f.state(layer, v1alpha1.StateHold)
}

func (f *fixture) resume(layer string) {
	f.Helper()
	f.edit(layer, `{"metadata":{"annotations":{"kraan.io/hold":null}}}`)
}

// The annotation lets the layer go where a dependant cannot follow: that one
// waits, and keeps what it has.
func TestUpgradeThatMayBreakADependantGoesAhead(t *testing.T) {
	f := newFixture(t)
	f.pair("base@<2")
	before := f.versions()
	w := f.witness()
	f.moves("base", "2.0.0")
	second := f.push(f.oneRelease("second", "base"))
	f.refuses("base", "apps (base@<2)")
	f.asTheyWere(before, "base", "apps")
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/allow-break":"true"}}}`)
	allowed := w.firstLayer("base", "is allowed to", func(l *v1alpha1.AddonsLayer) bool {
		return l.Annotations[v1alpha1.AllowBreakAnnotation] == "true"
	})
	w.follows(w.holds("base", "second"), allowed, "base moves on")
	w.firstDeployed("base", "2.0.0", second)
	f.reason("apps", v1alpha1.ReasonDependencyVersion, "waits for "+f.name("base")+"@<2: "+f.name("base")+" is at 2.0.0, Deployed")
	f.asTheyWere(before, "apps")

	// It has left the range already, so that nothing more is broken.
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/allow-break":null}}}`)
	f.moves("base", "2.1.0")
	w.firstDeployed("base", "2.1.0", second)
	f.asTheyWere(before, "apps")
}

// Both layers of a change that fits together go through, the base first,
// whatever arrives first, held or not, and with nothing but their own events
// to wake them: their interval is an hour.
func TestBothLayersChangedInOneCommitGoThrough(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, reason, asks     string
		appsFirst, early, held bool
	}{
		{"base first", "it waits for the range", "base@^2", false, false, false},
		{"apps first", "it waits for the version", "base@^2", true, false, false},
		{"base first, apps held", "a held layer's range counts as it is", "base@^2", false, true, true},
		{"apps first, apps held", "and does not wait for its end", "base@^2", true, false, true},
		{"base first, wider", "although apps would take the old version, too", "base@>=1 <3", false, false, false},
		{"apps first, wider", "nothing is in the way at any time", "base@>=1 <3", true, false, false},
		{"base first, with the directories", "what apps has in the commit goes ahead while base is refused", "base@^2", false, true, false},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.pair("base@<2")
			w := f.witness()
			if test.held {
				f.hold("apps")
			}
			commit := f.commit(f.oneRelease("second", "base", "apps"))
			if test.appsFirst {
				f.asks("apps", test.asks)
				w.firstLayer("apps", "is seen", func(l *v1alpha1.AddonsLayer) bool { return l.Status.ObservedGeneration == 2 })
				f.moves("base", "2.0.0")
			} else {
				f.moves("base", "2.0.0")
				f.refuses("base", "apps (base@<2)")
				if test.early {
					f.fetched(commit)
					f.refuses("base", "apps (base@<2)")
				}
				f.asks("apps", test.asks)
			}
			second := f.fetched(commit)
			base := w.firstDeployed("base", "2.0.0", second)
			if test.held {
				if values := string(f.release("apps").Spec.Values.Raw); !strings.Contains(values, `"first"`) {
					t.Errorf("a held layer's release has %s", values)
				}
				f.resume("apps")
			}
			w.after(w.firstLayer("apps", "has deployed "+second, func(l *v1alpha1.AddonsLayer) bool {
				return l.Status.State == v1alpha1.StateDeployed && l.Status.ObservedGeneration == l.Generation && l.Generation > 1 && l.Status.Revision == second
			}), base, "apps is deployed")
			if !test.early || test.held {
				w.after(w.holds("apps", "second"), base, "apps is changed")
			}
			if t.Failed() {
				t.Log(test.reason)
			}
		})
	}
}

// A dependant that is being deleted, or waits for its first roll-out, or asks
// for an exact version or for any, is in nobody's way.
func TestDependantsThatAreInNobodysWay(t *testing.T) {
	f := newFixture(t)
	files := f.oneRelease("first", "base", "apps", "exact", "any", "waits")
	first := f.push(files)
	f.layer("base")
	f.layer("exact", f.dependsOn("base@1.0.0"))
	f.layer("any", f.dependsOn("base"))
	f.layer("waits", f.dependsOn("base@<2", "missing@1.0.0"))
	f.layer("apps", f.dependsOn("base@~1.0"), func(l *v1alpha1.AddonsLayer) { l.Spec.OrphanGrace = &metav1.Duration{Duration: time.Hour} })
	for _, layer := range []string{"exact", "any", "apps"} {
		f.deployed(layer, first)
	}
	f.reason("waits", v1alpha1.ReasonDependencyNotFound)
	w := f.witness()
	f.moves("base", "2.0.0")
	base := f.refuses("base", "apps (base@~1.0)")
	for _, name := range []string{"exact", "any", "waits"} {
		if message := readyMessage(base); strings.Contains(message, f.name(name)) {
			t.Errorf("%s is said to be in the way: %s", name, message)
		}
	}
	f.must(stack.client.Delete(f.ctx, f.get("apps")))
	going := w.firstLayer("apps", "is being deleted", func(l *v1alpha1.AddonsLayer) bool { return !l.DeletionTimestamp.IsZero() })
	w.follows(w.firstDeployed("base", "2.0.0", first), going, "base moves on")
	f.reason("exact", v1alpha1.ReasonDependencyVersion, f.name("base")+" is at 2.0.0, Deployed")
	f.state("any", v1alpha1.StateDeployed)
}

// A roll-out that has begun is not stopped half way when a range narrows.
func TestRolloutThatHasBegunIsNotStoppedByARange(t *testing.T) {
	f := newFixture(t)
	f.pair("base@>=1")
	f.hold("base")
	f.moves("base", "2.0.0")
	files := f.oneRelease("second", "apps")
	files["base/release.yaml"] = f.releaseWithoutChart("base", "second")
	f.push(files)
	f.resume("base")
	f.state("base", v1alpha1.StateApplying, "HelmRelease "+f.prefix+"/base")
	f.asks("apps", "base@<2")
	f.state("apps", v1alpha1.StateApplyPending)
	f.edit("base", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`)
	f.eventually("base is looked at again", func() error {
		if status := f.get("base").Status; status.LastHandledReconcileAt != "now" {
			return fmt.Errorf("it has handled %q", status.LastHandledReconcileAt)
		}
		return nil
	})
	f.throughout(time.Second, "base is rolled out", func() error {
		if status := f.get("base").Status; status.State != v1alpha1.StateApplying || status.Attempt.Version != "2.0.0" {
			return fmt.Errorf("it is %s: %v", status.State, status.Conditions)
		}
		return nil
	})
}
