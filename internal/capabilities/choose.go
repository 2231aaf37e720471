// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/versions"
)

// maxTold is how many providers a message names.
const maxTold = 10

// Provider is one that there is, with its name and labels.
type Provider struct {
	Name   string
	Labels map[string]string
	Spec   v1alpha1.CapabilityProviderSpec
	// Blueprint as Understand returns it; nil where something is wrong with the provider.
	Blueprint *Blueprint
	// Lacks says why it is not known what the provider offers; empty where it is.
	Lacks string
}

// Seeker is who claims.
type Seeker struct {
	// Claim is what is wanted.
	Claim v1alpha1.CapabilityClaimSpec
	// Namespace of the claim, and its labels.
	Namespace       string
	NamespaceLabels map[string]string
	// Controller is the controller's namespace, which providers have that name none.
	Controller string
}

// Choice is what serves a claim.
type Choice struct {
	// Provider and Version; empty where none is chosen.
	Provider, Version string
	// Reason and Message say why none is; empty where one is.
	Reason  string
	Message string
}

// Choose returns the provider and the version for a claim: one that is named wins, of those
// that fit one that is marked default, and otherwise the only one. Where none fits it says of
// each why.
func Choose(seeker Seeker, providers []Provider) Choice {
	type candidate struct {
		Provider
		version string
	}
	var fitting []candidate
	var unfit []string
	known := 0
	for _, each := range slices.SortedFunc(slices.Values(providers), func(a, b Provider) int { return strings.Compare(a.Name, b.Name) }) {
		if !strings.EqualFold(each.Spec.Capability, seeker.Claim.Capability) {
			continue
		}
		known++
		version, why := seeker.Judge(each)
		if why != "" && each.Name == seeker.Claim.Provider {
			// Of the others it is of no interest that they are not the one that is named.
			return Choice{Reason: v1alpha1.ReasonNoProvider, Message: "CapabilityProvider " + each.Name + ", which is named, " + why}
		}
		if why != "" {
			unfit = append(unfit, each.Name+" "+why)
			continue
		}
		fitting = append(fitting, candidate{each, version})
	}
	if defaults := slices.DeleteFunc(slices.Clone(fitting), func(c candidate) bool { return !c.Spec.Default }); len(fitting) > 1 && len(defaults) > 0 {
		fitting = defaults
	}
	switch {
	case len(fitting) == 1:
		return Choice{Provider: fitting[0].Name, Version: fitting[0].version}
	case len(fitting) > 1:
		var names []string
		for _, each := range fitting {
			names = append(names, each.Name)
		}
		return Choice{
			Reason: v1alpha1.ReasonAmbiguous,
			Message: fmt.Sprintf("%d providers of %s fit: %s. Name one in spec.provider, or mark one as default",
				len(names), seeker.Claim.Capability, told(names)),
		}
	case known == 0:
		return Choice{Reason: v1alpha1.ReasonNoProvider, Message: "there is no provider of " + seeker.Claim.Capability}
	}
	return Choice{Reason: v1alpha1.ReasonNoProvider, Message: fmt.Sprintf("no provider of %s fits: %s", seeker.Claim.Capability, told(unfit))}
}

// told lists some of many.
func told(all []string) string {
	if len(all) <= maxTold {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:maxTold], "; "), len(all)-maxTold)
}

// Judge returns the version that a provider of the capability has for a claim, or why it has
// none.
func (s Seeker) Judge(provider Provider) (version, why string) {
	claim := s.Claim
	if claim.Provider != "" && claim.Provider != provider.Name {
		return "", "is not " + claim.Provider + ", which is named"
	}
	if provider.Lacks != "" {
		return "", provider.Lacks
	}
	if provider.Blueprint == nil {
		return "", "has mistakes in its specification, which its status names"
	}
	if !s.isServedBy(provider.Spec) {
		return "", "does not serve this namespace"
	}
	if allowed := provider.Spec.AllowedClusters; len(allowed) > 0 && !slices.Contains(allowed, claim.Cluster) {
		return "", "serves claims of the clusters " + told(allowed) + ", and not of " + cmp.Or(claim.Cluster, "the one that Strata runs in")
	}
	there := cmp.Or(claim.ClusterNamespace, s.Namespace)
	if allowed := provider.Spec.AllowedClusterNamespaces; claim.Cluster != "" && len(allowed) > 0 && !slices.Contains(allowed, there) {
		return "", "serves claims of the namespaces " + told(allowed) + " of that cluster, and not of " + there
	}
	if claim.ProviderSelector != nil && !selects(claim.ProviderSelector, provider.Labels) {
		return "", "has not the labels of providerSelector"
	}
	if len(provider.Spec.Versions) == 0 && claim.Version != "" {
		return "", "has no versions, and not " + claim.Version
	}
	if version = highest(provider.Spec.Versions, claim.Version); version == "" && len(provider.Spec.Versions) > 0 {
		return "", fmt.Sprintf("has %s, and not %s", strings.Join(provider.Spec.Versions, ", "), claim.Version)
	}
	if _, problem := provider.Blueprint.Parameters(claim); problem != "" {
		return "", problem
	}
	return version, ""
}

// isServedBy tells whether a provider serves the claims of the seeker's namespace.
func (s Seeker) isServedBy(provider v1alpha1.CapabilityProviderSpec) bool {
	if provider.AllowedNamespaces == nil {
		return s.Namespace == NamespaceOf(provider, s.Controller)
	}
	return selects(provider.AllowedNamespaces, s.NamespaceLabels)
}

// NamespaceOf returns the namespace of a provider; the controller's where it names none.
func NamespaceOf(provider v1alpha1.CapabilityProviderSpec, controller string) string {
	return cmp.Or(provider.Namespace, controller)
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

// highest returns the highest version that a range takes; of those that are no semantic
// versions, only one that is named exactly.
func highest(all []string, wanted string) string {
	taken := slices.DeleteFunc(slices.Clone(all), func(version string) bool {
		return wanted != "" && version != wanted && (!versions.IsRange(wanted) || !versions.RangeTakes(wanted, version))
	})
	if len(taken) == 0 {
		return ""
	}
	return slices.MaxFunc(taken, func(a, b string) int {
		x, y := versions.Semantic(a), versions.Semantic(b)
		if x == nil || y == nil {
			return cmp.Compare(a, b)
		}
		return x.Compare(y)
	})
}
