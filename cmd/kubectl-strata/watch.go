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
func (o *showOptions) follow(
	ctx context.Context,
	objects dynamic.ResourceInterface,
	references []reference,
	list *unstructured.UnstructuredList,
	p *printer,
) error {
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), selected{objects, o.selector})
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", o.kind.Plural, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return apierrors.FromObject(event.Object)
		case !ok || event.Type == watch.Bookmark:
		case len(references) > 0 && !slices.ContainsFunc(references, func(r reference) bool { return r.names(object) }):
		default:
			if err := p.update(object, event.Type == watch.Deleted); err != nil {
				return err
			}
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch has ended; run the command again")
	}
	return nil
}

// selected watches the objects with some labels.
type selected struct {
	objects  dynamic.ResourceInterface
	selector string
}

// WatchWithContext starts a watch.
func (s selected) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = s.selector
	return s.objects.Watch(ctx, options)
}
