// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/test/bench/report"
)

func TestKustomizationOfALayer(t *testing.T) {
	got, err := json.MarshalIndent(newKustomize(nil).(Controller).Object(layer{
		Name: "apps", DependsOn: []string{"base", "mesh"}, Source: "addons", Releases: []string{"a"},
	}), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
 "kind": "Kustomization",
 "metadata": {
  "name": "apps",
  "namespace": "bench"
 },
 "spec": {
  "dependsOn": [
   {
    "name": "base"
   },
   {
    "name": "mesh"
   }
  ],
  "interval": "5m",
  "path": "./layers/apps",
  "prune": true,
  "sourceRef": {
   "kind": "GitRepository",
   "name": "addons"
  },
  "wait": true
 }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestKustomizationSettled(t *testing.T) {
	ready := func(status string) string {
		return `{"observedGeneration":2,"lastAppliedRevision":"main@sha1:a","conditions":[{"type":"Healthy","status":"True"},{"type":"Ready","status":"` + status + `"}]}`
	}
	for _, test := range []struct {
		reason, status, want string
		generation           int64
	}{
		{"ready at its generation", ready("True"), "main@sha1:a", 2},
		{"ready at an old generation", ready("True"), "", 3},
		{"going on", ready("Unknown"), "", 2},
		{"not ready", ready("False"), "", 2},
		{"no status", "", "", 2},
		{"no condition", `{"observedGeneration":2,"lastAppliedRevision":"main@sha1:a"}`, "", 2},
	} {
		o := object{Status: json.RawMessage(test.status)}
		o.Metadata.Generation = test.generation
		if got := newKustomize(nil).(Controller).Settled(o); got != test.want {
			t.Errorf("%s: settled at %q, want %q", test.reason, got, test.want)
		}
	}
}

// kustomize-controller does every scenario but the taking back of edits, which
// takes an interval.
func TestMeasureKustomize(t *testing.T) {
	if os.Getenv("STRATA_TEST_ALL") != "1" {
		t.Skip("one of the heavier tests")
	}
	if _, _, err := kustomizeBuilt(); err != nil {
		t.Skip(err)
	}
	var progress bytes.Buffer
	o, err := parseFlags(strings.Fields(`--systems kustomize-tuned --scenarios chain,fan-out,idle,commit,restart,curve
		--chain-layers 2 --chain-releases 2 --fanout-layers 2 --fanout-releases 2 --commits 2 --idle 2s --quiet 2s
		--curve-layers 3 --curve-releases 1 --curve-systems kustomize-tuned --timeout 2m`), &progress)
	if err != nil {
		t.Fatal(err)
	}
	made, err := measure(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	t.Logf("progress:\n%s", &progress)
	var done []string
	for _, r := range made.Results {
		if r.Error != "" {
			t.Errorf("%s: %s", r.Scenario, r.Error)
		}
		if r.Cost == nil || r.Cost.PeakRSSBytes == 0 || r.Requests == nil || r.Downloads == nil {
			t.Errorf("%s: the cost is not complete: %+v", r.Scenario, r)
		}
		done = append(done, fmt.Sprintf("%s %d", r.Scenario, r.Sizes.Layers))
		reads, _ := figure(r, report.Reads)
		writes, _ := figure(r, report.Writes)
		switch {
		case r.Scenario == report.Idle && reads+writes > 0:
			t.Errorf("idle: %v reads and %v writes of a controller that polls nothing when all is ready", reads, writes)
		case r.Scenario == report.FanOut && (writes < 6 || *r.Downloads < 1):
			t.Errorf("fan-out: %v writes and %d downloads", writes, *r.Downloads)
		}
	}
	want := []string{"chain 2", "fan-out 2", "idle 2", "commit 2", "restart 2", "curve 3", "idle 3", "restart 3"}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("scenarios:\n%s", diff)
	}
	system := made.Run.Systems[0]
	flags := map[string]report.Flag{}
	for _, f := range system.Flags {
		flags[f.Name] = f
	}
	for _, f := range []report.Flag{
		{Name: "concurrent", Value: "20", Given: true},
		{Name: "requeue-dependency", Value: "1s", Given: true},
		{Name: "concurrent-ssa", Value: "4"},
		{Name: "enable-leader-election", Value: "false"},
		{Name: "kube-api-qps", Value: "50"},
	} {
		if diff := cmp.Diff(f, flags[f.Name]); diff != "" {
			t.Errorf("flag --%s:\n%s", f.Name, diff)
		}
	}
}
