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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/rollout"
)

// given is what a platform gives for the inputs of its bundle.
type given struct {
	// own are those of the specification, and texts those of ConfigMaps with where
	// each is from.
	own   map[string]any
	texts map[string]text
	// overrides are those of some clusters.
	overrides []override
	// with says which of them are in own; empty for none.
	with string
	// digest identifies all that is given, for whatever cluster.
	digest string
	// problem is what only the author can mend, and waits what is missing.
	problem, waits string
}

// inputsDigits is how many hexadecimal digits of a digest name inputs.
const inputsDigits = 8

// override are inputs of the clusters that it selects.
type override struct {
	selector labels.Selector
	inputs   map[string]any
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
	if found.problem = found.override(o.Platform.Spec.Overrides); found.problem != "" {
		return found
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
	found.digest = found.identify(o.Platform.Spec)
	return found
}

// override reads the inputs of some clusters, and says what is wrong with them.
func (g *given) override(all []v1alpha1.InputsOverride) string {
	for i, one := range all {
		selector, err := metav1.LabelSelectorAsSelector(&one.Selector)
		if err != nil {
			return fmt.Sprintf("spec.overrides[%d].selector: %v", i, err)
		}
		read := override{selector: selector}
		if err := utiljson.Unmarshal(one.Inputs.Raw, &read.inputs); err != nil {
			return fmt.Sprintf("spec.overrides[%d].inputs: must be an object", i)
		}
		g.overrides = append(g.overrides, read)
	}
	return ""
}

// on returns what is given for a cluster with some labels, and which overrides select it:
// clusters of the same are given the same.
func (g given) on(set labels.Set) (own given, key string) {
	for i, one := range g.overrides {
		if !one.selector.Matches(set) {
			continue
		}
		if key == "" {
			g.own = maps.Clone(g.own)
		}
		key += fmt.Sprintf(" %d", i)
		g.with += fmt.Sprintf(" with spec.overrides[%d]", i)
		maps.Copy(g.own, one.inputs)
	}
	return g, key
}

// identify returns what identifies all that is given, for whatever cluster.
func (g given) identify(spec v1alpha1.PlatformSpec) string {
	texts := map[string]string{}
	for name, text := range g.texts {
		texts[name] = text.value
	}
	var overrides []any
	for i, one := range g.overrides {
		overrides = append(overrides, []any{spec.Overrides[i].Selector, one.inputs})
	}
	written, err := json.Marshal([]any{g.own, texts, overrides})
	if err != nil {
		return "" // it was read from JSON
	}
	return digestOf(string(written), inputsDigits)
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
	for i, one := range g.overrides {
		for _, name := range slices.Sorted(maps.Keys(one.inputs)) {
			if !slices.ContainsFunc(of, func(b *v1alpha1.ApplicationBundle) bool { return inputOf(b, name) != nil }) {
				stray = append(stray, fmt.Sprintf("spec.overrides[%d].inputs.%s", i, name))
			}
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
		return nil, fmt.Sprintf("spec.inputs%s: %s", g.with, strings.Join(problems, "; "))
	}
	return resolved, ""
}

// maxStagedInputs bounds in bytes the inputs of a cluster that a layer can remember, twice:
// the annotations of an object have at most 256 KiB.
const maxStagedInputs = 64 << 10

// written writes the inputs of a cluster as its layers remember them.
func written(inputs map[string]any) (text, problem string) {
	data, err := json.Marshal(inputs)
	if err != nil {
		return "", fmt.Sprintf("inputs cannot be written: %v", err)
	}
	if len(data) > maxStagedInputs {
		return "", fmt.Sprintf("the inputs of a cluster have %d bytes; with rollout.stageInputs they may have %d", len(data), maxStagedInputs)
	}
	return string(data), ""
}

// CheckInputs says what is wrong with the inputs that a Platform gives itself, for the newest
// of some versions of its bundle that it asks for. What ConfigMaps give is not known to it:
// that an input is missing is no mistake where there are any.
func CheckInputs(platform *v1alpha1.Platform, all []*v1alpha1.ApplicationBundle) []string {
	o := Observation{Platform: platform, Bundles: all}
	bundle := o.wouldBe()
	if bundle == nil {
		return nil
	}
	own := platform.DeepCopy()
	own.Spec.InputsFrom = nil
	o.Platform = own
	given := givenOf(o)
	if given.problem != "" {
		return []string{given.problem}
	}
	var problems []string
	if stray := given.stray([]*v1alpha1.ApplicationBundle{bundle}); stray != "" {
		problems = append(problems, stray)
	}
	return append(problems, mistakes(given, platform, bundle, len(platform.Spec.InputsFrom) > 0)...)
}

// wouldBe returns the bundle that a new cluster would get, whatever its applications are and
// whichever Kubernetes it has; nil for none.
func (o Observation) wouldBe() *v1alpha1.ApplicationBundle {
	want := o.Platform.Spec.Bundle
	if want == nil {
		return nil
	}
	f := familyOf(o, want.Family)
	for i := range f.releases {
		f.releases[i].Uninstallable = ""
	}
	return f.find(rollout.Choose(rollout.Wish{Requested: want.Version, Bundles: f.releases}).Target)
}

// mistakes returns what is wrong with inputs that are given for a bundle, as they are and as each
// override has them. Where it is open, others may come from elsewhere, and none is missing.
func mistakes(given given, platform *v1alpha1.Platform, bundle *v1alpha1.ApplicationBundle, open bool) []string {
	if open {
		bundle = withoutRequired(bundle)
	}
	sets := []labels.Set{nil}
	for _, one := range platform.Spec.Overrides {
		sets = append(sets, one.Selector.MatchLabels)
	}
	var problems []string
	for _, set := range sets {
		one, _ := given.on(set)
		if _, problem := one.resolve(bundle); problem != "" && !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	return problems
}

// withoutRequired returns a bundle that can do without its inputs.
func withoutRequired(bundle *v1alpha1.ApplicationBundle) *v1alpha1.ApplicationBundle {
	bundle = bundle.DeepCopy()
	for i := range bundle.Spec.Inputs {
		bundle.Spec.Inputs[i].Required = false
	}
	return bundle
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
