// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// randomProblem makes a small problem. Its ranges are chosen such that about half
// of the problems have an answer.
func randomProblem(random *rand.Rand) Problem {
	names := []string{"a", "b", "c", "d", "e"}[:2+random.Intn(4)]
	numbers := []string{"1.0.0", "1.1.0", "2.0.0", "2.1.0-rc.1", "2.2.0", "3.0.0"}
	ranges := []string{"", "", "", ">=1", ">=1.1", "<3", "^1", "^2", "!=2.0.0", "1.0.0", "v2.1.0-rc.1", "1.0.0 || ^3", ">=2 <3"}
	random.Shuffle(len(ranges), reflect.Swapper(ranges))
	ranges = ranges[:5]
	picks := append([]string{"", "", "", "", "", ">=1", ">=1"}, ranges...)
	one := func(list []string) string { return list[random.Intn(len(list))] }
	chance := func(percent int) bool { return random.Intn(100) < percent }
	problem := Problem{Kubernetes: []string{"v1.31.2-eks-1"}, Installed: map[string]string{}, UpgradeAll: chance(10)}
	most := 4
	if len(names) == 5 {
		most = 2
	}
	withdrawn, denseness := random.Intn(15), 10+random.Intn(35)
	for _, name := range names {
		application := Application{Name: name}
		for _, at := range random.Perm(len(numbers))[:1+random.Intn(most)] {
			version := Version{
				Version: numbers[at], Preview: chance(5), Withdrawn: chance(withdrawn), EndOfLife: chance(20),
			}
			if chance(10) {
				version.Kubernetes = one([]string{"1.30", "1.33", ">=1.31 <2", "<1.31"})
			}
			for _, other := range append(names, "missing") {
				if other != name && chance(denseness) && (other != "missing" || chance(10)) {
					version.Dependencies = append(version.Dependencies, Requirement{Name: other, Range: one(ranges)})
				}
				if other != name && chance(25) {
					version.Recommends = append(version.Recommends, Requirement{Name: other, Range: one(ranges)})
				}
			}
			application.Versions = append(application.Versions, version)
		}
		problem.Catalogue = append(problem.Catalogue, application)
		if chance(40) {
			problem.Installed[name] = one(numbers)
		}
		if chance(15) {
			problem.Upgrade = append(problem.Upgrade, name)
		}
	}
	for range 1 + random.Intn(3) {
		problem.Picks = append(problem.Picks, Pick{Name: one(names), Range: one(picks)})
	}
	return problem
}

// The answers to 2000 problems, or to 20000 with STRATA_TEST_ALL=1, are those of
// the reference: the same lock, or an error that the reference finds to be true,
// to be enough and to say nothing more than it has to.
func TestSolveAgreesWithTheReference(t *testing.T) {
	problems := 2000
	if os.Getenv("STRATA_TEST_ALL") == "1" {
		problems = 20000
	}
	seen := map[string]int{}
	for seed := range problems {
		problem := randomProblem(rand.New(rand.NewSource(int64(seed))))
		outcome, wrong := compare(problem)
		if wrong != "" {
			t.Fatalf("seed %d: %s\n%+v", seed, wrong, problem)
		}
		seen[outcome]++
	}
	t.Log(seen)
	for _, outcome := range []string{"lock", "unsatisfiable", "cycle"} {
		if seen[outcome] < problems/100 {
			t.Errorf("only %d of %d problems ended with: %s", seen[outcome], problems, outcome)
		}
	}
}

