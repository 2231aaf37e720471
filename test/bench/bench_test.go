// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/test/bench/report"
)

// The test's own program is the plain client, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == plainCommand {
		if err := plainProcess(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every scenario can be measured, and what does not depend on the machine is as
// it should be.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("starts control planes")
	}
	var progress bytes.Buffer
	o, err := parseFlags(strings.Fields(`--systems plain-apply,strata
		--chain-layers 2 --chain-releases 2 --fanout-layers 2 --fanout-releases 2 --commits 2 --idle 2s --quiet 1s --calm 500ms
		--fleet-clusters 2 --fleet-layers 2 --fleet-releases 2
		--rollout-clusters 3 --rollout-layers 2
		--builds-layers 2 --builds-releases 2
		--scenarios chain,fan-out,idle,commit,restart,storm,fleet,rollout,builds --timeout 1m
		--strata-flag --leader-election-lease-duration=3s --strata-flag --leader-election-renew-deadline=2s --strata-flag --leader-election-retry-period=500ms`), &progress)
	if err != nil {
		t.Fatal(err)
	}
	made, err := measure(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	t.Logf("progress:\n%s", &progress)
	found := map[string]report.Result{}
	for _, r := range made.Results {
		if r.Error != "" {
			t.Errorf("%s: %s: %s", r.System, r.Scenario, r.Error)
		}
		found[fmt.Sprintf("%s %s %d", r.System, r.Scenario, r.Sizes.Layers)] = r
	}
	for key, figures := range map[string][]string{
		"plain-apply chain 2":           {report.AllDeployed, report.HopP50},
		"plain-apply fan-out 2":         {report.AllCreated, report.AllReady, report.AllDeployed},
		"plain-apply commit 2":          {report.CommitP50, report.OtherReleases},
		"plain-apply storm 2":           {report.StormArtifacts, report.StormEdits},
		"strata chain 2":                {report.AllDeployed, report.HopP50, report.HopP95, report.HopMax},
		"strata fan-out 2":              {report.AllCreated, report.AllReady, report.AllDeployed},
		"strata idle 2":                 nil,
		"strata commit 2":               {report.CommitP50, report.CommitP95, report.CommitMax, report.OtherReleases, report.OtherLayerWrites},
		"strata restart 2":              {report.Quiet},
		"strata storm 2":                {report.StormArtifacts, report.StormEdits},
		"plain-apply fleet 2":           {report.AllCreated, report.AllPut, report.AllDeployed},
		"strata fleet-join 2":           {report.AllJoined, report.ClusterWrites},
		"strata fleet 2":                {report.AllCreated, report.AllPut, report.AllDeployed, report.ClusterWrites},
		"strata fleet-idle 2":           {report.Probes},
		"plain-apply rollout-install 2": {report.AllDeployed},
		"plain-apply rollout 2":         {report.AllDeployed},
		"strata rollout-install 2":      {report.AllDeployed},
		"strata rollout 2":              {report.CanaryDone, report.EarlyDone, report.AllDeployed},
		"strata builds 2":               {report.AllCreated, report.AllReady, report.AllDeployed},
		"strata builds-commit 2":        {report.CommitP50, report.CommitP95, report.CommitMax, report.OtherReleases, report.OtherLayerWrites},
	} {
		r, ok := found[key]
		if !ok {
			t.Errorf("%s was not measured", key)
			continue
		}
		delete(found, key)
		for _, name := range figures {
			if value, ok := figure(r, name); !ok || value < 0 {
				t.Errorf("%s: %s is %v, %t", key, name, value, ok)
			}
		}
		if r.Cost == nil || r.Cost.PeakRSSBytes == 0 || r.Requests == nil || r.Downloads == nil || r.WallSeconds <= 0 {
			t.Errorf("%s: the cost is not complete: %+v", key, r)
		}
		if (r.RemoteRequests != nil) != (r.Sizes.Clusters > 0) {
			t.Errorf("%s: %d clusters, and their requests are %+v", key, r.Sizes.Clusters, r.RemoteRequests)
		}
	}
	for key := range found {
		t.Errorf("%s was measured although it makes no sense", key)
	}
	for _, c := range []struct {
		scenario, figure string
		least, most      float64
	}{
		{report.FanOut, report.Writes, 6, 60}, // at least four releases and the status of each layer
		{report.FanOut, report.Downloads, 1, 1},
		{report.Idle, report.Writes, 0, 0},
		{report.Idle, report.Reads, 0, 0},
		{report.Commit, report.OtherReleases, 0, 0},
		{report.Commit, report.OtherLayerWrites, 1, 1},
		{report.BuildsCommit, report.OtherReleases, 0, 0},
		{report.Restart, report.Writes, 0, 1}, // the event that tells who leads
		{report.FleetJoin, report.RemoteVersion, 2, 4},
		{report.FleetJoin, report.RemoteReads, 0, 0},
		{report.FleetJoin, report.RemoteWrites, 0, 0},
		{report.Fleet, report.RemoteWrites, 4, 4}, // one object of each layer
		{report.FleetIdle, report.Writes, 0, 0},
		{report.FleetIdle, report.Reads, 0, 0},
		{report.FleetIdle, report.RemoteReads, 0, 0},
		{report.FleetIdle, report.RemoteWrites, 0, 0},
	} {
		for _, r := range made.Results {
			if r.System != report.Strata || r.Scenario != c.scenario {
				continue
			}
			if value, ok := figure(r, c.figure); !ok || value < c.least || value > c.most {
				t.Errorf("%s: %s is %v, want %v to %v: %+v", c.scenario, c.figure, value, c.least, c.most, r.Requests)
			}
		}
	}
}

// figure returns a figure of a result.
func figure(r report.Result, name string) (float64, bool) {
	for _, f := range r.Measures() {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// What is repeated is measured by one system after the other each time.
func TestMeasureRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("starts control planes")
	}
	var progress bytes.Buffer
	o, err := parseFlags(strings.Fields("--systems plain --scenarios chain --chain-layers 1 --chain-releases 1 --calm 0s --timeout 1m --repeat 2"), &progress)
	if err != nil {
		t.Fatal(err)
	}
	made, err := measure(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var order, systems []string
	for _, r := range made.Results {
		order = append(order, r.System)
		if r.Error != "" {
			t.Errorf("%s: %s", r.System, r.Error)
		}
	}
	for _, s := range made.Run.Systems {
		systems = append(systems, s.Name)
	}
	if diff := cmp.Diff([]string{report.Plain, report.PlainCreate, report.Plain, report.PlainCreate}, order); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{report.Plain, report.PlainCreate}, systems); diff != "" {
		t.Errorf("systems (-want +got):\n%s", diff)
	}
}
