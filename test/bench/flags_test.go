// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/test/bench/report"
)

func TestChosen(t *testing.T) {
	for _, c := range []struct {
		reason, args       string
		systems, scenarios []string
	}{
		{
			"a name stands for those that begin with it, and dashes are no matter", "--systems strata,plain --scenarios fanout,chain",
			[]string{report.Plain, report.PlainCreate, report.Strata},
			[]string{report.Chain, report.FanOut},
		},
		{
			"full names", "--systems plain-create --scenarios fan-out",
			[]string{report.PlainCreate},
			[]string{report.FanOut},
		},
		{
			"each once", "--systems plain,plain-apply --scenarios storm,storm",
			[]string{report.Plain, report.PlainCreate},
			[]string{report.Storm},
		},
	} {
		o, err := parseFlags(strings.Fields(c.args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		var systems []string
		for _, s := range o.systems {
			systems = append(systems, s.name)
		}
		if diff := cmp.Diff(c.systems, systems); diff != "" {
			t.Errorf("%s: systems (-want +got):\n%s", c.reason, diff)
		}
		if diff := cmp.Diff(c.scenarios, o.scenarios); diff != "" {
			t.Errorf("%s: scenarios (-want +got):\n%s", c.reason, diff)
		}
	}
}

func TestRefusedFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--systems kraan", `there is no system "kraan"; there are plain-apply, plain-create, idle-manager, strata, kustomize-tuned, kustomize-defaults`},
		{"--systems stra", `there is no system "stra"; there are`},
		{"--scenarios flood", `there is no scenario "flood"; there are chain, fan-out, idle`},
		{"--chain-layers 0", "--chain-layers is 0: it must be from 1 to 9999"},
		{"--fleet-clusters 0", "--fleet-clusters is 0: it must be from 1 to 9999"},
		{"--repeat 0", "--repeat is 0: it must be from 1 to 9999"},
		{"--idle 0s", "--idle is 0s: it must be more than 0"},
		{"--ready-delay -1s", "--ready-delay is -1s: it must not be negative"},
		{"--timeout 0s", "--timeout is 0s: it must be more than 0"},
		{"--systems=", "--systems is empty"},
		{"--scenarios=", "--scenarios is empty"},
		{"--curve-layers=100,20000", "--curve-layers holds 20000: each must be from 1 to 9999"},
		{"--curve-layers=0", "--curve-layers holds 0: each must be from 1 to 9999"},
		{"--curve-systems=strata,kraan", `--curve-systems: there is no system "kraan"`},
		{"chain", `"chain" is no flag`},
	} {
		_, err := parseFlags(strings.Fields(c.args), io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.args, err, c.want)
		}
	}
}

func TestPlans(t *testing.T) {
	for _, c := range []struct {
		reason, args, system string
		want                 []string
	}{
		{
			"everything", "", report.Strata,
			[]string{
				"10x5 chain", "100x10 fan-out idle commit restart storm",
				"100x10 curve", "200x10 curve", "500x10 curve", "1000x10 curve idle restart",
				"50x10x5 fleet-join fleet fleet-idle", "100x5x1 rollout-install rollout", "100x2 builds builds-commit",
			},
		},
		{
			"no curve of a system that it is not taken of", "--curve-systems plain", report.Strata,
			[]string{
				"10x5 chain", "100x10 fan-out idle commit restart storm", "50x10x5 fleet-join fleet fleet-idle", "100x5x1 rollout-install rollout",
				"100x2 builds builds-commit",
			},
		},
		{"what is settled begins with a fan-out", "--scenarios commit", report.Strata, []string{"100x10 fan-out commit"}},
		{"the curve alone", "--scenarios curve --curve-layers 7,3 --curve-releases 2", report.Strata, []string{"7x2 curve", "3x2 curve"}},
		{"the fleet alone", "--scenarios fleet --fleet-clusters 3 --fleet-layers 2 --fleet-releases 1", report.Plain, []string{"3x2x1 fleet-join fleet fleet-idle"}},
		{"the roll-out alone", "--scenarios rollout --rollout-clusters 3 --rollout-layers 2", report.Plain, []string{"3x2x1 rollout-install rollout"}},
		{"no fleet of a system that it is not measured with", "--scenarios fleet", report.Kustomize, nil},
		{"the chain alone", "--scenarios chain --chain-layers 3", report.Strata, []string{"3x5 chain"}},
	} {
		o, err := parseFlags(strings.Fields(c.args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		var got []string
		for _, p := range o.plans(c.system) {
			text := fmt.Sprintf("%dx%d", p.layers, p.releases)
			if p.clusters > 0 {
				text = fmt.Sprintf("%dx%s", p.clusters, text)
			}
			for _, of := range p.scenarios {
				text += " " + of.name
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

func TestScenariosThatSuit(t *testing.T) {
	for name, want := range map[string]string{
		report.Plain:       "commit storm fleet rollout-install rollout",
		report.PlainCreate: "fleet rollout-install",
		report.Strata:      "idle commit restart storm fleet-join fleet fleet-idle rollout-install rollout",
		report.Kustomize:   "idle commit restart storm fleet-join fleet fleet-idle rollout-install rollout",
	} {
		o, err := parseFlags([]string{"--systems", name}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var suits []string
		for _, of := range slices.Concat(settledScenarios, fleetScenarios, rolloutScenarios) {
			if of.suits(o.systems[0].make(o)) {
				suits = append(suits, of.name)
			}
		}
		if got := strings.Join(suits, " "); got != want {
			t.Errorf("%s: it does %q, want %q", name, got, want)
		}
	}
}

func TestCommandNamesNoPlaces(t *testing.T) {
	for given, want := range map[string]string{
		"--out /tmp/a.json --repeat 3":                "--repeat 3",
		"--repeat 3 --out=/tmp/a.json --idle=10s":     "--repeat 3 --idle=10s",
		"--pprof-dir /tmp/p --systems strata --out a": "--systems strata",
		"--systems strata --out":                      "--systems strata",
	} {
		if got := strings.Join(withoutPlaces(strings.Fields(given)), " "); got != want {
			t.Errorf("%s is told as %q, want %q", given, got, want)
		}
	}
}