// compare returns how a problem ended, and what is wrong with that.
func compare(problem Problem) (outcome, wrong string) {
	lock, err := Solve(problem)
	r := newReference(problem)
	best := r.best()
	var unsatisfiable *Unsatisfiable
	var cycle *Cycle
	switch {
	case err == nil:
		if best == nil {
			return "lock", "there should be no lock, but it is\n" + lock.lines()
		}
		if want := r.lock(best).lines(); lock.lines() != want {
			return "lock", fmt.Sprintf("the lock is\n%s\nand should be\n%s", lock.lines(), want)
		}
		return "lock", ""
	case best != nil:
		return "lock", fmt.Sprintf("there should be a lock, not %q:\n%s", err, r.lock(best).lines())
	case errors.As(err, &unsatisfiable):
		return "unsatisfiable", r.explained(unsatisfiable)
	case errors.As(err, &cycle):
		return "cycle", r.circles(cycle)
	}
	return "", err.Error()
}

// lock writes down a set.
func (r *reference) lock(s []int) Lock {
	entries := map[string]*Entry{}
	var names []string
	for i, v := range s {
		if v != absent {
			names = append(names, r.apps[i].name)
			entry := &Entry{Name: r.apps[i].name, Version: r.apps[i].versions[v].text}
			if len(r.apps[i].picks) > 0 {
				entry.Why = append(entry.Why, "picked")
			}
			entries[entry.Name] = entry
		}
	}
	for i := range s {
		for _, n := range r.needs(s, i) {
			entries[r.apps[i].name].DependsOn = append(entries[r.apps[i].name].DependsOn, n.name)
			entries[n.name].Why = append(entries[n.name].Why, "needed by "+r.apps[i].name+" "+r.apps[i].versions[s[i]].text)
		}
	}
	for i := range s {
		for _, n := range r.recommends(s, i) {
			if r.met(s, n) {
				entries[n.name].Why = append(entries[n.name].Why, "recommended by "+r.apps[i].name+" "+r.apps[i].versions[s[i]].text)
			}
		}
	}
	var lock Lock
	placed := map[string]bool{}
	for len(lock) < len(names) {
		for _, name := range names {
			if !placed[name] && !slices.ContainsFunc(entries[name].DependsOn, func(to string) bool { return !placed[to] }) {
				placed[name] = true
				lock = append(lock, *entries[name])
				break
			}
		}
	}
	return lock
}

// explained says what is wrong with an explanation.
func (r *reference) explained(err *Unsatisfiable) string {
	c, _ := read(r.problem)
	if len(err.facts) != len(err.Facts) {
		return fmt.Sprintf("%d facts are told as %d", len(err.facts), len(err.Facts))
	}
	for i, f := range err.facts {
		if !r.isTrue(f, c.apps) {
			return "is not true: " + err.Facts[i]
		}
		if !r.satisfiable(slices.Delete(slices.Clone(err.facts), i, i+1), c.apps) {
			return fmt.Sprintf("%q could be left out of: %s", err.Facts[i], err)
		}
	}
	if r.satisfiable(err.facts, c.apps) {
		return "does not explain it: " + err.Error()
	}
	if text := err.Error(); strings.ContainsAny(text, "\x1b\n") || strings.Contains(text, "  ") {
		return "is not plain: " + text
	}
	return ""
}

// circles says what is wrong with circles.
func (r *reference) circles(err *Cycle) string {
	avoids := func(paths [][]string) bool {
		found := false
		r.every(0, func(s []int) {
			found = found || r.fits(s) && !slices.ContainsFunc(paths, func(path []string) bool { return r.has(s, path) })
		})
		return found
	}
	if avoids(err.Paths) {
		return "can be avoided: " + err.Error()
	}
	for i := range err.Paths {
		if !avoids(slices.Delete(slices.Clone(err.Paths), i, i+1)) {
			return "has too many: " + err.Error()
		}
	}
	return ""
}

// has tells whether the dependencies of a set follow a path.
func (r *reference) has(s []int, path []string) bool {
	for k, name := range path[1:] {
		if !slices.ContainsFunc(r.needs(s, r.index[path[k]]), func(n need) bool { return n.name == name }) {
			return false
		}
	}
	return true
}

