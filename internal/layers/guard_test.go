// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// many returns a directory of releases r0, r1, ... and their live objects.
func many(revision string, from, to int) (*directories.Directory, []*unstructured.Unstructured) {
	var manifests []directories.Manifest
	var objs []*unstructured.Unstructured
	for i := from; i < to; i++ {
		manifests = append(manifests, directoriestest.HelmRelease(fmt.Sprintf("r%d", i)))
		objs = append(objs, live(fmt.Sprintf("r%d", i)))
	}
	return directoriestest.Of(revision, manifests...), objs
}

// withMarks returns objects as orphans are marked.
func withMarks(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, obj := range objs {
		obj = obj.DeepCopy()
		marked(obj)
		all = append(all, obj)
	}
	return all
}

// resourcesAre gives all objects of the inventory one status.
func resourcesAre(status string) layerChange {
	return func(l *v1alpha1.AddonsLayer) {
		for i := range l.Status.Resources {
			l.Status.Resources[i].Status = status
		}
	}
}

type guardCase struct {
	reason  string
	in      Observation
	state   v1alpha1.State
	why     string
	actions int
	consume []string
	allowed []string
}

func runGuardCases(t *testing.T, cases map[string]guardCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decision := Decide(tc.in)
			var allowed []string
			if decision.Attempt != nil {
				allowed = decision.Attempt.Allowed
			}
			got := guardCase{reason: tc.reason, state: decision.State, why: decision.Reason, actions: len(decision.Plan.Actions), consume: decision.ConsumeFirst, allowed: allowed}
			tc.in = Observation{}
			if diff := cmp.Diff(tc, got, cmp.AllowUnexported(guardCase{}), cmp.Comparer(func(a, b Observation) bool { return true })); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tc.reason, diff, decision.Message)
			}
		})
	}
}

func TestEmptyGuard(t *testing.T) {
	empty := directoriestest.Of(newRevision)
	missing := directoriestest.Of(newRevision)
	missing.Missing = true
	was := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	allow := func(value string) layerChange { return annotation(v1alpha1.AllowEmptyAnnotation, value) }
	opened := func(digest string) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Digest: digest, Allowed: []string{allowedEmpty}}
		}
	}
	// A layer that was emptied, and has got a release since that is not ready.
	refilled := func(l *v1alpha1.AddonsLayer) { isDeployed(was)(l); l.Status.Digest = empty.Digest }
	begun := func(l *v1alpha1.AddonsLayer) { isDeployed(was)(l); l.Status.Digest = "" }
	runGuardCases(t, map[string]guardCase{
		"empty": {
			reason: "an empty directory removes nothing by itself", in: observation(layer(isDeployed(was)), empty, lives(live("a"))),
			state: v1alpha1.StateFailed, why: "EmptyDirectory",
		},
		"gone": {
			reason: "nor does one that is gone", in: observation(layer(isDeployed(was)), missing, lives(live("a"))),
			state: v1alpha1.StateFailed, why: "PathNotFound",
		},
		"new and empty": {
			reason: "nothing can go of a layer that never had anything", in: observation(layer(), empty), state: v1alpha1.StateDeployed, why: "Deployed",
		},
		"new, and its directory is not there": {
			reason: "a path that leads nowhere is a mistake", in: observation(layer(), missing), state: v1alpha1.StateFailed, why: "PathNotFound",
		},
		"its status was lost": {
			reason: "what is there may be what the directory held", in: observation(layer(), empty, lives(live("a"))),
			state: v1alpha1.StateFailed, why: "EmptyDirectory",
		},
		"not deployed yet": {
			reason: "what was begun would go", in: observation(layer(begun), empty), state: v1alpha1.StateFailed, why: "EmptyDirectory",
		},
		"next": {
			reason: "the word is used up", in: observation(layer(isDeployed(was), allow("next")), empty, lives(live("a"))),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 1, consume: []string{v1alpha1.AllowEmptyAnnotation}, allowed: []string{allowedEmpty},
		},
		"this revision": {
			reason: "a revision cannot come again, so it stays", in: observation(layer(isDeployed(was), allow(newRevision)), empty, lives(live("a"))),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 1, allowed: []string{allowedEmpty},
		},
		"another revision": {
			reason: "it was meant for something else", in: observation(layer(isDeployed(was), allow(oldRevision)), empty, lives(live("a"))),
			state: v1alpha1.StateFailed, why: "EmptyDirectory",
		},
		"opened before": {
			reason: "what was used up goes on until it is done", in: observation(layer(isDeployed(was), opened(empty.Digest)), empty, lives(live("a"))),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 1, allowed: []string{allowedEmpty},
		},
		"opened for other content": {
			reason: "but not for something else", in: observation(layer(isDeployed(was), opened("x")), empty, lives(live("a"))),
			state: v1alpha1.StateFailed, why: "EmptyDirectory", allowed: []string{allowedEmpty},
		},
		"while a dependency is waited for": {
			reason: "what is used up is remembered behind a closed gate, too", in: observation(layer(isDeployed(was), allow("next"), needs("mesh")), empty, lives(live("a"))),
			state: v1alpha1.StateApplyPending, why: "DependencyNotFound", actions: 1, consume: []string{v1alpha1.AllowEmptyAnnotation}, allowed: []string{allowedEmpty},
		},
		"emptied": {
			reason: "a layer that was deployed as empty stays so", in: observation(layer(isDeployed(empty)), empty),
			state: v1alpha1.StateDeployed, why: "Deployed",
		},
		"emptied, then gone": {
			reason: "git drops empty directories", in: observation(layer(isDeployed(empty)), missing),
			state: v1alpha1.StateDeployed, why: "Deployed",
		},
		"emptied, with an orphan for others": {
			reason: "what others will have does not count", in: observation(layer(refilled, resourcesAre(objects.StatusOrphaned)), empty),
			state: v1alpha1.StateDeployed, why: "Deployed",
		},
		"emptied and filled again": {
			reason: "that it once was empty says nothing of what it has got since", in: observation(layer(refilled), empty, lives(live("a"))),
			state: v1alpha1.StateFailed, why: "EmptyDirectory",
		},
	})
}

