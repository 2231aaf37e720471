// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"cmp"
	"slices"
	"sync"

	"github.com/crillab/gophersat/solver"
)

// engine holds clauses and finds models of them, with the library's solver. A
// literal is the number of a variable, or its negative.
//
// The library wants some care. Its cardinality constraints are lost where one of
// their literals is known from the beginning, so that there are clauses only; and
// Assume forgets what is known, so that every clause of one literal stays here and
// is assumed each time.
type engine struct {
	variables int
	clauses   [][]int
	units     []int
	library   *solver.Solver
	// contradiction is true where a clause has no literal at all.
	contradiction bool
}

// learning guards the buffer that all solvers of the library learn in.
var learning sync.Mutex

// fresh returns a new variable. There are none once solving has begun.
func (e *engine) fresh() int {
	e.variables++
	return e.variables
}

// add adds a clause: one of the literals holds.
func (e *engine) add(literals ...int) {
	clause := slices.Clone(literals)
	slices.SortFunc(clause, func(a, b int) int { return cmp.Or(cmp.Compare(abs(a), abs(b)), cmp.Compare(a, b)) })
	clause = slices.Compact(clause)
	for i := 1; i < len(clause); i++ {
		if clause[i] == -clause[i-1] {
			return
		}
	}
	switch {
	case len(clause) == 0:
		e.contradiction = true
	case len(clause) == 1:
		e.units = append(e.units, clause[0])
	case e.library == nil:
		e.clauses = append(e.clauses, clause)
	default:
		// Nothing may be assumed while a clause is added: it would be taken for known.
		e.library.Assume(nil)
		e.library.AppendClause(solver.NewClause(literalsOf(clause)))
	}
}

// solve returns a model in which the literals hold, by variable, or nil where
// there is none.
func (e *engine) solve(assumed []int) []bool {
	if e.contradiction {
		return nil
	}
	value := make([]int, e.variables+1)
	var all []int
	for _, literal := range slices.Concat(e.units, assumed) {
		switch value[abs(literal)] {
		case 0:
			value[abs(literal)] = literal
			all = append(all, literal)
		case -literal:
			return nil
		}
	}
	if e.library == nil {
		e.library = solver.New(solver.ParseSliceNb(e.clauses, e.variables))
		e.clauses = nil
	}
	if e.library.Assume(literalsOf(all)) == solver.Unsat {
		return nil
	}
	learning.Lock()
	status := e.library.Solve()
	learning.Unlock()
	if status != solver.Sat {
		return nil
	}
	return append([]bool{false}, e.library.Model()...)
}

func literalsOf(numbers []int) []solver.Lit {
	literals := make([]solver.Lit, len(numbers))
	for i, number := range numbers {
		literals[i] = solver.IntToLit(int32(number)) //nolint:gosec // as many variables as versions, not billions
	}
	return literals
}

func abs(n int) int { return max(n, -n) }

// holds tells whether a literal holds in a model.
func holds(model []bool, literal int) bool {
	return model[abs(literal)] == (literal > 0)
}
