// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// cluster returns one at 1.0.0 that is to go to 2.0.0, changed as asked.
func cluster(name string, stage int, change ...func(*Cluster)) Cluster {
	c := Cluster{Name: name, Stage: stage, Current: "1.0.0", Next: "2.0.0", Condition: Ready, Reached: now.Add(-1000 * time.Hour)}
	for _, f := range change {
		f(&c)
	}
	return c
}

// updatedSince is a cluster that has reached the target.
func updatedSince(ago time.Duration) func(*Cluster) {
	return func(c *Cluster) { c.Current, c.Next, c.Before, c.Reached = "2.0.0", "", "1.0.0", now.Add(-ago) }
}

func is(condition Condition, message string) func(*Cluster) {
	return func(c *Cluster) { c.Condition, c.Message = condition, message }
}

// onTheWay is a cluster that has been sent to a version.
func onTheWay(to string, condition Condition) func(*Cluster) {
	return func(c *Cluster) { c.Moving, c.Before, c.Condition = to, "1.0.0", condition }
}

func number(n int32) *intstr.IntOrString {
	v := intstr.FromInt32(n)
	return &v
}

func percent(text string) *intstr.IntOrString {
	v := intstr.FromString(text)
	return &v
}

// many returns clusters of a stage by the same changes.
func many(count, stage int, change ...func(*Cluster)) []Cluster {
	var all []Cluster
	for i := range count {
		all = append(all, cluster(fmt.Sprintf("s%d-%d", stage, i), stage, change...))
	}
	return all
}

var canaryAndProd = []Stage{{Name: "canary"}, {Name: "prod", MaxUnavailable: number(2)}}

