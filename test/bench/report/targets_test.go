// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// verdicts returns the verdict of each target that has one, by name.
func verdicts(results []Result) map[string]Verdict {
	got := map[string]Verdict{}
	for _, t := range Judge(results) {
		if t.Verdict != NotMeasured {
			got[t.Name] = t.Verdict
		}
	}
	return got
}

// seconds makes a result of figures in seconds.
func seconds(scenario, system string, layers, releases int, figures ...any) Result {
	r := Result{Scenario: scenario, System: system, Sizes: Sizes{Layers: layers, Releases: releases}}
	for i := 0; i < len(figures); i += 2 {
		r.Figures = append(r.Figures, Figure{Name: figures[i].(string), Unit: Seconds, Value: figures[i+1].(float64)})
	}
	return r
}

// probed makes a fleet at rest for some seconds with so many probes.
func probed(wall, probes float64) Result {
	r := seconds(FleetIdle, Strata, 10, 5)
	r.Sizes.Clusters, r.WallSeconds = int(wall), wall
	r.Figures = []Figure{{Name: Probes, Value: probes}}
	return r
}

func TestJudge(t *testing.T) {
	idle := seconds(Idle, Strata, 1000, 10)
	idle.WallSeconds, idle.Cost = 120, &Cost{CPUSeconds: 0.59, PeakRSSBytes: 299_999_999}
	idle.Requests = NewRequests([]RequestCount{{Verb: "watch", Resource: "a", Count: 9}}, 60, 2)
	busy := idle
	busy.Cost = &Cost{CPUSeconds: 0.6, PeakRSSBytes: 300_000_000}
	busy.Requests = NewRequests([]RequestCount{{Verb: "get", Resource: "a", Count: 1}, {Verb: "patch", Resource: "a", Count: 1}}, 0, 0)
	failed := seconds(Chain, Strata, 10, 5, HopP95, 0.1, AllDeployed, 2.0)
	failed.Error = "killed"

	for _, test := range []struct {
		reason  string
		results []Result
		want    map[string]Verdict
	}{
		{"nothing was measured", nil, map[string]Verdict{}},
		{
			"a limit that is to be undercut is missed when it is reached",
			[]Result{seconds(Chain, Strata, 10, 5, HopP95, 0.15, AllDeployed, 2.499)},
			map[string]Verdict{
				"chain of 10 layers of 5 releases: hop, p95":     Missed,
				"chain of 10 layers of 5 releases: all Deployed": Met,
			},
		},
		{"what failed was not measured", []Result{failed}, map[string]Verdict{}},
		{"another size says nothing", []Result{seconds(Chain, Strata, 11, 5, HopP95, 0.1)}, map[string]Verdict{}},
		{"another system says nothing", []Result{seconds(Chain, Kustomize, 10, 5, HopP95, 0.1)}, map[string]Verdict{}},
		{
			"without the limit only the end of a fan-out is judged",
			[]Result{seconds(FanOut, Strata, 100, 10, AllCreated, 2.0, AllReady, 2.7, AllDeployed, 2.9)},
			map[string]Verdict{"fan-out 100 x 10: from all Ready to all Deployed": Met},
		},
		{
			"a fan-out is judged by the limit of server-side apply, and not of create",
			[]Result{
				seconds(FanOut, Strata, 100, 10, AllCreated, 2.0, AllReady, 2.8, AllDeployed, 3.1),
				seconds(FanOut, Plain, 100, 10, AllCreated, 1.7),
				seconds(FanOut, PlainCreate, 100, 10, AllCreated, 1.0),
			},
			map[string]Verdict{
				"fan-out 100 x 10: all created, to the limit":      Met,
				"fan-out 100 x 10: from all Ready to all Deployed": Missed,
			},
		},
		{
			"the slowest fleet is judged, whatever its size",
			[]Result{
				seconds(Fleet, Strata, 10, 5, AllCreated, 16.0), seconds(Fleet, Plain, 10, 5, AllCreated, 10.0),
				seconds(Fleet, Strata, 2, 5, AllCreated, 1.0), seconds(Fleet, Plain, 2, 5, AllCreated, 1.0),
			},
			map[string]Verdict{"fleet: all created, to the limit": Missed},
		},
		{
			"commits are judged whatever their number",
			[]Result{{
				Scenario: Commit, System: Strata, Sizes: Sizes{Layers: 100, Releases: 10, Commits: 50},
				Figures: []Figure{
					{Name: CommitP50, Value: 0.099},
					{Name: CommitP95, Value: 0.31},
					{Name: OtherReleases, Value: 0},
					{Name: OtherLayerWrites, Value: 1},
				},
			}},
			map[string]Verdict{
				"commit in one of 100 layers: p50":                        Met,
				"commit in one of 100 layers: p95":                        Missed,
				"commit in one of 100 layers: releases changed elsewhere": Met,
				"commit in one of 100 layers: writes to each other layer": Met,
			},
		},
		{
			"leases, versions and watches are not counted against an idle controller",
			[]Result{idle},
			map[string]Verdict{
				"idle: API writes":                     Met,
				"idle: API reads beyond watches":       Met,
				"idle at 1000 layers: share of a core": Met,
				"RSS at 1000 layers of 10 releases":    Met,
			},
		},
		{
			"one read and one write are too many",
			[]Result{busy},
			map[string]Verdict{
				"idle: API writes":                     Missed,
				"idle: API reads beyond watches":       Missed,
				"idle at 1000 layers: share of a core": Missed,
				"RSS at 1000 layers of 10 releases":    Missed,
			},
		},
		{
			"twice the limit is within a storm",
			[]Result{
				seconds(Storm, Strata, 100, 10, StormArtifacts, 4.0, StormEdits, 4.1),
				seconds(Storm, Plain, 100, 10, StormArtifacts, 2.0, StormEdits, 2.0),
			},
			map[string]Verdict{
				"storm on 100 x 10: new artifacts applied, to the limit": Met,
				"storm on 100 x 10: edits taken back, to the limit":      Missed,
			},
		},
		{
			"of a fleet at rest nothing counts but one probe in an interval",
			[]Result{fleetIdle(0)},
			map[string]Verdict{
				"fleet, idle: API writes":                                         Met,
				"fleet, idle: API reads beyond watches":                           Met,
				"fleet, idle: writes on the clusters":                             Met,
				"fleet, idle: reads on the clusters beyond watches and the probe": Met,
				"fleet, idle: probes of each cluster":                             Met,
			},
		},
		{
			"one more question to one of the clusters is too many",
			[]Result{fleetIdle(1)},
			map[string]Verdict{
				"fleet, idle: API writes":                                         Met,
				"fleet, idle: API reads beyond watches":                           Met,
				"fleet, idle: writes on the clusters":                             Met,
				"fleet, idle: reads on the clusters beyond watches and the probe": Missed,
				"fleet, idle: probes of each cluster":                             Met,
			},
		},
		{
			"in two minutes there are four probes, and one more where the first comes at once",
			[]Result{probed(120, 5), probed(59, 2)},
			map[string]Verdict{"fleet, idle: probes of each cluster": Met},
		},
		{
			"a third one in a minute is too many, whatever another fleet does in two",
			[]Result{probed(120, 5), probed(59, 2.1)},
			map[string]Verdict{"fleet, idle: probes of each cluster": Missed},
		},
		{
			"a cluster of the fleet's size is another one",
			[]Result{{Scenario: Curve, System: Strata, Sizes: Sizes{Clusters: 2, Layers: 1000, Releases: 10}, Cost: &Cost{1, 5e8}}},
			map[string]Verdict{},
		},
		{
			"ten times the time for ten times the layers is linear, a hundred times is not",
			[]Result{
				{Scenario: Curve, System: Strata, Sizes: Sizes{Layers: 100, Releases: 10}, Cost: &Cost{1, 1e8}, Figures: []Figure{{Name: AllDeployed, Value: 1}}},
				{Scenario: Curve, System: Strata, Sizes: Sizes{Layers: 1000, Releases: 10}, Cost: &Cost{100, 2.9e8}, Figures: []Figure{{Name: AllDeployed, Value: 10}}},
			},
			map[string]Verdict{
				"growth from 100 to 1000 layers: exponent of all deployed": Met,
				"growth from 100 to 1000 layers: exponent of cpu":          Missed,
				"growth from 100 to 1000 layers: exponent of peak rss":     Met,
				"RSS at 1000 layers of 10 releases":                        Met,
			},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if diff := cmp.Diff(test.want, verdicts(test.results)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJudgeIgnoresTheOrderOfResults(t *testing.T) {
	results := sample().Results
	want := Judge(results)
	for range 20 {
		rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		if diff := cmp.Diff(want, Judge(results)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestTargetsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, target := range Judge(nil) {
		if seen[target.Name] || strings.TrimSpace(target.Name) == "" {
			t.Errorf("the name %q is not one target's own", target.Name)
		}
		seen[target.Name] = true
		if target.Verdict != NotMeasured {
			t.Errorf("%s is %s without results", target.Name, target.Verdict)
		}
	}
}
