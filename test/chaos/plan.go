// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The programs that are killed.
const (
	strataProgram = "strata"
	sourceProgram = "source-controller"
	helmProgram   = "helm-controller"
	apiProgram    = "kube-apiserver"
	etcdProgram   = "etcd"
)

// victims in the order in which they are started again, with how often each is
// chosen in proportion.
var victims = []struct {
	name   string
	weight int
}{{etcdProgram, 2}, {apiProgram, 3}, {sourceProgram, 3}, {helmProgram, 3}, {strataProgram, 5}}

// blow is what is killed at once, after how long, and for how long.
type blow struct {
	Wait    time.Duration
	Victims []string // in the order in which they are started again
	Down    time.Duration
	// AfterCommit has the blow wait for the next commit first, so that it
	// falls into a roll-out.
	AfterCommit bool
}

// nextBlow draws a blow. One seed gives the same blows.
func nextBlow(random *rand.Rand) blow {
	b := blow{
		Wait:        between(random, 500*time.Millisecond, 6*time.Second),
		Down:        between(random, 0, 5*time.Second),
		AfterCommit: random.IntN(2) == 0,
	}
	if b.AfterCommit {
		b.Wait = between(random, 0, 4*time.Second)
	}
	count := 1
	if random.IntN(4) == 0 {
		count = 2
	}
	for len(b.Victims) < count {
		if name := victim(random); !slices.Contains(b.Victims, name) {
			b.Victims = append(b.Victims, name)
		}
	}
	slices.SortFunc(b.Victims, func(x, y string) int { return order(x) - order(y) })
	return b
}

func victim(random *rand.Rand) string {
	total := 0
	for _, v := range victims {
		total += v.weight
	}
	n := random.IntN(total)
	for _, v := range victims {
		if n -= v.weight; n < 0 {
			return v.name
		}
	}
	return strataProgram
}

func order(name string) int {
	for i, v := range victims {
		if v.name == name {
			return i
		}
	}
	return len(victims)
}

// nextCommit draws how long after a commit the next one is made.
func nextCommit(random *rand.Rand) time.Duration {
	if random.IntN(5) == 0 {
		return between(random, 0, time.Second) // overtakes the one before
	}
	return between(random, 2*time.Second, 12*time.Second)
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// fault is one component that was away, from its kill until it was ready
// again.
type fault struct {
	Victim      string
	Begin, End  time.Time
	Spontaneous bool // it ended by itself
}
