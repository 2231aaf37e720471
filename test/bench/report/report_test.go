// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// sample is a report with one of everything: repeats, a failure, figures that
// only some systems have.
func sample() Report {
	downloads := 1
	fan := func(system string, created, deployed, cpu float64, rss int64) Result {
		r := Result{
			Scenario: FanOut, System: system, Sizes: Sizes{Layers: 100, Releases: 10}, WallSeconds: deployed,
			Figures: []Figure{{Name: AllCreated, Unit: Seconds, Value: created}},
		}
		if system == Plain {
			return r
		}
		r.Figures = append(r.Figures, Figure{Name: AllDeployed, Unit: Seconds, Value: deployed})
		r.Cost = &Cost{CPUSeconds: cpu, PeakRSSBytes: rss}
		r.Requests = NewRequests([]RequestCount{
			{Verb: "patch", Resource: "helmreleases.helm.toolkit.fluxcd.io", Count: 1000},
			{Verb: "list", Resource: "helmreleases.helm.toolkit.fluxcd.io", Count: 1},
			{Verb: "patch", Resource: "addonslayers.kraan.io/status", Count: 200},
			{Verb: "watch", Resource: "helmreleases.helm.toolkit.fluxcd.io", Count: 1},
		}, 2, 1)
		r.Downloads = &downloads
		return r
	}
	failed := Result{
		Scenario: Chain, System: Kustomize, Sizes: Sizes{Layers: 10, Releases: 5}, WallSeconds: 600,
		Notes: []string{"every Kustomization waits"}, Error: "layer 9 is not Ready after 10m0s",
	}
	return New(Run{
		Date:    time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC),
		Command: []string{"bench", "--scenarios", "chain,fan-out"},
		Machine: Machine{Cores: 2, CPU: "Some CPU | 2 GHz", MemoryBytes: 8e9, Kernel: "6.1.0", Go: "go1.26.8"},
		Programs: []Program{
			{Name: "kube-apiserver", Version: "v1.36.3"}, {Name: "kustomize-controller", Version: "v1.9.5"},
		},
		Systems: []System{
			{Name: Strata, About: "The controller at the flags it ships with.", Flags: []Flag{{Name: "workers", Value: "8"}, {Name: "kubeconfig", Value: "FILE", Given: true}}},
			{Name: Plain, About: "Server-side apply with 16 workers."},
		},
		ReadyDelaySeconds: 0.1,
	}, []Result{
		fan(Strata, 2.4, 2.9, 3.1, 120e6),
		fan(Plain, 2.2, 2.2, 0, 0),
		fan(Strata, 2.5, 3.2, 3.3, 121e6),
		fan(KustomizeTuned, 13, 18, 12.7, 165e6),
		fan(Strata, 2.3, 2.8, 3.2, 119e6),
		failed,
		seconds(Chain, Strata, 10, 5, HopP50, 0.06, HopP95, 0.09, AllDeployed, 2.1),
		seconds(Chain, KustomizeTuned, 10, 5, HopP50, 5.9, HopP95, 6.1, AllDeployed, 60.0),
		fleetIdle(0),
	})
}

// fleetIdle is a fleet at rest, of which something is read on the clusters.
func fleetIdle(reads int) Result {
	r := Result{
		Scenario: FleetIdle, System: Strata, Sizes: Sizes{Clusters: 50, Layers: 10, Releases: 5}, WallSeconds: 120,
		Figures:  []Figure{{Name: Probes, Value: 3.8}, {Name: RSSPerCluster, Unit: Bytes, Value: 2e6}},
		Cost:     &Cost{CPUSeconds: 0.5, PeakRSSBytes: 150e6},
		Requests: NewRequests(nil, 24, 2), RemoteRequests: NewRequests(nil, 0, 190),
	}
	if reads > 0 {
		r.RemoteRequests = NewRequests([]RequestCount{{Verb: "get", Resource: "/apis", Count: reads}}, 0, 190)
	}
	return r
}

