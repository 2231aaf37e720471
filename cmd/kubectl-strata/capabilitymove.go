// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/capabilities"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const capabilityMoveLong = `Bind a claim anew: to what its provider has become, or to another one. It first
shows what that does, by the controller's own rules, and asks.

make      the object is made
apply     it becomes as the provider's template has it now
keep      it stays as it is, data and all, until the claim goes
observe   somebody else has it, and it is waited for
conflict  it is there already and stays as it is, so that the claim would not be
          ready

Nothing is deleted, and no data are copied: that is up to whoever has them.

Exit codes:
  0  the claim is bound anew, or --dry-run has shown what that would do
  1  it cannot be
  2  an object is in the way, with --dry-run`

const capabilityMoveExamples = `  # What would become of a claim
  kubectl strata capability move shop/shop-db cnpg --dry-run

  # Move it, without being asked
  kubectl strata capability move shop/shop-db cnpg --yes`

// moving says how a claim is moved.
type moving struct {
	namespace, output string
	dryRun, yes       bool
}

func newCapabilityMove(t *tool) *cobra.Command {
	m := &moving{}
	command := &cobra.Command{
		Use: "move [NAMESPACE/]NAME PROVIDER", Short: "Bind a claim anew, and show what that does", Long: capabilityMoveLong, Example: capabilityMoveExamples,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			of, name := named(m.namespace, args[0])
			return t.capabilityMove(command.Context(), of, name, args[1], m)
		},
	}
	command.Flags().StringVarP(&m.namespace, "namespace", "n", "default", "the namespace of the claim")
	command.Flags().BoolVar(&m.dryRun, "dry-run", false, "show what would be done, and do nothing")
	command.Flags().BoolVar(&m.yes, "yes", false, "do not ask")
	console.OutputFlag(command, &m.output, "json", "yaml")
	return command
}

func (t *tool) capabilityMove(ctx context.Context, namespace, name, to string, m *moving) error {
	s, claim, err := t.claimOf(ctx, namespace, name)
	if err != nil {
		return err
	}
	if claim.Status.Provider == "" {
		return fmt.Errorf("CapabilityClaim %s/%s is bound to nobody yet, so that there is nothing to move: name the provider in its spec.provider", namespace, name)
	}
	move := capabilities.Moved(s, claim, to, t.Cluster.ControllerNamespace(ctx))
	if err := t.printMove(move, m.output); err != nil {
		return err
	}
	if move.Refused != "" {
		return errors.New(move.Refused)
	}
	if m.dryRun {
		if move.Conflicts() {
			return console.ErrDiffers
		}
		return nil
	}
	if !m.yes {
		if err := t.Confirm("Move it?", false); err != nil {
			return err
		}
	}
	client, err := t.Cluster.Dynamic()
	if err != nil {
		return err
	}
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RebindAnnotation, to)
	claims := client.Resource(snapshot.Claims.GroupVersionResource).Namespace(namespace)
	_, err = claims.Patch(ctx, name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: console.ActManager})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not change CapabilityClaim %s/%s; ask for the right to patch capabilityclaims.kraan.io: %w", namespace, name, err)
	}
	if err != nil {
		return t.Explain(err, snapshot.Claims)
	}
	if m.output == "" {
		console.Say(t.Out, "claim %s/%s is to be bound to %s; kubectl strata capability why %s/%s says how that gets on", namespace, name, to, namespace, name)
	}
	return nil
}

func (t *tool) printMove(move capabilities.Move, output string) error {
	if output != "" {
		return t.PrintAs(output, move)
	}
	if move.Refused != "" {
		return nil
	}
	t.Field("Claim", move.Claim)
	t.Field("From", move.From)
	t.Field("To", move.To)
	console.Say(t.Out, "")
	return t.Screen.Table(t.Out, console.Columns("VERB", "ID", "OF", "OBJECT", "NOTE"), printing.StepRows(move.Steps))
}
