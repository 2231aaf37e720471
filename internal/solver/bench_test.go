// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"math/rand"
	"testing"
)

// largeProblem makes a catalogue of 200 applications with 50 versions each, and
// picks twenty of them. Dependencies lead to applications further on, within a
// major version or its neighbours; where circular is true they lead anywhere.
func largeProblem(seed int64, circular bool) Problem {
	const applications, versions = 200, 50
	random := rand.New(rand.NewSource(seed))
	problem := Problem{Kubernetes: []string{"1.31.2"}, Installed: map[string]string{}}
	name := func(i int) string { return fmt.Sprintf("app-%03d", i) }
	for i := range applications {
		application := Application{Name: name(i)}
		var others []int
		for range 5 {
			other := i + 1 + random.Intn(applications)
			if circular {
				other %= applications
			}
			if other < applications && other != i {
				others = append(others, other)
			}
		}
		for v := range versions {
			version := Version{
				Version: fmt.Sprintf("%d.%d.%d", 1+v/10, v%10, random.Intn(9)),
				Preview: random.Intn(40) == 0, Withdrawn: random.Intn(20) == 0, EndOfLife: v < 20,
			}
			if random.Intn(30) == 0 {
				version.Kubernetes = ">=1.33"
			}
			used := map[int]bool{}
			for k, other := range others {
				wanted := Requirement{Name: name(other), Range: fmt.Sprintf(">=%d.%d <%d", max(1, v/10), v%10, 2+v/10+random.Intn(2))}
				switch {
				case used[other]:
				case k < 3:
					version.Dependencies = append(version.Dependencies, wanted)
				default:
					version.Recommends = append(version.Recommends, wanted)
				}
				used[other] = true
			}
			application.Versions = append(application.Versions, version)
		}
		problem.Catalogue = append(problem.Catalogue, application)
	}
	for i := range 20 {
		problem.Picks = append(problem.Picks, Pick{Name: name(i * 3)})
	}
	return problem
}

func BenchmarkSolve(b *testing.B) {
	for _, circular := range []bool{false, true} {
		problem := largeProblem(1, circular)
		b.Run(fmt.Sprintf("first/circular=%t", circular), func(b *testing.B) {
			for b.Loop() {
				_, err := Solve(problem)
				if err != nil && !circular {
					b.Fatal(err)
				}
			}
		})
	}
	problem := largeProblem(1, false)
	lock, err := Solve(problem)
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range lock {
		problem.Installed[entry.Name] = entry.Version
	}
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			if _, err := Solve(problem); err != nil {
				b.Fatal(err)
			}
		}
	})
	problem.Picks = append(problem.Picks, Pick{Name: "app-199", Range: "<1"})
	b.Run("unsatisfiable", func(b *testing.B) {
		for b.Loop() {
			if _, err := Solve(problem); err == nil {
				b.Fatal("has a lock")
			}
		}
	})
}
