// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/why"
)

const whyLong = `Say why a layer is not deployed: the root cause, and not the symptom. Causes are
followed through other layers, HelmReleases and what Helm says, down to the Pod
that is not ready, and what its events say.

Beside it: since when and until when, what else waits for it, and what to try. Of a
layer that is deployed it says what is notable. Objects on other clusters are not
read.

Exit codes:
  0  the layer is deployed, or gets there by itself
  1  it cannot be said
  2  the layer is blocked or failed`

const whyExamples = `  # The root cause
  kubectl strata why apps

  # The chain of causes, for other programs
  kubectl strata why apps -o json`

// newWhy returns the command that names root causes.
func newWhy(t *tool) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "why LAYER", Short: "Say why a layer is not deployed", Long: whyLong, Example: whyExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			return t.why(command.Context(), names[0], output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) why(ctx context.Context, name, output string) error {
	s, err := t.Cluster.Read(ctx, append([]snapshot.Part{snapshot.Layers, snapshot.Releases}, snapshot.Sources...)...)
	if err != nil {
		return err
	}
	layer := s.Layer(name)
	if layer == nil {
		return console.NoLayer(s, name)
	}
	answer := why.Of(s, layer)
	t.WarnUnread(s, "what they say is not known")
	if namespace, deeper := answer.Deeper(s); deeper {
		below, err := t.Cluster.ReadIn(ctx, namespace, why.Depths...)
		if err != nil {
			return err
		}
		t.WarnUnread(below, "the cause may lie deeper than is shown")
		answer = answer.Deepen(s, below)
	}
	values, _ := why.Values(s, layer)
	labels, err := t.Cluster.Labels(ctx, values)
	if err != nil {
		return err
	}
	answer = answer.Unwatched(s, layer, labels)
	answer = answer.Conclude(s, t.program())
	if output != "" {
		err = t.PrintAs(output, answer)
	} else {
		_, err = io.WriteString(t.Out, printing.Why(t.Screen, answer, s.Now))
	}
	if err == nil && answer.Blocked {
		return console.ErrBlocked
	}
	return err
}
