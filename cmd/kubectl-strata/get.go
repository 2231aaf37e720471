// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/summary"
)

// layerResource is what the API server calls layers.
var layerResource = v1alpha1.GroupVersion.WithResource("addonslayers")

const getLong = `Show layers, sorted by name.

READY counts the releases that are ready, of those that must be. SINCE is
for how long the layer has been ready, or has not been. WHY says what it
waits for, or what is wrong.

Exit codes:
  0  every layer shown is deployed, or gets there by itself
  1  the layers cannot be shown
  2  a layer is blocked or failed: it is held; it waits for its source, for
     a version of Kubernetes or for another layer; it cannot be deleted; or
     the controller has not looked at its latest generation`

const getExamples = `  # All layers
  kubectl strata get

  # Two of them, with source, path and the whole of their messages
  kubectl strata get bootstrap base -o wide

  # Follow those with a label
  kubectl strata get -l team=platform --watch

  # Their names, for other commands
  kubectl strata get -o name`

// getOptions are what the flags of get say.
type getOptions struct {
	flags    *genericclioptions.ConfigFlags
	names    []string
	selector string
	output   string
	watch    bool
}

func newGet(flags *genericclioptions.ConfigFlags, out io.Writer) *cobra.Command {
	o := &getOptions{flags: flags}
	command := &cobra.Command{
		Use:     "get [LAYER...]",
		Short:   "Show where layers stand, and why",
		Long:    getLong,
		Example: getExamples,
		RunE: func(command *cobra.Command, args []string) error {
			o.names = args
			return o.run(command.Context(), out)
		},
	}
	command.Flags().StringVarP(&o.output, "output", "o", "", "one of wide, json, yaml, name")
	command.Flags().StringVarP(&o.selector, "selector", "l", "", "show layers with these labels, for example team=platform")
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on showing what changes, until Ctrl-C")
	return command
}

func (o *getOptions) run(ctx context.Context, out io.Writer) error {
	if len(o.names) > 0 && o.selector != "" {
		return errors.New("give names or --selector, not both")
	}
	printer, err := newPrinter(o.output, out, len(o.names) == 1 || o.watch)
	if err != nil {
		return err
	}
	client, err := newClient(o.flags)
	if err != nil {
		return err
	}
	layers := client.Resource(layerResource)
	found, err := o.read(ctx, layers)
	if err != nil && len(found.Items) == 0 {
		return explain(err, o.flags)
	}
	if printErr := printer.print(found.Items); printErr != nil {
		return printErr
	}
	if err != nil {
		return explain(err, o.flags)
	}
	if o.watch {
		if err := o.follow(ctx, layers, found, printer); err != nil {
			return explain(err, o.flags)
		}
	}
	return printer.verdict()
}

// read returns the layers asked for, sorted by name. When some of them do not
// exist, it returns the others with the error.
func (o *getOptions) read(ctx context.Context, layers dynamic.ResourceInterface) (*unstructured.UnstructuredList, error) {
	found := &unstructured.UnstructuredList{}
	if len(o.names) == 0 || o.watch {
		list, err := layers.List(ctx, metav1.ListOptions{LabelSelector: o.selector})
		if err != nil {
			return found, err
		}
		found = list
	}
	var missing error
	if len(o.names) > 0 {
		found.Items, missing = o.byName(ctx, layers, found.Items)
	}
	slices.SortFunc(found.Items, byName)
	return found, missing
}

// byName returns the layers that are named, from a list or one by one, so that
// the right to list is not needed.
func (o *getOptions) byName(ctx context.Context, layers dynamic.ResourceInterface, listed []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	names := slices.Compact(slices.Sorted(slices.Values(o.names)))
	var found []unstructured.Unstructured
	var problems []error
	for _, name := range names {
		if at := slices.IndexFunc(listed, func(layer unstructured.Unstructured) bool { return layer.GetName() == name }); at >= 0 {
			found = append(found, listed[at])
			continue
		}
		layer, err := layers.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, missing(ctx, layers, name, err))
		case err != nil:
			return found, err
		default:
			found = append(found, *layer)
		}
	}
	return found, errors.Join(problems...)
}

// missing says which layers there are in place of one that does not exist. A
// list that fails tells of a cluster without layers.
func missing(ctx context.Context, layers dynamic.ResourceInterface, name string, notFound error) error {
	list, err := layers.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return err
	}
	if err != nil || len(list.Items) == 0 {
		return &missingError{name: name, cause: notFound}
	}
	var names []string
	for _, layer := range list.Items {
		names = append(names, layer.GetName())
	}
	return &missingError{name: name, near: summary.Near(name, names), cause: notFound}
}

// missingError is a layer that does not exist.
type missingError struct {
	name  string
	near  []string
	cause error
}

// Error suggests what may have been meant.
func (e *missingError) Error() string {
	if len(e.near) > 0 {
		return fmt.Sprintf("there is no layer %s; did you mean %s?", e.name, strings.Join(e.near, " or "))
	}
	return fmt.Sprintf("there is no layer %s; kubectl strata get lists those there are", e.name)
}

// Unwrap returns the API server's answer.
func (e *missingError) Unwrap() error { return e.cause }

func byName(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) }

// rowOf returns the row of a layer as the API server sent it.
func rowOf(object *unstructured.Unstructured, now time.Time) (summary.Row, error) {
	layer := &v1alpha1.AddonsLayer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, layer); err != nil {
		return summary.Row{}, fmt.Errorf("cannot understand layer %s: %w", object.GetName(), err)
	}
	return summary.Of(layer, now), nil
}
