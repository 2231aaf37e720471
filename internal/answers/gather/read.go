// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
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
	"github.com/strata-project/strata/internal/objects"
)

// Read reads parts of the cluster at this moment, in all namespaces. Layers are not done
// without where they are asked for.
func (c *Cluster) Read(ctx context.Context, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	return c.needing(ctx, snapshot.Layers, parts...)
}

// needing reads parts, of which one is not done without.
func (c *Cluster) needing(ctx context.Context, needed snapshot.Part, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	return c.readNeeding(ctx, metav1.NamespaceAll, needed, parts...)
}

// ReadNeeding is as ReadIn, of a part that is not done without, and of more.
func (c *Cluster) ReadNeeding(ctx context.Context, namespace string, needed snapshot.Part, more ...snapshot.Part) (*snapshot.Snapshot, error) {
	return c.readNeeding(ctx, namespace, needed, append([]snapshot.Part{needed}, more...)...)
}

func (c *Cluster) readNeeding(ctx context.Context, namespace string, needed snapshot.Part, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	s, err := c.ReadIn(ctx, namespace, parts...)
	if err == nil && s.Unread[needed] != nil {
		return nil, c.explain(s.Unread[needed], needed)
	}
	return s, err
}

// ReadIn reads parts in a namespace; empty for all. Of what may not be listed, or is not
// served, Unread tells; any other error, such as a cluster that does not answer, is
// returned. An object that cannot be understood is an error that names it.
func (c *Cluster) ReadIn(ctx context.Context, namespace string, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	client, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	s := &snapshot.Snapshot{Now: c.now(), Objects: map[objects.ID]*unstructured.Unstructured{}, Unread: map[snapshot.Part]error{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for i, part := range parts {
		if slices.Contains(parts[:i], part) {
			continue // Read twice, each of its objects would be there twice.
		}
		group.Go(func() error {
			list, err := client.Resource(part.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
				s.Unread[part] = err
				return nil
			case err != nil:
				return err
			}
			return s.Add(part, list.Items)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, c.explain(err, snapshot.Layers)
	}
	return s, nil
}

// ReadWithVersion reads parts of the cluster, and at the same time which version it
// has. Whoever may not ask for that gets none.
func (c *Cluster) ReadWithVersion(ctx context.Context, parts ...snapshot.Part) (*snapshot.Snapshot, error) {
	client, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	version := make(chan string, 1)
	go func() { version <- versionOf(client) }()
	s, err := c.Read(ctx, parts...)
	if err != nil {
		return nil, err
	}
	s.Version = <-version
	return s, nil
}

// versionOf returns the version of the API server; empty where it does not say.
func versionOf(client discovery.ServerVersionInterface) string {
	found, err := client.ServerVersion()
	if err != nil {
		return ""
	}
	return found.GitVersion
}

// Made reads the objects of kinds: with one request for each group that says
// what it serves, and one list for each kind. What cannot be read is told of as
// such; Secrets are not even asked for.
func (c *Cluster) Made(ctx context.Context, wanted []releases.Wanted) (*releases.Live, error) {
	client, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	served, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	l := &looking{client: client, served: served, live: &releases.Live{Objects: map[objects.ID]*unstructured.Unstructured{}, Unread: map[string]string{}}}
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
		return nil, c.explain(err, snapshot.Layers)
	}
	return l.live, nil
}

// MayNotList is why kinds are not there that whoever asks may not list.
const MayNotList = "you may not list them"

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
		l.unread(kind, MayNotList)
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
		l.live.Objects[objects.IDOf(&list.Items[i])] = &list.Items[i]
	}
	return nil
}

func (l *looking) unread(kind releases.Wanted, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live.Unread[kind.GroupKind().String()] = why
}
