// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/strata-project/strata/internal/hosts"
)

// course is a way in which versions are spread over a situation.
type course struct {
	version, target string
	// everySecond has the version before.
	everySecond string
}

// courses are: nothing to change, an upgrade, one that has stopped half way, one that has
// stopped and gets another target, a downgrade, and one that passes over a minor version.
var courses = []course{
	{current, current, ""},
	{old, current, ""},
	{current, current, old},
	{current, newer, old},
	{current, old, ""},
	{older, current, ""},
}

// multisets calls a function with every choice of n kinds, order aside. Those about
// certificates, containerd and restores are only in choices of up to three, or two where it takes ten
// times as long.
func multisets(n int, call func([]kind)) {
	all := slices.Sorted(maps.Keys(traitsOf))
	if n > 3 || n == 3 && raced {
		// Or there would be three times as many; they are drawn, too.
		all = slices.DeleteFunc(all, func(k kind) bool { return traitsOf[k].expiring || traitsOf[k].old || k == "Gs" })
	}
	chosen := make([]kind, n)
	var choose func(at, from int)
	choose = func(at, from int) {
		if at == n {
			call(chosen)
			return
		}
		for i := from; i < len(all); i++ {
			chosen[at] = all[i]
			choose(at+1, i)
		}
	}
	choose(0, 0)
}

// everySnapshots is what there may be to know of snapshots; the first two are the same, for
// the one of a cluster that is made and the other of one that is kept.
var everySnapshots = []hosts.Snapshots{hosts.SnapshotNowhere, hosts.SnapshotNowhere, hosts.SnapshotDue, hosts.SnapshotTaken, hosts.SnapshotWaived}

// isNew tells whether the cluster is being made: nobody has kept it before.
func isNew(kinds []kind) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return traitsOf[k].begun == hosts.VerbInit })
}

// situations calls a function with every situation of hosts of some kinds.
func situations(kinds []kind, call func(situation)) {
	for _, c := range courses {
		versions := make([]string, len(kinds))
		for i := range versions {
			versions[i] = c.version
			if c.everySecond != "" && i%2 == 1 {
				versions[i] = c.everySecond
			}
		}
		most := 3
		if len(kinds) > 2 {
			most = 2 // or there would be too many
		}
		for left := range most * most * 2 * 2 {
			call(situation{
				kinds: kinds, versions: versions, replace: left%2 == 0, version: c.version, target: c.target,
				kept: left%5 != 0 && !isNew(kinds), snapshots: everySnapshots[left%5], nodesLeft: left / 3 % 2,
				learnersLeft: left / 2 % 2, deadLeft: left / 4 % most, liveLeft: left / 4 / most,
			})
		}
		call(situation{kinds: kinds, versions: versions, takesOver: true, version: c.version, target: c.target})
		call(situation{kinds: kinds, versions: versions, silent: true, version: c.version, target: c.target})
		call(situation{kinds: kinds, versions: versions, late: true, replace: true, version: c.version, target: c.target})
	}
}

// everyCase checks every situation of so many hosts.
func everyCase(t *testing.T, n int) {
	t.Helper()
	cases, found := 0, 0
	multisets(n, func(chosen []kind) {
		situations(slices.Clone(chosen), func(s situation) {
			cases++
			for _, law := range []func(situation) string{problem, stuck, forgotten} {
				if what := law(s); what != "" && found < 3 {
					found++
					t.Errorf("%s", what)
				}
			}
		})
	})
	t.Logf("%d situations of %d hosts", cases, n)
}

func TestEveryCaseUpToThreeHosts(t *testing.T) {
	for n := 1; n <= 3; n++ {
		everyCase(t, n)
	}
}

func TestEveryCaseOfFourHosts(t *testing.T) { sequential(t, 4) }

func TestEveryCaseOfFiveHosts(t *testing.T) { sequential(t, 5) }

// sequential checks every situation without the race detector, which would find nothing
// where nothing goes on side by side, and take ten times as long.
func sequential(t *testing.T, n int) {
	t.Helper()
	if raced {
		t.Skip("the race detector is on: make laws runs this without it")
	}
	everyCase(t, n)
}

// seedOf returns what a test draws from: STRATA_SEED, and without it always the same, or
// anything where everything is tested.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("STRATA_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STRATA_SEED: %v", err)
		}
	} else if os.Getenv("STRATA_TEST_ALL") != "" {
		seed = rand.Uint64()
	}
	t.Logf("STRATA_SEED=%d", seed)
	return seed
}

// Beyond five hosts, situations are drawn.
func TestCasesUpToNineHosts(t *testing.T) {
	seed := seedOf(t)
	draw := rand.New(rand.NewPCG(seed, 1))
	all := slices.Sorted(maps.Keys(traitsOf))
	for range 20_000 {
		kinds := make([]kind, 1+draw.IntN(9))
		for i := range kinds {
			kinds[i] = all[draw.IntN(len(all))]
			if draw.IntN(2) == 0 {
				kinds[i] = "H" // or there would hardly be a majority
			}
		}
		c := courses[draw.IntN(len(courses))]
		s := situation{
			kinds: kinds, replace: draw.IntN(2) == 0, version: c.version, target: c.target,
			deadLeft: draw.IntN(3), liveLeft: draw.IntN(3), learnersLeft: draw.IntN(2), silent: draw.IntN(20) == 0, late: draw.IntN(5) == 0,
			takesOver: draw.IntN(10) == 0,
			kept:      draw.IntN(2) == 0 && !isNew(kinds), snapshots: everySnapshots[draw.IntN(len(everySnapshots))], nodesLeft: draw.IntN(2),
		}
		for range kinds {
			s.versions = append(s.versions, c.version)
			if c.everySecond != "" && draw.IntN(2) == 0 {
				s.versions[len(s.versions)-1] = c.everySecond
			}
		}
		for _, law := range []func(situation) string{problem, stuck, forgotten} {
			if what := law(s); what != "" {
				t.Fatalf("%s", what)
			}
		}
	}
}
