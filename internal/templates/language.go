// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package templates fills templates: expressions of CEL in ${...} in the texts of
// values, over variables that it is given. It reads no clock, no cluster and no
// file, and what an expression may cost is bounded.
package templates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

const (
	// maxExpression bounds how long an expression may be, in characters.
	maxExpression = 4096
	// maxDepth bounds how deep an expression may be nested.
	maxDepth = 100
	// maxCost bounds what an expression may cost, in CEL's units: about the number
	// of steps.
	maxCost = 200_000
	// maxFilled bounds how large the texts are that the expressions of one value
	// may make, in bytes.
	maxFilled = 1 << 20
	// maxUnderstood bounds how many expressions are remembered.
	maxUnderstood = 10_000
)

// Language knows the variables that expressions may use. It is safe for
// concurrent use.
type Language struct {
	env       *cel.Env
	variables map[string]bool

	// understood holds expressions by their texts: a fleet asks for the same few on
	// each of its clusters, and understanding one takes far longer than its answer.
	mutex      sync.Mutex
	understood map[string]*expression
}

// Data holds the variables by name, each an object as JSON has them: int64 or
// float64 for numbers.
type Data map[string]map[string]any

// New returns a language with variables of some names.
func New(variables ...string) (*Language, error) {
	l := &Language{variables: map[string]bool{}, understood: map[string]*expression{}}
	options := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxDepth),
		cel.OptionalTypes(), ext.Math(), ext.Encoders(), cel.CrossTypeNumericComparisons(true),
	}
	options = append(options, functions()...)
	for _, name := range variables {
		l.variables[name] = true
		options = append(options, cel.Variable(name, cel.MapType(cel.StringType, cel.DynType)))
	}
	var err error
	if l.env, err = cel.NewEnv(options...); err != nil {
		return nil, fmt.Errorf("cannot make the language: %w", err)
	}
	return l, nil
}

// expression is one that was understood.
type expression struct {
	text    string
	ast     *cel.Ast
	program func() (cel.Program, error)
}

// compile understands an expression. The error says what is wrong with it.
func (l *Language) compile(text string) (*expression, error) {
	l.mutex.Lock()
	known := l.understood[text]
	l.mutex.Unlock()
	if known != nil {
		return known, nil
	}
	checked, issues := l.env.Compile(text)
	if issues == nil || issues.Err() == nil {
		known = &expression{text: text, ast: checked, program: sync.OnceValues(func() (cel.Program, error) {
			return l.env.Program(checked, cel.CostLimit(maxCost), cel.CostTracking(sizes{}))
		})}
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if len(l.understood) >= maxUnderstood {
			clear(l.understood)
		}
		l.understood[text] = known
		return known, nil
	}
	var messages []string
	for _, issue := range issues.Errors() {
		message, _, _ := strings.Cut(issue.Message, " (in container")
		messages = append(messages, fmt.Sprintf("column %d: %s", issue.Location.Column()+1, message))
		if len(messages) == 3 {
			break
		}
	}
	return nil, fmt.Errorf("${%s} is no expression of CEL: %s; there are the variables %s", shorten(text), strings.Join(messages, "; "), l.names())
}

func (l *Language) names() string { return strings.Join(slices.Sorted(maps.Keys(l.variables)), ", ") }

// uses adds the fields of variables that an expression reads, as variable.field; a
// variable alone where it cannot be told which.
func (l *Language) uses(e *expression, found map[string]bool) {
	whole := map[string]int{}
	ast.PostOrderVisit(e.ast.NativeRep().Expr(), ast.NewExprVisitor(func(node ast.Expr) {
		switch node.Kind() {
		case ast.IdentKind:
			if name := node.AsIdent(); l.variables[name] {
				whole[name]++
			}
		case ast.SelectKind:
			selected := node.AsSelect()
			l.useField(selected.Operand(), selected.FieldName(), whole, found)
		case ast.CallKind:
			call := node.AsCall()
			if args := call.Args(); len(args) == 2 && isIndex(call.FunctionName()) && args[1].Kind() == ast.LiteralKind {
				if key, is := args[1].AsLiteral().(types.String); is {
					l.useField(args[0], string(key), whole, found)
				}
			}
		}
	}))
	for name, count := range whole {
		if count > 0 {
			found[name] = true
		}
	}
}

func isIndex(function string) bool {
	return function == operators.Index || function == operators.OptIndex || function == operators.OptSelect
}

func (l *Language) useField(of ast.Expr, field string, whole map[string]int, found map[string]bool) {
	if of.Kind() != ast.IdentKind || !l.variables[of.AsIdent()] {
		return
	}
	whole[of.AsIdent()]--
	found[of.AsIdent()+"."+field] = true
}

// evaluate returns what an expression comes to, as JSON has it.
func (l *Language) evaluate(e *expression, data Data) (any, error) {
	program, err := e.program()
	if err != nil {
		return nil, fmt.Errorf("${%s}: %w", shorten(e.text), err)
	}
	variables := map[string]any{}
	for name := range l.variables {
		// One without a value has no fields; it is not unknown.
		variables[name] = map[string]any{}
		if value := data[name]; value != nil {
			variables[name] = value
		}
	}
	value, _, err := program.Eval(variables)
	if err != nil {
		return nil, fmt.Errorf("${%s}: %w", shorten(e.text), e.explain(err))
	}
	result, err := (&converter{left: maxItems}).value(value)
	if err != nil {
		return nil, fmt.Errorf("${%s} %w", shorten(e.text), err)
	}
	return result, nil
}

