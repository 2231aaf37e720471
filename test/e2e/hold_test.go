// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// unwritten fails the test when any release of the fixture is written within a
// moment, or one appears or goes.
func (f *fixture) unwritten(before map[string]string) {
	f.Helper()
	f.throughout(2*time.Second, "nothing is written", func() error {
		if now := f.versions(); !maps.Equal(now, before) {
			return fmt.Errorf("the releases were %v and are %v", before, now)
		}
		return nil
	})
}

// deployedWith waits until a layer of one release is Deployed with a value.
func (f *fixture) deployedWith(layer, revision, release, value string) {
	f.Helper()
	f.deployed(layer, revision)
	if values := string(f.release(release).Spec.Values.Raw); values != fmt.Sprintf(`{"data":{"value":%q}}`, value) {
		f.Errorf("release %s has the values %s, not %s", release, values, value)
	}
}

// held wants the condition Held, with a reason, and what was deployed to be so
// still.
func (f *fixture) held(layer, reason string) {
	f.Helper()
	found := f.state(layer, v1alpha1.StateHold, reason)
	held := condition(found, v1alpha1.HeldCondition)
	if held.Status != metav1.ConditionTrue || held.Message != reason {
		f.Errorf("the condition Held is %v, not %q", held, reason)
	}
	if deployed := condition(found, v1alpha1.DeployedCondition); deployed.Status != metav1.ConditionTrue {
		f.Errorf("what was deployed no longer counts: %v", deployed)
	}
}

// changeAndDrift commits one release changed, one removed and one added, edits
// a release by hand, and waits for the commit to be fetched.
func (f *fixture) changeAndDrift() (revision string, before map[string]string) {
	f.Helper()
	f.patch(f.release("drifting"), `{"spec":{"values":{"data":{"value":"drifted"}}}}`)
	f.eventually("helm-controller has seen the drift", func() error {
		if release := f.release("drifting"); release.Status.ObservedGeneration != release.Generation || release.Status.History.Latest().Version != 2 {
			return fmt.Errorf("generation %d of %d", release.Status.ObservedGeneration, release.Generation)
		}
		return nil
	})
	before = f.versions()
	_, err := f.repo.Remove("remove", "apps/leaving.yaml")
	f.must(err)
	return f.push(map[string]string{
		"apps/changing.yaml": f.configMapRelease("changing", "second"),
		"apps/arriving.yaml": f.configMapRelease("arriving", "first"),
	}), before
}

func (f *fixture) deployAppsToHold() {
	f.Helper()
	files := map[string]string{}
	for _, name := range []string{"changing", "leaving", "drifting"} {
		files["apps/"+name+".yaml"] = f.configMapRelease(name, "first")
	}
	revision := f.push(files)
	f.layer("apps")
	f.deployed("apps", revision)
}

// resumed waits until all that a hold has kept back has happened.
func (f *fixture) resumed(revision string) {
	f.Helper()
	layer := f.deployed("apps", revision)
	if held := condition(layer, v1alpha1.HeldCondition); held.Status == metav1.ConditionTrue {
		f.Errorf("the layer is held still: %v", held)
	}
	f.deployedWith("apps", revision, "changing", "second")
	f.deployedWith("apps", revision, "drifting", "first")
	f.deployedWith("apps", revision, "arriving", "first")
	if !f.absent(&helmv2.HelmRelease{}, "leaving") {
		f.Error("the release that left is there still")
	}
}

func TestHoldBySpecWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.deployAppsToHold()
	f.edit("apps", `{"spec":{"hold":true}}`)
	f.held("apps", "spec.hold is true")
	revision, before := f.changeAndDrift()
	f.unwritten(before)
	f.held("apps", "spec.hold is true")
	f.edit("apps", `{"spec":{"hold":false}}`)
	f.resumed(revision)
}

func TestHoldByAnnotationSaysTheReasonAndWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.deployAppsToHold()
	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/hold":"driver freeze"}}}`)
	f.held("apps", "driver freeze")
	revision, before := f.changeAndDrift()
	f.unwritten(before)
	f.held("apps", "driver freeze")
	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/hold":null}}}`)
	f.resumed(revision)
}

