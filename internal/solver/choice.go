// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import "slices"

// choice is what is left to choose from: the sets in which everything that is held
// holds, one of which is the model.
type choice struct {
	*encoding
	held  []int
	model []bool
	// separable is the same once more, with facts that can be left out; nil until
	// something is to be explained.
	separable *encoding
	// kept has the recommendations that are met wherever they are made.
	kept map[between]bool
}

// between is from one application to another.
type between struct{ from, to int }

// try keeps the sets in which all the literals hold, and tells whether there were
// any.
func (c *choice) try(literals ...int) bool {
	if slices.ContainsFunc(literals, func(literal int) bool { return !holds(c.model, literal) }) {
		model := c.find(slices.Concat(c.held, literals))
		if model == nil {
			return false
		}
		c.model = model
	}
	c.held = append(c.held, literals...)
	return true
}

// wish tries the literals one after another; where all of them can hold, or whole
// halves of them, it asks only once.
func (c *choice) wish(literals []int) {
	if len(literals) == 0 || c.try(literals...) || len(literals) == 1 {
		return
	}
	half := len(literals) / 2
	c.wish(literals[:half])
	c.wish(literals[half:])
}

// keepInstalled grants the first two wishes.
func (c *choice) keepInstalled(order []int) {
	var kept, notBelow []int
	for _, i := range order {
		if literal := c.of[i].kept; literal != 0 {
			kept = append(kept, literal)
		}
		if literal := c.of[i].notBelow; literal != 0 {
			notBelow = append(notBelow, literal)
		}
	}
	c.wish(kept)
	c.wish(notBelow)
}

// avoidEndOfLife grants the third wish.
func (c *choice) avoidEndOfLife(order []int) {
	var supported []int
	for _, i := range order {
		if literal := c.of[i].supported; literal != 0 {
			supported = append(supported, literal)
		}
	}
	c.wish(supported)
}

// meetRecommendations grants the fourth wish. Where some set has a recommendation
// made and met, the sets go in which it is made and not met.
func (c *choice) meetRecommendations(order []int) {
	by := make([][]*recommendation, len(c.apps))
	for _, one := range c.recommendations {
		if one.possible {
			by[one.from] = append(by[one.from], one)
		}
	}
	var inOrder []*recommendation
	for _, i := range order {
		inOrder = append(inOrder, by[i]...)
	}
	c.meet(inOrder)
}

// meet goes through recommendations one after another; where all of them can be
// met at once, or whole halves of them, it asks only once.
func (c *choice) meet(recommendations []*recommendation) {
	if len(recommendations) == 0 {
		return
	}
	met := slices.Clone(c.held)
	for _, one := range recommendations {
		met = append(met, one.met)
	}
	if model := c.find(met); model != nil {
		c.model = model
		for _, one := range recommendations {
			c.held = append(c.held, one.kept)
			c.kept[between{from: one.from, to: one.to}] = true
		}
		return
	}
	if half := len(recommendations) / 2; half > 0 {
		c.meet(recommendations[:half])
		c.meet(recommendations[half:])
	}
}

// takeNewest grants the fifth wish. What is decided says what else is in the set,
// and that is decided next: what something depends on before what is recommended.
// It guesses how that goes on as if nothing stood in the way, and searches only
// for where the first guess is wrong.
func (c *choice) takeNewest() {
	decided := map[int]bool{}
	for {
		guess := c.guess(decided)
		if len(guess) == 0 {
			return
		}
		for right := c.right(guess); right > 0; right-- {
			decided[guess[0].app] = true
			guess = guess[1:]
		}
		if len(guess) > 0 {
			c.newest(guess[0].app)
			decided[guess[0].app] = true
		}
	}
}

// right tries how much of a guess, from its beginning, is right, and keeps that.
func (c *choice) right(guess []guessed) int {
	literals := make([]int, len(guess))
	for k, one := range guess {
		literals[k] = c.of[one.app].at[one.version]
	}
	if c.try(literals...) {
		return len(guess)
	}
	right := 0
	for wrong := len(guess); wrong-right > 1; {
		if middle := (right + wrong) / 2; c.try(literals[right:middle]...) {
			right = middle
		} else {
			wrong = middle
		}
	}
	return right
}

// newest takes the newest version of an application that is in every set.
func (c *choice) newest(i int) {
	at := c.setOf(c.model)[i]
	for v := len(c.of[i].at) - 1; v > at; v-- {
		if c.try(c.of[i].at[v]) {
			return
		}
	}
	c.held = append(c.held, c.of[i].at[at])
}
