// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/objects"
)

// simulation is a cluster that carries out plans at once, with a helm-controller
// that makes every release ready, and two primaries that share it.
type simulation struct {
	*rapid.T
	now     time.Time
	version int
	objects map[objects.ID]*unstructured.Unstructured
	lists   map[string][]Dependent
	has     map[string][]Entry
	log     []string
}

// identityOf names what a release stands for: a and b are two names for one
// Helm release.
func identityOf(id objects.ID) string {
	switch {
	case id.Kind != "HelmRelease":
		return ""
	case id == a, id == b:
		return "helm/shared"
	default:
		return "helm/" + id.Name
	}
}

// relist draws who lists what, each object at most once and each Helm release
// under one name.
func (s *simulation) relist() {
	s.lists = map[string][]Dependent{}
	taken := map[string]bool{}
	for _, id := range rapid.Permutation(allIDs).Draw(s.T, "order") {
		owner := rapid.SampledFrom([]string{"base", "base", "other", "other", ""}).Draw(s.T, "lister of "+id.Name)
		if owner == "" || taken[identityOf(id)] {
			continue
		}
		taken[identityOf(id)] = identityOf(id) != ""
		d := want(id, digest(rapid.SampledFrom([]string{"v1", "v2"}).Draw(s.T, "content")), standsFor(identityOf(id)))
		if id == releaseID("d") && chance(s.T, 50, "depends") {
			d.DependsOn = []objects.ID{c}
		}
		d.Object = ContentOf(object(id, ownedBy(owner)))
		s.lists[owner] = append(s.lists[owner], d)
	}
	s.note("lists: base %v, other %v", s.lists["base"], s.lists["other"])
}

func (s *simulation) note(format string, args ...any) {
	s.log = append(s.log, s.now.Format("04:05 ")+fmt.Sprintf(format, args...))
}

// observe is what a primary sees.
func (s *simulation) observe(owner string) Input {
	in := world(inventory(s.has[owner]...), wanted(s.lists[owner]...))
	in.Owner, in.Now = owner, s.now
	for id, obj := range s.objects {
		in.Live[id] = obj.DeepCopy()
		if exclusive := identityOf(id); exclusive != "" {
			in.Exclusive[exclusive] = append(in.Exclusive[exclusive], id)
		}
	}
	for _, other := range []string{"base", "other"} {
		if other == owner {
			continue
		}
		in.Others.Existing[other] = true
		in.Others.Holds = map[objects.ID]string{}
		for _, entry := range s.has[other] {
			in.Others.Holds[entry.ID] = other
		}
		for _, d := range s.lists[other] {
			listedBy(other, d.ID)(&in)
			if d.Exclusive != "" {
				in.Others.Exclusive[d.Exclusive] = append(in.Others.Exclusive[d.Exclusive], Claim{Owner: other, ID: d.ID})
			}
		}
	}
	return in
}

// step has one primary look and act, perhaps behind a closed gate.
func (s *simulation) step(owner string, closed bool) Plan {
	in := s.observe(owner)
	in.RepairOnly = closed
	plan := Make(in)
	var results []Result
	for _, action := range plan.Actions {
		s.note("%s: %s %s", owner, action.Verb, action.ID.Name)
		results = append(results, s.carryOut(owner, action))
	}
	s.has[owner] = Record(plan.Inventory, results)
	for i := range s.has[owner] {
		s.has[owner][i].Since = s.has[owner][i].Since.Truncate(time.Second)
	}
	return plan
}

func (s *simulation) carryOut(owner string, action Action) Result {
	obj := s.objects[action.ID]
	switch {
	case action.Verb == VerbDelete:
		s.delete(action.ID)
		return Result{Action: action}
	case obj == nil && action.Verb != VerbWrite:
		s.Fatalf("%s of an absent object: %s\n%s", action.Verb, action.ID, strings.Join(s.log, "\n"))
	case obj == nil:
		obj = object(action.ID, ownedBy(owner))
		s.objects[action.ID] = obj
	}
	before := fmt.Sprint(obj.Object["spec"])
	s.change(owner, obj, action)
	s.touch(obj, before)
	return Result{Action: action, Generation: obj.GetGeneration(), ResourceVersion: obj.GetResourceVersion()}
}

