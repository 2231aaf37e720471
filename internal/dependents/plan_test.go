// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/objects/objectstest"
)

const (
	releaseRank = 6
	configRank  = 3
)

var (
	testKeys = Keys{
		Owner: "owner", Orphaned: "orphaned", SuspendedByHold: "held", SupersededBy: "successor", Abandon: "abandon", AllowPrune: "kraan.io/allow-prune",
		FormerOwner: schema.GroupKind{Group: "example.com", Kind: "Primary"},
	}
	testNow   = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	longAgo   = testNow.Add(-time.Hour).Truncate(time.Second)
	testGrace = time.Minute
)

// These name and make objects with and without a generation.
var (
	releaseID, configID = objectstest.ReleaseID, objectstest.ConfigID
	generation          = objectstest.Generation
	observed            = objectstest.Observed
	conditioned         = objectstest.Conditioned
	suspended           = objectstest.Suspended
)

func issuerID(name string) objects.ID {
	return objects.ID{Group: "acme.example.com", Kind: "Issuer", Name: name}
}

type change = objectstest.Change

// object returns a live object of the primary base.
func object(id objects.ID, changes ...change) *unstructured.Unstructured {
	return objectstest.Live(id, append([]change{ownedBy("base")}, changes...)...)
}

func release(name string, changes ...change) *unstructured.Unstructured {
	return objectstest.Release(name, append([]change{ownedBy("base")}, changes...)...)
}

func config(name string, changes ...change) *unstructured.Unstructured {
	return object(configID(name), changes...)
}

func version(v string) change { return func(o *unstructured.Unstructured) { o.SetResourceVersion(v) } }

var notReady = conditioned("Ready", "False", "InstallFailed", "no such chart")

func label(key, value string) change {
	return func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		if value == "" {
			delete(labels, key)
		}
		o.SetLabels(labels)
	}
}

func ownedBy(owner string) change { return label(testKeys.Owner, owner) }

var (
	unowned  = label(testKeys.Owner, "")
	orphaned = label(testKeys.Orphaned, "2026-01-02T02.04.05Z")
)

func annotated(key, value string) change {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: value}) }
}

var heldByStrata = annotated(testKeys.SuspendedByHold, "true")

func supersededBy(name string) change { return annotated(testKeys.SupersededBy, "default/"+name) }

func deleting(o *unstructured.Unstructured) {
	moment := metav1.NewTime(testNow)
	o.SetDeletionTimestamp(&moment)
}

func formerlyOwned(o *unstructured.Unstructured) {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Primary", Name: "base", UID: "x"}})
}

// want returns a dependent with content v1.
func want(id objects.ID, changes ...func(*Dependent)) Dependent {
	d := Dependent{ID: id, Digest: "v1", Stage: configRank, Assess: objects.AssessExistence, Origin: id.Name + ".yaml"}
	if id.Kind == "HelmRelease" {
		d.Stage, d.Assess, d.Exclusive = releaseRank, objects.AssessCondition, "helm/"+id.Name
	}
	for _, change := range changes {
		change(&d)
	}
	return d
}

// saying wants a value in the data of an object.
func saying(key, value string) func(*Dependent) {
	return func(d *Dependent) {
		d.Object = ContentOf(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{key: value}}})
	}
}

func digest(v string) func(*Dependent) { return func(d *Dependent) { d.Digest = v } }

func mode(m Mode) func(*Dependent) { return func(d *Dependent) { d.Mode = m } }

func standsFor(exclusive string) func(*Dependent) {
	return func(d *Dependent) { d.Exclusive = exclusive }
}

func after(names ...string) func(*Dependent) {
	return func(d *Dependent) {
		for _, name := range names {
			d.DependsOn = append(d.DependsOn, releaseID(name))
		}
	}
}