// golden compares got with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (write it again with -update):\n%s", path, diff)
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, sample()); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", out.Bytes())
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := Markdown(&out, sample(), 2); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.md", out.Bytes())
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := Encode(&out, sample()); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", out.Bytes())
	decoded, err := Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), decoded); diff != "" {
		t.Errorf("what was read is not what was written:\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"another schema", `{"schema":"strata-bench/v0"}`, `has schema "strata-bench/v0", want "strata-bench/v1"`},
		{"no schema", `{}`, `has schema ""`},
		{"a field that the schema does not have", `{"schema":"strata-bench/v1","result":[]}`, "unknown field"},
		{"no JSON", `schema`, "cannot decode"},
		{"more after the end", `{"schema":"strata-bench/v1"} {}`, "cannot decode"},
	} {
		if _, err := Decode(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.reason, err, test.want)
		}
	}
}

func TestRequests(t *testing.T) {
	r := NewRequests([]RequestCount{
		{Verb: "watch", Resource: "b", Count: 3},
		{Verb: "get", Resource: "/apis", Count: 2},
		{Verb: "patch", Resource: "b/status", Count: 7},
		{Verb: "delete", Resource: "b", Count: 1},
		{Verb: "list", Resource: "b", Count: 4},
		{Verb: "patch", Resource: "a", Count: 5},
	}, 11, 12)
	if r.Reads() != 6 || r.Writes() != 13 || r.Watches() != 3 {
		t.Errorf("reads %d, writes %d, watches %d, want 6, 13, 3", r.Reads(), r.Writes(), r.Watches())
	}
	want := []RequestCount{
		{Verb: "delete", Count: 1},
		{Verb: "get", Count: 2},
		{Verb: "list", Count: 4},
		{Verb: "patch", Count: 12},
		{Verb: "watch", Count: 3},
	}
	if diff := cmp.Diff(want, r.ByVerb()); diff != "" {
		t.Error(diff)
	}
}

func TestGroupsTakeTheMedianOfRepeats(t *testing.T) {
	groups := Groups(sample().Results)
	if len(groups) != 3 || groups[0].Scenario != Chain || groups[1].Scenario != FanOut || groups[2].Scenario != FleetIdle {
		t.Fatalf("got %d groups, want chain, fan-out and the fleet: %+v", len(groups), groups)
	}
	strata, ok := groups[1].System(Strata)
	if !ok || strata.Runs != 3 {
		t.Fatalf("got %+v, want three runs", strata)
	}
	for name, want := range map[string]float64{AllCreated: 2.4, AllDeployed: 2.9, CPU: 3.2, RSS: 120e6, Reads: 1, Writes: 1200} {
		if got, ok := strata.Figure(name); !ok || got != want {
			t.Errorf("%s is %v, %t, want %v", name, got, ok, want)
		}
	}
	failed, ok := groups[0].System(Kustomize)
	if !ok || failed.Runs != 0 || len(failed.Errors) != 1 {
		t.Errorf("a failed result counts: %+v", failed)
	}
	if wall, ok := failed.Figure(Wall); !ok || wall != 600 {
		t.Errorf("what a failed result has is not shown: %v, %t", wall, ok)
	}
	if _, ok := failed.Measured(Wall); ok {
		t.Error("what a failed result has counts as measured")
	}
}

func TestRatios(t *testing.T) {
	group := Groups(sample().Results)[1]
	got := map[string]string{}
	for _, r := range Ratios(group) {
		if r.Figure == AllCreated || r.Figure == CPU {
			got[r.Figure+" "+r.System] = ratioText(r.ToLimit) + " / " + ratioText(r.ToStrata)
		}
	}
	want := map[string]string{
		"all created plain-apply":     "- / 0.917x",
		"all created strata":          "1.09x / -",
		"all created kustomize-tuned": "5.91x / 5.42x",
		"cpu kustomize-tuned":         "- / 3.97x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
