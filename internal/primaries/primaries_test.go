// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primaries_test

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

const ownerLabel = "example.com/owner"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// configMap is an object that a primary wants, which waits for others.
func configMap(id string, dependsOn ...string) primaries.Object {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": id, "namespace": "shop"}, "data": map[string]any{"of": id},
	}}
	return primaries.Object{ID: id, Of: "a", Object: object, DependsOn: dependsOn}
}

// world is a cluster with one primary, of which each step does what the plan says.
type world struct {
	look primaries.Look
	uids int
	// down holds objects that are not ready though they are there.
	down map[string]bool
	// fails says which writes fail, by name.
	fails map[string]bool
}

func newWorld(wanted ...primaries.Object) *world {
	w := &world{down: map[string]bool{}, fails: map[string]bool{}}
	w.look = primaries.Look{
		Owner: "me", Keys: dependents.Keys{Owner: ownerLabel, Orphaned: "orphaned"}, Now: start,
		Live: map[objects.ID]*unstructured.Unstructured{}, MayPrune: true,
	}
	w.want(wanted...)
	return w
}

// want has the primary want other objects, whose readiness the world says.
func (w *world) want(wanted ...primaries.Object) {
	for i := range wanted {
		id := wanted[i].ID
		wanted[i].Ready = func(*unstructured.Unstructured) objects.Standing {
			if w.down[id] {
				return objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not up"}
			}
			return objects.Standing{Health: objects.Ready, Status: objects.StatusReady}
		}
	}
	w.look.Objects = wanted
}

// step does what the plan says, and returns what was done, in order.
func (w *world) step() []string {
	plan := w.look.Plan()
	planned := primaries.Planned(plan)
	var results []dependents.Result
	var done []string
	for _, action := range plan.Actions {
		done = append(done, strings.ToLower(string(action.Verb))+" "+action.ID.Name)
		result := dependents.Result{Action: action}
		switch {
		case w.fails[action.ID.Name]:
			result.Err = errors.New("it may not")
		case action.Verb == dependents.VerbWrite:
			if !slices.ContainsFunc(planned, func(d v1alpha1.Dependent) bool { return primaries.IdentityOf(d) == action.ID }) {
				panic("what is made is in no status")
			}
			live := action.Wanted.Manifest().DeepCopy()
			w.uids++
			live.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
			if was := w.look.Live[action.ID]; was != nil {
				live.SetUID(was.GetUID())
			}
			live.SetResourceVersion(fmt.Sprint(w.uids))
			w.look.Live[action.ID] = live
			result.UID, result.ResourceVersion = live.GetUID(), live.GetResourceVersion()
		case action.Verb == dependents.VerbDelete:
			delete(w.look.Live, action.ID)
		}
		results = append(results, result)
	}
	w.look.Known, _ = w.look.Report(plan, results)
	w.look.Now = w.look.Now.Add(time.Second)
	return done
}

// says returns what decides for all.
func (w *world) says() string {
	_, standings := w.look.Report(w.look.Plan(), nil)
	worst, _ := primaries.Sum(standings)
	return worst.Message
}

func TestObjectsComeInOrderAndGoInReverse(t *testing.T) {
	w := newWorld(configMap("c", "b"), configMap("b", "a"), configMap("a"))
	w.down["a"] = true
	if diff := cmp.Diff([]string{"write a"}, w.step()); diff != "" {
		t.Error(diff)
	}
	if done, says := w.step(), w.says(); len(done) > 0 || says != "ConfigMap shop/b waits for ConfigMap shop/a, which is not up" {
		t.Errorf("it did %v and says %q", done, says)
	}
	w.down["a"] = false
	for _, want := range []string{"write b", "write c"} {
		if diff := cmp.Diff([]string{want}, w.step()); diff != "" {
			t.Error(diff)
		}
	}
	if done, says := w.step(), w.says(); len(done) > 0 || says != "" {
		t.Errorf("settled, it did %v and says %q", done, says)
	}
	w.want()
	for _, want := range []string{"delete c", "delete b", "delete a"} {
		if diff := cmp.Diff([]string{want}, w.step()); diff != "" {
			t.Error(diff)
		}
	}
	w.step()
	if len(w.look.Known) > 0 {
		t.Errorf("it still lists %v", w.look.Known)
	}
}