func TestPruneGuard(t *testing.T) {
	ten, lived := many(oldRevision, 0, 10)
	four, _ := many(newRevision, 0, 4)
	hundred, _ := many(oldRevision, 0, 100)
	five, _ := many(newRevision, 0, 5)
	small, smallLived := many(oldRevision, 0, 4)
	one, _ := many(newRevision, 0, 1)
	allow := func(value string) layerChange { return annotation(v1alpha1.AllowPruneAnnotation, value) }
	percent := func(n int) func(*Observation) {
		return func(o *Observation) { o.Settings.MaxPrunePercent = n }
	}
	moved := func(o *Observation) {
		o.Others.Listed, o.Others.Existing = map[objects.ID][]dependents.Claim{releaseID("r9"): {{Owner: "mesh"}}}, map[string]bool{"mesh": true}
	}
	stale := func(objs []*unstructured.Unstructured) func(*Observation) {
		return func(o *Observation) {
			for _, obj := range objs {
				o.Stale[objects.IDOf(obj)] = true
			}
		}
	}
	superseded := func(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
		marked := make([]*unstructured.Unstructured, 0, len(objs))
		for _, obj := range objs {
			obj = obj.DeepCopy()
			obj.SetAnnotations(map[string]string{v1alpha1.SupersededByAnnotation: "addons/gone"})
			_ = unstructured.SetNestedField(obj.Object, true, "spec", "suspend")
			marked = append(marked, obj)
		}
		return marked
	}
	before := func(first, last int) func(*Observation) {
		dir, _ := many(oldRevision, first, last)
		return func(o *Observation) { o.Before = dir }
	}
	runGuardCases(t, map[string]guardCase{
		"left out by a published version": {
			reason: "whoever published it has tested that it goes", in: observation(layer(isDeployed(ten)), four, lives(lived...), before(0, 10)),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 6,
		},
		"left out by a published version in part": {
			reason: "what is left counts alone", in: observation(layer(isDeployed(ten)), one, lives(lived...), before(7, 10)),
			state: v1alpha1.StateFailed, why: "MassPrune",
		},
		"renamed to what is not listed any more": {
			reason: "what is resumed now is removed next", in: observation(layer(isDeployed(ten)), four, lives(lived[:5]...), lives(superseded(lived[5:])...)),
			state: v1alpha1.StateFailed, why: "MassPrune",
		},
		"more than half": {
			reason: "six of ten wait for a word, and nothing is changed", in: observation(layer(isDeployed(ten)), four, lives(lived...)),
			state: v1alpha1.StateFailed, why: "MassPrune",
		},
		"half": {
			reason: "half is not more than half", in: observation(layer(isDeployed(ten)), five, lives(lived...)),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 5,
		},
		"few": {
			reason: "three may always go", in: observation(layer(isDeployed(small)), one, lives(smallLived...)),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 3,
		},
		"moved": {
			reason: "what another layer lists is not removed", in: observation(layer(isDeployed(ten)), four, lives(lived...), moved),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 6,
		},
		"written a moment ago": {
			reason: "what is decided a moment later is removed, too: or all would go, few at a time", in: observation(layer(isDeployed(ten)), four, lives(lived...), stale(lived[5:])),
			state: v1alpha1.StateFailed, why: "MassPrune",
		},
		"moved and written a moment ago": {
			reason: "what another layer lists is not removed", in: observation(layer(isDeployed(ten)), four, lives(lived...), stale(lived[5:]), moved),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 1,
		},
		"off": {
			reason: "0 turns the guard off", in: observation(layer(isDeployed(ten)), four, lives(lived...), percent(0)),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 6,
		},
		"stricter": {
			reason: "a share of one's own", in: observation(layer(isDeployed(ten)), five, lives(lived...), percent(49)),
			state: v1alpha1.StateFailed, why: "MassPrune",
		},
		"next": {
			reason: "the word is used up", in: observation(layer(isDeployed(ten), allow("next")), four, lives(lived...)),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 6, consume: []string{v1alpha1.AllowPruneAnnotation}, allowed: []string{allowedPrune},
		},
		"another revision": {
			reason: "it was meant for something else", in: observation(layer(isDeployed(ten), allow(oldRevision)), four, lives(lived...)),
			state: v1alpha1.StateFailed, why: "MassPrune",
		},
		"not needed": {
			reason: "a word that is not needed is kept", in: observation(layer(isDeployed(ten), allow("next")), five, lives(lived...)),
			state: v1alpha1.StatePruning, why: "Pruning", actions: 5,
		},
		"orphans already": {
			reason: "what was marked before is not marked anew",
			in:     observation(layer(isDeployed(ten), resourcesAre(objects.StatusOrphaned)), four, lives(withMarks(lived)...)),
			state:  v1alpha1.StatePruning, why: "Pruning", actions: 10,
		},
		"orphans in the status alone": {
			reason: "what nobody has marked is removed now, whatever a status says",
			in:     observation(layer(isDeployed(ten), resourcesAre(objects.StatusOrphaned)), four, lives(lived...)),
			state:  v1alpha1.StateFailed, why: "MassPrune",
		},
		"a longer status": {
			reason: "releases that are in the status alone make no removal smaller",
			in:     observation(layer(isDeployed(hundred)), four, lives(lived...)), state: v1alpha1.StateFailed, why: "MassPrune",
		},
	})
}

