// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

const eventsLong = `Show what happened to a layer, its HelmReleases and their charts, and to what Helm
has made for them, with its Pods: the newest last.

The cluster keeps events for an hour or so. Those of objects on other clusters are
kept there, and are not read.

Exit codes:
  0  the events are shown; there may be none
  1  they cannot be shown`

const eventsExamples = `  # What happened to a layer
  kubectl strata events base

  # What goes wrong, as it happens
  kubectl strata events base --types Warning --watch`

// newEvents returns the command that shows what happened.
func newEvents(t *tool) *cobra.Command {
	o := &eventsOptions{tool: t}
	command := &cobra.Command{
		Use: "events LAYER", Short: "Show what happened to a layer and to all that is its", Long: eventsLong, Example: eventsExamples, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return o.run(command.Context(), names[0]) },
	}
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on showing what happens, until Ctrl-C")
	command.Flags().StringSliceVar(&o.types, "types", nil, "Normal, Warning or both, which is the default")
	console.OutputFlag(command, &o.output, "json", "yaml")
	return command
}

// eventsOptions are the flags of the command.
type eventsOptions struct {
	*tool
	watch  bool
	types  []string
	output string
}

func (o *eventsOptions) run(ctx context.Context, name string) error {
	for _, each := range o.types {
		if !strings.EqualFold(each, "Normal") && !strings.EqualFold(each, "Warning") {
			return fmt.Errorf("--types has %q: it must be Normal or Warning", each)
		}
	}
	s, err := o.Cluster.Read(ctx, snapshot.Layers, snapshot.Releases)
	if err != nil {
		return err
	}
	layer := s.Layer(name)
	if layer == nil {
		return console.NoLayer(s, name)
	}
	subjects := events.SubjectsOf(s, layer)
	if namespace, has := subjects.Namespace(); has {
		made, err := o.Cluster.ReadIn(ctx, namespace, events.Makers...)
		if err != nil {
			return err
		}
		subjects.Adopt(made)
		o.WarnUnread(made, "events may be of others by the same name")
	}
	o.WarnUnread(s, "events of what Helm has made are not shown")
	for _, cluster := range subjects.Elsewhere {
		fmt.Fprintf(o.ErrOut, "kubectl strata: events of what is on %s are not shown: that cluster is not asked\n", terminal.Safe(cluster))
	}
	return o.show(ctx, name, subjects)
}

func (o *eventsOptions) show(ctx context.Context, layer string, subjects *events.Subjects) error {
	client, err := o.Cluster.Dynamic()
	if err != nil {
		return err
	}
	resource := client.Resource(snapshot.Events.GroupVersionResource)
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return o.ExplainKind(err, eventKind)
	}
	seen := map[string]bool{}
	found := o.of(subjects, list.Items, seen)
	switch {
	case o.watch && o.output != "":
		for _, event := range found {
			if err := o.PrintAs(o.output, event); err != nil {
				return err
			}
		}
	case o.output != "":
		return o.PrintAs(o.output, found)
	case len(found) == 0:
		console.Say(o.Out, "Nothing is kept that happened to layer %s.", layer)
	default:
		if err := o.table(found); err != nil {
			return err
		}
	}
	if !o.watch {
		return nil
	}
	return o.ExplainKind(o.follow(ctx, resource, list.GetResourceVersion(), subjects, seen), eventKind)
}

// eventKind is the kind of events, for messages.
var eventKind = console.Kind{Resource: snapshot.Events.GroupVersionResource, Noun: "event", Plural: "events", Unknown: "this cluster serves no events"}

// of returns the events of a layer that have not been seen, sorted.
func (o *eventsOptions) of(subjects *events.Subjects, objects []unstructured.Unstructured, seen map[string]bool) []events.Event {
	found := []events.Event{}
	for i := range objects {
		key := string(objects[i].GetUID()) + "/" + objects[i].GetNamespace() + "/" + objects[i].GetName() + "/" + objects[i].GetResourceVersion()
		event := events.Of(&objects[i])
		wanted := len(o.types) == 0 || slices.ContainsFunc(o.types, func(each string) bool { return strings.EqualFold(each, event.Type) })
		if seen[key] || !wanted || !subjects.Has(event) {
			continue
		}
		seen[key] = true
		found = append(found, event)
	}
	events.Sort(found)
	return found
}

// follow shows events as they happen. Where the server no longer has what happened
// since it was asked last, it is asked for all again.
func (o *eventsOptions) follow(
	ctx context.Context,
	resource dynamic.NamespaceableResourceInterface,
	version string,
	subjects *events.Subjects,
	seen map[string]bool,
) error {
	for ctx.Err() == nil {
		err := o.followFrom(ctx, resource, version, subjects, seen)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !apierrors.IsGone(err) && !apierrors.IsResourceExpired(err):
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchAgain):
		}
		list, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err != nil {
			return nil
		}
		version = list.GetResourceVersion()
		if err := o.lines(o.of(subjects, list.Items, seen)); err != nil {
			return err
		}
	}
	return nil
}

func (o *eventsOptions) followFrom(
	ctx context.Context,
	resource dynamic.NamespaceableResourceInterface,
	version string,
	subjects *events.Subjects,
	seen map[string]bool,
) error {
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, version, selected{resource, ""})
	if err != nil {
		return fmt.Errorf("cannot watch events: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return apierrors.FromObject(event.Object)
		case !ok || event.Type == watch.Bookmark || event.Type == watch.Deleted:
		default:
			if err := o.lines(o.of(subjects, []unstructured.Unstructured{*object}, seen)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *eventsOptions) cells(event events.Event) []string {
	age := duration.HumanDuration(snapshot.Age(event.Last, o.Now()))
	return []string{age, event.Type, event.Object(), event.Reason, strconv.FormatInt(event.Count, 10), event.Message}
}

func (o *eventsOptions) table(found []events.Event) error {
	columns := []terminal.Column{
		{Name: "AGE"},
		{Name: "TYPE", Role: roleOfType},
		{Name: "OBJECT"},
		{Name: "REASON", Expendable: 1},
		{Name: "COUNT", Expendable: 2},
		{Name: "MESSAGE"},
	}
	rows := make([][]string, 0, len(found))
	for _, event := range found {
		rows = append(rows, o.cells(event))
	}
	return o.Screen.Table(o.Out, columns, rows)
}

func roleOfType(text string) terminal.Role {
	if text == "Warning" {
		return terminal.Warning
	}
	return terminal.Plain
}

// lines writes events that happen while they are followed.
func (o *eventsOptions) lines(found []events.Event) error {
	for _, event := range found {
		if o.output != "" {
			if err := o.PrintAs(o.output, event); err != nil {
				return err
			}
			continue
		}
		node := printing.Node{}
		for i, cell := range o.cells(event) {
			role := terminal.Plain
			if i == 1 {
				role = roleOfType(cell)
			}
			node.Spans = append(node.Spans, printing.Span{Text: cell, Role: role})
		}
		if _, err := io.WriteString(o.Out, printing.Draw(o.Screen, []printing.Node{node})); err != nil {
			return err
		}
	}
	return nil
}