// A hold with an end resumes by itself at that moment: not sooner, and not at
// the next look of an interval of an hour.
func TestHoldWithAnEndResumesByItself(t *testing.T) {
	f := newFixture(t)
	f.layer("apps")
	f.deployed("apps", f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "first")}))
	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/hold":"a moment"}}}`)
	f.held("apps", "a moment")
	revision := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "second")})
	w := f.witness()
	// The annotation holds whole seconds.
	until := time.Now().Add(3 * time.Second).Truncate(time.Second).Add(time.Second)
	f.edit("apps", fmt.Sprintf(`{"metadata":{"annotations":{"kraan.io/hold-until":%q}}}`, until.UTC().Format(time.RFC3339)))
	f.state("apps", v1alpha1.StateHold, "held: a moment (until "+until.UTC().Format(time.RFC3339)+")")
	written := w.holds("apps", "second")
	late := written.at.Sub(until)
	t.Logf("resumed %s after the end of the hold", late.Round(time.Millisecond))
	if late < 0 || late > promptly {
		t.Errorf("the hold ended at %s, and the release was written %s after that", until, late)
	}
	if layer := f.deployed("apps", revision); condition(layer, v1alpha1.HeldCondition).Status == metav1.ConditionTrue {
		t.Errorf("the layer is held still: %v", layer.Status.Conditions)
	}
}

// A hold that takes the releases along suspends them, but for those that
// somebody else has suspended, and resumes exactly its own.
func TestHoldOfReleasesResumesExactlyThoseItSuspended(t *testing.T) {
	f := newFixture(t)
	files := map[string]string{}
	for _, name := range []string{"one", "two", "byhand"} {
		files["apps/"+name+".yaml"] = f.configMapRelease(name, "x")
	}
	revision := f.push(files)
	f.layer("apps")
	f.deployed("apps", revision)
	f.patch(f.release("byhand"), `{"spec":{"suspend":true}}`)
	f.state("apps", v1alpha1.StateDeployed, "1 of them suspended")
	generations := map[string]int64{}
	for _, name := range []string{"one", "two", "byhand"} {
		generations[name] = f.release(name).Generation
	}

	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/hold":"quiet","kraan.io/hold-releases":"true"}}}`)
	f.held("apps", "quiet")
	f.eventually("the releases are suspended", func() error {
		for _, name := range []string{"one", "two"} {
			if release := f.release(name); !release.Spec.Suspend || release.Annotations[v1alpha1.SuspendedByHoldAnnotation] == "" {
				return fmt.Errorf("release %s is not suspended: %v", name, release.Annotations)
			}
		}
		return nil
	})
	f.unwritten(f.versions())
	if byHand := f.release("byhand"); byHand.Annotations[v1alpha1.SuspendedByHoldAnnotation] != "" || byHand.Generation != generations["byhand"] {
		t.Errorf("the hold touched what was suspended before: generation %d, %v", byHand.Generation, byHand.Annotations)
	}

	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/hold":null}}}`)
	f.deployed("apps", revision)
	for _, name := range []string{"one", "two"} {
		release := f.release(name)
		if release.Spec.Suspend || release.Annotations[v1alpha1.SuspendedByHoldAnnotation] != "" {
			t.Errorf("release %s is not resumed: %v", name, release.Annotations)
		}
		if release.Generation != generations[name]+2 {
			t.Errorf("release %s is at generation %d after %d: suspended and resumed it would be two further", name, release.Generation, generations[name])
		}
		if history := len(release.Status.History); history != 1 {
			t.Errorf("release %s has %d Helm revisions: the hold has caused an upgrade", name, history)
		}
	}
	if byHand := f.release("byhand"); !byHand.Spec.Suspend || byHand.Generation != generations["byhand"] {
		t.Errorf("what was suspended by hand is suspended %v at generation %d", byHand.Spec.Suspend, byHand.Generation)
	}
}
