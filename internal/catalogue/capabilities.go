// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/versions"
)

// wrongRequires says what is wrong with the capabilities that a version requires, and with the
// values that come from them.
func wrongRequires(content v1alpha1.ApplicationContent) []string {
	var problems []string
	names := map[string]bool{}
	for _, requirement := range content.Requires {
		field := "requires[" + requirement.Name + "]"
		names[requirement.Name] = true
		if requirement.Capability == "" {
			problems = append(problems, field+".capability: is missing: name what is needed, such as database/postgresql")
		}
		if requirement.Version != "" && !versions.IsRange(requirement.Version) {
			problems = append(problems, fmt.Sprintf("%s.version: %q is no version and no range such as >=15", field, requirement.Version))
		}
		if _, err := metav1.LabelSelectorAsSelector(requirement.ProviderSelector); err != nil {
			problems = append(problems, fmt.Sprintf("%s.providerSelector: %v", field, err))
		}
		if _, err := metav1.LabelSelectorAsSelector(requirement.AllowedNamespaces); err != nil {
			problems = append(problems, fmt.Sprintf("%s.allowedNamespaces: %v", field, err))
		}
	}
	for _, provided := range content.Provides {
		field := "provides[" + provided.Name + "]"
		if _, wrong := capabilities.Understand(ProviderSpec(provided, "0.0.0", "")); len(wrong) > 0 {
			problems = append(problems, field+strings.TrimPrefix(wrong[0], "spec"))
		}
	}
	for i, value := range content.ValuesFrom {
		if !names[value.Capability] {
			problems = append(problems, fmt.Sprintf("valuesFrom[%d].capability: nothing is required as %s", i, value.Capability))
		}
	}
	return problems
}

// ProviderSpec returns what the provider says of a capability that an application has, which
// is of a version and lies in a namespace.
func ProviderSpec(provided v1alpha1.ProvidedCapability, version, namespace string) v1alpha1.CapabilityProviderSpec {
	spec := v1alpha1.CapabilityProviderSpec{
		Capability: provided.Capability, Versions: []string{cmp.Or(provided.Version, Plain(version))}, Default: provided.Default,
		Namespace: namespace, ServiceAccountName: provided.ServiceAccountName, AllowedNamespaces: provided.AllowedNamespaces,
	}
	for _, value := range provided.Publishes {
		spec.Publishes = append(spec.Publishes, v1alpha1.CapabilityValue{Key: value.Key, Value: value.Value})
	}
	return spec
}

// Requires returns what an application requires of what its version does and what a bundle
// refines of that, by name, or adds. The parameters of both are put together.
func Requires(version, refined []v1alpha1.CapabilityRequirement) []v1alpha1.CapabilityRequirement {
	all := slices.Clone(version)
	for _, over := range refined {
		at := slices.IndexFunc(all, func(r v1alpha1.CapabilityRequirement) bool { return r.Name == over.Name })
		if at < 0 {
			all = append(all, over)
			continue
		}
		of := all[at]
		if over.Capability != "" {
			of.Capability = over.Capability
		}
		if over.Version != "" {
			of.Version = over.Version
		}
		if over.Provider != "" {
			of.Provider = over.Provider
		}
		if over.ProviderSelector != nil {
			of.ProviderSelector = over.ProviderSelector
		}
		if over.BoundTo != nil {
			of.BoundTo = over.BoundTo
		}
		if over.AllowedNamespaces != nil {
			of.AllowedNamespaces = over.AllowedNamespaces
		}
		if over.Rotation != nil {
			of.Rotation = over.Rotation
		}
		if over.ClusterBinding != "" {
			of.ClusterBinding = over.ClusterBinding
		}
		of.Parameters = overlayJSON(of.Parameters, over.Parameters)
		all[at] = of
	}
	return all
}