// perItem is what an item costs of a list that two are added to, and perDigest what a digest
// costs, which may be of much.
const (
	perItem   = 50
	perDigest = uint64(2000)
)

// sizes charges for how long a list is that two are added to. CEL takes that for
// free, as nothing is copied; who then goes through it pays too late, and takes the
// square of its length.
type sizes struct{}

// CallCost returns nil for what CEL charges for itself.
func (sizes) CallCost(function, _ string, _ []ref.Val, result ref.Val) *uint64 {
	if function == "digest" {
		cost := perDigest
		return &cost
	}
	list, is := result.(traits.Lister)
	if function != operators.Add || !is {
		return nil
	}
	size, _ := list.Size().(types.Int)
	cost := uint64(max(size, 0)) * perItem
	return &cost
}

// MissingError says that an expression reads what is not there.
type MissingError struct {
	// Key of the object that lacks it.
	Key string
}

// Error names the key.
func (e *MissingError) Error() string {
	if e.Key == "" {
		return "an object lacks the key that it is asked for"
	}
	return "there is no " + e.Key
}

// mistakes say in plain words what CEL's errors begin with, or hold. The errors
// themselves have values in them, which may be what nobody else is to see.
var mistakes = []struct{ text, says string }{
	{"cost limit exceeded", "it costs too much: write it simpler"},
	{errTextTooLarge, errTextTooLarge},
	{errNoTexts, errNoTexts},
	{errNoSubstring, errNoSubstring},
	{errNoDigest, errNoDigest},
	{"no such overload", "a value is of a type that an operator or a function of it does not take"},
	{"no such attribute", "it reads what is not there"},
	{"unsupported key type", "a key is of a type that no key has"},
	{"unsupported index type", "an index is no number"},
	{"index out of bounds", "a list has fewer items than it asks for"},
	{"invalid_argument", "an argument is none that the function takes"},
	{"divide by zero", "it divides by zero"},
	{"division by zero", "it divides by zero"},
	{"modulus by zero", "it divides by zero"},
	{"overflow", "a number is too large"},
	{"regexp", "a regular expression in it is none"},
	{"base64", "a text in it is no base64"},
	{"invalid UTF-8", "bytes that it reads are no text"},
	{"type conversion error", "a value cannot be converted to the type that it asks for"},
	{"optional.none()", "an optional value has none: add .orValue(...)"},
}

// explain says in plain words why an expression has no value. It names no value that
// the expression has read or come to, and of keys only those that stand in it.
func (e *expression) explain(err error) error {
	text := err.Error()
	if key, isKey := strings.CutPrefix(text, "no such key: "); isKey {
		if !e.names(key) {
			key = ""
		}
		return &MissingError{key}
	}
	for _, mistake := range mistakes {
		if strings.Contains(text, mistake.text) {
			return errors.New(mistake.says)
		}
	}
	return errors.New("it has no value for what it reads")
}

// names tells whether a key stands in the expression, as a field or as a text that
// something is indexed with.
func (e *expression) names(key string) bool {
	found := false
	ast.PostOrderVisit(e.ast.NativeRep().Expr(), ast.NewExprVisitor(func(node ast.Expr) {
		switch node.Kind() {
		case ast.SelectKind:
			found = found || node.AsSelect().FieldName() == key
		case ast.CallKind:
			call := node.AsCall()
			if args := call.Args(); len(args) == 2 && isIndex(call.FunctionName()) && args[1].Kind() == ast.LiteralKind {
				text, is := args[1].AsLiteral().(types.String)
				found = found || is && string(text) == key
			}
		}
	}))
	return found
}

// CheckCondition tells what is wrong with a condition: an expression that is true
// or false, without ${}. It returns the fields of variables that it reads.
func (l *Language) CheckCondition(text string) (uses []string, err error) {
	compiled, err := l.condition(text)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	l.uses(compiled, found)
	return slices.Sorted(maps.Keys(found)), nil
}

func (l *Language) condition(text string) (*expression, error) {
	compiled, err := l.compile(text)
	if err != nil {
		return nil, err
	}
	if is := compiled.ast.OutputType(); !is.IsExactType(cel.BoolType) && !is.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%s is %s, and must be true or false", shorten(text), typeName(is))
	}
	return compiled, nil
}

func typeName(is *cel.Type) string { return "of the type " + is.String() }

// Holds tells whether a condition holds.
func (l *Language) Holds(text string, data Data) (bool, error) {
	compiled, err := l.condition(text)
	if err != nil {
		return false, err
	}
	value, err := l.evaluate(compiled, data)
	if err != nil {
		return false, err
	}
	holds, is := value.(bool)
	if !is {
		return false, errors.New(shorten(text) + " is neither true nor false")
	}
	return holds, nil
}