// TestGuardStaysOpenWhileWaiting goes on without the annotation that was used
// up, although a dependency is still waited for.
func TestGuardStaysOpenWhileWaiting(t *testing.T) {
	empty, was := directoriestest.Of(newRevision), directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	allowed := layer(isDeployed(was), annotation(v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowNext), needs("mesh"))
	o := observation(allowed, empty, lives(live("a")))
	first, _ := Report(o, Decide(o), nil)
	o.Layer = withStatus(o.Layer, first)
	delete(o.Layer.Annotations, v1alpha1.AllowEmptyAnnotation)
	lives(live("a", marked))(&o)
	second := Decide(o)
	if second.State != v1alpha1.StateApplyPending || second.Plan.Until.IsZero() {
		t.Errorf("what was allowed is refused on the second look: %s, %s", second.State, second.Message)
	}
}

// A crash between the record of what a word has allowed and its removal leaves
// both: the word is removed then, at every later look and whatever the state
// is, and allows no other revision. See docs/adr/0015-faults.md.
func TestWordThatACrashHasLeftIsUsedUp(t *testing.T) {
	empty, was := directoriestest.Of(newRevision), directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	ten, lived := many(oldRevision, 0, 10)
	four, _ := many(newRevision, 0, 4)
	cases := map[string]struct {
		reason     string
		in         Observation
		annotation string
	}{
		"empty":      {"an object is left to remove", observation(layer(isDeployed(was), annotation(v1alpha1.AllowEmptyAnnotation, "next")), empty, lives(live("a"))), v1alpha1.AllowEmptyAnnotation},
		"empty, new": {"nothing is left to remove: it is Deployed at once", observation(layer(annotation(v1alpha1.AllowEmptyAnnotation, "next")), empty), v1alpha1.AllowEmptyAnnotation},
		"prune":      {"releases are left to remove", observation(layer(isDeployed(ten), annotation(v1alpha1.AllowPruneAnnotation, "next")), four, lives(lived...)), v1alpha1.AllowPruneAnnotation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := Decide(tc.in)
			recorded, _ := Report(tc.in, first, nil)
			if !NeedsRecord(tc.in.Layer.Status, recorded) {
				t.Fatalf("%s: what is used up is not recorded", tc.reason)
			}
			tc.in.Layer = withStatus(tc.in.Layer, recorded)
			second := Decide(tc.in)
			if diff := cmp.Diff([]string{tc.annotation}, second.ConsumeFirst); diff != "" {
				t.Errorf("%s: after the crash it uses up (-want +got):\n%s", tc.reason, diff)
			}
			if second.State != first.State || len(second.Plan.Actions) != len(first.Plan.Actions) {
				t.Errorf("%s: it goes on with %s, %v; before with %s, %v", tc.reason, second.State, second.Plan.Actions, first.State, first.Plan.Actions)
			}
			again, _ := Report(tc.in, second, nil)
			tc.in.Layer = withStatus(tc.in.Layer, again)
			delete(tc.in.Layer.Annotations, tc.annotation)
			if third := Decide(tc.in); third.State != first.State || len(third.ConsumeFirst) > 0 {
				t.Errorf("%s: at last it is %s and uses up %v", tc.reason, third.State, third.ConsumeFirst)
			}
		})
	}
}

