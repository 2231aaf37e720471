// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// choice is the layers that a command acts on.
type choice struct {
	*console.Console
	selector string
}

func (c *choice) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&c.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
}

// layers returns the layers that are named, or that the selector finds. All of them
// exist, so that nothing is done by halves because of a name that is wrong.
func (c *choice) layers(ctx context.Context, names []string) (dynamic.ResourceInterface, []unstructured.Unstructured, error) {
	if len(names) == 0 && c.selector == "" {
		return nil, nil, errors.New("name the layers, or give --selector")
	}
	show := &showOptions{Console: c.Console, kind: layerKind, names: names, selector: c.selector}
	if len(names) > 0 && c.selector != "" {
		return nil, nil, errors.New("give names or --selector, not both")
	}
	client, err := c.Cluster.Dynamic()
	if err != nil {
		return nil, nil, err
	}
	references, err := show.references()
	if err != nil {
		return nil, nil, err
	}
	objects := client.Resource(layerKind.Resource)
	found, err := show.read(ctx, objects, references)
	if err != nil {
		return nil, nil, c.Explain(err, snapshot.Layers)
	}
	if len(found.Items) == 0 {
		return nil, nil, fmt.Errorf("no layer has the labels %s; kubectl strata get lists those there are", c.selector)
	}
	return objects, found.Items, nil
}

// annotate sets annotations of a layer; nil removes one.
func (c *choice) annotate(ctx context.Context, name string, annotations map[string]any) error {
	err := c.Cluster.Annotate(ctx, acts.Patch{Resource: snapshot.Layers.GroupVersionResource, Name: name, Annotations: annotations})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not change layer %s; ask for the right to patch addonslayers.kraan.io: %w", name, err)
	}
	return c.Explain(err, snapshot.Layers)
}