// shuffled writes a problem down in another order, and versions with a v.
func shuffled(problem Problem, random *rand.Rand) Problem {
	problem.Picks = slices.Clone(problem.Picks)
	random.Shuffle(len(problem.Picks), reflect.Swapper(problem.Picks))
	problem.Catalogue = slices.Clone(problem.Catalogue)
	random.Shuffle(len(problem.Catalogue), reflect.Swapper(problem.Catalogue))
	for i := range problem.Catalogue {
		versions := slices.Clone(problem.Catalogue[i].Versions)
		random.Shuffle(len(versions), reflect.Swapper(versions))
		for k := range versions {
			versions[k].Dependencies = slices.Clone(versions[k].Dependencies)
			random.Shuffle(len(versions[k].Dependencies), reflect.Swapper(versions[k].Dependencies))
			versions[k].Recommends = slices.Clone(versions[k].Recommends)
			random.Shuffle(len(versions[k].Recommends), reflect.Swapper(versions[k].Recommends))
		}
		problem.Catalogue[i].Versions = versions
	}
	return problem
}

// The library shares a buffer between solvers, which the race detector would see.
func TestSolveSideBySide(t *testing.T) {
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for seed := range int64(100) {
				problem := randomProblem(rand.New(rand.NewSource(seed)))
				if _, wrong := compare(problem); wrong != "" {
					t.Errorf("seed %d: %s", seed, wrong)
				}
			}
		})
	}
	wait.Wait()
}

// What is locked is locked again, however the input is ordered, and a lock that is
// installed stays as it is, also when newer versions have come.
func TestSolveIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Int64().Draw(t, "seed")
		problem := randomProblem(rand.New(rand.NewSource(seed)))
		lock, err := Solve(problem)
		random := rand.New(rand.NewSource(seed))
		again, errAgain := Solve(shuffled(problem, random))
		if diff := cmp.Diff(lock, again); diff != "" {
			t.Fatalf("in another order: %s", diff)
		}
		if err != nil {
			if errAgain == nil || err.Error() != errAgain.Error() {
				t.Fatalf("%v, in another order %v", err, errAgain)
			}
			return
		}
		problem.Installed, problem.Upgrade, problem.UpgradeAll = map[string]string{}, nil, false
		for _, entry := range lock {
			problem.Installed[entry.Name] = entry.Version
		}
		for i := range problem.Catalogue {
			newest := problem.Catalogue[i].Versions[0]
			newest.Version = "9.0.0"
			problem.Catalogue[i].Versions = append(problem.Catalogue[i].Versions, newest)
		}
		stable, err := Solve(problem)
		if err != nil {
			t.Fatal(err)
		}
		locked := map[string]string{}
		for _, entry := range stable {
			locked[entry.Name] = entry.Version
		}
		for name, version := range problem.Installed {
			if locked[name] != version {
				t.Fatalf("%s was at %s and is at %q", name, version, locked[name])
			}
		}
	})
}

// Where everything depends on everything, the search ends with an error and not
// never.
func TestSolveGivesUp(t *testing.T) {
	encoding := encode(&catalogue{}, false)
	encoding.rounds, encoding.cycles = mostRounds+1, nil
	want := "too many applications of the catalogue lead to each other in circles to choose between their versions"
	if err := encoding.entangled(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	random := rand.New(rand.NewSource(1))
	var catalogue []Application
	for i := range 60 {
		name := func(i int) string { return string([]byte{byte('a' + i/26), byte('a' + i%26)}) }
		application := Application{Name: name(i)}
		for _, version := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0", "6.0.0", "7.0.0", "8.0.0"} {
			made := Version{Version: version}
			for _, other := range random.Perm(60)[:3] {
				if other != i {
					made.Dependencies = append(made.Dependencies, Requirement{Name: name(other)})
				}
			}
			application.Versions = append(application.Versions, made)
		}
		catalogue = append(catalogue, application)
	}
	_, err := Solve(Problem{Picks: picks("aa"), Catalogue: catalogue})
	if err == nil || !strings.HasPrefix(err.Error(), want+", for example aa -> ") {
		t.Errorf("%v, want %s", err, want)
	}
}
