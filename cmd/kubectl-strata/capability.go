// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/capabilities"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const capabilityLong = `Show which capabilities there are, such as a database, who claims them, and why
a claim is where it is.`

const capabilityListLong = `Show who has which capability, of which versions, and for whom: a line for each
CapabilityProvider.

SERVES says whose claims it serves, and CLAIMS counts those that are bound to it
in namespaces that you may see. -o json has the schema of the parameters, too.`

const capabilityListExamples = `  # All that there is
  kubectl strata capability list

  # Databases alone, or PostgreSQL
  kubectl strata capability list database
  kubectl strata capability list database/postgresql -o wide`

const capabilityClaimsLong = `Show CapabilityClaims, sorted by namespace and name: what applications need, and
who serves that.

WHY says what is waited for, what is wrong, or what would be different if the
claim were bound anew.

Exit codes:
  0  every claim shown has what it needs
  1  the claims cannot be shown
  2  a claim has not`

const capabilityClaimsExamples = `  # The claims of all namespaces
  kubectl strata capability claims

  # Those of one namespace, for who may see no others
  kubectl strata capability claims --namespace shop -o wide`

const capabilityWhyLong = `Say why a claim is where it is: which providers there are and what speaks
against each, by the controller's own rules; or how its objects fare, who reads
its binding, and what would be different if it were bound anew.

