// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/primaries"
)

// Shared is the claim whose instance serves another one, too. Its UID is recorded with its
// name: one that is made anew under the name is somebody else's.
type Shared struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Key returns the name of the claim with its namespace; empty for nil.
func (s *Shared) Key() types.NamespacedName {
	if s == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// Lender is a claim that another one is to be bound to, or is.
type Lender struct {
	// Claim is nil where there is none of the name.
	Claim *v1alpha1.CapabilityClaim
	// Bound is to whom it is bound; nil for nobody.
	Bound *Bound
}

// BoundTo returns the claim that a claim is to be bound to; false for none.
func BoundTo(claim *v1alpha1.CapabilityClaim) (types.NamespacedName, bool) {
	to := claim.Spec.BoundTo
	if to == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: cmp.Or(to.Namespace, claim.Namespace), Name: to.Name}, true
}

// Allows tells whether a claim lets those of a namespace with some labels be bound to it.
func Allows(claim *v1alpha1.CapabilityClaim, namespace string, labels map[string]string) bool {
	if claim.Namespace == namespace {
		return true
	}
	return claim.Spec.AllowedNamespaces != nil && selects(claim.Spec.AllowedNamespaces, labels)
}

// Borrow returns to whom a claim is bound that is to be bound to another one, or says why it
// cannot be. Of a claim that does not allow it nothing is told, not even whether it is there.
func (s Seeker) Borrow(of, from types.NamespacedName, lender Lender) (*Bound, *Problem) {
	lends := lender.Claim
	if lends == nil || !Allows(lends, s.Namespace, s.NamespaceLabels) {
		message := fmt.Sprintf("there is no CapabilityClaim %s that a claim of the namespace %s may be bound to: its spec.allowedNamespaces must select that",
			from, s.Namespace)
		if from.Namespace == s.Namespace {
			message = fmt.Sprintf("there is no CapabilityClaim %s to be bound to", from.Name)
		}
		return nil, &Problem{Reason: v1alpha1.ReasonNotShared, Message: message}
	}
	said := "CapabilityClaim " + from.String()
	stalled := func(message string) (*Bound, *Problem) {
		return nil, &Problem{Reason: v1alpha1.ReasonNotShared, Message: said + message, Stalled: true}
	}
	switch bound := lender.Bound; {
	case of == from:
		return stalled(" cannot be bound to itself")
	case lends.DeletionTimestamp != nil:
		return stalled(" is being deleted")
	case !strings.EqualFold(lends.Spec.Capability, s.Claim.Capability):
		return stalled(" is of " + lends.Spec.Capability + ", and not of " + s.Claim.Capability)
	case bound == nil:
		return nil, &Problem{Reason: v1alpha1.ReasonProgressing, Message: "waits for " + said + ", which nobody serves yet"}
	case bound.Shared != nil:
		return stalled(" has no instance of its own, but that of " + bound.Shared.Key().String())
	case s.Claim.Provider != "" && s.Claim.Provider != bound.Provider:
		return stalled(" is served by " + bound.Provider + ", and not by " + s.Claim.Provider)
	case s.Claim.Version != "" && highest([]string{bound.Version}, s.Claim.Version) == "":
		return stalled(" has " + bound.Version + ", and not " + s.Claim.Version)
	default:
		return &Bound{
			Claim: of.String(), Provider: bound.Provider, Version: bound.Version, Spec: bound.Spec,
			Shared: &Shared{Namespace: lends.Namespace, Name: lends.Name, UID: lends.UID},
		}, nil
	}
}

// Withdrawn says why a claim gets nothing new of the one that it is bound to; empty where it
// does, and where it is bound to none. What it has stays.
func (b *Bound) Withdrawn(seeker Seeker, lender Lender) string {
	if b.Shared == nil {
		return ""
	}
	said := "CapabilityClaim " + b.Shared.Key().String()
	switch lends := lender.Claim; {
	case lends == nil || lends.UID != b.Shared.UID:
		return said + " has gone"
	case !Allows(lends, seeker.Namespace, seeker.NamespaceLabels):
		return said + " is not for this namespace any more"
	case lender.Bound == nil || lender.Bound.Provider != b.Provider || lender.Bound.Version != b.Version:
		return said + " was bound to another provider, or another version of it"
	}
	return ""
}

// Elsewhere says of whom a claim is that is to be moved to the instance of another one, and to
// another provider.
func (b *Bound) Elsewhere() string {
	return fmt.Sprintf("CapabilityClaim %s, which spec.boundTo names, is served by %s", b.Shared.Key(), b.Provider)
}

// OutdatedShare says what a claim asks for that is served by the instance of another one, and
// would get if it were bound anew; empty for nothing.
func (b *Bound) OutdatedShare(claim *v1alpha1.CapabilityClaim) string {
	to, is := BoundTo(claim)
	switch {
	case !is:
		return "spec.boundTo names no claim any more"
	case to != b.Shared.Key():
		return "spec.boundTo names CapabilityClaim " + to.String()
	}
	return ""
}

// Borrowed returns the binding of a claim that is served by the instance of another one, with
// what that one's has; waits says why it cannot be made yet.
func Borrowed(claim *v1alpha1.CapabilityClaim, bound *Bound, content map[string][]byte, waits string) primaries.Object {
	made := primaries.Object{ID: BindingID, Of: bound.Provider, Inherits: true, Confidential: true, Waits: waits}
	if waits != "" {
		return made
	}
	data := make(map[string]any, len(content))
	for key, value := range content {
		data[key] = encoded(value)
	}
	made.Object = bindingSecret(claim, typeOf(claim), data)
	return made
}

// IsRotating tells whether a claim says that passwords of before are still valid.
func IsRotating(claim *v1alpha1.CapabilityClaim) bool {
	return meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha1.RotatingCondition)
}
