// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// blockedBy waits until what stands in a layer's way passes a check, and
// returns it.
func (f *fixture) blockedBy(layer, what string, check func([]v1alpha1.Cause) bool) []v1alpha1.Cause {
	f.Helper()
	var found []v1alpha1.Cause
	f.eventually(fmt.Sprintf("layer %s is blocked by %s", layer, what), func() error {
		found = f.get(layer).Status.BlockedBy
		if !check(found) {
			return fmt.Errorf("it is blocked by %+v", found)
		}
		return nil
	})
	return found
}

// rejecting returns the manifest of a release whose chart refuses to render.
func (f *fixture) rejecting(name, message string) string {
	return strings.Replace(f.configMapRelease(name, "x"), "  values: {", fmt.Sprintf("  values: {fail: %q, ", message), 1)
}

// A layer that waits for a layer that waits for a failing release names that
// release, in Helm's words; when it heals, nothing stands in the way any more.
func TestCausesReachTheFailingRelease(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{
		"base/release.yaml": f.rejecting("base", "it is meant to fail"),
		"mid/release.yaml":  f.configMapRelease("mid", "x"),
		"top/release.yaml":  f.configMapRelease("top", "x"),
	})
	f.layer("base")
	f.layer("mid", f.dependsOn("base@1.0.0"))
	f.layer("top", f.dependsOn("mid@1.0.0"))
	found := f.blockedBy("top", "the release of base", func(list []v1alpha1.Cause) bool {
		return len(list) == 3 && strings.Contains(list[2].Message, "it is meant to fail")
	})
	for i, want := range []v1alpha1.Cause{
		{Kind: "AddonsLayer", Name: f.name("mid"), Reason: v1alpha1.ReasonDependencyNotDeployed},
		{Depth: 1, Kind: "AddonsLayer", Name: f.name("base"), Reason: v1alpha1.ReasonDependencyNotDeployed},
		{Depth: 2, Kind: "HelmRelease", Namespace: f.prefix, Name: "base", Reason: "InstallFailed"},
	} {
		got := found[i]
		got.Message, got.Until = "", nil
		if got != want {
			t.Errorf("cause %d is %+v, want %+v", i, got, want)
		}
	}
	f.state("top", v1alpha1.StateApplyPending)

	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "x")})
	for _, layer := range []string{"base", "mid", "top"} {
		if list := f.deployed(layer, revision).Status.BlockedBy; len(list) > 0 {
			t.Errorf("layer %s is deployed, and blocked by %+v", layer, list)
		}
	}
}

// Where the end of what stands in the way is known, it is said: of a hold, and
// of an orphan's grace.
func TestCausesSayUntilWhen(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{"apps/one.yaml": f.configMapRelease("one", "x"), "apps/two.yaml": f.configMapRelease("two", "x")})
	f.layer("apps", func(l *v1alpha1.AddonsLayer) { l.Spec.OrphanGrace = &metav1.Duration{Duration: time.Hour} })
	f.state("apps", v1alpha1.StateDeployed)

	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	f.edit("apps", fmt.Sprintf(`{"metadata":{"annotations":{"kraan.io/hold":"driver freeze","kraan.io/hold-until":%q}}}`, until.Format(time.RFC3339)))
	f.layer("web", f.dependsOn("apps@2.0.0"))
	f.push(map[string]string{"web/release.yaml": f.configMapRelease("web", "x")})
	hold := f.blockedBy("apps", "its hold", func(list []v1alpha1.Cause) bool { return len(list) == 1 && list[0].Reason == v1alpha1.ReasonHold })
	if hold[0].Until == nil || !hold[0].Until.Equal(&metav1.Time{Time: until}) || hold[0].Name != f.name("apps") {
		t.Errorf("the hold until %s is told as %+v", until, hold[0])
	}
	above := f.blockedBy("web", "the hold of apps", func(list []v1alpha1.Cause) bool { return len(list) == 2 && list[1].Reason == v1alpha1.ReasonHold })
	if above[0].Reason != v1alpha1.ReasonDependencyVersion || above[1].Until == nil || !above[1].Until.Equal(hold[0].Until) {
		t.Errorf("a layer that waits for the held one is blocked by %+v", above)
	}

	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/hold":null,"kraan.io/hold-until":null}}}`)
	left := time.Now()
	f.remove("apps/two.yaml")
	orphan := f.blockedBy("apps", "the grace of its orphan", func(list []v1alpha1.Cause) bool { return len(list) == 1 && list[0].Reason == "Orphaned" })
	if end := orphan[0].Until; orphan[0].Name != "two" || end == nil || end.Before(&metav1.Time{Time: left.Add(time.Hour - 2*time.Second)}) {
		t.Errorf("an orphan of a grace of an hour is told as %+v", orphan[0])
	}
}

// A message of Helm's that is as long as a book is cut between letters wherever
// it is repeated.
func TestLongMessageOfHelmIsBounded(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{
		"base/release.yaml": f.rejecting("base", strings.Repeat("größer ", 1250)),
		"top/release.yaml":  f.configMapRelease("top", "x"),
	})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: 5 * time.Second} })
	f.layer("top", f.dependsOn("base@1.0.0"))
	f.blockedBy("top", "the release of base", func(list []v1alpha1.Cause) bool {
		return len(list) == 2 && strings.Contains(list[1].Message, "größer größer")
	})
	f.state("base", v1alpha1.StateFailed, "größer größer")
	// Ready speaks of the next try already; Released keeps the last one.
	said := 0
	for _, c := range f.release("base").Status.Conditions {
		said = max(said, len(c.Message))
	}
	if said < 10_000 {
		t.Errorf("Helm's own message has %d bytes only: the test shows nothing", said)
	}
	for name, most := range map[string]int{"base": 512, "top": 256} {
		status := f.get(name).Status
		for _, c := range status.Conditions {
			if len(c.Message) > 1024 || !utf8.ValidString(c.Message) {
				t.Errorf("condition %s of %s has %d bytes", c.Type, name, len(c.Message))
			}
		}
		for _, c := range status.BlockedBy {
			if len(c.Message) > most || !utf8.ValidString(c.Message) || strings.ContainsRune(c.Message, utf8.RuneError) {
				t.Errorf("cause %+v of %s has %d bytes", c, name, len(c.Message))
			}
		}
	}
}
