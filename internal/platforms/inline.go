// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/rollout"
)

// Layers that a platform has itself become a bundle that is named by its content, as picked
// applications do. Its versions have no order: each is gone to from any other, in windows
// and stages, and what it drops is guarded.

// inline decides which version of the platform's own layers each cluster has.
func (d *decider) inline() {
	d.give()
	d.family = d.inlineFamily()
	wanted := d.inlineBundle()
	for _, m := range d.members {
		d.settle(m)
	}
	if wanted == nil {
		d.target = d.Platform.Status.Version // which the clusters still have
		return
	}
	d.target = wanted.Spec.Version
	for _, m := range d.members {
		m.at = standpoint{m.sent, factsOf(d.Observation, m.target).Version}
		d.takeBackUnfit(m)
		one := way{Choice: rollout.Choice{Target: d.target}}
		if m.at.sent != d.target {
			if one.unfit = bundles.Unfit(wanted, d.Catalogue, m.at.kubernetes); one.unfit == "" {
				one.Path = []string{d.target}
			}
		}
		d.step(m, one)
	}
	d.rollOut()
}

// inlineName is the family of the bundles that are made of a platform's own layers.
func inlineName(platform *v1alpha1.Platform) string {
	return bundles.Name("layers", strings.ReplaceAll(platform.Name, ".", "-"))
}

// inlineFamily returns the bundles that were made of the platform's own layers.
func (d *decider) inlineFamily() family {
	f := family{name: inlineName(d.Platform), at: map[string]*v1alpha1.ApplicationBundle{}, twice: map[string]string{}}
	for _, bundle := range d.Bundles {
		if bundle.Spec.Family == f.name && bundle.Labels[v1alpha1.PlatformLabel] == d.Platform.Name && metav1.IsControlledBy(bundle, d.Platform) {
			f.at[catalogue.Plain(bundle.Spec.Version)] = bundle
		}
	}
	return f
}

// inlineBundle returns the bundle of the platform's layers as they are now, and adds it to
// the decision where it does not exist; nil where they cannot be installed, or what is given
// is not known.
func (d *decider) inlineBundle() *v1alpha1.ApplicationBundle {
	if d.given.problem+d.given.waits != "" {
		return nil
	}
	bundle, problem := inlineBundleOf(d.Platform, d.given)
	if problem == "" {
		problem = inlineProblem(bundle, d.Catalogue)
	}
	if problem != "" {
		d.stall(v1alpha1.ReasonInvalidSpec, "spec."+problem)
		return nil
	}
	if known := d.family.find(bundle.Spec.Version); known != nil {
		return known
	}
	d.family.at[bundle.Spec.Version] = bundle
	d.makeBundle(bundle)
	return bundle
}

// InlineBundle returns the bundle that is made of a Platform's own layers, without what
// ConfigMaps give, and what is wrong with it; nil where it has none.
func InlineBundle(platform *v1alpha1.Platform, entries map[string]*v1alpha1.HelmApplication) (bundle *v1alpha1.ApplicationBundle, problem string) {
	if len(platform.Spec.Layers) == 0 {
		return nil, ""
	}
	own := platform.DeepCopy()
	own.Spec.InputsFrom = nil
	given := givenOf(Observation{Platform: own})
	if given.problem != "" {
		return nil, given.problem
	}
	if bundle, problem = inlineBundleOf(platform, given); problem == "" {
		problem = inlineProblem(bundle, entries)
	}
	if problem != "" {
		problem = "spec." + problem
	}
	return bundle, problem
}

// inlineProblem says why the platform's layers cannot be installed; empty where they can.
func inlineProblem(bundle *v1alpha1.ApplicationBundle, entries map[string]*v1alpha1.HelmApplication) string {
	written := *bundle
	written.Labels = nil // it is checked as one that somebody has written
	if problems := bundles.Check(&written, entries); len(problems) > 0 {
		return problems[0]
	}
	return ""
}

func inlineBundleOf(platform *v1alpha1.Platform, given given) (bundle *v1alpha1.ApplicationBundle, problem string) {
	spec := v1alpha1.ApplicationBundleSpec{
		Description: "The layers that Platform " + platform.Name + " has itself.", Family: inlineName(platform), Version: "1.0.0",
		Layers: platform.Spec.Layers, Capabilities: platform.Spec.Capabilities,
	}
	if spec.Inputs, problem = given.inferred(); problem != "" {
		return nil, problem
	}
	bundle = madeBundle(platform, "", spec)
	digest, err := bundles.DigestOf(bundle)
	if err != nil {
		return nil, fmt.Sprintf("layers: %v", err)
	}
	digest = strings.TrimPrefix(digest, "sha256:")[:10]
	bundle.Name = bundles.Name(platform.Name, "layers", digest)
	bundle.Spec.Version = "1.0.0-h" + digest
	return bundle, ""
}

// keepInline keeps the bundles of the platform's own layers that a cluster is at, goes to, or
// goes back to.
func (d *decider) keepInline(used map[string]bool) {
	if len(d.Platform.Spec.Layers) == 0 {
		return
	}
	versions := []string{d.target}
	for _, m := range d.members {
		versions = append(versions, m.sent, m.current, m.next, versionIn(m.before))
	}
	for _, version := range versions {
		if bundle := d.family.find(version); bundle != nil {
			used[bundle.Name] = true
		}
	}
}

// inputName is what the name of an input looks like.
var inputName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)

// inferred returns the inputs that layers have of which nobody has said which they are: all
// that are given for some cluster, of the types of their values. A null has none.
func (g given) inferred() (inputs []v1alpha1.BundleInput, problem string) {
	types := map[string]v1alpha1.InputType{}
	where := map[string]string{}
	note := func(field, name string, value any) {
		is := typeOf(value)
		switch {
		case !inputName.MatchString(name):
			problem = fmt.Sprintf("%s: the name of an input must begin with a letter and go on with letters, digits and _: %q", field, cut(name, maxLabel))
		case is == "" || types[name] == is:
		case types[name] == "":
			types[name], where[name] = is, field
		case isNumber(types[name]) && isNumber(is):
			types[name] = v1alpha1.InputNumber
		default:
			problem = fmt.Sprintf("%s.%s: is of the type %s, and in spec.%s of the type %s", field, name, is, where[name], types[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.own)) {
		note("inputs", name, g.own[name])
	}
	for i, one := range g.overrides {
		for _, name := range slices.Sorted(maps.Keys(one.inputs)) {
			note(fmt.Sprintf("overrides[%d].inputs", i), name, one.inputs[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.texts)) {
		if types[name] == "" {
			note("inputsFrom", name, "")
		}
	}
	const most = 50 // of a bundle
	if len(types) > most {
		return nil, fmt.Sprintf("inputs: there are %d, and there may be %d", len(types), most)
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		inputs = append(inputs, v1alpha1.BundleInput{Name: name, Type: types[name]})
	}
	return inputs, problem
}

func isNumber(of v1alpha1.InputType) bool {
	return of == v1alpha1.InputInteger || of == v1alpha1.InputNumber
}

// typeOf returns the type of an input that has a value; empty for null.
func typeOf(value any) v1alpha1.InputType {
	switch value.(type) {
	case string:
		return v1alpha1.InputString
	case bool:
		return v1alpha1.InputBoolean
	case int64:
		return v1alpha1.InputInteger
	case float64:
		return v1alpha1.InputNumber
	case map[string]any:
		return v1alpha1.InputObject
	case []any:
		return v1alpha1.InputArray
	}
	return ""
}