// What is there already, whoever has it, is left alone and said; and so is what somebody else
// of the primary has made.
func TestNothingIsTakenOver(t *testing.T) {
	foreign := map[string]string{"": "there already, and somebody else's", "you": "another one's"}
	for owner, said := range foreign {
		w := newWorld(configMap("a"))
		theirs := configMap("a").Object
		theirs.SetUID("theirs")
		theirs.SetLabels(map[string]string{"team": "shop"})
		if owner != "" {
			theirs.SetLabels(map[string]string{ownerLabel: owner})
		}
		w.look.Live[configMap("a").Identity()] = theirs
		if done, says := w.step(), w.says(); len(done) > 0 || !strings.Contains(says, said) || len(w.look.Known) > 0 {
			t.Errorf("of %q it did %v, says %q and lists %v", owner, done, says, w.look.Known)
		}
		w.want()
		if done := w.step(); len(done) > 0 {
			t.Errorf("of %q, when all goes, it did %v", owner, done)
		}
	}
	w := newWorld(configMap("a"), configMap("shared"))
	w.step()
	other, shared := configMap("a"), configMap("shared")
	other.Of, shared.Of, shared.Inherits = "b", "b", true
	other.Object.Object["data"], shared.Object.Object["data"] = map[string]any{"of": "b"}, map[string]any{"of": "b"}
	w.want(other, shared)
	if done, says := w.step(), w.says(); !slices.Equal(done, []string{"write shared"}) || !strings.Contains(says, "made by a, and is left alone") {
		t.Errorf("it did %v and says %q", done, says)
	}
	if len(w.look.Known) != 2 || w.look.Known[0].Of != "a" || w.look.Known[1].Of != "b" {
		t.Errorf("it lists %+v", w.look.Known)
	}
}

// What is not wanted any more stays until the primary goes, but for what was replaced by
// something of another name.
func TestWhatWasReplacedGoes(t *testing.T) {
	w := newWorld(configMap("a"), configMap("b", "a"))
	w.look.MayPrune = false
	w.step()
	w.step()
	renamed := func(replaces bool, names ...string) []primaries.Object {
		a, b := configMap(names[0]), configMap(names[1], "a")
		a.ID, b.ID, a.Replaces, b.Replaces = "a", "b", false, replaces
		return []primaries.Object{a, b}
	}
	w.want(renamed(true, "a2", "b2")...)
	var done []string
	for range 4 {
		done = append(done, w.step()...)
	}
	if diff := cmp.Diff([]string{"write a2", "write b2", "delete b"}, sorted(done)); diff != "" {
		t.Error(diff)
	}
	w.want(renamed(false, "a2", "b3")...)
	for range 3 {
		w.step()
	}
	var left []string
	for _, known := range w.look.Known {
		left = append(left, known.Name)
	}
	if diff := cmp.Diff([]string{"a", "a2", "b2", "b3"}, left); diff != "" || w.says() != "" {
		t.Errorf("it says %q, and has %s", w.says(), diff)
	}
}

// sorted puts writes before deletions, whatever their order was.
func sorted(done []string) []string {
	slices.SortStableFunc(done, func(a, b string) int { return strings.Compare(b[:1], a[:1]) })
	return done
}

// An object that cannot be made yet keeps what there is of it.
func TestWhatCannotBeMadeYetStays(t *testing.T) {
	w := newWorld(configMap("a"))
	w.step()
	w.want(primaries.Object{ID: "a", Of: "a", Waits: "waits for an address"}, primaries.Object{ID: "b", Of: "a", Waits: "waits for a"})
	if done := w.step(); len(done) > 0 || len(w.look.Known) != 1 {
		t.Errorf("it did %v and lists %v", done, w.look.Known)
	}
}