// A bundle that lists nothing any more empties a layer of what its publisher has left out,
// and of nothing else.
func TestBundleThatLeavesAllOut(t *testing.T) {
	empty := directoriestest.Of(newRevision)
	ten, lived := many(oldRevision, 0, 10)
	nine, _ := many(oldRevision, 0, 9)
	ofBundle := func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Kind = v1alpha1.ApplicationBundleKind }
	o := observation(layer(ofBundle, isDeployed(ten)), empty, lives(lived...))
	o.Before = ten
	if d := Decide(o); d.State != v1alpha1.StatePruning || len(d.Plan.Actions) != 10 {
		t.Errorf("with all of it left out it is %s, with %d actions: %s", d.State, len(d.Plan.Actions), d.Message)
	}
	o.Before = nine
	if d := Decide(o); d.Reason != v1alpha1.ReasonEmptyDirectory {
		t.Errorf("with one that nobody has left out it is %s, %s", d.State, d.Reason)
	}
	o.Before = nil
	if d := Decide(o); d.Reason != v1alpha1.ReasonEmptyDirectory {
		t.Errorf("where it is not known what was left out it is %s, %s", d.State, d.Reason)
	}
	// One that never had anything only waits.
	if d := Decide(observation(layer(ofBundle), empty)); d.State != v1alpha1.StateDeployed {
		t.Errorf("one that only waits is %s: %s", d.State, d.Message)
	}
}
