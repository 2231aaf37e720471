// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
)

var (
	reports = types.NamespacedName{Namespace: "reports", Name: "db"}
	orders  = types.NamespacedName{Namespace: "shop", Name: "orders"}
)

// lender is the claim shop/orders, which is served by cnpg 16.4.
func lender(change func(*capabilities.Lender)) capabilities.Lender {
	of := capabilities.Lender{
		Claim: &v1alpha1.CapabilityClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "orders-uid"},
			Spec: v1alpha1.CapabilityClaimSpec{
				Capability: "Database/PostgreSQL", AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"reads": "orders"}},
			},
		},
		Bound: &capabilities.Bound{Provider: "cnpg", Version: "16.4"},
	}
	if change != nil {
		change(&of)
	}
	return of
}

// A claim gets another one's instance where that one allows it, and learns nothing of it where
// it does not.
func TestBorrow(t *testing.T) {
	nothing := "there is no CapabilityClaim shop/orders that a claim of the namespace reports may be bound to: its spec.allowedNamespaces must select that"
	allowed := map[string]string{"reads": "orders"}
	for name, test := range map[string]struct {
		claim  v1alpha1.CapabilityClaimSpec
		labels map[string]string
		of     types.NamespacedName
		lender capabilities.Lender
		want   string
	}{
		"allowed":         {v1alpha1.CapabilityClaimSpec{Version: ">=16"}, allowed, reports, lender(nil), ""},
		"not allowed":     {v1alpha1.CapabilityClaimSpec{}, nil, reports, lender(nil), nothing},
		"nobody's":        {v1alpha1.CapabilityClaimSpec{}, allowed, reports, capabilities.Lender{}, nothing},
		"for nobody":      {v1alpha1.CapabilityClaimSpec{}, allowed, reports, lender(func(l *capabilities.Lender) { l.Claim.Spec.AllowedNamespaces = nil }), nothing},
		"no selector":     {v1alpha1.CapabilityClaimSpec{}, allowed, reports, lender(func(l *capabilities.Lender) { l.Claim.Spec.AllowedNamespaces.MatchLabels = map[string]string{"-": "!"} }), nothing},
		"its own":         {v1alpha1.CapabilityClaimSpec{}, nil, orders, lender(nil), "cannot be bound to itself"},
		"a neighbour":     {v1alpha1.CapabilityClaimSpec{}, nil, types.NamespacedName{Namespace: "shop", Name: "more"}, lender(nil), ""},
		"no neighbour":    {v1alpha1.CapabilityClaimSpec{}, nil, types.NamespacedName{Namespace: "shop", Name: "more"}, capabilities.Lender{}, "there is no CapabilityClaim orders to be bound to"},
		"other version":   {v1alpha1.CapabilityClaimSpec{Version: "<16"}, allowed, reports, lender(nil), "has 16.4, and not <16"},
		"other provider":  {v1alpha1.CapabilityClaimSpec{Provider: "rds"}, allowed, reports, lender(nil), "is served by cnpg, and not by rds"},
		"not served":      {v1alpha1.CapabilityClaimSpec{}, allowed, reports, lender(func(l *capabilities.Lender) { l.Bound = nil }), "which nobody serves yet"},
		"a borrower":      {v1alpha1.CapabilityClaimSpec{}, allowed, reports, lender(func(l *capabilities.Lender) { l.Bound.Shared = &capabilities.Shared{Namespace: "a", Name: "b"} }), "has no instance of its own, but that of a/b"},
		"going":           {v1alpha1.CapabilityClaimSpec{}, allowed, reports, lender(func(l *capabilities.Lender) { l.Claim.DeletionTimestamp = &metav1.Time{} }), "is being deleted"},
		"something else":  {v1alpha1.CapabilityClaimSpec{}, allowed, reports, lender(func(l *capabilities.Lender) { l.Claim.Spec.Capability = "database/mysql" }), "is of database/mysql, and not of database/postgresql"},
		"with own labels": {v1alpha1.CapabilityClaimSpec{}, map[string]string{"reads": "other"}, reports, lender(nil), nothing},
	} {
		test.claim.Capability = "database/postgresql"
		seeker := capabilities.Seeker{Claim: test.claim, Namespace: test.of.Namespace, NamespaceLabels: test.labels}
		bound, problem := seeker.Borrow(test.of, orders, test.lender)
		switch {
		case test.want == "" && (problem != nil || bound.Provider != "cnpg" || bound.Version != "16.4" || bound.Shared.UID != "orders-uid"):
			t.Errorf("%s: it is %+v, %+v", name, bound, problem)
		case test.want != "" && (problem == nil || !strings.Contains(problem.Message, test.want)):
			t.Errorf("%s: it says %+v", name, problem)
		}
	}
}

// Of a claim that is not the one that it was bound to, or not as it was, a claim gets nothing
// new.
func TestWithdrawn(t *testing.T) {
	bound := capabilities.Bound{Provider: "cnpg", Version: "16.4", Shared: &capabilities.Shared{Namespace: "shop", Name: "orders", UID: "orders-uid"}}
	seeker := capabilities.Seeker{Namespace: "reports", NamespaceLabels: map[string]string{"reads": "orders"}}
	for name, test := range map[string]struct {
		lender capabilities.Lender
		want   string
	}{
		"as it was":     {lender(nil), ""},
		"gone":          {capabilities.Lender{}, "has gone"},
		"made anew":     {lender(func(l *capabilities.Lender) { l.Claim.UID = "other" }), "has gone"},
		"withdrawn":     {lender(func(l *capabilities.Lender) { l.Claim.Spec.AllowedNamespaces = nil }), "is not for this namespace any more"},
		"elsewhere":     {lender(func(l *capabilities.Lender) { l.Bound.Provider = "rds" }), "was bound to another provider"},
		"a new version": {lender(func(l *capabilities.Lender) { l.Bound.Version = "17.2" }), "was bound to another provider, or another version of it"},
	} {
		if got := bound.Withdrawn(seeker, test.lender); got != test.want && (test.want == "" || !strings.Contains(got, test.want)) {
			t.Errorf("%s: it says %q", name, got)
		}
	}
	claim := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "more"}}
	for want, to := range map[string]*v1alpha1.CapabilityClaimReference{
		"": {Name: "orders"}, "spec.boundTo names no claim any more": nil, "spec.boundTo names CapabilityClaim a/orders": {Namespace: "a", Name: "orders"},
	} {
		claim.Spec.BoundTo = to
		if got := bound.OutdatedShare(claim); got != want {
			t.Errorf("of %+v it says %q", to, got)
		}
	}
}
