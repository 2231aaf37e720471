// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/printable"
)

// Problem is what keeps a claim from being served.
type Problem struct {
	// Reason and Message of the condition Ready.
	Reason, Message string
	// Stalled is true where somebody has to do something.
	Stalled bool
}

// Outcome is what became of one look at a claim.
type Outcome struct {
	Claim *v1alpha1.CapabilityClaim
	// Bound is whom the claim is bound to; nil for nobody.
	Bound *Bound
	// Outdated says what would change if the claim were bound anew; empty for nothing. Refused
	// says why a move that was asked for cannot be.
	Outdated, Refused string
	// Rotation is the number of the passwords that the binding has, and Rotating says until
	// when those of before are valid; empty where they are not.
	Rotation int64
	Rotating string
	// Problem that stops all; nil for none.
	Problem *Problem
	// Kept is true where nothing was looked for of Objects: they are those of the status.
	Kept bool
	// Objects that the claim has, and where they stand.
	Objects   []v1alpha1.Dependent
	Standings []objects.Standing
}

// Status returns what the claim's status says.
func (o Outcome) Status(now time.Time) v1alpha1.CapabilityClaimStatus {
	claim := o.Claim
	status := v1alpha1.CapabilityClaimStatus{ObservedGeneration: claim.Generation, Objects: o.Objects, Rotation: o.Rotation}
	set := conditions.New(claim.Status.Conditions, claim.Generation, now)
	if o.Bound != nil {
		status.Provider, status.Version = o.Bound.Provider, o.Bound.Version
		if of := o.Bound.Shared; of != nil {
			status.BoundTo = &v1alpha1.CapabilityClaimReference{Namespace: of.Namespace, Name: of.Name}
		}
	}
	for _, object := range o.Objects {
		if object.ID == BindingID && object.Digest != "" {
			status.Binding = &v1alpha1.BindingReference{Name: object.Name}
		}
	}
	problem := o.problem(status)
	if problem == nil {
		served := fmt.Sprintf("is served by %s: the connection details are in Secret %s", o.bound(), status.Binding.Name)
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonBound, served)
	} else {
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, problem.Reason, problem.Message)
		kind := v1alpha1.ReconcilingCondition
		if problem.Stalled {
			kind = v1alpha1.StalledCondition
		}
		set.Put(kind, metav1.ConditionTrue, problem.Reason, problem.Message)
	}
	if o.Bound != nil {
		set.Put(v1alpha1.BoundCondition, metav1.ConditionTrue, v1alpha1.ReasonBound, "to "+o.bound())
	} else if problem != nil {
		set.Put(v1alpha1.BoundCondition, metav1.ConditionFalse, problem.Reason, problem.Message)
	}
	o.outdated(set)
	if o.Rotating != "" {
		set.Put(v1alpha1.RotatingCondition, metav1.ConditionTrue, v1alpha1.ReasonPreviousValid, saidOfPrevious+o.Rotating)
	}
	status.Conditions = set.List
	return status
}

// saidOfPrevious begins what a claim says while passwords of before are valid.
const saidOfPrevious = "the passwords of before are still valid: "

// RotatingOf returns until when passwords of before are valid, as a claim says; empty where
// they are not.
func RotatingOf(claim *v1alpha1.CapabilityClaim) string {
	said := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.RotatingCondition)
	if said == nil || said.Status != metav1.ConditionTrue {
		return ""
	}
	return strings.TrimPrefix(said.Message, saidOfPrevious)
}

// saidOfOutdated ends what a claim says of what would change if it were bound anew.
const saidOfOutdated = ". Nothing of it changes by itself: to move the claim, set the annotation " + v1alpha1.RebindAnnotation + " to the name of a provider"

