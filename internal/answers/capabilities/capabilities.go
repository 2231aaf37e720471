// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capabilities says which capabilities there are, who claims them, and why a claim is
// where it is. It may import the rules of the controller, and reads nothing but what it is
// given.
package capabilities

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/capabilities"
)

// Offer is a provider as those see it who may claim.
type Offer struct {
	Name        string   `json:"name"`
	Capability  string   `json:"capability"`
	Description string   `json:"description"`
	Versions    []string `json:"versions"`
	Default     bool     `json:"default"`
	// Serves says whose claims are served.
	Serves string `json:"serves"`
	// Parameters is the schema of what a claim may give; null where it may give nothing.
	Parameters any `json:"parameters"`
	// Ready is the status of the condition, and Message what the controller says.
	Ready   string `json:"ready"`
	Message string `json:"message"`
	// Plugin is the program that serves new claims; null for a provider with templates.
	Plugin *v1alpha1.CapabilityPluginStatus `json:"plugin"`
	// Claims that are bound to it, as NAMESPACE/NAME.
	Claims []string `json:"claims"`
}

// Offers returns what there is of a capability; of all where it is empty. controller is the
// controller's namespace.
func Offers(s *snapshot.Snapshot, capability, controller string) []Offer {
	offers := []Offer{}
	for _, provider := range s.Providers {
		if capability != "" && !matches(provider.Spec.Capability, capability) {
			continue
		}
		offered := capabilities.Offered(provider)
		offer := Offer{
			Name: provider.Name, Capability: strings.ToLower(provider.Spec.Capability), Description: provider.Spec.Description,
			Versions: append([]string{}, offered.Versions...), Default: provider.Spec.Default, Serves: serves(provider.Spec, controller), Claims: []string{},
		}
		if offered.Parameters != nil {
			offer.Parameters = offered.Parameters.Schema
		}
		offer.Plugin = provider.Status.Plugin
		offer.Ready, offer.Message = said(provider.Status.Conditions, provider.Status.ObservedGeneration, provider.Generation)
		for _, claim := range s.Claims {
			if claim.Status.Provider == provider.Name {
				offer.Claims = append(offer.Claims, claim.Namespace+"/"+claim.Name)
			}
		}
		offers = append(offers, offer)
	}
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Capability, b.Capability), cmp.Compare(a.Name, b.Name))
	})
	return offers
}

// matches tells whether a capability is CATEGORY/TYPE, or of a category.
func matches(capability, wanted string) bool {
	category, _, _ := strings.Cut(capability, "/")
	return strings.EqualFold(capability, wanted) || strings.EqualFold(category, wanted)
}

// serves says whose claims a provider serves.
func serves(spec v1alpha1.CapabilityProviderSpec, controller string) string {
	if spec.AllowedNamespaces == nil {
		return "namespace " + capabilities.NamespaceOf(spec, controller)
	}
	if text := metav1.FormatLabelSelector(spec.AllowedNamespaces); text != "<none>" && text != "" {
		return "namespaces with " + text
	}
	return "all namespaces"
}

// said returns what the controller says of an object: that it has not looked at it where it
// has not.
func said(conditions []metav1.Condition, observed, generation int64) (ready, message string) {
	found := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	switch {
	case found == nil:
		return string(metav1.ConditionUnknown), "the controller has not looked at it"
	case observed < generation:
		return string(metav1.ConditionUnknown), "the controller has not looked at its latest generation"
	}
	return string(found.Status), found.Message
}

// Claim is a claim, and where it stands.
type Claim struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Capability string `json:"capability"`
	Wanted     string `json:"wanted"`
	Provider   string `json:"provider"`
	Version    string `json:"version"`
	Binding    string `json:"binding"`
	Ready      string `json:"ready"`
	Reason     string `json:"reason"`
	Message    string `json:"message"`
	// Outdated says what would be different if it were bound anew; empty for nothing.
	Outdated string `json:"outdated"`
	// BoundTo is the claim whose instance it has, as NAMESPACE/NAME; empty for one of its own.
	// Sharing are the claims that have this one's.
	BoundTo string   `json:"boundTo"`
	Sharing []string `json:"sharing"`
	// Rotation is the number of its passwords, and Rotating says until when those of before are
	// valid; empty where they are not.
	Rotation int64  `json:"rotation"`
	Rotating string `json:"rotating"`
	// Layer that has it, and Releases that read its binding, in its namespace.
	Layer    string   `json:"layer"`
	Releases []string `json:"releases"`
	// Since is when Ready became what it is; null where that is not known.
	Since *metav1.Time `json:"since"`
}

// IsReady tells whether the claim has what it needs.
func (c Claim) IsReady() bool { return c.Ready == string(metav1.ConditionTrue) }

// Key returns the claim as NAMESPACE/NAME.
func (c Claim) Key() string { return c.Namespace + "/" + c.Name }

// Claims returns the claims of a cluster.
func Claims(s *snapshot.Snapshot) []Claim {
	claims := make([]Claim, 0, len(s.Claims))
	for _, of := range s.Claims {
		claims = append(claims, claimOf(s, of))
	}
	return claims
}

