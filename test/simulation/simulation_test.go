// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fullRuns is how many runs fill the whole table of events and states.
const fullRuns = 1000

// campaign are the runs to be made: the seed of the first one, and how many.
// STRATA_SEED is one run alone, and STRATA_RUNS makes it more or fewer;
// STRATA_TEST_ALL=1 makes 10000.
func campaign(t *testing.T) (first uint64, count int) {
	t.Helper()
	first, count = 1, fullRuns
	number := func(key string) (uint64, bool) {
		text, set := os.LookupEnv(key)
		if !set || text == "" {
			return 0, false
		}
		value, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return value, true
	}
	if os.Getenv("STRATA_TEST_ALL") == "1" {
		count = 10 * fullRuns
	}
	if seed, set := number("STRATA_SEED"); set {
		first, count = seed, 1
	}
	if runs, set := number("STRATA_RUNS"); set {
		count = int(runs)
	}
	return first, count
}

// enough is after how many runs that fail no further ones are begun.
const enough = 20

// runs makes runs side by side, and returns what became of them, in the order of
// the seeds.
func runs(seeds []uint64) []result {
	results := make([]result, len(seeds))
	var failed atomic.Int32
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				results[i] = run(seeds[i])
				if results[i].failure == "" {
					results[i].log = nil
				} else {
					failed.Add(1)
				}
			}
		})
	}
	begun := 0
	for begun < len(seeds) && failed.Load() < enough {
		next <- begun
		begun++
	}
	close(next)
	wg.Wait()
	return results[:begun]
}

// The invariants hold at every write of every run, and at its end.
func TestSimulation(t *testing.T) {
	first, count := campaign(t)
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	covered, happened, steps, failed := coverage{}, 0, 0, 0
	results := runs(seeds)
	for _, r := range results {
		covered.merge(r.covered)
		happened += r.events
		steps += r.steps
		if r.failure == "" {
			if r.events < eventsOfRun || r.layers < 5 || r.crashes == 0 {
				t.Errorf("seed %d has %d layers, %d events and %d crashes", r.seed, r.layers, r.events, r.crashes)
			}
			continue
		}
		failed++
		if failed <= 5 {
			t.Errorf("seed %d: %s\nto see it: make simulate STRATA_SEED=%d", r.seed, r.failure, r.seed)
		}
		if count == 1 {
			for _, line := range r.log {
				t.Log(line)
			}
		}
	}
	t.Logf("%d runs, %d events, %d steps of looks, %d runs failed", len(results), happened, steps, failed)
	if count > 1 {
		t.Logf("events by the state of the layer that they happened to:\n%s", covered)
	}
	if len(results) >= fullRuns && first == 1 {
		for _, problem := range covered.problems() {
			t.Error(problem)
		}
	}
}

// What failed once does not fail again.
func TestSeedsThatFailed(t *testing.T) {
	file, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var seeds []uint64
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed)
	}
	if len(seeds) == 0 {
		t.Fatal("there are none")
	}
	for _, r := range runs(seeds) {
		if r.failure != "" {
			t.Errorf("seed %d fails again: %s", r.seed, r.failure)
		}
	}
}

// One seed is one run, step by step.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		var logs [2][]string
		for i := range logs {
			for _, line := range run(seed).log {
				logs[i] = append(logs[i], line.String())
			}
		}
		if len(logs[0]) < eventsOfRun {
			t.Fatalf("seed %d: the log has %d lines", seed, len(logs[0]))
		}
		for i := range min(len(logs[0]), len(logs[1])) {
			if logs[0][i] != logs[1][i] {
				t.Fatalf("seed %d differs at line %d:\n%s\n%s", seed, i, logs[0][i], logs[1][i])
			}
		}
		if !slices.Equal(logs[0], logs[1]) {
			t.Fatalf("seed %d: one log has %d lines, the other one %d", seed, len(logs[0]), len(logs[1]))
		}
	}
}