// had returns the entry of an object that was deployed with content v1.
func had(id objects.ID, changes ...func(*Entry)) Entry {
	e := Entry{ID: id, Digest: "v1", Generation: 1, Status: objects.StatusReady, Since: longAgo, Rank: releaseRank, Assess: objects.AssessCondition, Origin: id.Name + ".yaml"}
	if id.Kind != "HelmRelease" {
		e.Generation, e.ResourceVersion, e.Rank, e.Assess = 0, "7", configRank, objects.AssessExistence
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// since makes an entry one that has had a status for some time.
func since(status string, ago time.Duration) func(*Entry) {
	return func(e *Entry) { e.Status, e.Since = status, testNow.Add(-ago) }
}

func retained(e *Entry) { e.Deletion = DeletionOrphan }

func undeployed(e *Entry) { e.Digest, e.Generation, e.Status = "", 0, objects.StatusMissing }

// world returns an input that may do everything.
func world(changes ...func(*Input)) Input {
	in := Input{
		Owner: "base", Keys: testKeys, Now: testNow, Grace: testGrace, Keep: map[objects.ID]bool{},
		Found:  Found{Live: map[objects.ID]*unstructured.Unstructured{}, Stale: map[objects.ID]bool{}, Exclusive: map[string][]objects.ID{}},
		Limits: Limits{MayPrune: true, MayWrite: true},
		Others: Others{Listed: map[objects.ID][]Claim{}, Exclusive: map[string][]Claim{}, Existing: map[string]bool{}, Unreadable: map[string]bool{}},
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func wanted(ds ...Dependent) func(*Input) {
	return func(in *Input) { in.Wanted = append(in.Wanted, ds...) }
}

func inventory(es ...Entry) func(*Input) {
	return func(in *Input) { in.Inventory = append(in.Inventory, es...) }
}

func lives(objs ...*unstructured.Unstructured) func(*Input) {
	return func(in *Input) {
		for _, obj := range objs {
			in.Live[objects.IDOf(obj)] = obj
		}
	}
}

func stale(ids ...objects.ID) func(*Input) {
	return func(in *Input) {
		for _, id := range ids {
			in.Stale[id] = true
		}
	}
}

func listedBy(owner string, id objects.ID) func(*Input) {
	return func(in *Input) {
		in.Others.Existing[owner] = true
		in.Others.Listed[id] = append(in.Others.Listed[id], Claim{Owner: owner, Origin: owner + "/" + id.Name + ".yaml", ID: id})
	}
}

func mayList(id objects.ID, doubts ...Doubt) func(*Input) {
	return func(in *Input) { in.Others.MayList = map[objects.ID][]Doubt{id: doubts} }
}

func exists(owners ...string) func(*Input) {
	return func(in *Input) {
		for _, owner := range owners {
			in.Others.Existing[owner] = true
		}
	}
}

// holds says that other owners have objects in their inventories.
func holds(owner string, ids ...objects.ID) func(*Input) {
	return func(in *Input) {
		in.Others.Existing[owner] = true
		in.Others.Holds = map[objects.ID]string{}
		for _, id := range ids {
			in.Others.Holds[id] = owner
		}
	}
}

// idle says that live objects do not get what they stand for by themselves.
func idle(ids ...objects.ID) func(*Input) {
	return func(in *Input) {
		in.Idle = map[objects.ID]bool{}
		for _, id := range ids {
			in.Idle[id] = true
		}
	}
}

// sharing says that live objects stand for the same exclusive thing.
func sharing(exclusive string, ids ...objects.ID) func(*Input) {
	return func(in *Input) { in.Exclusive[exclusive] = ids }
}

func held(in *Input) { in.Held = true }

func suspendHeld(in *Input) { in.Held, in.SuspendHeld = true, true }

func repairOnly(in *Input) { in.RepairOnly = true }

func readOnly(in *Input) { in.MayWrite, in.MayPrune = false, false }

// actionLines writes actions as a table shows them.
func actionLines(plan Plan) []string {
	var lines []string
	for _, a := range plan.Actions {
		line := fmt.Sprintf("%s %s", a.Verb, a.ID.Name)
		if len(a.From) > 0 {
			line += " from " + strings.Join(a.From, ",")
		}
		if a.Correction {
			line += " as a correction"
		}
		if a.KeptFor != "" {
			line += " kept for " + a.KeptFor
		}
		if a.Successor != (objects.ID{}) {
			line += " for " + a.Successor.Name
		}
		lines = append(lines, line)
	}
	return lines
}

// contestLines writes contests as a table shows them.
func contestLines(plan Plan) []string {
	var lines []string
	for _, c := range plan.Contested {
		how := "beside"
		if c.Waits {
			how = "waits for"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", c.ID.Name, how, c.With.Name))
	}
	return lines
}

var healthWords = map[objects.Health]string{
	objects.Ready: "ready", objects.Ignored: "ignored", objects.Progressing: "progressing", objects.Blocked: "blocked", objects.Unknown: "unknown", objects.Failed: "failed",
}

// standingLines writes standings as a table shows them.
func standingLines(plan Plan) []string {
	var lines []string
	for _, s := range plan.Standings {
		line := fmt.Sprintf("%s %s %s", s.ID.Name, healthWords[s.Health], s.Status)
		if s.Unwanted {
			line += " unwanted"
		}
		if s.Reason != "" {
			line += " (" + s.Reason + ")"
		}
		if s.Message != "" {
			line += ": " + s.Message
		}
		lines = append(lines, line)
	}
	return lines
}

func conflictLines(plan Plan) []string {
	var lines []string
	for _, c := range plan.Conflicts {
		lines = append(lines, fmt.Sprintf("%s (%s) with %s of %q (%s)", c.ID.Name, c.Origin, c.With.Name, c.Owner, c.OwnerOrigin))
	}
	return lines
}

// checkStandings wants every standing to say in its fields what its message
// says in words.
func checkStandings(t interface{ Errorf(string, ...any) }, plan Plan) {
	for _, s := range plan.Standings {
		named := s.WaitsFor.String()
		of := strings.HasPrefix(s.Message, "waits for ") || strings.HasPrefix(s.Message, "goes after ") ||
			strings.HasPrefix(s.Message, "goes when ") || strings.HasPrefix(s.Message, "stays suspended until ")
		if of != (s.WaitsFor != objects.ID{}) || of && !strings.Contains(s.Message, named) {
			t.Errorf("%s %q, and waits for %q", s.ID, s.Message, named)
		}
		until := strings.HasPrefix(s.Message, "waits until ")
		if until == s.Until.IsZero() || until && !strings.Contains(s.Message, s.Until.UTC().Format(time.RFC3339)) {
			t.Errorf("%s %q, and goes on at %s", s.ID, s.Message, s.Until)
		}
		if s.Said != "" && !strings.HasSuffix(s.Message, ": "+s.Said) {
			t.Errorf("%s %q, and has said %q", s.ID, s.Message, s.Said)
		}
	}
}

// planCase is one row of a table of plans.
type planCase struct {
	reason    string
	in        Input
	actions   []string
	standings []string
	conflicts []string
	contested []string
	until     time.Time
}

func runPlanCases(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			tc := cases[name]
			plan := Make(tc.in)
			checkStandings(t, plan)
			for what, diff := range map[string]string{
				"actions":   cmp.Diff(tc.actions, actionLines(plan)),
				"standings": cmp.Diff(tc.standings, standingLines(plan)),
				"conflicts": cmp.Diff(tc.conflicts, conflictLines(plan)),
				"contested": cmp.Diff(tc.contested, contestLines(plan)),
				"until":     cmp.Diff(tc.until, plan.Until),
			} {
				if diff != "" {
					t.Errorf("%s\n%s (-want +got):\n%s", tc.reason, what, diff)
				}
			}
		})
	}
}