func TestPlan(t *testing.T) {
	night := []Window{{Start: "22:00", Duration: 5 * time.Hour}}
	for name, test := range map[string]struct {
		in       Input
		moves    int
		back     string
		stage    string
		why      string
		until    string
		rolled   string
		inStages string
	}{
		"no target":         {in: Input{Clusters: many(1, 0), Stages: canaryAndProd}, why: "there is no version to go to"},
		"no clusters":       {in: Input{Target: "2.0.0", Stages: canaryAndProd}, why: "every stage is done"},
		"no stages":         {in: Input{Target: "2.0.0", Clusters: many(3, -1)}, moves: 1, stage: Rest},
		"first stage first": {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(3, 1), many(2, 0)...)}, moves: 1, stage: "canary", inStages: "s0-"},
		"no more than may": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0), cluster("x", 0, onTheWay("2.0.0", Progressing)))},
			why:   "1 clusters of stage canary are moving, and 1 may at a time",
			stage: "canary",
		},
		"one that settles is moving": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0), cluster("x", 0, updatedSince(time.Hour), is(Progressing, "")))},
			why:   "1 clusters of stage canary are moving, and 1 may at a time",
			stage: "canary",
		},
		"a percentage is rounded down": {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", MaxUnavailable: percent("30%")}}, Clusters: many(9, 0)}, moves: 2, stage: "a"},
		"but never to nothing":         {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", MaxUnavailable: percent("30%")}}, Clusters: many(3, 0)}, moves: 1, stage: "a"},
		"the second stage":             {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0, updatedSince(0)), many(5, 1)...)}, moves: 2, stage: "prod", inStages: "s1-"},
		"the rest after all":           {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0, updatedSince(0)), many(5, -1)...)}, moves: 1, stage: Rest},
		"soaks": {
			in:    Input{Target: "2.0.0", Stages: []Stage{{Name: "a", Soak: 2 * time.Hour}, {Name: "b"}}, Clusters: append(many(1, 0, updatedSince(time.Hour)), append(many(2, 1), cluster("y", 0, updatedSince(90*time.Minute)))...)},
			why:   "stage a soaks until 2026-05-04T04:02:01Z",
			until: "2026-05-04T04:02:01Z",
			stage: "a",
		},
		"has soaked": {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", Soak: 2 * time.Hour}, {Name: "b"}}, Clusters: append(many(1, 0, updatedSince(2*time.Hour)), many(2, 1)...)}, moves: 1, stage: "b"},
		"waits for approval": {
			in:    Input{Target: "2.0.0", Stages: []Stage{{Name: "a"}, {Name: "b", Approval: true}}, Clusters: append(many(1, 0, updatedSince(0)), many(2, 1)...), Approved: map[string]bool{"b@1.9.0": true, "a@2.0.0": true}},
			why:   "stage b waits for approval: b@2.0.0",
			stage: "b",
		},
		"is approved":                     {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a"}, {Name: "b", Approval: true}}, Clusters: append(many(1, 0, updatedSince(0)), many(2, 1)...), Approved: map[string]bool{"b@2.0.0": true}}, moves: 1, stage: "b"},
		"nothing to approve":              {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", Approval: true}, {Name: "b"}}, Clusters: append(many(1, 0, updatedSince(0)), many(2, 1)...)}, moves: 1, stage: "b"},
		"approval is for the unreachable": {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", Approval: true}, {Name: "b"}}, Clusters: append(many(1, 0, is(Unreachable, "")), many(2, 1)...)}, why: "stage a waits for approval: a@2.0.0", stage: "a"},
		"an unhealthy one is not started": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0, is(Unhealthy, "2 nodes are gone")), many(2, 1)...)},
			why:   "stage canary does not end: cluster s0-0 is not started: it is unhealthy: 2 nodes are gone",
			stage: "canary",
		},
		"nor one that failed before": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0, is(Failed, "")), many(2, 1)...)},
			why:   "stage canary does not end: cluster s0-0 is not started: it is unhealthy, and 1 more",
			stage: "canary",
		},
		"but the others are":                  {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0, is(Unhealthy, "")), cluster("well", 0))}, moves: 1, stage: "canary", inStages: "well"},
		"and it may be missing":               {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", MaxFailures: number(1)}, {Name: "b"}}, Clusters: append(many(1, 0, is(Unhealthy, "")), many(1, 1)...)}, moves: 1, stage: "b"},
		"one without a way is stuck":          {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0, func(c *Cluster) { c.Next, c.Problem = "", "no path from 1.0.0 to 2.0.0" }), many(2, 1)...)}, why: "stage canary does not end: cluster s0-0 is not started: no path from 1.0.0 to 2.0.0", stage: "canary"},
		"one that is busy is waited":          {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0, is(Progressing, "")), many(2, 1)...)}, why: "stage canary has clusters that are not ready to begin", stage: "canary"},
		"an unreachable one holds up nothing": {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: slices.Concat(many(1, 0, is(Unreachable, "")), []Cluster{cluster("gone", 1, onTheWay("2.0.0", Unreachable))}, many(3, 1))}, moves: 2, stage: "prod"},
		"one that returns catches up": {
			in:    Input{Target: "2.0.0", Stages: []Stage{{Name: "a", Approval: true, Soak: time.Hour}, {Name: "b"}}, Clusters: append(many(1, 0), many(2, 1)...), Progress: Progress{Target: "2.0.0", Passed: []string{"a"}}},
			moves: 2, stage: "b",
		},
		"progress of another target": {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0), many(2, 1)...), Progress: Progress{Target: "1.9.0", Passed: []string{"canary"}, RolledBack: "prod"}}, moves: 1, stage: "canary"},
		"halts": {
			in:    Input{Target: "2.0.0", Stages: []Stage{{Name: "a", MaxFailures: percent("25%"), MaxUnavailable: number(9)}}, Clusters: append(many(6, 0), cluster("x", 0, onTheWay("2.0.0", Failed)), cluster("y", 0, updatedSince(0), is(Unhealthy, "")), cluster("z", 0, onTheWay("2.0.0", Failed)))},
			why:   "halted: 3 of 9 clusters of stage a failed, and 2 may",
			stage: "a",
		},
		"below the limit it goes on": {in: Input{Target: "2.0.0", Stages: []Stage{{Name: "a", MaxFailures: percent("25%"), MaxUnavailable: number(9)}}, Clusters: append(many(7, 0), cluster("x", 0, onTheWay("2.0.0", Failed)), cluster("y", 0, updatedSince(0), is(Failed, "")))}, moves: 7, stage: "a"},
		"a failure in a stage before": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0, updatedSince(time.Hour), is(Failed, "")), many(2, 1)...), Progress: Progress{Target: "2.0.0", Passed: []string{"canary"}}, OnFailure: Rollback},
			why:   "halted: 1 of 1 clusters of stage canary failed, and 0 may",
			stage: "prod",
		},
		"one that heals counts": {in: Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0, updatedSince(0)), many(2, 1)...), OnFailure: Rollback}, moves: 2, stage: "prod"},
		"what failed under another target": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: []Cluster{cluster("x", 0, onTheWay("1.9.0", Failed)), cluster("y", 0)}, OnFailure: Rollback},
			moves: 1, stage: "canary", inStages: "y",
		},
		"rolls back what failed first": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0, updatedSince(time.Hour)), cluster("x", 0, onTheWay("2.0.0", Failed)), cluster("never", 0)), OnFailure: Rollback, Windows: night},
			back:  "x>1.0.0",
			stage: "canary", rolled: "canary",
		},
		"then the others": {
			in:    Input{Target: "2.0.0", Stages: []Stage{{Name: "a", MaxUnavailable: number(5)}}, Clusters: []Cluster{cluster("u", 0, updatedSince(time.Hour)), cluster("x", 0, onTheWay("2.0.0", Failed)), cluster("m", 0, onTheWay("2.0.0", Progressing)), cluster("away", 0, updatedSince(time.Hour), is(Unreachable, ""))}, Progress: Progress{Target: "2.0.0", RolledBack: "a"}},
			back:  "x>1.0.0 u>1.0.0",
			stage: "a", rolled: "a",
		},
		"and tries no more": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(2, 0), cluster("x", 0, onTheWay("1.0.0", Failed))), Progress: Progress{Target: "2.0.0", RolledBack: "canary"}},
			why:   "2.0.0 failed in stage canary, which goes back to what it had; it is not tried again until another version was",
			stage: "canary", rolled: "canary",
		},
		"nothing to go back to": {
			in:    Input{Target: "2.0.0", Clusters: many(1, -1, func(c *Cluster) { c.Current, c.Moving, c.Condition = "", "2.0.0", Failed }), OnFailure: Rollback},
			why:   "halted: 1 of 1 clusters of stage (rest) failed, and 0 may",
			stage: Rest,
		},
		"what was at the target already is not rolled back": {
			in:    Input{Target: "2.0.0", Stages: canaryAndProd, Clusters: append(many(1, 0), cluster("x", 0, updatedSince(time.Hour), is(Failed, ""), func(c *Cluster) { c.Before = "" })), OnFailure: Rollback},
			why:   "halted: 1 of 2 clusters of stage canary failed, and 0 may",
			stage: "canary",
		},
		"waits for the window": {
			in:  Input{Target: "2.0.0", Windows: night, Clusters: many(3, -1)},
			why: "waits for the window that opens at 2026-05-04T22:00:00Z", until: "2026-05-04T22:00:00Z", stage: Rest,
		},
		"no window at all":                {in: Input{Target: "2.0.0", Windows: []Window{}, Clusters: many(3, -1)}, why: "waits for a window, and none opens", stage: Rest},
		"a first installation waits not":  {in: Input{Target: "2.0.0", Windows: night, Clusters: many(3, -1, func(c *Cluster) { c.Current = "" }), Spread: time.Hour}, moves: 1, stage: Rest},
		"nor for a change without effect": {in: Input{Target: "2.0.0", Windows: night, Clusters: many(3, -1, updatedSince(0))}, why: "every stage is done"},
		"within the window":               {in: Input{Target: "2.0.0", Windows: []Window{{Start: "03:00", Duration: time.Hour}}, Clusters: many(3, -1)}, moves: 1, stage: Rest, until: "2026-05-04T04:00:00Z"},
		"approval comes before windows": {
			in:  Input{Target: "2.0.0", Windows: night, Stages: []Stage{{Name: "a"}, {Name: "b", Approval: true}}, Clusters: append(many(1, 0), many(1, 1)...), Progress: Progress{Target: "2.0.0", Passed: []string{"a"}}},
			why: "stage b waits for approval: b@2.0.0", until: "2026-05-04T22:00:00Z", stage: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Now, test.in.UID = now, "uid"
			d := Plan(test.in)
			var back []string
			for _, m := range d.Back {
				back = append(back, m.Cluster+">"+m.To)
			}
			if len(d.Moves) != test.moves || strings.Join(back, " ") != test.back || d.Stage != test.stage || d.Why != test.why || rfc(d.Until) != test.until || d.Progress.RolledBack != test.rolled {
				t.Errorf("%d moves, back %q, stage %q, why %q, until %q, rolled back %q\nwant %d, %q, %q, %q, %q, %q", len(d.Moves), back, d.Stage, d.Why, rfc(d.Until), d.Progress.RolledBack,
					test.moves, test.back, test.stage, test.why, test.until, test.rolled)
			}
			for _, m := range d.Moves {
				if m.To != "2.0.0" || !strings.HasPrefix(m.Cluster, test.inStages) {
					t.Errorf("moves %+v", m)
				}
			}
		})
	}
}

