// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

// Before returns the bundle of a version that another one is entered from, as its
// upgradesFrom says; nil where there is none, or two.
func Before(all []*v1alpha1.ApplicationBundle, bundle *v1alpha1.ApplicationBundle, version string) *v1alpha1.ApplicationBundle {
	have, err := semver.NewVersion(version)
	if err != nil || !slices.ContainsFunc(bundle.Spec.UpgradesFrom, func(text string) bool {
		constraint, err := semver.NewConstraint(text)
		return err == nil && constraint.Check(have)
	}) {
		return nil
	}
	var found *v1alpha1.ApplicationBundle
	for _, other := range all {
		if other.Spec.Family != bundle.Spec.Family || catalogue.Plain(other.Spec.Version) != catalogue.Plain(version) {
			continue
		}
		if found != nil {
			return nil
		}
		found = other
	}
	return found
}

// Left returns what a layer lists at the version of one request and not at that of the
// next, both of the same layer: what whoever published the next version has left out. The
// inputs are those of the next; where the layer cannot be rendered with them at the earlier
// version, it is not known what was left out, and the error says why.
func Left(next, earlier Request) ([]directories.Manifest, error) {
	after, err := Render(next)
	if err != nil {
		return nil, err
	}
	if earlier.Inputs, err = inputsFor(earlier.Bundle, next.Inputs); err != nil {
		return nil, err
	}
	before, err := Render(earlier)
	if err != nil {
		return nil, err
	}
	listed := map[objects.ID]bool{}
	for _, manifest := range after {
		listed[manifest.ID()] = true
	}
	return slices.DeleteFunc(before, func(m directories.Manifest) bool { return listed[m.ID()] }), nil
}

// inputsFor returns those of some inputs that a bundle has.
func inputsFor(bundle *v1alpha1.ApplicationBundle, given *apiextensionsv1.JSON) (*apiextensionsv1.JSON, error) {
	values, err := decodeObject(given)
	if err != nil {
		return nil, err
	}
	for name := range values {
		if !slices.ContainsFunc(bundle.Spec.Inputs, func(input v1alpha1.BundleInput) bool { return input.Name == name }) {
			delete(values, name)
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("inputs cannot be written: %w", err)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}
