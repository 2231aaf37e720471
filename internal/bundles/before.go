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
)

// Before returns the bundle of a version that another one is entered from, as its
// upgradesFrom says; nil where there is none, or two. A version is entered from itself with
// other inputs.
func Before(all []*v1alpha1.ApplicationBundle, bundle *v1alpha1.ApplicationBundle, version string) *v1alpha1.ApplicationBundle {
	if catalogue.Plain(bundle.Spec.Version) == catalogue.Plain(version) {
		return bundle
	}
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

// RenderBefore returns what a layer lists at the version before the one that it is to have,
// with its inputs of now and all of its applications: what of that the next version does not
// list, its publisher has left out, or by a when has let the inputs do so. The error says why
// that is not known.
func RenderBefore(before Request) ([]directories.Manifest, error) {
	var err error
	if before.Inputs, err = inputsFor(before.Bundle, before.Inputs); err != nil {
		return nil, err
	}
	before.All = true
	return Render(before)
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