// touch counts a change as the API server does.
func (s *simulation) touch(obj *unstructured.Unstructured, before string) {
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	if obj.GetKind() == "HelmRelease" && fmt.Sprint(obj.Object["spec"]) != before {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

func (s *simulation) change(owner string, obj *unstructured.Unstructured, action Action) {
	set := func(value any, field string) { _ = unstructured.SetNestedField(obj.Object, value, "spec", field) }
	switch action.Verb {
	case VerbWrite:
		label(testKeys.Owner, owner)(obj)
		label(testKeys.Orphaned, "")(obj)
		set(action.Wanted.Digest, "content")
		unstructured.RemoveNestedField(obj.Object, "spec", "drift")
	case VerbAdopt:
		label(testKeys.Owner, owner)(obj)
		label(testKeys.Orphaned, "")(obj)
	case VerbSupersede:
		label(testKeys.Owner, owner)(obj)
		label(testKeys.Orphaned, "")(obj)
		supersededBy(action.Successor.Name)(obj)
		set(true, "suspend")
	case VerbResume:
		obj.SetAnnotations(nil)
		unstructured.RemoveNestedField(obj.Object, "spec", "suspend")
	case VerbMark:
		orphaned(obj)
	case VerbUnmark:
		label(testKeys.Orphaned, "")(obj)
	default:
		s.Fatalf("%s is not expected here: %s", action.Verb, action.ID)
	}
}

// delete removes an object. What Helm installed must outlive it as long as
// somebody lists it.
func (s *simulation) delete(id objects.ID) {
	obj := s.objects[id]
	delete(s.objects, id)
	for owner, list := range s.lists {
		for _, d := range list {
			if d.ID == id {
				s.Fatalf("%s is deleted while %s lists it\n%s", id, owner, strings.Join(s.log, "\n"))
			}
			if d.Exclusive != "" && d.Exclusive == identityOf(id) && !objects.IsSuspended(obj) {
				s.Fatalf("%s is uninstalled while %s lists %s\n%s", id, owner, d.ID, strings.Join(s.log, "\n"))
			}
		}
	}
}

// meddle is what people do to objects.
func (s *simulation) meddle() {
	ids := slices.SortedFunc(maps.Keys(s.objects), objects.ID.Compare)
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(s.T, "object")
	obj := s.objects[id]
	before := fmt.Sprint(obj.Object["spec"])
	what := rapid.SampledFrom([]string{"drift", "forged label", "label off", "deleted"}).Draw(s.T, "what")
	s.note("somebody: %s %s", what, id.Name)
	switch what {
	case "drift":
		_ = unstructured.SetNestedField(obj.Object, "x", "spec", "drift")
	case "forged label":
		orphaned(obj)
	case "label off":
		label(testKeys.Orphaned, "")(obj)
	default:
		delete(s.objects, id)
		return
	}
	s.touch(obj, before)
}

// flux makes releases ready.
func (s *simulation) flux() {
	for id, obj := range s.objects {
		if id.Kind == "HelmRelease" && !objects.IsSuspended(obj) && rapid.Bool().Draw(s.T, "flux looks") {
			observed(obj.GetGeneration())(obj)
			conditioned("Ready", "True", "", "")(obj)
		}
	}
}

// settle goes on until nothing more happens.
func (s *simulation) settle() {
	quiet := 0
	for range 200 {
		s.now = s.now.Add(testGrace / 4)
		for id := range s.objects {
			if id.Kind == "HelmRelease" && !objects.IsSuspended(s.objects[id]) {
				observed(s.objects[id].GetGeneration())(s.objects[id])
				conditioned("Ready", "True", "", "")(s.objects[id])
			}
		}
		quiet++
		for _, owner := range []string{"base", "other"} {
			if plan := s.step(owner, false); plan.Writes() || len(plan.Conflicts) > 0 || !plan.Until.IsZero() {
				quiet = 0
			}
		}
		if quiet > 1 {
			return
		}
	}
	s.Fatalf("does not converge:\n%s", strings.Join(s.log[max(0, len(s.log)-60):], "\n"))
}

// check compares the cluster with what is listed.
func (s *simulation) check() {
	listed := map[objects.ID]string{}
	for owner, list := range s.lists {
		has := map[objects.ID]bool{}
		for _, e := range s.has[owner] {
			has[e.ID] = true
		}
		for _, d := range list {
			listed[d.ID] = owner
			obj := s.objects[d.ID]
			if obj == nil || obj.GetLabels()[testKeys.Owner] != owner || obj.GetLabels()[testKeys.Orphaned] != "" || objects.IsSuspended(obj) || !has[d.ID] {
				s.Errorf("%s of %s is not as it should be: %v", d.ID, owner, obj)
			}
		}
		if len(has) != len(list) {
			s.Errorf("%s lists %d objects and has %d", owner, len(list), len(has))
		}
	}
	for id := range s.objects {
		if listed[id] == "" {
			s.Errorf("%s is left over: %v", id, s.objects[id])
		}
	}
	if s.Failed() {
		s.Log(strings.Join(s.log, "\n"))
	}
}

// TestPlansConverge has two primaries share a cluster while what they list
// changes at any moment, and people meddle.
func TestPlansConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{T: t, now: testNow, objects: map[objects.ID]*unstructured.Unstructured{}, has: map[string][]Entry{}}
		for range rapid.IntRange(1, 6).Draw(t, "phases") {
			s.relist()
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				s.now = s.now.Add(time.Duration(rapid.Int64Range(0, int64(testGrace)).Draw(t, "time")))
				s.step(rapid.SampledFrom([]string{"base", "other"}).Draw(t, "who"), chance(t, 25, "gate closed"))
				s.flux()
				if chance(t, 20, "somebody meddles") {
					s.meddle()
				}
			}
		}
		s.settle()
		s.check()
	})
}
