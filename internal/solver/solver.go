// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package solver chooses the versions of the applications that a platform picks,
// and of whatever these need: from picks, a catalogue and what is installed to a
// lock, which has one version of each application in the order of installation.
// It reads no clock, no cluster and no file, and gives one answer to one question,
// in whatever order the catalogue lists things.
//
// A set of versions is allowed where every pick is in it at a version in its
// range; where everything that a chosen version depends on is in it, in range;
// where no dependency leads back to where it began; and where nothing is in it
// but what a pick, a dependency or a recommendation that is met brings along.
// Versions that ask for another Kubernetes are never allowed. Withdrawn ones are
// allowed where they are installed; previews where they are installed, or where
// a pick names that very version.
//
// Of the allowed sets one is chosen by going through these wishes in turn. Each
// one drops the sets that do not grant it, unless none would be left. Picks go
// before other applications, and then they go by name.
//
//  1. What is installed keeps its version, except for what may be upgraded. What
//     nothing in the set needs or recommends any more may go.
//  2. Nothing moves below the version that is installed.
//  3. No application is at a version past its end of life, unless that is the
//     installed one.
//  4. Each recommendation of one application by another is met, by application
//     and then by what it recommends. The first in that order counts most: this
//     is not about their number. One that no set can meet holds nothing back.
//  5. Each application has its newest version: the picks first, then whatever
//     those that are decided depend on, then what they recommend.
package solver

import "slices"

// Problem is everything that Solve decides from.
type Problem struct {
	// Picks are the applications that are asked for. Several picks of one
	// application all hold.
	Picks []Pick
	// Catalogue is what there is to choose from, in any order. What no pick can
	// lead to is not looked at, so that a mistake there harms nobody.
	Catalogue []Application
	// Installed holds versions by the names of applications. One that is not in the
	// catalogue any more cannot be kept.
	Installed map[string]string
	// Upgrade names installed applications that may move to a newer version.
	Upgrade []string
	// UpgradeAll is true where all of them may.
	UpgradeAll bool
	// Kubernetes are the versions of the clusters, which a version must work with all
	// of; none where they are not known, which meets only what asks for none. A
	// provider's suffix does not matter.
	Kubernetes []string
}

// Pick is one application that is asked for.
type Pick struct {
	Name string
	// Range of versions; empty for any.
	Range string
}

// Application is one entry of the catalogue.
type Application struct {
	Name string
	// Versions in any order.
	Versions []Version
}

// Version is one version of an application.
type Version struct {
	// Version is a semantic version. A leading v and build metadata do not tell two
	// versions apart.
	Version string
	// Dependencies are what it cannot be without, each application once.
	Dependencies []Requirement
	// Recommends is what it would rather have beside it, each application once.
	Recommends []Requirement
	// Kubernetes is the lowest version that it works with, or a range; empty for
	// any.
	Kubernetes string
	// Preview is true where it is chosen only on request. A semantic pre-release is
	// one anyway.
	Preview bool
	// Withdrawn is true where it is not to be chosen any more.
	Withdrawn bool
	// WithdrawnReason says why; it may be empty.
	WithdrawnReason string
	// EndOfLife is true where its end of life has passed.
	EndOfLife bool
}

// Requirement names an application and the versions of it that will do. A range
// takes a pre-release where it names one itself, or where it takes both the
// pre-release by its precedence and the release that it leads to.
type Requirement struct {
	Name string
	// Range of versions; empty for any.
	Range string
}

// Lock is one version of each application that is needed, each behind everything
// that it depends on and otherwise by name.
type Lock []Entry

// Entry is one application of a lock.
type Entry struct {
	Name string
	// Version as the catalogue writes it.
	Version string
	// DependsOn names the entries that it depends on, sorted.
	DependsOn []string
	// Why says what brought it here: that it is picked, what needs it, and then
	// what recommends it.
	Why []string
	// Notes say what a person should know: which recommendations were left out and
	// why, and what is odd about the version.
	Notes []string
}

// Solve chooses a lock. It returns *Invalid for input that cannot be understood,
// *Unsatisfiable where no versions fit, *Cycle where all that fit depend on each
// other in a circle, and *Entangled where there are too many circles to search
// between. No picks make an empty lock. It may be called from several goroutines,
// whose searches take turns.
//
// Two hundred applications of fifty versions take a fraction of a second. The
// problem is a hard one all the same: versions whose ranges are scattered at random
// over hundreds of applications can take a search that does not end, and that
// nothing interrupts.
func Solve(problem Problem) (Lock, error) {
	catalogue, err := read(problem)
	if err != nil {
		return nil, err
	}
	encoding := encode(catalogue, false)
	choice := &choice{encoding: encoding, held: []int{encoding.strict}, kept: map[between]bool{}}
	if choice.model = encoding.find(choice.held); choice.model == nil {
		if err := encoding.entangled(); err != nil {
			return nil, err
		}
		return nil, encoding.failure()
	}
	order := catalogue.picksFirst()
	choice.keepInstalled(order)
	choice.avoidEndOfLife(order)
	choice.meetRecommendations(order)
	choice.takeNewest()
	if err := encoding.entangled(); err != nil {
		return nil, err
	}
	return choice.lock(), nil
}

// picksFirst returns every application, picks before others and then by name.
func (c *catalogue) picksFirst() []int {
	var picked, others []int
	for i := range c.apps {
		if len(c.apps[i].picks) > 0 {
			picked = append(picked, i)
		} else {
			others = append(others, i)
		}
	}
	return slices.Concat(picked, others)
}
