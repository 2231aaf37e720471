// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolswatch "k8s.io/client-go/tools/watch"
)

// follow writes what changes after a list, until the context ends.
func (o *getOptions) follow(ctx context.Context, layers dynamic.ResourceInterface, list *unstructured.UnstructuredList, p *printer) error {
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), selected{layers, o.selector})
	if err != nil {
		return fmt.Errorf("cannot watch layers: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		layer, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return apierrors.FromObject(event.Object)
		case !ok || event.Type == watch.Bookmark:
		case len(o.names) > 0 && !slices.Contains(o.names, layer.GetName()):
		default:
			if err := p.update(layer, event.Type == watch.Deleted); err != nil {
				return err
			}
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch has ended; run the command again")
	}
	return nil
}

// selected watches the layers with some labels.
type selected struct {
	layers   dynamic.ResourceInterface
	selector string
}

// WatchWithContext starts a watch.
func (s selected) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = s.selector
	return s.layers.Watch(ctx, options)
}
