// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
)

const waitLong = `Wait until layers are in a state: deployed (at their present specification), held,
or gone. What changes on the way is shown.

Exit codes:
  0  all layers are in that state
  1  it cannot be said
  2  a layer was not in that state in time, or has failed in a way that only
     its author can mend`

const waitExamples = `  # In a script
  kubectl strata wait base apps --for deployed --timeout 10m

  # After kubectl delete
  kubectl strata wait base --for gone`

// goal is what a layer is waited for to be.
type goal struct {
	name string
	met  func(layer *v1alpha1.AddonsLayer) bool
}

var goals = []goal{
	{"deployed", func(layer *v1alpha1.AddonsLayer) bool {
		return layer.Status.State == v1alpha1.StateDeployed && layer.Status.ObservedGeneration == layer.Generation &&
			meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.ReadyCondition)
	}},
	{"held", func(layer *v1alpha1.AddonsLayer) bool { return layer.Status.State == v1alpha1.StateHold }},
	{"gone", func(*v1alpha1.AddonsLayer) bool { return false }},
}

func goalNamed(name string) (goal, error) {
	var names []string
	for _, known := range goals {
		if strings.EqualFold(known.name, name) {
			return known, nil
		}
		names = append(names, known.name)
	}
	return goal{}, fmt.Errorf("--for is %q: it must be one of %s", name, strings.Join(names, ", "))
}

// newWait returns the command that waits for layers.
func newWait(t *tool, out io.Writer) *cobra.Command {
	c := &choice{Console: t.Console}
	var what string
	var timeout time.Duration
	command := &cobra.Command{
		Use: "wait LAYER...", Short: "Wait until layers are deployed, held or gone", Long: waitLong, Example: waitExamples,
		RunE: func(command *cobra.Command, names []string) error {
			until, err := goalNamed(what)
			if err != nil {
				return err
			}
			if len(names) == 0 && c.selector == "" {
				return errors.New("name the layers, or give --selector")
			}
			if until.name == "gone" && c.selector == "" {
				return c.awaitGone(command.Context(), out, names, until, timeout)
			}
			objects, layers, err := c.layers(command.Context(), names)
			if err != nil {
				return err
			}
			return c.await(command.Context(), out, objects, namesOf(layers), until, timeout)
		},
	}
	c.addFlags(command)
	command.Flags().StringVar(&what, "for", "deployed", "what to wait for: deployed, held or gone")
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return command
}

// awaitGone waits for layers of which some may have gone already.
func (c *choice) awaitGone(ctx context.Context, out io.Writer, names []string, until goal, timeout time.Duration) error {
	client, err := c.Cluster.Dynamic()
	if err != nil {
		return err
	}
	return c.await(ctx, out, client.Resource(layerKind.Resource), names, until, timeout)
}

func namesOf(layers []unstructured.Unstructured) []string {
	names := make([]string, 0, len(layers))
	for i := range layers {
		names = append(names, layers[i].GetName())
	}
	return names
}

// await waits until the layers of some names are what a goal says, and shows what
// changes until then.
func (c *choice) await(ctx context.Context, out io.Writer, objects dynamic.ResourceInterface, names []string, until goal, timeout time.Duration) error {
	inTime, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w := &waiting{out: out, until: until, left: map[string]string{}}
	for _, name := range names {
		w.left[name] = ""
	}
	for {
		err := w.round(ctx, inTime, objects)
		switch {
		case err == nil && len(w.left) == 0:
			return nil
		case ctx.Err() == nil && inTime.Err() != nil:
			w.report(fmt.Sprintf("not %s within %s", until.name, timeout))
			return console.ErrBlocked
		case err != nil:
			return c.Explain(err, snapshot.Layers)
		}
		select {
		case <-inTime.Done():
		case <-time.After(watchAgain):
		}
	}
}

// watchAgain is how soon a watch that has ended begins anew.
const watchAgain = 500 * time.Millisecond

// waiting is what is waited for, and what was seen of it.
type waiting struct {
	out   io.Writer
	until goal
	// left holds the layers that are not what they are to be, with what was shown of
	// each last.
	left map[string]string
}

// round lists the layers and follows what changes, until all are as they are to be,
// the watch ends, or there is no more time.
func (w *waiting) round(ctx, inTime context.Context, objects dynamic.ResourceInterface) error {
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	slices.SortFunc(list.Items, byName)
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].GetName()] = true
		if err := w.saw(&list.Items[i]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.left)) {
		if !there[name] {
			if err := w.lost(name); err != nil {
				return err
			}
		}
	}
	if len(w.left) == 0 {
		return nil
	}
	if inTime.Err() != nil {
		return nil
	}
	watcher, err := objects.Watch(inTime, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case !ok || event.Type == "ERROR":
			return nil // the watch begins anew
		case event.Type == "DELETED":
			if _, waits := w.left[object.GetName()]; waits {
				if err := w.lost(object.GetName()); err != nil {
					return err
				}
			}
		default:
			if err := w.saw(object); err != nil {
				return err
			}
		}
		if len(w.left) == 0 {
			return nil
		}
	}
	return nil
}

// saw notes how a layer fares, and shows it where that is news.
func (w *waiting) saw(object *unstructured.Unstructured) error {
	last, waits := w.left[object.GetName()]
	if !waits {
		return nil
	}
	layer := &v1alpha1.AddonsLayer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, layer); err != nil {
		return fmt.Errorf("cannot understand layer %s: %w", object.GetName(), err)
	}
	row := summary.Of(layer, time.Now())
	text := strings.TrimSpace(fmt.Sprintf("%s %s %s", row.State, row.Ready, row.Why))
	if w.until.met(layer) {
		delete(w.left, layer.Name)
		console.Say(w.out, "layer %s is %s", layer.Name, w.until.name)
		return nil
	}
	// That it was deployed at an earlier look is no news to whoever waits for that.
	isOld := layer.Status.State == v1alpha1.StateDeployed && w.until.name == "deployed"
	if text != last && !isOld {
		w.left[layer.Name] = text
		console.Say(w.out, "layer %s: %s", layer.Name, text)
	}
	stalled := meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.StalledCondition) && layer.Status.ObservedGeneration == layer.Generation
	if stalled && w.until.name == "deployed" {
		return console.ErrBlocked
	}
	return nil
}

// lost notes that a layer is not there.
func (w *waiting) lost(name string) error {
	if w.until.name != "gone" {
		return fmt.Errorf("layer %s has gone", name)
	}
	delete(w.left, name)
	console.Say(w.out, "layer %s is gone", name)
	return nil
}

// report says which layers are left.
func (w *waiting) report(what string) {
	for _, name := range slices.Sorted(maps.Keys(w.left)) {
		console.Say(w.out, "layer %s is %s: %s", name, what, w.left[name])
	}
}
