// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// clocks are the clock on the wall, which may be set, and the time that really
// passes.
type clocks struct {
	began      time.Time
	passed, by time.Duration
}

func (c *clocks) wall() time.Time { return c.began.Add(c.passed + c.by) }

// orphaned is a layer with nothing but a release that it no longer lists. It
// is decided for as the controller does, by clocks that the test owns.
type orphaned struct {
	*clocks
	layer   *v1alpha1.AddonsLayer
	release *unstructured.Unstructured
	waits   *Waits
	deleted bool
	marked  time.Duration
	until   time.Time
	writes  int
}

var orphanedID = objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: "default", Name: "gone"}

func newOrphaned(grace time.Duration) *orphaned {
	s := &orphaned{clocks: &clocks{began: time.Date(2026, 5, 1, 12, 0, 0, 400e6, time.UTC)}, layer: &v1alpha1.AddonsLayer{}, release: &unstructured.Unstructured{}}
	s.restart()
	s.release.SetGroupVersionKind(kinds.HelmReleaseKind.WithVersion("v2"))
	s.release.SetNamespace(orphanedID.Namespace)
	s.release.SetName(orphanedID.Name)
	s.release.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
	s.layer.Name = "base"
	s.layer.DeletionTimestamp = &metav1.Time{Time: s.began}
	s.layer.Spec.OrphanGrace = &metav1.Duration{Duration: grace}
	s.layer.Status.Resources = layers.Resources([]dependents.Entry{{ID: orphanedID, Status: objects.StatusReady, Since: s.began}})
	return s
}

// restart is another process, which remembers nothing.
func (s *orphaned) restart() {
	s.waits = NewWaits(func() time.Duration { return s.passed })
}

// look is one reconcile of the layer, which is being deleted.
func (s *orphaned) look() {
	o := layers.Observation{
		Now: s.wall(), Layer: s.layer,
		ObservedObjects: layers.ObservedObjects{
			Live:   map[objects.ID]*unstructured.Unstructured{orphanedID: s.release},
			Others: dependents.Others{Existing: map[string]bool{}},
		},
	}
	o.Waited, o.UnderWay = s.waits.Of(s.layer, o.Now)
	decision := layers.Decide(o)
	var results []dependents.Result
	for _, action := range decision.Plan.Actions {
		switch action.Verb {
		case dependents.VerbMark:
			s.release.SetLabels(map[string]string{v1alpha1.LayerLabel: "base", v1alpha1.OrphanedLabel: "then"})
			s.marked = s.passed
		case dependents.VerbDelete:
			s.deleted = true
		}
		results = append(results, dependents.Result{Action: action})
	}
	status, _ := layers.Report(o, decision, results)
	if !equality.Semantic.DeepEqual(status, s.layer.Status) {
		s.writes++
	}
	s.layer = s.layer.DeepCopy()
	s.layer.Status = status
	s.waits.Of(s.layer, o.Now)
	s.until = decision.Until
}

// However the wall clock is set, an orphan lives for its grace in real time; it
// is not waited for much longer than that, and never without an end.
func TestGraceUnderAClockThatIsSet(t *testing.T) {
	const grace, hour = time.Minute, time.Hour
	cases := map[string]struct {
		reason string
		// at is when the clock is set after the mark, and by how much.
		at, by time.Duration
		// most is how long the orphan may live.
		most time.Duration
	}{
		"never":                 {"a grace and a second, since the inventory keeps whole seconds", 0, 0, grace + time.Second},
		"forward":               {"an hour that has not passed is not waited", 10 * time.Second, hour, grace + 2*time.Second},
		"forward by seconds":    {"a correction delays it by as much as it is too old", 10 * time.Second, 3 * time.Second, grace + 2*time.Second},
		"back":                  {"the mark lies in the future, so the grace begins again", 10 * time.Second, -hour, 10*time.Second + grace + 2*time.Second},
		"back by less":          {"the mark lies in the past still: it is waited longer", 30 * time.Second, -20 * time.Second, 20*time.Second + grace + 2*time.Second},
		"forward when it's due": {"nothing is left to wait for", grace + time.Second, hour, grace + 2*time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newOrphaned(grace)
			s.look()
			for !s.deleted {
				if s.passed == tc.at {
					s.by = tc.by
				}
				s.look()
				if s.deleted {
					break
				}
				if wait := s.until.Sub(s.wall()); wait <= 0 {
					t.Fatalf("%s: it looks again in %s", tc.reason, wait)
				}
				s.passed += time.Second
				if s.passed > 2*hour {
					t.Fatalf("%s: it is never deleted", tc.reason)
				}
			}
			if lived := s.passed - s.marked; lived < grace || lived > tc.most {
				t.Errorf("%s: it lived for %s of a grace of %s, at most %s", tc.reason, lived, grace, tc.most)
			}
		})
	}
}

// The same for any clock: set at any time, any number of times.
func TestGraceUnderAnyClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const grace = time.Minute
		s := newOrphaned(grace)
		s.look()
		looks := 0
		for !s.deleted {
			if rapid.IntRange(0, 9).Draw(t, "set") == 0 {
				s.by = time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "by")) * time.Second
			}
			s.look()
			looks++
			if looks > 2000 {
				t.Fatal("it is never deleted")
			}
			if s.deleted {
				break
			}
			wait := s.until.Sub(s.wall())
			if wait <= 0 {
				t.Fatalf("it looks again in %s", wait)
			}
			// It is woken in time, or sooner, and the clock may be set meanwhile.
			s.passed += min(wait, time.Duration(rapid.IntRange(1, 90000).Draw(t, "woken"))*time.Millisecond)
		}
		if lived := s.passed - s.marked; lived < grace {
			t.Fatalf("it lived for %s of a grace of %s", lived, grace)
		}
	})
}

// Another process believes what the status says, since it knows no better; from
// then on, it counts itself. A restart takes nothing from a grace, and adds
// nothing to it.
func TestGraceOverARestart(t *testing.T) {
	s := newOrphaned(time.Minute)
	s.look()
	s.passed += 30 * time.Second
	s.restart()
	s.look()
	s.by = time.Hour
	for !s.deleted && s.passed < time.Hour {
		s.passed += time.Second
		s.look()
	}
	if lived := s.passed - s.marked; lived < time.Minute || lived > 63*time.Second {
		t.Errorf("it lived for %s of a grace of a minute", lived)
	}
}

// A look that finds the same says the same: what is measured never makes a
// status differ by itself.
func TestWaitingWritesNothing(t *testing.T) {
	s := newOrphaned(time.Hour)
	s.look()
	s.writes = 0
	for range 600 {
		s.passed += 777 * time.Millisecond
		s.look()
	}
	if s.writes > 0 {
		t.Errorf("%d writes while nothing happens", s.writes)
	}
}