Exit codes:
  0  the claim has what it needs
  1  it cannot be shown
  2  it has not`

const capabilityWhyExamples = `  kubectl strata capability why shop/shop-db
  kubectl strata capability why shop-db --namespace shop -o json`

func newCapability(t *tool) *cobra.Command {
	return group("capability", "Show capabilities, and the claims of applications", capabilityLong,
		newCapabilityList(t), newCapabilityClaims(t), newCapabilityWhy(t), newCapabilityMove(t), newCapabilitySign(t), newCapabilityTest(t), newCapabilityPush(t))
}

func newCapabilityList(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "list [CATEGORY[/TYPE]]", Short: "Show who has which capability", Long: capabilityListLong, Example: capabilityListExamples,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return t.capabilityList(command.Context(), strings.Join(args, ""), output)
		},
	}
	console.OutputFlag(command, &output, "wide", "json", "yaml", "name")
	return command
}

func (t *tool) capabilityList(ctx context.Context, capability, output string) error {
	s, err := t.Cluster.ReadNeeding(ctx, metav1.NamespaceAll, snapshot.Providers, snapshot.Claims)
	if err != nil {
		return err
	}
	t.WarnUnread(s, "claims are counted as far as that goes")
	offers := capabilities.Offers(s, capability, t.Cluster.ControllerNamespace(ctx))
	switch output {
	case "json", "yaml":
		return t.PrintAs(output, offers)
	case "name":
		names := make([]string, 0, len(offers))
		for _, offer := range offers {
			names = append(names, offer.Name)
		}
		return t.PrintNames(snapshot.Providers, names)
	}
	columns := console.Columns("CAPABILITY", "PROVIDER", "VERSIONS:2", "DEFAULT:4", "SERVES:1", "CLAIMS:3", "READY", "WHY", "PLUG-IN", "DESCRIPTION")
	rows := printing.OfferRows(offers)
	if output != "wide" {
		columns, rows = console.Without(columns, rows, "PLUG-IN", "DESCRIPTION")
	}
	none := "No CapabilityProviders found."
	if len(s.Providers) > 0 {
		none = "Nobody has " + capability + "."
	}
	return t.Table(columns, rows, none)
}

func newCapabilityClaims(t *tool) *cobra.Command {
	var output, namespace string
	command := &cobra.Command{
		Use: "claims", Short: "Show what applications need, and who serves that", Long: capabilityClaimsLong, Example: capabilityClaimsExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return t.capabilityClaims(command.Context(), namespace, output)
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "show claims of this namespace alone")
	console.OutputFlag(command, &output, "wide", "json", "yaml", "name")
	return command
}

func (t *tool) capabilityClaims(ctx context.Context, namespace, output string) error {
	s, err := t.Cluster.ReadNeeding(ctx, namespace, snapshot.Claims, snapshot.Releases)
	if err != nil {
		return err
	}
	t.WarnUnread(s, "who reads bindings is shown as far as that goes")
	claims := capabilities.Claims(s)
	if err := t.printClaims(claims, s.Now, output); err != nil {
		return err
	}
	if slices.ContainsFunc(claims, func(claim capabilities.Claim) bool { return !claim.IsReady() }) {
		return console.ErrDiffers
	}
	return nil
}

func (t *tool) printClaims(claims []capabilities.Claim, now time.Time, output string) error {
	switch output {
	case "json", "yaml":
		return t.PrintAs(output, claims)
	case "name":
		names := make([]string, 0, len(claims))
		for _, claim := range claims {
			names = append(names, claim.Name)
		}
		return t.PrintNames(snapshot.Claims, names)
	}
	columns := console.Columns(
		"NAMESPACE", "NAME", "CAPABILITY:1", "WANTED:5", "PROVIDER", "VERSION:2", "READY", "AGE:3", "WHY", "BINDING:6", "LAYER:7", "RELEASES:8",
	)
	rows := printing.ClaimRows(claims, now)
	if output != "wide" {
		columns, rows = console.Without(columns, rows, "WANTED", "BINDING", "LAYER", "RELEASES")
	}
	return t.Table(columns, rows, "No CapabilityClaims found.")
}

func newCapabilityWhy(t *tool) *cobra.Command {
	var output, namespace string
	command := &cobra.Command{
		Use: "why [NAMESPACE/]NAME", Short: "Say why a claim is where it is", Long: capabilityWhyLong, Example: capabilityWhyExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			of, name := named(namespace, args[0])
			return t.capabilityWhy(command.Context(), of, name, output)
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "default", "the namespace of the claim")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

// claimOf reads a claim, and what may serve it.
func (t *tool) claimOf(ctx context.Context, namespace, name string) (*snapshot.Snapshot, *v1alpha1.CapabilityClaim, error) {
	s, err := t.Cluster.ReadNeeding(ctx, namespace, snapshot.Claims, snapshot.Releases)
	if err != nil {
		return nil, nil, err
	}
	var claim *v1alpha1.CapabilityClaim
	names := make([]string, 0, len(s.Claims))
	for _, each := range s.Claims {
		names = append(names, each.Name)
		if each.Name == name {
			claim = each
		}
	}
	if claim == nil {
		return nil, nil, console.NoSuch(snapshot.Claims, name, names)
	}
	// Providers and namespaces are of none themselves, and instances are shared by claims of
	// several.
	kinds := []snapshot.Part{snapshot.Providers, snapshot.Namespaces}
	shares := claim.Spec.AllowedNamespaces != nil || claim.Spec.BoundTo != nil
	if shares {
		kinds = append(kinds, snapshot.Claims)
	}
	beside, err := t.Cluster.ReadIn(ctx, metav1.NamespaceAll, kinds...)
	if err != nil {
		return nil, nil, err
	}
	t.WarnUnread(beside, "which providers fit, and who shares an instance, is shown as far as that goes")
	if s.Providers = beside.Providers; shares && len(beside.Claims) > 0 {
		s.Claims = beside.Claims
	}
	maps.Copy(s.Objects, beside.Objects)
	return s, claim, nil
}

// named returns the namespace and the name of a claim as somebody writes it.
func named(namespace, arg string) (of, name string) {
	if of, rest, found := strings.Cut(arg, "/"); found {
		return of, rest
	}
	return namespace, arg
}

func (t *tool) capabilityWhy(ctx context.Context, namespace, name, output string) error {
	s, claim, err := t.claimOf(ctx, namespace, name)
	if err != nil {
		return err
	}
	why := capabilities.Explain(s, claim, t.Cluster.ControllerNamespace(ctx))
	if output != "" {
		err = t.PrintAs(output, why)
	} else {
		err = t.printWhyClaim(why)
	}
	if err == nil && !why.IsReady() {
		return console.ErrDiffers
	}
	return err
}

// passwords says which passwords a claim has; nothing of the first ones.
func passwords(claim capabilities.Claim) string {
	switch {
	case claim.Rotating != "":
		return fmt.Sprintf("number %d; those of before are still valid: %s", claim.Rotation, claim.Rotating)
	case claim.Rotation > 0:
		return fmt.Sprintf("number %d", claim.Rotation)
	}
	return ""
}

func (t *tool) printWhyClaim(why capabilities.Why) error {
	t.Field("Claim", why.Key())
	t.Field("Capability", strings.TrimSpace(why.Capability+" "+why.Wanted))
	t.Field("Provider", orDash(strings.TrimSpace(why.Provider+" "+why.Version)))
	t.Field("Ready", why.Ready+": "+why.Message)
	t.Field("Outdated", why.Outdated)
	t.Field("Bound to", why.BoundTo)
	t.Field("Binding", why.Binding)
	t.Field("Passwords", passwords(why.Claim))
	t.Field("Shared by", strings.Join(why.Sharing, ", "))
	t.Field("Layer", why.Layer)
	t.Field("Read by", strings.Join(why.Releases, ", "))
	if len(why.Candidates) > 0 {
		console.Say(t.Out, "")
		if err := t.Screen.Table(t.Out, console.Columns("PROVIDER", "WOULD GET", "AGAINST IT"), printing.CandidateRows(why.Candidates)); err != nil {
			return err
		}
	}
	if len(why.Objects) > 0 {
		console.Say(t.Out, "")
		if err := t.Screen.Table(t.Out, console.Columns("ID", "OBJECT", "OF:1", "STATUS", "WHY"), printing.DependentRows(why.Objects)); err != nil {
			return err
		}
	}
	t.ToDo(why.ToDo)
	return nil
}