func TestPlanSpreads(t *testing.T) {
	in := Input{
		Now: at(t, "2026-05-04T22:00:00Z"), UID: "uid", Target: "2.0.0", Spread: 2 * time.Hour, Stages: []Stage{{Name: "a", MaxUnavailable: number(100)}},
		Windows: []Window{{Start: "22:00", Duration: 5 * time.Hour}}, Clusters: many(20, 0),
	}
	began := map[string]time.Time{}
	for range 25 {
		d := Plan(in)
		for _, m := range d.Moves {
			i := slices.IndexFunc(in.Clusters, func(c Cluster) bool { return c.Name == m.Cluster })
			updatedSince(0)(&in.Clusters[i])
			began[m.Cluster] = in.Now
		}
		in.Now, in.Progress = d.Until, d.Progress
	}
	for _, c := range in.Clusters {
		if want := at(t, "2026-05-04T22:00:00Z").Add(Offset("uid", c.Name, 2*time.Hour)); !began[c.Name].Equal(want) {
			t.Errorf("%s began at %s, want %s", c.Name, began[c.Name], want)
		}
	}
	in.Clusters, in.Now, in.Spread, in.Progress = many(20, 0), at(t, "2026-05-05T02:59:59Z"), 100*time.Hour, Progress{}
	if d := Plan(in); len(d.Moves) < 19 {
		t.Errorf("a spread that is longer than its window leaves out %d clusters", 20-len(d.Moves))
	}
	in.Now, in.Since, in.Spread = at(t, "2026-05-05T01:00:00Z"), at(t, "2026-05-05T01:00:00Z"), time.Hour
	if d := Plan(in); len(d.Moves) > 1 || !strings.HasPrefix(d.Why, "the next cluster begins at 2026-05-05T01:0") {
		t.Errorf("a target within a window is not spread: %d moves, %s", len(d.Moves), d.Why)
	}
}

