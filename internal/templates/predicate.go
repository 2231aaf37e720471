// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// Predicate is a condition over the fields at the top of an object, as Flux's health
// checks have it: which fields there are is not known before it is asked.
type Predicate struct{ *expression }

// predicates are those that were understood, by their texts: layers are looked at far
// more often than they change.
var predicates = struct {
	sync.Mutex
	known map[string]*Predicate
}{known: map[string]*Predicate{}}

// predicateEnv has the functions that Flux gives health checks.
var predicateEnv = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxDepth),
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
	)
})

// ParsePredicate understands a condition. The error says what is wrong with it.
func ParsePredicate(text string) (*Predicate, error) {
	predicates.Lock()
	defer predicates.Unlock()
	if known := predicates.known[text]; known != nil {
		return known, nil
	}
	env, err := predicateEnv()
	if err != nil {
		return nil, fmt.Errorf("cannot make the language: %w", err)
	}
	parsed, issues := env.Parse(text)
	if issues != nil && issues.Err() != nil {
		messages := make([]string, 0, len(issues.Errors()))
		for _, issue := range issues.Errors() {
			messages = append(messages, fmt.Sprintf("column %d: %s", issue.Location.Column()+1, issue.Message))
		}
		return nil, fmt.Errorf("%s is no expression of CEL: %s", shorten(text), strings.Join(messages, "; "))
	}
	program := sync.OnceValues(func() (cel.Program, error) {
		return env.Program(parsed, cel.CostLimit(maxCost), cel.CostTracking(sizes{}))
	})
	if _, err := program(); err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", shorten(text), err)
	}
	if len(predicates.known) >= maxUnderstood {
		clear(predicates.known)
	}
	predicates.known[text] = &Predicate{&expression{text: text, ast: parsed, program: program}}
	return predicates.known[text], nil
}

// Holds tells whether an object is as the condition says. A field that it reads and that
// the object lacks is an error, which names no value.
func (p *Predicate) Holds(fields map[string]any) (bool, error) {
	program, err := p.program()
	if err != nil {
		return false, fmt.Errorf("%s: %w", shorten(p.text), err)
	}
	value, _, err := program.Eval(fields)
	if err != nil {
		return false, fmt.Errorf("%s: %w", shorten(p.text), p.explain(err))
	}
	if is, ok := value.(types.Bool); ok {
		return bool(is), nil
	}
	return false, errors.New(shorten(p.text) + " is neither true nor false")
}
