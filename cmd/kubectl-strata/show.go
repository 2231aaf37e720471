// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/near"
)

// showOptions are what the flags of a command say that shows objects of a kind.
type showOptions struct {
	*console.Console
	kind      kind
	names     []string
	namespace string
	selector  string
	output    string
	watch     bool
}

// addFlags adds the flags that all kinds have.
func (o *showOptions) addFlags(command *cobra.Command, selector string) {
	command.Flags().StringVarP(&o.output, "output", "o", "", "one of wide, json, yaml, name")
	command.Flags().StringVarP(&o.selector, "selector", "l", "", selector)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on showing what changes, until Ctrl-C")
}

func (o *showOptions) run(ctx context.Context, out io.Writer) error {
	if len(o.names) > 0 && o.selector != "" {
		return errors.New("give names or --selector, not both")
	}
	references, err := o.references()
	if err != nil {
		return err
	}
	printer, err := o.newPrinter(out)
	if err != nil {
		return err
	}
	client, err := o.Cluster.Dynamic()
	if err != nil {
		return err
	}
	objects := client.Resource(o.kind.Resource)
	found, err := o.read(ctx, objects, references)
	if err != nil && len(found.Items) == 0 {
		return o.ExplainKind(err, o.kind.Kind)
	}
	// A name without a namespace may be that of several objects.
	printer.single = printer.single || len(references) == 1 && len(found.Items) == 1
	if printErr := printer.print(found.Items); printErr != nil {
		return printErr
	}
	if err != nil {
		return o.ExplainKind(err, o.kind.Kind)
	}
	if o.watch {
		if err := o.follow(ctx, objects.Namespace(o.namespace), references, found, printer); err != nil {
			return o.ExplainKind(err, o.kind.Kind)
		}
	}
	return printer.verdict()
}

// reference names an object.
type reference struct {
	namespace, name string
	// anywhere is true where the namespace is not given.
	anywhere bool
}

// String returns what somebody has written.
func (r reference) String() string {
	return strings.TrimPrefix(r.namespace+"/"+r.name, "/")
}

// names tells whether an object is meant.
func (r reference) names(object *unstructured.Unstructured) bool {
	return object.GetName() == r.name && (r.anywhere || object.GetNamespace() == r.namespace)
}

// references returns what is asked for by name, sorted; nothing for all objects.
func (o *showOptions) references() ([]reference, error) {
	var found []reference
	for _, written := range o.names {
		namespace, name, split := strings.Cut(written, "/")
		switch {
		case !o.kind.namespaced:
			found = append(found, reference{name: written})
		case !split:
			found = append(found, reference{namespace: o.namespace, name: written, anywhere: o.namespace == ""})
		case o.namespace != "" && o.namespace != namespace:
			return nil, fmt.Errorf("%s is not in the namespace %s that --namespace gives", written, o.namespace)
		default:
			found = append(found, reference{namespace: namespace, name: name})
		}
	}
	slices.SortFunc(found, func(a, b reference) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(found), nil
}

// read returns the objects asked for, sorted by name. When some of them do not
// exist, it returns the others with the error.
func (o *showOptions) read(
	ctx context.Context,
	objects dynamic.NamespaceableResourceInterface,
	references []reference,
) (*unstructured.UnstructuredList, error) {
	found := &unstructured.UnstructuredList{}
	if len(references) == 0 || o.watch || slices.ContainsFunc(references, func(r reference) bool { return r.anywhere }) {
		list, err := objects.Namespace(o.namespace).List(ctx, metav1.ListOptions{LabelSelector: o.selector})
		if err != nil {
			return found, err
		}
		found = list
	}
	var missing error
	if len(references) > 0 {
		found.Items, missing = o.pick(ctx, objects, references, found.Items)
	}
	slices.SortFunc(found.Items, byName)
	return found, missing
}

// pick returns the objects that are named, from a list or one by one, so that the
// right to list is not needed.
func (o *showOptions) pick(
	ctx context.Context,
	objects dynamic.NamespaceableResourceInterface,
	references []reference,
	listed []unstructured.Unstructured,
) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	var problems []error
	for _, wanted := range references {
		before := len(found)
		for i := range listed {
			if wanted.names(&listed[i]) {
				found = append(found, listed[i])
			}
		}
		if len(found) > before {
			continue
		}
		if wanted.anywhere {
			problems = append(problems, o.missing(wanted, listed, nil))
			continue
		}
		object, err := objects.Namespace(wanted.namespace).Get(ctx, wanted.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, o.notFound(ctx, objects, wanted, err))
		case err != nil:
			return found, err
		default:
			found = append(found, *object)
		}
	}
	return found, errors.Join(problems...)
}

// notFound says which objects there are in place of one that does not exist. A
// list that fails in the same way tells of a cluster that does not know the kind.
func (o *showOptions) notFound(ctx context.Context, objects dynamic.NamespaceableResourceInterface, wanted reference, notFound error) error {
	list, err := objects.Namespace(o.namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil:
		return o.missing(wanted, nil, notFound)
	}
	return o.missing(wanted, list.Items, notFound)
}

// missing says which of the objects that there are may have been meant by the name
// of one that does not exist.
func (o *showOptions) missing(wanted reference, listed []unstructured.Unstructured, cause error) error {
	var names []string
	for i := range listed {
		name := reference{namespace: listed[i].GetNamespace(), name: listed[i].GetName()}
		if wanted.anywhere {
			name.namespace = ""
		}
		names = append(names, name.String())
	}
	slices.Sort(names)
	return &console.MissingError{Kind: o.kind.Kind, Wanted: wanted.String(), Near: near.Near(wanted.String(), slices.Compact(names)), Cause: cause}
}

func byName(a, b unstructured.Unstructured) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}
