// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

const completionExamples = `  # In this bash; see kubectl-strata completion bash --help for all of them
  source <(kubectl-strata completion bash)`

// patience is how long a shell waits for the cluster.
const patience = 2 * time.Second

// completions is what a shell may go on with.
type completions = func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete gives every command what it may be completed with, by what it takes:
// layers where its usage says LAYER, and so on. What a command knows better itself
// stays.
func (t *tool) complete(root *cobra.Command) {
	root.SetOut(renamed(t.Out))
	root.InitDefaultCompletionCmd()
	t.completeFlag(root, "context", func(context.Context, *cobra.Command, []string) []string { return t.contexts() })
	for _, command := range root.Commands() {
		switch {
		case command.Name() == "completion":
			command.Example = completionExamples
			continue
		case command.ValidArgsFunction != nil:
		case strings.Contains(command.Use, "DIR"): // the shell knows its folders
		case strings.Contains(command.Use, "LAYER"):
			several := strings.Contains(command.Use, "LAYER...")
			command.ValidArgsFunction = t.within(func(ctx context.Context, _ *cobra.Command, args []string) []string {
				if len(args) > 0 && !several {
					return nil
				}
				return t.names(ctx, snapshot.Layers, "", args)
			})
		case command.Name() == "clusters":
			command.ValidArgsFunction = t.within(func(ctx context.Context, _ *cobra.Command, args []string) []string {
				return t.names(ctx, snapshot.Clusters, "", args)
			})
		case command.Name() == "owner":
			command.ValidArgsFunction = t.completeOwner
		default:
			command.ValidArgsFunction = cobra.NoFileCompletions
		}
		t.completeFlags(command)
	}
}

// completeFlags gives the flags of a command what they may be completed with.
func (t *tool) completeFlags(command *cobra.Command) {
	fixed := func(choices ...string) func(context.Context, *cobra.Command, []string) []string {
		return func(context.Context, *cobra.Command, []string) []string { return choices }
	}
	if flag := command.Flags().Lookup("output"); flag != nil {
		if choices, listed := strings.CutPrefix(flag.Usage, "one of "); listed {
			t.completeFlag(command, "output", fixed(strings.Split(choices, ", ")...))
		}
	}
	var ends []string
	for _, known := range goals {
		ends = append(ends, known.name)
	}
	t.completeFlag(command, "for", fixed(ends...))
	t.completeFlag(command, "types", fixed("Normal", "Warning"))
	t.completeFlag(command, "to", t.deployments)
	t.completeFlag(command, "release", func(ctx context.Context, _ *cobra.Command, _ []string) []string {
		return t.names(ctx, snapshot.Releases, "", nil)
	})
	t.completeFlag(command, "namespace", func(ctx context.Context, _ *cobra.Command, _ []string) []string {
		return t.names(ctx, snapshot.Part{GroupVersionResource: namespaces, Kind: "Namespace"}, "", nil)
	})
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// completeFlag completes a flag, where the command has it and does not do so itself.
func (t *tool) completeFlag(command *cobra.Command, name string, ask func(context.Context, *cobra.Command, []string) []string) {
	if command.Flag(name) != nil {
		_ = command.RegisterFlagCompletionFunc(name, t.within(ask)) // fails where there is one
	}
}

// within asks for completions, for as long as a shell waits. Nothing is said where
// there are none, for whatever reason: it would stand in the middle of a command.
func (t *tool) within(ask func(context.Context, *cobra.Command, []string) []string) completions {
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(command.Context(), patience)
		defer cancel()
		answer := make(chan []string, 1)
		go func() { answer <- ask(ctx, command, args) }()
		var found []string
		select {
		case found = <-answer:
		case <-ctx.Done():
		}
		found = slices.DeleteFunc(slices.Clone(found), func(each string) bool { return !strings.HasPrefix(each, begun) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// names returns the names of objects that are not given yet, with what is known of
// their state. A namespace narrows them.
func (t *tool) names(ctx context.Context, part snapshot.Part, namespace string, given []string) []string {
	client, err := t.Cluster.Dynamic()
	if err != nil {
		return nil
	}
	list, err := client.Resource(part.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var found []string
	for i := range list.Items {
		name := strings.TrimPrefix(list.Items[i].GetNamespace()+"/"+list.Items[i].GetName(), "/")
		if namespace != "" {
			name = list.Items[i].GetName()
		}
		if !slices.Contains(given, name) {
			found = append(found, described(name, stateOf(&list.Items[i])))
		}
	}
	slices.Sort(found)
	return found
}

// stateOf returns a few words on an object, or nothing.
func stateOf(object *unstructured.Unstructured) string {
	state, _, _ := unstructured.NestedString(object.Object, "status", "state")
	version, _, _ := unstructured.NestedString(object.Object, "status", "version")
	if state == "" {
		state, _ = readyOf(object)
		state = map[string]string{"True": "Ready", "False": "not ready"}[state]
	}
	return strings.TrimSpace(state + " " + version)
}

// described is a completion with a description, as cobra hands them to shells.
func described(name, description string) string {
	if description == "" {
		return name
	}
	return name + "\t" + terminal.Safe(description)
}

// deployments returns the IDs of the history of the layer that is named.
func (t *tool) deployments(ctx context.Context, _ *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	s, err := t.Cluster.Read(ctx, snapshot.Layers)
	if err != nil || s.Layer(args[0]) == nil {
		return nil
	}
	var found []string
	for _, entry := range s.Layer(args[0]).Status.History {
		found = append(found, described(entry.ID, strings.TrimSpace(entry.Version+" "+string(entry.Result)+" "+entry.Started.UTC().Format(time.DateTime))))
	}
	return found
}

// contexts returns the contexts of the kubeconfig.
func (t *tool) contexts() []string {
	raw, err := t.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// ownable are the kinds that people ask about most; others can be written.
var ownable = map[string]schema.GroupVersionResource{
	"deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"statefulset": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"daemonset":   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"job":         {Group: "batch", Version: "v1", Resource: "jobs"},
	"pod":         snapshot.Pods.GroupVersionResource,
	"service":     {Version: "v1", Resource: "services"},
	"helmrelease": snapshot.Releases.GroupVersionResource,
	"namespace":   namespaces,
}

// completeOwner completes KIND/NAME: first the kind, then a name of it.
func (t *tool) completeOwner(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	kind, _, hasKind := strings.Cut(begun, "/")
	switch {
	case len(args) == 0 && !hasKind:
		kinds := slices.Sorted(maps.Keys(ownable))
		for i := range kinds {
			kinds[i] += "/"
		}
		found, directive := t.within(func(context.Context, *cobra.Command, []string) []string { return kinds })(command, args, begun)
		return found, directive | cobra.ShellCompDirectiveNoSpace
	case len(args) > 1 || len(args) == 1 && hasKind:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1:
		kind = args[0]
	}
	return t.within(func(ctx context.Context, command *cobra.Command, args []string) []string {
		resource, known := ownable[kind]
		namespace, _ := command.Flags().GetString("namespace")
		if namespace == "" {
			namespace, _, _ = t.Flags.ToRawKubeConfigLoader().Namespace()
		}
		if resource == namespaces {
			namespace = ""
		}
		if !known {
			return nil
		}
		found := t.names(ctx, snapshot.Part{GroupVersionResource: resource, Kind: kind}, namespace, nil)
		for i := range found {
			if len(args) == 0 {
				found[i] = kind + "/" + found[i]
			}
		}
		return found
	})(command, args, begun)
}
