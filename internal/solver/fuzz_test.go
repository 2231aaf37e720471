// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// FuzzSolve reads a problem from lines of words: "pick name range", "have name
// version", "on version", "app name", "version version", and behind the last
// "needs name range", "likes name range", "k8s range", "preview", "withdrawn" and
// "ended". Whatever it says, there is a lock that holds what it should, or one of
// the three errors.
func FuzzSolve(f *testing.F) {
	f.Add("pick shop ^2\non 1.31\napp shop\nversion v2.1.0\nneeds db >=3 <4\nlikes cache\napp db\nversion 3.0.0-rc.1\npreview\nversion 3.1.0\nended\nhave db 3.0.0-rc.1")
	f.Add("pick a\napp a\nversion 1.0.0\nneeds b\napp b\nversion 1.0.0\nneeds a")
	f.Add("pick a 1.x || 3 - 4\npick a !=1.0\napp a\nversion 1\nk8s >=1.30\nwithdrawn\nversion 0.0.0+x\nlikes c <1 ,>2")
	f.Add("pick \nhave a \non x\napp \nversion \nneeds \nk8s ^")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		problem := parseProblem(text)
		lock, err := Solve(problem)
		var invalid *Invalid
		var unsatisfiable *Unsatisfiable
		var cycle *Cycle
		switch {
		case err == nil:
			if wrong := broken(problem, lock); wrong != "" {
				t.Error(wrong)
			}
		case errors.As(err, &invalid), errors.As(err, &unsatisfiable) && len(unsatisfiable.Facts) > 0, errors.As(err, &cycle) && len(cycle.Paths) > 0:
		default:
			t.Errorf("%T: %v", err, err)
		}
	})
}

func parseProblem(text string) Problem {
	problem := Problem{Installed: map[string]string{}}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, value, _ := strings.Cut(rest, " ")
		switch word {
		case "pick":
			problem.Picks = append(problem.Picks, Pick{Name: name, Range: value})
		case "have":
			problem.Installed[name] = value
		case "on":
			problem.Kubernetes = []string{name}
		case "app":
			problem.Catalogue = append(problem.Catalogue, Application{Name: name})
		}
		if len(problem.Catalogue) == 0 {
			continue
		}
		application := &problem.Catalogue[len(problem.Catalogue)-1]
		if word == "version" {
			application.Versions = append(application.Versions, Version{Version: rest})
		}
		if len(application.Versions) == 0 {
			continue
		}
		version := &application.Versions[len(application.Versions)-1]
		switch word {
		case "needs":
			version.Dependencies = append(version.Dependencies, Requirement{Name: name, Range: value})
		case "likes":
			version.Recommends = append(version.Recommends, Requirement{Name: name, Range: value})
		case "k8s":
			version.Kubernetes = rest
		case "preview":
			version.Preview = true
		case "withdrawn":
			version.Withdrawn = true
		case "ended":
			version.EndOfLife = true
		}
	}
	return problem
}

// broken says what a lock lacks.
func broken(problem Problem, lock Lock) string {
	at := map[string]Version{}
	for _, entry := range lock {
		for _, name := range entry.DependsOn {
			if _, before := at[name]; !before {
				return fmt.Sprintf("%s comes before %s", entry.Name, name)
			}
		}
		for _, application := range problem.Catalogue {
			for _, version := range application.Versions {
				if application.Name == entry.Name && version.Version == entry.Version {
					at[entry.Name] = version
				}
			}
		}
		if len(entry.Why) == 0 {
			return "nothing wants " + entry.Name
		}
	}
	wanted := make([]Requirement, 0, len(problem.Picks))
	for _, pick := range problem.Picks {
		wanted = append(wanted, Requirement(pick))
	}
	for _, version := range at {
		wanted = append(wanted, version.Dependencies...)
	}
	for _, requirement := range wanted {
		limits, err := parseRange(requirement.Range)
		if err != nil {
			return err.Error()
		}
		version, here := at[requirement.Name]
		if !here {
			return requirement.Name + " is not there"
		}
		if number, err := parseVersion(version.Version); err != nil || !limits.takes(number) {
			return fmt.Sprintf("%s is at %s, not in %s", requirement.Name, version.Version, requirement.Range)
		}
	}
	if len(at) != len(lock) {
		return "an application is there twice"
	}
	return ""
}