func claimOf(s *snapshot.Snapshot, of *v1alpha1.CapabilityClaim) Claim {
	claim := Claim{
		Namespace: of.Namespace, Name: of.Name, Capability: strings.ToLower(of.Spec.Capability), Wanted: of.Spec.Version,
		Provider: of.Status.Provider, Version: of.Status.Version, Layer: of.Labels[v1alpha1.LayerLabel], Releases: []string{},
		Sharing: []string{}, Rotation: of.Status.Rotation, Rotating: capabilities.RotatingOf(of),
	}
	if to := of.Status.BoundTo; to != nil {
		claim.BoundTo = to.Namespace + "/" + to.Name
	}
	for _, other := range s.Claims {
		if to := other.Status.BoundTo; to != nil && to.Namespace == of.Namespace && to.Name == of.Name {
			claim.Sharing = append(claim.Sharing, other.Namespace+"/"+other.Name)
		}
	}
	if of.Status.Binding != nil {
		claim.Binding = of.Status.Binding.Name
	}
	claim.Ready, claim.Message = said(of.Status.Conditions, of.Status.ObservedGeneration, of.Generation)
	if ready := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		claim.Reason, claim.Since = ready.Reason, &ready.LastTransitionTime
	}
	if outdated := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.BindingOutdatedCondition); outdated != nil && outdated.Status == metav1.ConditionTrue {
		claim.Outdated = outdated.Message
	}
	for _, release := range s.Of(snapshot.Releases) {
		if capabilities.ReadsBinding(release, of) {
			claim.Releases = append(claim.Releases, release.GetName())
		}
	}
	return claim
}

// Why is all that there is to say of one claim.
type Why struct {
	Claim
	// Objects that it has.
	Objects []v1alpha1.Dependent `json:"objects"`
	// Candidates are the providers of the capability, and what speaks against each; of a
	// claim that is bound there are none, since nothing is chosen any more.
	Candidates []Candidate `json:"candidates"`
	// ToDo is what somebody can do.
	ToDo []string `json:"toDo"`
}

// Candidate is a provider that a claim may be bound to.
type Candidate struct {
	Provider string `json:"provider"`
	// Version that the claim would get; empty where it does not fit.
	Version string `json:"version"`
	// Against says why it does not fit; empty where it does.
	Against string `json:"against"`
}

// Explain says why a claim is where it is. controller is the controller's namespace.
func Explain(s *snapshot.Snapshot, of *v1alpha1.CapabilityClaim, controller string) Why {
	why := Why{Claim: claimOf(s, of), Objects: append([]v1alpha1.Dependent{}, of.Status.Objects...), Candidates: []Candidate{}, ToDo: []string{}}
	if of.Status.Provider == "" && of.Spec.BoundTo == nil {
		why.Candidates = candidates(s, of, controller)
	}
	why.ToDo = toDo(why, of)
	return why
}

// candidates judges each provider by the controller's own rules.
func candidates(s *snapshot.Snapshot, of *v1alpha1.CapabilityClaim, controller string) []Candidate {
	seeker := seekerOf(s, of, controller)
	found := []Candidate{}
	for _, provider := range providersOf(s) {
		if !strings.EqualFold(provider.Spec.Capability, of.Spec.Capability) {
			continue
		}
		version, against := seeker.Judge(provider)
		found = append(found, Candidate{Provider: provider.Name, Version: version, Against: against})
	}
	slices.SortFunc(found, func(a, b Candidate) int { return cmp.Compare(a.Provider, b.Provider) })
	return found
}

// toDo says what somebody can do about a claim.
func toDo(why Why, of *v1alpha1.CapabilityClaim) []string {
	var todo []string
	switch {
	case why.Reason == v1alpha1.ReasonDeletionBlocked && !of.DeletionTimestamp.IsZero():
		todo = append(todo, fmt.Sprintf(
			"if the data may go: kubectl --namespace %s annotate capabilityclaim %s %s=true", of.Namespace, of.Name, v1alpha1.ConfirmDeletionAnnotation,
		))
	case why.Reason == v1alpha1.ReasonAmbiguous && why.Layer == "":
		todo = append(todo, fmt.Sprintf(
			"name one: kubectl --namespace %s patch capabilityclaim %s --type merge --patch '{\"spec\":{\"provider\":\"NAME\"}}'", of.Namespace, of.Name,
		))
	case why.Reason == v1alpha1.ReasonAmbiguous:
		todo = append(todo, "name one in requires of the application, in the bundle or the Platform; or mark one of the providers as default")
	case why.Reason == v1alpha1.ReasonNotShared && of.Spec.BoundTo != nil:
		to, _ := capabilities.BoundTo(of)
		todo = append(todo, fmt.Sprintf("ask whoever has CapabilityClaim %s to allow the namespace %s: spec.allowedNamespaces", to, of.Namespace))
	case why.Reason == v1alpha1.ReasonNoProvider && len(why.Candidates) == 0:
		todo = append(todo, "ask a platform team for a CapabilityProvider of "+why.Capability)
	}
	if why.Outdated != "" {
		todo = append(todo, fmt.Sprintf(
			"to move it, or to see what that would do: kubectl strata capability move %s %s", why.Key(), cmp.Or(of.Spec.Provider, why.Provider),
		))
	}
	return todo
}

// Age returns for how long a claim is what it is; 0 where that is not known.
func (c Claim) Age(now time.Time) time.Duration {
	if c.Since == nil {
		return 0
	}
	return max(now.Sub(c.Since.Time), 0)
}