func TestPlanCounts(t *testing.T) {
	in := Input{Now: now, Target: "2.0.0", Stages: []Stage{{Name: "done"}, {Name: "mixed", MaxFailures: number(9)}}, Clusters: []Cluster{
		cluster("a", 0, updatedSince(0)),
		cluster("b", 1, updatedSince(0)), cluster("c", 1), cluster("d", 1, onTheWay("2.0.0", Progressing)), cluster("e", 1, onTheWay("2.0.0", Failed), func(c *Cluster) { c.Message = "pods crash" }),
		cluster("f", 1, updatedSince(0), is(Unhealthy, "")), cluster("g", 1, is(Unhealthy, "")), cluster("h", 1, is(Unreachable, "timeout")), cluster("i", 1, func(c *Cluster) { c.Next = "" }),
	}}
	d := Plan(in)
	want := []StageProgress{
		{Name: "done", Total: 1, Updated: 1, Done: true},
		{Name: "mixed", Total: 8, Updated: 1, Waiting: 1, Moving: 1, Failed: 2, Unhealthy: 1, Stuck: 1, Unreachable: 1},
	}
	if diff := cmp.Diff(want, d.Stages); diff != "" {
		t.Error(diff)
	}
	trouble := []Trouble{
		{"e", "mixed", "the move to 2.0.0 has failed: pods crash"},
		{"f", "mixed", "has failed at 2.0.0"},
		{"g", "mixed", "is not started: it is unhealthy"},
		{"i", "mixed", "is not started: there is no version to go to"},
		{"h", "mixed", "cannot be reached: timeout"},
	}
	if diff := cmp.Diff(trouble, d.Worst); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Progress{Target: "2.0.0", Passed: []string{"done"}}, d.Progress); diff != "" {
		t.Error(diff)
	}
}