// A failure is said with its object, does not keep others from being made, and is tried again.
func TestFailuresAreSaid(t *testing.T) {
	w := newWorld(configMap("a"), configMap("b"), configMap("c", "a"))
	w.fails["a"] = true
	plan := w.look.Plan()
	results := []dependents.Result{}
	for _, action := range plan.Actions {
		result := dependents.Result{Action: action}
		if action.ID.Name == "a" {
			result.Err = errors.New("cannot be made: it may not")
		}
		results = append(results, result)
	}
	_, standings := w.look.Report(plan, results)
	if worst, _ := primaries.Sum(standings); worst.Health != objects.Failed || worst.Message != "ConfigMap shop/a cannot be made: it may not" {
		t.Errorf("it says %+v", worst)
	}
	if done := w.step(); !slices.Equal(done, []string{"write a", "write b"}) {
		t.Errorf("it did %v", done)
	}
	delete(w.fails, "a")
	if done := append(w.step(), w.step()...); !slices.Equal(done, []string{"write a", "write c"}) {
		t.Errorf("it did %v", done)
	}
}

// Whatever the objects are, whatever fails and is down, in which order they are listed, and
// whenever the process dies: in the end all are made, each after what it needs, all go, and
// what the status says hangs on no order.
func TestEveryPrimaryEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 5).Draw(t, "objects")
		var wanted []primaries.Object
		for i := range count {
			var needs []string
			for before := range i {
				if rapid.Bool().Draw(t, "needs") {
					needs = append(needs, fmt.Sprint("o", before))
				}
			}
			wanted = append(wanted, configMap(fmt.Sprint("o", i), needs...))
		}
		shuffled := slices.Clone(wanted)
		rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))).Shuffle(count, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		w, other := newWorld(wanted...), newWorld(shuffled...)
		for _, each := range wanted {
			down, fails := rapid.Bool().Draw(t, "down"), rapid.Bool().Draw(t, "fails")
			w.down[each.ID], other.down[each.ID], w.fails[each.ID], other.fails[each.ID] = down, down, fails, fails
		}
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			before, beforeOther := w.look.Known, other.look.Known
			w.step()
			other.step()
			if w.says() != other.says() {
				t.Fatalf("it says %q, and %q in another order", w.says(), other.says())
			}
			if rapid.Bool().Draw(t, "dies") { // before it has written what became of it
				w.look.Known, other.look.Known = withPlanned(before, w.look.Known), withPlanned(beforeOther, other.look.Known)
			}
		}
		clear(w.down)
		clear(w.fails)
		for range 3 * count {
			w.step()
		}
		if done, says := w.step(), w.says(); len(done) > 0 || says != "" || len(w.look.Live) != count {
			t.Fatalf("it does not end: %v, %q, %d objects", done, says, len(w.look.Live))
		}
		w.want()
		gone := map[string]bool{}
		for range 2*count + 2 {
			for _, done := range w.step() {
				id := strings.TrimPrefix(done, "delete ")
				for _, each := range wanted {
					if slices.Contains(each.DependsOn, id) && !gone[each.ID] {
						t.Fatalf("%s goes before %s, which needs it", id, each.ID)
					}
				}
				gone[id] = true
			}
		}
		if len(w.look.Live) > 0 || len(w.look.Known) > 0 {
			t.Fatalf("%d objects are left, and %d are listed", len(w.look.Live), len(w.look.Known))
		}
	})
}

// withPlanned returns what a status lists whose process died: what was planned, without what
// became of it.
func withPlanned(before, after []v1alpha1.Dependent) []v1alpha1.Dependent {
	known := slices.Clone(after)
	for i := range known {
		was := slices.IndexFunc(before, func(d v1alpha1.Dependent) bool { return primaries.IdentityOf(d) == primaries.IdentityOf(known[i]) })
		known[i].Digest, known[i].UID, known[i].ResourceVersion = "", "", ""
		if was >= 0 {
			known[i].Digest, known[i].UID, known[i].ResourceVersion = before[was].Digest, before[was].UID, before[was].ResourceVersion
		}
	}
	return known
}

// What waits for an object that is made once does so whatever others make of that.
func TestWhatIsMadeOnceHoldsNothingUp(t *testing.T) {
	once := configMap("once")
	once.Mode = dependents.ModeCreateOnce
	w := newWorld(once, configMap("b", "once"))
	w.fails["b"] = true
	w.step()
	live := w.look.Live[once.Identity()]
	live.Object["data"] = map[string]any{"of": "somebody else"}
	live.SetResourceVersion("9")
	delete(w.fails, "b")
	if done := w.step(); !slices.Equal(done, []string{"write b"}) || w.says() != "" {
		t.Errorf("it did %v and says %q", done, w.says())
	}
}
