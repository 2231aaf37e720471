// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// given is what a platform gives for the inputs of its bundle.
type given struct {
	// own are those of the specification, and texts those of ConfigMaps with where
	// each is from.
	own   map[string]any
	texts map[string]text
	// problem is what only the author can mend, and waits what is missing.
	problem, waits string
}

// text is an input that is read by the type that a bundle gives it.
type text struct{ value, from string }

// givenOf gathers the inputs. Of ConfigMaps the later win.
func givenOf(o Observation) given {
	found := given{own: map[string]any{}, texts: map[string]text{}}
	if raw := o.Platform.Spec.Inputs; raw != nil && len(raw.Raw) > 0 {
		var own map[string]any
		if err := utiljson.Unmarshal(raw.Raw, &own); err != nil {
			found.problem = "spec.inputs: must be an object"
			return found
		}
		if own != nil {
			found.own = own
		}
	}
	for i, ref := range o.Platform.Spec.InputsFrom {
		name := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}
		data, exists := o.ConfigMaps[name]
		if err := o.ConfigMapErrors[name]; err != nil {
			found.waits = cmp.Or(found.waits, fmt.Sprintf("spec.inputsFrom[%d]: cannot read ConfigMap %s: %v", i, name, err))
		} else if !exists && !ref.Optional {
			found.waits = cmp.Or(found.waits, fmt.Sprintf("spec.inputsFrom[%d]: waits for ConfigMap %s, which does not exist", i, name))
		}
		for key, value := range data {
			found.texts[key] = text{value: value, from: fmt.Sprintf("spec.inputsFrom[%d]: ConfigMap %s: %s", i, name, key)}
		}
	}
	return found
}

// names returns the names of all inputs that are given.
func (g given) names() []string {
	return sorted(slices.Concat(slices.Collect(maps.Keys(g.own)), slices.Collect(maps.Keys(g.texts))))
}

// stray says which inputs are given that none of some bundles has; empty for none.
// An input that one of them has is no stray: inputs are often given before the version
// that brings them is everywhere.
func (g given) stray(of []*v1alpha1.ApplicationBundle) string {
	var stray []string
	for _, name := range g.names() {
		if !slices.ContainsFunc(of, func(b *v1alpha1.ApplicationBundle) bool { return inputOf(b, name) != nil }) {
			where := "spec.inputs." + name
			if from, isText := g.texts[name]; isText && g.own[name] == nil {
				where = from.from
			}
			stray = append(stray, where)
		}
	}
	if len(stray) == 0 {
		return ""
	}
	var versions []string
	for _, b := range of {
		versions = append(versions, b.Spec.Version)
	}
	return fmt.Sprintf("%s: is no input of the bundle at %s", strings.Join(stray, ", "), strings.Join(sorted(versions), ", "))
}

func inputOf(bundle *v1alpha1.ApplicationBundle, name string) *v1alpha1.BundleInput {
	for i := range bundle.Spec.Inputs {
		if bundle.Spec.Inputs[i].Name == name {
			return &bundle.Spec.Inputs[i]
		}
	}
	return nil
}

// resolve returns the inputs of one bundle, with the defaults of those that nobody
// gives, and what is wrong with them.
func (g given) resolve(bundle *v1alpha1.ApplicationBundle) (map[string]any, string) {
	values := map[string]any{}
	for _, name := range g.names() {
		input := inputOf(bundle, name)
		if input == nil {
			continue
		}
		if value, isOwn := g.own[name]; isOwn {
			values[name] = value
			continue
		}
		value, err := bundles.ParseInput(*input, g.texts[name].value)
		if err != nil {
			return nil, fmt.Sprintf("%s: %v", g.texts[name].from, err)
		}
		values[name] = value
	}
	resolved, problems := bundles.Resolve(bundle, values)
	if len(problems) > 0 {
		return nil, fmt.Sprintf("spec.inputs: %s", strings.Join(problems, "; "))
	}
	return resolved, ""
}

// decode reads JSON and keeps its numbers exact.
func decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// sameJSON tells whether two texts of JSON have one value, however it is written:
// the API server writes it anew.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	left, errLeft := decode(a)
	right, errRight := decode(b)
	return errLeft == nil && errRight == nil && sameValue(left, right)
}

func sameValue(a, b any) bool {
	switch left := a.(type) {
	case map[string]any:
		right, ok := b.(map[string]any)
		return ok && maps.EqualFunc(left, right, sameValue)
	case []any:
		right, ok := b.([]any)
		return ok && slices.EqualFunc(left, right, sameValue)
	case json.Number:
		right, ok := b.(json.Number)
		return ok && sameNumber(left.String(), right.String())
	}
	return a == b
}

// sameNumber compares numbers exactly, but for those whose exponent is so large that
// they would be long to write out.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	const most = 64
	if len(a) > most || len(b) > most || strings.ContainsAny(a+b, "eE") {
		x, _, errX := big.ParseFloat(a, 10, 256, big.ToNearestEven)
		y, _, errY := big.ParseFloat(b, 10, 256, big.ToNearestEven)
		return errX == nil && errY == nil && x.Cmp(y) == 0
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}
