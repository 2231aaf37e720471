// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

// coroutine runs a function one step at a time, on a goroutine of its own that
// only goes on while its user waits. It is what iter.Pull is; with that, the race
// detector keeps megabytes of each run for ever.
type coroutine struct {
	resume  chan bool
	paused  chan bool
	failure any
	ended   bool
}

// newCoroutine returns one that has yet to begin. Steps calls its argument after
// each step, and ends soon when that returns false.
func newCoroutine(steps func(pause func() bool)) *coroutine {
	c := &coroutine{resume: make(chan bool), paused: make(chan bool)}
	go func() {
		defer func() {
			c.failure = recover()
			c.paused <- false
		}()
		if <-c.resume {
			steps(func() bool {
				c.paused <- true
				return <-c.resume
			})
		}
	}()
	return c
}

// next goes on with the next step, and tells whether there is more. What the
// function panics with, next panics with.
func (c *coroutine) next() bool { return c.goOn(true) }

// stop ends the function where it is.
func (c *coroutine) stop() { c.goOn(false) }

func (c *coroutine) goOn(on bool) bool {
	if c.ended {
		return false
	}
	c.resume <- on
	if <-c.paused {
		return true
	}
	c.ended = true
	if c.failure != nil {
		panic(c.failure)
	}
	return false
}
