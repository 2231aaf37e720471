// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/reach"
)

const whyLong = `Say why a layer is not deployed: the root cause, and not the symptom. Causes are
followed through other layers, HelmReleases and what Helm says, down to the Pod
that is not ready, and what its events say.

Beside it: since when and until when, what else waits for it, and what to try. Of a
layer that is deployed it says what is notable.

What a layer has on another cluster is followed there too, by the kubeconfig that
Strata keeps for that, where you may read its Secret. --remote=false asks no other
cluster.

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
	remote := remoteFlags{}
	command := &cobra.Command{
		Use: "why LAYER", Short: "Say why a layer is not deployed", Long: whyLong, Example: whyExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			o, err := remote.options(t)
			if err != nil {
				return err
			}
			return t.why(command.Context(), names[0], o, output)
		},
	}
	remote.add(command)
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

// remoteFlags say how causes are followed to other clusters.
type remoteFlags struct {
	remote bool
	ranges []string
	// selector chooses the layers that are judged; empty for all.
	selector string
}

func (r *remoteFlags) addSelector(command *cobra.Command) {
	command.Flags().StringVarP(&r.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
}

func (r *remoteFlags) add(command *cobra.Command) {
	r.addTo(command, "follow causes to other clusters, where you may read their kubeconfigs")
}

// addTo adds the flags to a command that asks other clusters for something.
func (r *remoteFlags) addTo(command *cobra.Command, what string) {
	command.Flags().BoolVar(&r.remote, "remote", true, what)
	command.Flags().StringSliceVar(&r.ranges, "allowed-cluster-ranges", nil,
		"the addresses that other clusters may have, such as 10.0.0.0/8; without any, all but special ones such as loopback")
}

func (r *remoteFlags) options(t *tool) (gather.WhyOptions, error) {
	o := gather.WhyOptions{Program: t.program(), Stay: !r.remote}
	if r.selector != "" {
		wanted, err := labels.Parse(r.selector)
		if err != nil {
			return o, errSelector
		}
		o.Wanted = wanted
	}
	var err error
	o.Allowed, err = r.allowed()
	return o, err
}

// allowed returns where other clusters may be.
func (r *remoteFlags) allowed() (reach.Allowed, error) {
	var found reach.Allowed
	for _, text := range r.ranges {
		parsed, err := reach.ParseRange(strings.TrimSpace(text))
		if err != nil {
			return found, fmt.Errorf("--allowed-cluster-ranges: %w", err)
		}
		found.Ranges = append(found.Ranges, parsed)
	}
	return found, nil
}

func (t *tool) why(ctx context.Context, name string, o gather.WhyOptions, output string) error {
	s, err := t.Cluster.Read(ctx, gather.WhyParts...)
	if err != nil {
		return err
	}
	layer := s.Layer(name)
	if layer == nil {
		return console.NoLayer(s, name)
	}
	if s, err = t.Cluster.Open(ctx, s, layer); err != nil {
		return err
	}
	t.WarnUnread(s, "what they say is not known")
	answer, err := t.Cluster.Why(ctx, s, layer, o)
	if err != nil {
		return err
	}
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
