// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependents"
)

// readWithVersion reads parts of the cluster, and at the same time which version it
// has. Whoever may not ask for that gets none.
func (t *tool) readWithVersion(ctx context.Context, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	config, err := restConfig(t.flags)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	version := make(chan string, 1)
	go func() {
		found, err := client.ServerVersion()
		if err != nil {
			version <- ""
			return
		}
		version <- found.GitVersion
	}()
	s, err := t.read(ctx, parts...)
	if err != nil {
		return nil, err
	}
	s.Version = <-version
	return s, nil
}

// readMade reads the objects of kinds: with one request for each group that says
// what it serves, and one list for each kind. What cannot be read is told of as
// such; Secrets are not even asked for.
func (t *tool) readMade(ctx context.Context, wanted []releases.Wanted) (*releases.Live, error) {
	config, err := restConfig(t.flags)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	l := &looking{client: client, served: served, live: &releases.Live{Objects: map[dependents.ID]*unstructured.Unstructured{}, Unread: map[string]string{}}}
	byVersion := map[schema.GroupVersion][]releases.Wanted{}
	for _, kind := range wanted {
		if kind.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
			l.live.Unread[kind.GroupKind().String()] = "Secrets are not read"
			continue
		}
		byVersion[kind.GroupVersion()] = append(byVersion[kind.GroupVersion()], kind)
	}
	group, ctx := errgroup.WithContext(ctx)
	for gv, kinds := range byVersion {
		group.Go(func() error { return l.version(ctx, gv, kinds) })
	}
	if err := group.Wait(); err != nil {
		return nil, explain(err, t.flags, layerKind)
	}
	t.warnKinds(l.live)
	return l.live, nil
}

// warnKinds says which kinds could not be read for lack of rights.
func (t *tool) warnKinds(live *releases.Live) {
	var lacking []string
	for kind, why := range live.Unread {
		if why == mayNot {
			lacking = append(lacking, kind)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		fmt.Fprintf(t.errOut, "kubectl strata: you may not list %s, so how these are is not shown\n", strings.Join(lacking, ", "))
	}
}

// mayNot says of a kind that there is no right to list it.
const mayNot = "you may not list them"

// looking is the objects of many kinds being read.
type looking struct {
	client dynamic.Interface
	served discovery.DiscoveryInterface
	mu     sync.Mutex
	live   *releases.Live
}

// version reads the kinds of one version of a group.
func (l *looking) version(ctx context.Context, gv schema.GroupVersion, kinds []releases.Wanted) error {
	list, err := l.served.ServerResourcesForGroupVersion(gv.String())
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, kind := range kinds {
		resource := metav1.APIResource{}
		if list != nil {
			at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
				return r.Kind == kind.Kind && !strings.Contains(r.Name, "/")
			})
			if at >= 0 {
				resource = list.APIResources[at]
			}
		}
		if resource.Name == "" {
			l.unread(kind, "the cluster does not serve "+gv.String())
			continue
		}
		if !resource.Namespaced {
			kind.Namespace = ""
		}
		group.Go(func() error { return l.kind(ctx, gv.WithResource(resource.Name), kind) })
	}
	return group.Wait()
}

// kind reads the objects of one kind.
func (l *looking) kind(ctx context.Context, resource schema.GroupVersionResource, kind releases.Wanted) error {
	list, err := l.client.Resource(resource).Namespace(kind.Namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		l.unread(kind, mayNot)
		return nil
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		l.unread(kind, "the cluster does not list them")
		return nil
	case err != nil:
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range list.Items {
		l.live.Objects[dependents.IDOf(&list.Items[i])] = &list.Items[i]
	}
	return nil
}

func (l *looking) unread(kind releases.Wanted, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live.Unread[kind.GroupKind().String()] = why
}

// readIn reads parts of the cluster in one namespace, or in all where it is empty.
func (t *tool) readIn(ctx context.Context, namespace string, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	client, err := newClient(t.flags)
	if err != nil {
		return nil, err
	}
	s := &snapshot.Snapshot{Now: t.now(), Objects: map[dependents.ID]*unstructured.Unstructured{}, Unread: map[snapshot.Part]error{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error {
			list, err := client.Resource(part.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
				s.Unread[part] = err
				return nil
			case err != nil:
				return explain(err, t.flags, layerKind)
			}
			for i := range list.Items {
				s.Objects[dependents.IDOf(&list.Items[i])] = &list.Items[i]
			}
			return nil
		})
	}
	return s, group.Wait()
}
