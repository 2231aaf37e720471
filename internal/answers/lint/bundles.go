// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/platforms"
)

// checkCatalogue says of bundles and applications what their controllers say, where
// all that they name is in the repository.
func (l *linter) checkCatalogue() {
	applications := map[string]*v1alpha1.HelmApplication{}
	l.bundles = map[string]*v1alpha1.ApplicationBundle{}
	for _, each := range l.objects {
		if each.GroupVersionKind() == v1alpha1.GroupVersion.WithKind("HelmApplication") {
			if typed, ok := as[v1alpha1.HelmApplication](each.Unstructured); ok {
				applications[typed.Name] = catalogue.WithDefaults(typed)
			}
		}
	}
	for _, each := range l.objects {
		switch each.GroupVersionKind() {
		case v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationBundleKind):
			typed, ok := as[v1alpha1.ApplicationBundle](each.Unstructured)
			if !ok {
				continue
			}
			l.bundles[typed.Name] = typed
			if hasAll(applications, bundles.Named(typed)) && oldwords.InBundle(typed) == "" { // which the schema has said
				for _, problem := range bundles.Check(typed, applications) {
					field, message := splitField(problem)
					l.add(ruleBundle, each.place, field, "", "%s", message)
				}
			}
		case v1alpha1.GroupVersion.WithKind("HelmApplication"):
			typed := applications[nameOf(each.Unstructured)]
			if typed == nil || oldwords.InApplication(typed) != "" || !hasAll(applications, required(typed)) {
				continue
			}
			for _, problem := range catalogue.Decide(catalogue.Observation{Now: l.Now, Application: typed, Catalogue: applications}).Status.Problems {
				l.add(ruleCatalogue, each.place, "spec.versions", "", "%s", problem)
			}
		}
	}
	l.checkPlatforms(applications)
}

// checkPlatforms says of Platforms why their own layers cannot be installed, and which of
// their inputs their bundle cannot take, where that is in the repository.
func (l *linter) checkPlatforms(applications map[string]*v1alpha1.HelmApplication) {
	all := slices.Collect(maps.Values(l.bundles))
	for _, each := range l.objects {
		if each.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.PlatformKind) {
			continue
		}
		typed, ok := as[v1alpha1.Platform](each.Unstructured)
		if !ok || oldwords.InPlatform(typed) != "" {
			continue
		}
		if inline, problem := platforms.InlineBundle(typed, applications); problem != "" && (inline == nil || hasAll(applications, bundles.Named(inline))) {
			field, message, _ := strings.Cut(problem, ": ")
			l.add(rulePlatform, each.place, field, "", "%s", message)
		}
		for _, problem := range platforms.CheckInputs(typed, all) {
			field, message, _ := strings.Cut(problem, ": ")
			l.add(rulePlatform, each.place, field, "", "%s", message)
		}
	}
}

// hasAll tells whether all applications are in the repository. Where none is, the
// catalogue is elsewhere.
func hasAll(applications map[string]*v1alpha1.HelmApplication, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return applications[name] == nil })
}

func required(app *v1alpha1.HelmApplication) []string {
	var names []string
	for _, version := range app.Spec.Versions {
		for _, dependency := range version.DependsOn {
			names = append(names, dependency.Name)
		}
	}
	return names
}

// splitField takes the field, which begins below spec, from a problem.
func splitField(problem string) (field, message string) {
	field, message, found := strings.Cut(problem, ": ")
	if !found || strings.Contains(field, " ") {
		return "spec", problem
	}
	return "spec." + field, message
}

// checkBundle checks what a layer says of the bundle that it comes from, where that
// is in the repository.
func (l *linter) checkBundle(each *layer) {
	bundle := l.bundles[each.Spec.Source.Name]
	if each.source.Kind != v1alpha1.ApplicationBundleKind || bundle == nil {
		return
	}
	name := strings.TrimPrefix(each.Spec.Source.Path, "./")
	if bundles.LayerOf(bundle, name) == nil {
		known := map[string]bool{}
		for _, of := range bundle.Spec.Layers {
			known[of.Name] = true
		}
		l.add(
			ruleBundle,
			each.place,
			"spec.source.path",
			each.label(),
			"ApplicationBundle %s has no layer %s%s",
			bundle.Name,
			name,
			near.Meant(name, slices.Sorted(maps.Keys(known))),
		)
	}
	given := map[string]any{}
	if each.Spec.Inputs != nil {
		if err := json.Unmarshal(each.Spec.Inputs.Raw, &given); err != nil {
			return // the schema has said so
		}
	}
	_, problems := bundles.Resolve(bundle, given)
	for _, problem := range problems {
		l.add(ruleBundle, each.place, "spec.inputs", each.label(), "%s", problem)
	}
}