func TestApprovalIsAskedForOnceThereIsSomethingToMove(t *testing.T) {
	in := Input{Now: now, Target: "2.0.0", Stages: []Stage{{Name: "a", Approval: true}, {Name: "b"}}, Clusters: many(1, 1, updatedSince(0))}
	d := Plan(in)
	if want := (Progress{Target: "2.0.0", Passed: []string{"b", Rest}}); cmp.Diff(want, d.Progress) != "" {
		t.Errorf("progress %+v", d.Progress)
	}
	in.Progress = d.Progress
	in.Clusters = append(in.Clusters, many(1, 0)...)
	if d := Plan(in); len(d.Moves) > 0 || d.Why != "stage a waits for approval: a@2.0.0" {
		t.Errorf("%d moves, %s", len(d.Moves), d.Why)
	}
}

func TestWorstIsBounded(t *testing.T) {
	in := Input{Now: now, Target: "2.0.0", Clusters: append(many(50, -1, is(Unreachable, "")), cluster("x", -1, updatedSince(0), is(Failed, "")))}
	d := Plan(in)
	if len(d.Worst) != mostTrouble || d.Worst[0].Cluster != "x" {
		t.Errorf("%+v", d.Worst)
	}
}

func TestValidateStages(t *testing.T) {
	stages := []Stage{
		{Name: "canary", MaxUnavailable: percent("25%"), MaxFailures: number(0), Soak: time.Hour},
		{Name: "canary", MaxUnavailable: number(0), MaxFailures: number(-1), Soak: -1},
		{Name: Rest, MaxUnavailable: percent("many"), MaxFailures: percent("101%")},
	}
	var got []string
	for _, err := range ValidateStages(stages) {
		got = append(got, err.Error())
	}
	want := []string{
		"stages[1].name: canary is there twice",
		"stages[1].maxUnavailable: 0 is less than 1",
		"stages[1].maxFailures: -1 is less than 0",
		"stages[1].soak: -1ns is less than 0",
		`stages[2].name: "(rest)" is no name of lower case letters, digits and dashes, at most 63`,
		`stages[2].maxUnavailable: "many" is neither a number nor a percentage such as 25%`,
		"stages[2].maxFailures: 101% is more than 100%",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkPlan(b *testing.B) {
	in := Input{Now: now, UID: "uid", Target: "2.0.0", Spread: time.Hour, Stages: canaryAndProd, Clusters: append(many(100, 0), many(900, 1)...), Windows: []Window{{Start: "22:00", Duration: 9 * time.Hour, TimeZone: "Europe/Berlin"}}}
	for b.Loop() {
		Plan(in)
	}
}
