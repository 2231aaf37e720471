// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/api/v1alpha1"
)

// WithDefaults returns an application whose versions have what all of them share: itself
// where they share nothing. The rules see no application without.
func WithDefaults(app *v1alpha1.HelmApplication) *v1alpha1.HelmApplication {
	if app.Spec.Defaults == nil {
		return app
	}
	whole := app.DeepCopy()
	for i := range whole.Spec.Versions {
		complete(&whole.Spec.Versions[i], whole.Spec.Defaults)
	}
	return whole
}

func complete(version *v1alpha1.HelmApplicationVersion, shared *v1alpha1.ApplicationContent) {
	if version.Chart == (v1alpha1.ChartSource{}) {
		version.Chart = *shared.Chart.DeepCopy()
	}
	version.ReleaseName = cmp.Or(version.ReleaseName, shared.ReleaseName)
	version.Namespace = cmp.Or(version.Namespace, shared.Namespace)
	version.Values = overlayJSON(shared.Values, version.Values)
	version.Parameters = byName(version.Parameters, shared.Parameters, func(p v1alpha1.Parameter) string { return p.Name })
	version.ServerSideApply = cmp.Or(version.ServerSideApply, shared.ServerSideApply)
	version.Interval = cmp.Or(version.Interval, shared.Interval)
	version.DriftDetection = cmp.Or(version.DriftDetection, shared.DriftDetection)
	if len(version.IgnoreDifferences) == 0 {
		version.IgnoreDifferences = slices.Clone(shared.IgnoreDifferences)
	}
	version.Ready, version.Timeout = cmp.Or(version.Ready, shared.Ready), cmp.Or(version.Timeout, shared.Timeout)
	name := func(r v1alpha1.ApplicationRequirement) string { return r.Name }
	version.DependsOn, version.Recommends = byName(version.DependsOn, shared.DependsOn, name), byName(version.Recommends, shared.Recommends, name)
	version.Requires = byName(version.Requires, shared.Requires, func(r v1alpha1.CapabilityRequirement) string { return r.Name })
	version.Provides = byName(version.Provides, shared.Provides, func(p v1alpha1.ProvidedCapability) string { return p.Name })
	if len(version.ValuesFrom) == 0 {
		version.ValuesFrom = slices.Clone(shared.ValuesFrom)
	}
	version.KubeVersion = cmp.Or(version.KubeVersion, shared.KubeVersion)
}

// byName returns what is shared, and what a version has itself instead or besides.
func byName[T any](own, shared []T, name func(T) string) []T {
	var all []T
	for _, one := range shared {
		if !slices.ContainsFunc(own, func(other T) bool { return name(other) == name(one) }) {
			all = append(all, one)
		}
	}
	return append(all, own...)
}

// overlayJSON is Overlay of JSON. What is no JSON stays as it
// is: who reads it says so.
func overlayJSON(under, over *apiextensionsv1.JSON) *apiextensionsv1.JSON {
	if under == nil || over == nil {
		return cmp.Or(over, under)
	}
	var below, above map[string]any
	if utiljson.Unmarshal(under.Raw, &below) != nil || utiljson.Unmarshal(over.Raw, &above) != nil {
		return over
	}
	raw, err := json.Marshal(Overlay(below, above))
	if err != nil {
		return over
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// Overlay returns values with others over them, as Helm puts them together: objects
// field by field, all else as a whole. A null stays, so that Helm takes back what
// the chart itself has there. Neither is changed.
func Overlay(under, over map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(under)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range over {
		above, isObject := value.(map[string]any)
		below, wasObject := merged[key].(map[string]any)
		if isObject && wasObject {
			merged[key] = Overlay(below, above)
			continue
		}
		merged[key] = runtime.DeepCopyJSONValue(value)
	}
	return merged
}
