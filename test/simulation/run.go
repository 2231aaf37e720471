// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/strata-project/strata/internal/directories"
)

// moment is a virtual time, since the beginning of a run.
type moment time.Duration

// epoch is when runs begin.
var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (m moment) time() time.Time { return epoch.Add(time.Duration(m)) }

// timer is something that happens at a moment.
type timer struct {
	at     moment
	number int
	do     func()
}

// simulation is one run. Everything in it follows from the seed.
type simulation struct {
	flux
	seed    uint64
	random  *rand.Rand
	now     moment
	timers  []timer
	numbers int
	cluster *cluster
	// remotes are the other clusters, by the names that IDs have for them; placed
	// is what files are called there, and directories what becomes of them.
	remotes     map[string]*remote
	placed      map[placing][2]string
	directories map[directoryOn]*directories.Directory
	process     *process
	contents    contents
	// fluxAt is how many changes of releases, and of what they read, Flux has seen.
	fluxAt [kindsOfObjects]int
	// repositories by name, and unready those that source-controller cannot
	// fetch from.
	repositories map[string]*repository
	unready      map[string]bool
	// faults is true in the random part of a run.
	faults bool
	// dieIn counts down the pauses, before and after writes, at the last of
	// which the process dies; 0 is none.
	dieIn int
	dying bool
	// outage is until when the API server answers nobody.
	outage   moment
	people   people
	evidence evidence
	// counted is how many steps looks have made.
	counted int
	log     []entry
}

func newSimulation(seed uint64) *simulation {
	uids := 0
	s := &simulation{
		flux: newFlux(), seed: seed, random: rand.New(rand.NewPCG(seed, 0x5eed)), cluster: newCluster(&uids), contents: contents{},
		remotes: map[string]*remote{}, placed: map[placing][2]string{}, directories: map[directoryOn]*directories.Directory{},
		repositories: map[string]*repository{}, unready: map[string]bool{}, faults: true, evidence: newEvidence(),
		people: people{covered: coverage{}, folders: map[string]string{}},
	}
	for _, name := range remoteNames {
		s.remotes[name] = &remote{cluster: newCluster(&uids), name: name}
	}
	return s
}

// entry is one line of a log. It is put into words only where somebody reads it.
type entry struct {
	at     moment
	format string
	args   []any
}

func (e entry) String() string {
	return fmt.Sprintf("%9.3fs ", time.Duration(e.at).Seconds()) + fmt.Sprintf(e.format, e.args...)
}

func (s *simulation) note(format string, args ...any) {
	s.log = append(s.log, entry{s.now, format, args})
}

func (s *simulation) chance(percent int) bool { return s.random.IntN(100) < percent }

func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)+1))
}

// pick returns one of several; they must be in an order that is always the same.
func pick[T any](s *simulation, from []T) T { return from[s.random.IntN(len(from))] }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// after has something happen later.
func (s *simulation) after(delay time.Duration, do func()) {
	s.numbers++
	t := timer{s.now + moment(delay), s.numbers, do}
	i, _ := slices.BinarySearchFunc(s.timers, t, func(a, b timer) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
	s.timers = slices.Insert(s.timers, i, t)
}

// flaky tells whether a write fails because the API server is not there.
func (s *simulation) flaky() bool {
	return s.faults && s.now < s.outage && s.chance(60)
}

// step does one thing that can be done now, or lets time pass, up to a moment.
func (s *simulation) step(until moment) {
	if s.dying {
		s.crash()
	}
	p := s.process
	p.tick()
	var can []func()
	if len(s.timers) > 0 && s.timers[0].at <= s.now {
		can = append(can, s.fire)
	}
	for _, c := range p.allCaches() {
		if c.behind(s) {
			can = append(can, func() { p.learn(c) })
		}
	}
	for _, l := range p.looks {
		can = append(can, func() { p.step(l) })
	}
	for _, name := range p.startable() {
		can = append(can, func() { p.start(name) })
	}
	if len(can) > 0 {
		pick(s, can)()
		s.fluxSees()
		s.now += moment(s.between(0, 8*time.Millisecond))
		return
	}
	next := until
	if len(s.timers) > 0 {
		next = min(next, s.timers[0].at)
	}
	for _, due := range p.later {
		next = min(next, due)
	}
	for _, c := range p.allCaches() {
		if c.hasNews() {
			next = min(next, c.frozenUntil)
		}
	}
	s.now = max(s.now, next)
}

func (s *simulation) fire() {
	t := s.timers[0]
	s.timers = s.timers[1:]
	t.do()
}

// learn has a cache see the next change, which wakes layers: perhaps nobody,
// because the event is lost, or later once more.
func (p *process) learn(c *cache) {
	next := c.see()
	if p.faults && p.people.loses(p.simulation, c, next) {
		return
	}
	p.wake(c, next)
}
