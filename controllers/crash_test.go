// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// lives are the controllers that look after a rollout, one after another.
type lives struct {
	*rollout
	all []*mortal
}

// newLives begins the first life.
func newLives(r *rollout, first death) *lives {
	r.Helper()
	l := &lives{rollout: r}
	l.all = append(l.all, r.live(first))
	return l
}

func (l *lives) last() *mortal { return l.all[len(l.all)-1] }

// succeed begins another life, which knows nothing of the one before, where
// that has died.
func (l *lives) succeed(next death) bool {
	if !l.last().died() {
		return false
	}
	l.all = append(l.all, l.live(next))
	return true
}

// finish goes through the rollout, and looks at what all lives have done.
func (l *lives) finish() {
	l.Helper()
	defer func() {
		if !l.Failed() {
			return
		}
		for i, m := range l.all {
			l.Logf("life %d died of %q", i+1, m.last)
			for _, call := range m.done {
				l.Logf("  %d %s", call.status, call.what)
			}
		}
	}()
	l.carryOut()
	for _, problem := range repeated(l.all) {
		l.Errorf("repeated: %s", problem)
	}
}

// dieOnceInEachStep has a controller die in each step of the rollout, and its
// successor finish the step. It returns at which steps that came about, and how
// many calls the first life had made of each step when it ended.
func (r *rollout) dieOnceInEachStep(d death) (came [len(steps)]bool, calls [len(steps)]int) {
	r.Helper()
	l, now := newLives(r, d), 0
	r.before = func(step int) {
		if step > 0 {
			calls[now] = l.last().counted()
			l.last().dieOf(d)
		}
		now = step
	}
	r.alive = func() {
		if l.succeed(death{reads: d.reads}) {
			came[now] = true
		}
	}
	l.finish()
	calls[now] = l.last().counted()
	return came, calls
}

// A controller that dies at any single write of a roll-out leaves nothing that
// its successor does not find: no object is leaked, none is deleted twice or
// too early, and the roll-out ends as it would have.
//
// To die of a write that has taken effect, but whose answer is lost, leaves the
// same on the cluster as to die before the next write is heard of. Both are
// tried at each write with STRATA_TEST_ALL=1; otherwise the first, at every second
// write.
func TestCrashAtEveryWrite(t *testing.T) {
	o := newOnlooker(t)
	if !testAll() {
		crashAtEvery(t, o, 2, death{reached: true})
		return
	}
	crashAtEvery(t, o, 1, death{reached: true})
	crashAtEvery(t, o, 1, death{})
}

// The same at every call: reads, watches and questions, too.
func TestCrashAtEveryCall(t *testing.T) {
	if !testAll() {
		t.Skip("one of the heavier tests, which STRATA_TEST_ALL=1 runs")
	}
	crashAtEvery(t, newOnlooker(t), 1, death{reads: true})
}

// crashAtEvery carries out a rollout for each call that an undisturbed one
// makes in its longest step, or for one in stride of them, and a few more, since a
// crash may bring about some that the undisturbed one lacks; in each, a controller
// dies at that call of each step.
func crashAtEvery(t *testing.T, o *onlooker, stride int, d death) {
	t.Helper()
	const spare = 8
	var undisturbed, covered, last [len(steps)]int
	t.Run("undisturbed", func(t *testing.T) {
		_, undisturbed = newRollout(t, o).dieOnceInEachStep(death{call: 1 << 30, reads: d.reads})
	})
	var deaths []death
	var names []string
	for call := 1; call <= slices.Max(undisturbed[:])+spare; call += stride {
		d.call = call
		deaths, names = append(deaths, d), append(names, d.String())
	}
	var mu sync.Mutex
	sideBySide(t, crashWorkers, names, func(t *testing.T, i int) {
		came, _ := newRollout(t, o).dieOnceInEachStep(deaths[i])
		mu.Lock()
		defer mu.Unlock()
		for step, yes := range came {
			if yes {
				covered[step]++
				last[step] = max(last[step], deaths[i].call)
			}
		}
	})
	for step, name := range steps {
		t.Logf("%s: %d calls undisturbed; %d crashes, the last one at call %d", name, undisturbed[step], covered[step], last[step])
		// How often a roll-out says how it gets on is a matter of how long it takes, so
		// what has to be covered is what the disturbed ones did, not the undisturbed one.
		// The calls behind the last few come about in some of them only.
		if last[step] >= d.call || covered[step] < last[step]/stride*3/4 || covered[step] < undisturbed[step]/stride/2 {
			t.Errorf("%s was not covered to its end", name)
		}
	}
}

// crashWorkers is how many rollouts go side by side; they mostly wait.
const crashWorkers = 12

// A successor that dies as well, at any of its first writes, and the one after
// it, leave nothing either.
func TestCrashAfterCrash(t *testing.T) {
	o := newOnlooker(t)
	random := rand.New(rand.NewPCG(seedOf(t), 0))
	runs := 8
	if testAll() {
		runs = 200
	}
	names, plans := make([]string, runs), make([][]death, runs)
	for i := range plans {
		for range 2 + random.IntN(3) {
			plans[i] = append(plans[i], death{call: 1 + random.IntN(30), reached: random.IntN(2) == 0})
		}
		names[i] = fmt.Sprint(plans[i])
	}
	sideBySide(t, crashWorkers, names, func(t *testing.T, i int) {
		l := newLives(newRollout(t, o), plans[i][0])
		l.alive = func() { l.succeed(append(plans[i], death{})[min(len(l.all), len(plans[i]))]) }
		l.finish()
	})
}

// seedOf returns what the plans of a test are drawn from: STRATA_SEED, and without it
// the same each time, or another one each time with STRATA_TEST_ALL=1. It is printed.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("STRATA_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STRATA_SEED: %v", err)
		}
	} else if testAll() {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("STRATA_SEED=%d", seed)
	return seed
}

func testAll() bool { return os.Getenv("STRATA_TEST_ALL") == "1" }
