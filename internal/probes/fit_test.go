// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/probes"
)

// What a host cannot be is said, and what it has not said is not held against it.
func TestUnfitHostsAreRefused(t *testing.T) {
	good := probes.Facts{
		Kernel: "6.1.0-18-amd64", Machine: "x86_64", CgroupV2: true, MemoryBytes: 8 << 30, FreeBytes: 50 << 30,
		Containerd: probes.Unit{Version: "v2.1.0"},
	}
	wanted := probes.Wanted{Version: "v1.36.3"}
	for name, tc := range map[string]struct {
		change func(*probes.Facts, *probes.Wanted)
		want   string
	}{
		"nothing is wrong":    {func(*probes.Facts, *probes.Wanted) {}, ""},
		"it has said nothing": {func(f *probes.Facts, _ *probes.Wanted) { *f = probes.Facts{CgroupV2: true} }, ""},
		"an old kernel":       {func(f *probes.Facts, _ *probes.Wanted) { f.Kernel = "4.19.0-21-amd64" }, "its kernel 4.19.0-21-amd64 is older than 5.4"},
		"control groups":      {func(f *probes.Facts, _ *probes.Wanted) { f.CgroupV2 = false }, "control groups of version 1"},
		"agreed to":           {func(f *probes.Facts, w *probes.Wanted) { f.CgroupV2, w.CgroupV1 = false, true }, ""},
		"allowed before":      {func(f *probes.Facts, w *probes.Wanted) { f.CgroupV2, w.Version = false, "v1.34.1" }, ""},
		"flatcar":             {func(f *probes.Facts, _ *probes.Wanted) { f.OS = "flatcar 4152.2.0" }, ""},
		"flatcar before 1.36": {func(f *probes.Facts, w *probes.Wanted) { f.OS, w.Version = "flatcar 4152.2.0", "v1.35.3" }, "v1.36 is the first that does without"},
		"flatcar, a worker": {func(f *probes.Facts, w *probes.Wanted) {
			f.OS, w.Version, w.Worker = "flatcar 4152.2.0", "v1.35.3", true
		}, ""},
		"little memory":        {func(f *probes.Facts, _ *probes.Wanted) { f.MemoryBytes = 1 << 30 }, "it has 1024 MiB of memory"},
		"enough for a worker":  {func(f *probes.Facts, w *probes.Wanted) { f.MemoryBytes, w.Worker = 1<<30, true }, ""},
		"a full disk":          {func(f *probes.Facts, _ *probes.Wanted) { f.FreeBytes = 100 << 20 }, "100 MiB are free below /var/lib"},
		"full, and in use":     {func(f *probes.Facts, _ *probes.Wanted) { f.FreeBytes, f.Initialised = 100<<20, true }, ""},
		"in use, and a kernel": {func(f *probes.Facts, _ *probes.Wanted) { f.Kernel, f.Initialised = "4.4.0", true }, "its kernel 4.4.0"},
		"another processor":    {func(f *probes.Facts, _ *probes.Wanted) { f.Machine = "riscv64" }, "its processor is riscv64"},
	} {
		facts, asked := good, wanted
		tc.change(&facts, &asked)
		if got := strings.Join(facts.Unfit(asked), "; "); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The clock that differs from those of most is the wrong one.
func TestClocksAreCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		ahead map[string]time.Duration
		want  []string
	}{
		"none":             {nil, nil},
		"one alone":        {map[string]time.Duration{"a": time.Hour}, nil},
		"all are near":     {map[string]time.Duration{"a": 0, "b": time.Minute, "c": 2 * time.Minute}, nil},
		"one is ahead":     {map[string]time.Duration{"a": time.Second, "b": time.Hour, "c": 0}, []string{"b"}},
		"one is behind":    {map[string]time.Duration{"a": -10 * time.Minute, "b": time.Second, "c": 0}, []string{"a"}},
		"ours is wrong":    {map[string]time.Duration{"a": time.Hour, "b": time.Hour, "c": time.Hour + time.Second}, nil},
		"two, and nothing": {map[string]time.Duration{"a": 0, "b": time.Hour}, []string{"b"}},
	} {
		if got := slices.Sorted(maps.Keys(probes.Skewed(tc.ahead))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
