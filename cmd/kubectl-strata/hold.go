// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/acts"
)

const holdLong = `Hold layers: nothing of them is applied, removed, adopted or corrected until
they are resumed, or until the time that --until gives. Their deletion goes on.

With --releases the HelmReleases of the layers are suspended, too, so that Flux
leaves them alone; resuming resumes exactly those.`

const holdExamples = `  # Until somebody resumes it
  kubectl strata hold base --reason "driver freeze"

  # Until Monday morning, with its releases
  kubectl strata hold base --reason "driver freeze" --until 2026-12-07T08:00:00Z --releases

  # All layers of a team, for four hours
  kubectl strata hold -l team=platform --reason "load test" --until 4h`

const resumeExamples = `  # One layer
  kubectl strata resume base

  # All layers of a team
  kubectl strata resume -l team=platform`

// newHold returns the command that holds layers.
func newHold(t *tool, out io.Writer) *cobra.Command {
	c := &choice{Console: t.Console}
	var reason, until string
	var releases bool
	command := &cobra.Command{
		Use: "hold LAYER...", Short: "Leave layers as they are", Long: holdLong, Example: holdExamples,
		RunE: func(command *cobra.Command, names []string) error {
			return c.hold(command.Context(), out, names, reason, until, releases)
		},
	}
	c.addFlags(command)
	command.Flags().StringVar(&reason, "reason", "", "why, for whoever wonders (required)")
	command.Flags().StringVar(&until, "until", "", "when the hold ends by itself: a time such as 2026-12-07T08:00:00Z, or a duration such as 4h")
	command.Flags().BoolVar(&releases, "releases", false, "suspend the HelmReleases of the layers, too")
	return command
}

func (c *choice) hold(ctx context.Context, out io.Writer, names []string, reason, until string, releases bool) error {
	if reason == "" && len(names) == 0 {
		return errors.New("it is not said which layers, and why: write kubectl strata hold LAYER --reason REASON")
	}
	if reason == "" {
		return errors.New("--reason is missing: say why, for whoever wonders")
	}
	if reason == "false" {
		return errors.New(`--reason cannot be "false", which the annotation takes for no hold`)
	}
	annotations, text, err := acts.HoldOf(reason, until, releases, time.Now())
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	_, layers, err := c.layers(ctx, names)
	if err != nil {
		return err
	}
	for i := range layers {
		if err := c.annotate(ctx, layers[i].GetName(), annotations); err != nil {
			return err
		}
		console.Say(out, "layer %s is held: %s", layers[i].GetName(), text)
	}
	return nil
}

// newResume returns the command that ends holds.
func newResume(t *tool, out io.Writer) *cobra.Command {
	c := &choice{Console: t.Console}
	command := &cobra.Command{
		Use: "resume LAYER...", Short: "End a hold on layers", Example: resumeExamples,
		Long: `End a hold on layers that annotations make, as kubectl strata hold does. A hold of
spec.hold stays: it is ended where the layer is written.`,
		RunE: func(command *cobra.Command, names []string) error { return c.resume(command.Context(), out, names) },
	}
	c.addFlags(command)
	return command
}

func (c *choice) resume(ctx context.Context, out io.Writer, names []string) error {
	_, layers, err := c.layers(ctx, names)
	if err != nil {
		return err
	}
	var stays []error
	for i := range layers {
		layer := &layers[i]
		_, held := layer.GetAnnotations()[v1alpha1.HoldAnnotation]
		if held {
			if err := c.annotate(ctx, layer.GetName(), acts.Unhold()); err != nil {
				return err
			}
		}
		switch specHold, _, _ := unstructured.NestedBool(layer.Object, "spec", "hold"); {
		case specHold:
			stays = append(stays, fmt.Errorf("layer %s stays held: its spec.hold is true; change that where the layer is written", layer.GetName()))
		case held:
			console.Say(out, "layer %s is resumed", layer.GetName())
		default:
			console.Say(out, "layer %s is not held", layer.GetName())
		}
	}
	return errors.Join(stays...)
}
