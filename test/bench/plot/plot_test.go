// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/test/bench/report"
)

var update = flag.Bool("update", false, "write the golden files again")

// sample are results of all scenarios, made up from a few factors.
func sample() []report.Result {
	var results []report.Result
	add := func(scenario, system string, layers int, cost *report.Cost, figures ...report.Figure) {
		results = append(results, report.Result{
			Scenario: scenario, System: system, Sizes: report.Sizes{Layers: layers, Releases: 10}, Cost: cost, Figures: figures,
		})
	}
	figure := func(name string, seconds float64) report.Figure {
		return report.Figure{Name: name, Unit: report.Seconds, Value: seconds}
	}
	for _, s := range []struct {
		system string
		factor float64
	}{{report.Plain, 1}, {report.Strata, 1.3}, {report.KustomizeTuned, 9}, {report.Kustomize, 60}} {
		add(report.Chain, s.system, 10, nil, figure(report.HopP50, 0.09*s.factor), figure(report.AllDeployed, 2*s.factor))
		add(report.FanOut, s.system, 100, nil, figure(report.AllCreated, 2.2*s.factor), figure(report.AllDeployed, 2.6*s.factor))
		add(report.Commit, s.system, 100, nil, figure(report.CommitP50, 0.06*s.factor), figure(report.CommitP95, 0.2*s.factor))
		add(report.Storm, s.system, 100, nil, figure(report.StormArtifacts, 3*s.factor))
		for _, layers := range []int{100, 200, 500, 1000} {
			n := float64(layers) / 100
			var cost *report.Cost
			if s.system != report.Plain {
				cost = &report.Cost{CPUSeconds: 2 * n * s.factor, PeakRSSBytes: int64(60e6 + 20e6*n*s.factor)}
			}
			add(report.Curve, s.system, layers, cost, figure(report.AllDeployed, 2.6*n*s.factor))
		}
	}
	results = append(results, report.Result{
		Scenario: report.Storm, System: "another & <other>", Sizes: report.Sizes{Layers: 100, Releases: 10},
		Figures: []report.Figure{figure(report.StormArtifacts, 5)},
	})
	return results
}

func TestImages(t *testing.T) {
	for name, draw := range map[string]func([]report.Result) ([]byte, error){"curve.svg": Curve, "bars.svg": Bars} {
		got, err := draw(sample())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
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
		shuffled := sample()
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, err := draw(shuffled)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("%s depends on the order of the results: %v", name, err)
		}
		wellFormed(t, name, got)
	}
}

// wellFormed checks that an image is XML, and that no number in it is none.
func wellFormed(t *testing.T, name string, image []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(image))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s is no XML: %v", name, err)
		}
	}
	for _, wrong := range []string{"NaN", "Inf"} {
		if strings.Contains(string(image), wrong) {
			t.Errorf("%s holds %s", name, wrong)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	failed := report.Result{
		Scenario: report.Curve, System: report.Strata, Sizes: report.Sizes{Layers: 100, Releases: 10}, Error: "killed",
	}
	for reason, results := range map[string][]report.Result{"no results": nil, "a result that failed": {failed}} {
		if _, err := Curve(results); !errors.Is(err, ErrNothing) {
			t.Errorf("curve of %s: %v", reason, err)
		}
		if _, err := Bars(results); !errors.Is(err, ErrNothing) {
			t.Errorf("bars of %s: %v", reason, err)
		}
	}
}

func TestOneValue(t *testing.T) {
	one := []report.Result{{
		Scenario: report.Curve, System: report.Strata, Sizes: report.Sizes{Layers: 100, Releases: 10},
		Figures: []report.Figure{{Name: report.AllDeployed, Unit: report.Seconds, Value: 1}},
	}}
	image, err := Curve(one)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, "a curve of one value", image)
}

func TestScale(t *testing.T) {
	for _, test := range []struct {
		reason    string
		values    []float64
		low, high float64
		ticks     []float64
	}{
		{"ends are rounded outwards", []float64{1.3, 17}, 1, 20, []float64{1, 2, 5, 10, 20}},
		{"round ends stay", []float64{100, 1000}, 100, 1000, []float64{100, 200, 500, 1000}},
		{"many decades have no steps between", []float64{0.06, 600}, 0.05, 1000, []float64{0.1, 1, 10, 100, 1000}},
		{"one value is between its ends", []float64{100}, 50, 200, []float64{50, 100, 200}},
	} {
		s := newScale(test.values, 0, 100)
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(a) })
		if diff := cmp.Diff([]float64{test.low, test.high}, []float64{s.low, s.high}, near); diff != "" {
			t.Errorf("%s: ends\n%s", test.reason, diff)
		}
		if diff := cmp.Diff(test.ticks, s.ticks(), near); diff != "" {
			t.Errorf("%s: ticks\n%s", test.reason, diff)
		}
		if s.at(s.low) != 0 || math.Abs(s.at(s.high)-100) > 1e-9 {
			t.Errorf("%s: the ends are drawn at %v and %v", test.reason, s.at(s.low), s.at(s.high))
		}
	}
}