// OutdatedOf returns what would change if a claim were bound anew, as it says; empty for nothing.
func OutdatedOf(claim *v1alpha1.CapabilityClaim) string {
	said := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.BindingOutdatedCondition)
	if said == nil || said.Reason != v1alpha1.ReasonProviderChanged {
		return ""
	}
	return strings.TrimSuffix(said.Message, saidOfOutdated)
}

// outdated says what a claim would have if it were bound anew, which it is by the annotation
// alone.
func (o Outcome) outdated(set *conditions.Set) {
	switch {
	case o.Refused != "":
		message := "cannot be moved as " + v1alpha1.RebindAnnotation + " says: " + o.Refused
		set.Put(v1alpha1.BindingOutdatedCondition, metav1.ConditionTrue, v1alpha1.ReasonMoveRefused, message)
	case o.Outdated != "":
		message := o.Outdated + saidOfOutdated
		set.Put(v1alpha1.BindingOutdatedCondition, metav1.ConditionTrue, v1alpha1.ReasonProviderChanged, message)
	}
}

func (o Outcome) bound() string {
	said := strings.TrimSpace(o.Bound.Provider + " " + o.Bound.Version)
	if of := o.Bound.Shared; of != nil {
		said += ", by the instance of CapabilityClaim " + of.Key().String()
	}
	return said
}

// problem returns what keeps the claim from being ready; nil for nothing.
func (o Outcome) problem(status v1alpha1.CapabilityClaimStatus) *Problem {
	if o.Problem != nil {
		return o.Problem
	}
	if !o.Claim.DeletionTimestamp.IsZero() {
		message := "is being deleted"
		if worst, found := primaries.Sum(o.Standings); found {
			message += ": " + worst.Message
		}
		return &Problem{Reason: v1alpha1.ReasonDeleting, Message: message}
	}
	worst, found := primaries.Sum(o.Standings)
	switch {
	case found && worst.Health == objects.Failed:
		return &Problem{Reason: v1alpha1.ReasonObjectFailed, Message: worst.Message}
	case found:
		return &Problem{Reason: v1alpha1.ReasonProgressing, Message: worst.Message}
	case status.Binding == nil:
		return &Problem{Reason: v1alpha1.ReasonProgressing, Message: "the binding has yet to be made"}
	}
	return nil
}

// maxProblems bounds how many problems of a provider its status has.
const maxProblems = 10

// Offered returns what a provider says, with what its status says of its plug-in: for people to
// see, since a status may be forged.
func Offered(provider *v1alpha1.CapabilityProvider) v1alpha1.CapabilityProviderSpec {
	spec := *provider.Spec.DeepCopy()
	if spec.Plugin != nil {
		spec.Versions, spec.Parameters = provider.Status.Versions, provider.Status.Parameters
	}
	return spec
}

// ProviderStatus returns what the status of a provider says, which so many claims are bound
// to. promised is its specification with what its plug-in says.
func ProviderStatus(
	provider *v1alpha1.CapabilityProvider,
	promised v1alpha1.CapabilityProviderSpec,
	problems []string,
	claims int32,
	now time.Time,
) v1alpha1.CapabilityProviderStatus {
	status := v1alpha1.CapabilityProviderStatus{ObservedGeneration: provider.Generation, Claims: claims}
	if promised.Plugin != nil {
		status.Versions, status.Parameters = promised.Versions, promised.Parameters
	}
	set := conditions.New(provider.Status.Conditions, provider.Generation, now)
	if len(problems) == 0 {
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonOffered, "offers "+strings.ToLower(provider.Spec.Capability))
	} else {
		told := problems[:min(len(problems), maxProblems)]
		if more := len(problems) - maxProblems; more > 0 {
			told = append(slices.Clone(problems[:maxProblems-1]), fmt.Sprintf("and %d more", more+1))
		}
		for _, problem := range told {
			status.Problems = append(status.Problems, printable.Line(problem, maxSaid))
		}
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonProblems, problems[0])
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonProblems, problems[0])
	}
	status.Conditions = set.List
	return status
}
