// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Bound is to whom a claim was bound, and what it was promised then. It is kept where only the
// controller writes: it says as whom is acted, and with which templates.
type Bound struct {
	// Claim as NAMESPACE/NAME, for people.
	Claim string `json:"claim"`
	// Provider and Version that were chosen.
	Provider string `json:"provider"`
	Version  string `json:"version,omitempty"`
	// Spec of the provider as it was then.
	Spec v1alpha1.CapabilityProviderSpec `json:"spec"`
	// Shared is the claim whose instance it is; nil for a claim with one of its own.
	Shared *Shared `json:"shared,omitempty"`
}

// Encode writes a record.
func (b Bound) Encode() ([]byte, error) { return json.Marshal(b) }

// Decode reads a record.
func Decode(data []byte) (*Bound, error) {
	bound := &Bound{}
	if err := json.Unmarshal(data, bound); err != nil {
		return nil, fmt.Errorf("cannot read the record of a binding: %w", err)
	}
	return bound, nil
}

// Outdated says what would change if a claim were bound anew to its provider; empty for
// nothing. A bound claim stays as it is, whatever happens to the provider: this is told, and
// no more. provider is nil where it has gone.
func Outdated(bound *Bound, claim v1alpha1.CapabilityClaimSpec, provider *Provider) string {
	if claim.BoundTo != nil {
		return "spec.boundTo names another claim"
	}
	if claim.Provider != "" && claim.Provider != bound.Provider {
		return fmt.Sprintf("spec.provider names CapabilityProvider %s", claim.Provider)
	}
	if provider == nil {
		return fmt.Sprintf("CapabilityProvider %s has gone", bound.Provider)
	}
	var reasons []string
	if fields := differing(bound.Spec, provider.Spec); len(fields) > 0 {
		reasons = append(reasons, fmt.Sprintf("CapabilityProvider %s has another %s", bound.Provider, strings.Join(fields, ", ")))
	}
	if claim.Version != "" && highest([]string{bound.Version}, claim.Version) == "" {
		reasons = append(reasons, fmt.Sprintf("spec.version asks for %s", claim.Version))
	}
	if best := highest(provider.Spec.Versions, claim.Version); best != "" && best != bound.Version {
		reasons = append(reasons, "it would get version "+best)
	}
	return strings.Join(reasons, "; ")
}

// differing returns the fields in which two specifications differ that concern an instance,
// in order. Which versions there are, and whom a provider serves, does not.
func differing(a, b v1alpha1.CapabilityProviderSpec) []string {
	var found []string
	fields := func(spec v1alpha1.CapabilityProviderSpec) map[string]any {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			return nil // of a type of the API, which can be converted
		}
		for _, beside := range []string{"versions", "default", "allowedNamespaces", "allowedClusters", "allowedClusterNamespaces", "description", "credentialsRef"} {
			delete(content, beside)
		}
		// The provider is asked for these as they are now.
		for _, now := range []string{"verify", "pullSecretRef", "memory", "egress"} {
			unstructured.RemoveNestedField(content, "plugin", now)
		}
		return content
	}
	was, is := fields(a), fields(b)
	for field := range was {
		if !equality.Semantic.DeepEqual(was[field], is[field]) {
			found = append(found, field)
		}
	}
	for field := range is {
		if _, both := was[field]; !both {
			found = append(found, field)
		}
	}
	slices.Sort(found)
	return found
}

// Move returns to whom a claim is bound that somebody has moved to a provider by the
// annotation; or says why it cannot be.
func Move(seeker Seeker, to string, bound *Bound, providers []Provider) (*Bound, string) {
	seeker.Claim.Provider, seeker.Claim.ProviderSelector = to, nil
	choice := Choose(seeker, providers)
	if choice.Reason != "" {
		return nil, choice.Message
	}
	moved := &Bound{Claim: bound.Claim, Provider: choice.Provider, Version: choice.Version}
	for _, provider := range providers {
		if provider.Name == choice.Provider {
			moved.Spec = provider.Spec
		}
	}
	return moved, ""
}
