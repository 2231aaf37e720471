// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/strata-project/strata/internal/reserved"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/upgrade"
	"github.com/strata-project/strata/internal/objects"
)

// upgradeWork looks at releases.
type upgradeWork struct {
	*snapshot.Snapshot
	client   dynamic.Interface
	renderer *charts.Renderer
	options  ChartOptions
	to       string
	// version of the cluster, and the API versions that others than Kubernetes have
	// there with whether their objects are in namespaces; of the cluster that the
	// command asks.
	version    string
	served     []string
	namespaced map[schema.GroupKind]bool

	mu   sync.Mutex
	seen map[objects.ID]*unstructured.Unstructured
}

// Upgrade renders the charts of layers for another version of Kubernetes, and says what
// became of each release. Of parts that could not be read it returns why, by their kinds.
func (c *Cluster) Upgrade(
	ctx context.Context,
	s *snapshot.Snapshot,
	to string,
	of []*v1alpha1.AddonsLayer,
	o ChartOptions,
	say func(format string, args ...any),
) (map[objects.ID]upgrade.Release, map[string]string, error) {
	unread := map[string]string{}
	for part, err := range s.Unread {
		unread[part.Kind] = unreadable(err, part.GroupVersionResource).Error()
	}
	work, err := c.upgradeWork(s, to, o)
	if err != nil {
		return nil, nil, err
	}
	found, err := work.all(ctx, of, say)
	if err != nil {
		return nil, nil, c.explain(err, snapshot.Layers)
	}
	return found, unread, nil
}

func (c *Cluster) upgradeWork(s *snapshot.Snapshot, to string, o ChartOptions) (*upgradeWork, error) {
	w := &upgradeWork{Snapshot: s, to: to, options: o, namespaced: map[schema.GroupKind]bool{}, seen: map[objects.ID]*unstructured.Unstructured{}}
	var err error
	if w.client, err = c.Dynamic(); err != nil {
		return nil, err
	}
	if w.renderer, err = NewRenderer(""); err != nil {
		return nil, err
	}
	asked, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	// Without these, charts see a cluster with nothing but Kubernetes.
	w.version = versionOf(asked)
	_, lists, _ := asked.ServerGroupsAndResources()
	w.serves(lists)
	return w, nil
}

// serves remembers what the cluster serves, and will serve after the upgrade.
func (w *upgradeWork) serves(lists []*metav1.APIResourceList) {
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetGroupVersionKind(version.WithKind(resource.Kind))
			if removed, err := charts.RemovedAPIs([]*unstructured.Unstructured{object}, w.to); err != nil || len(removed) > 0 {
				continue
			}
			w.namespaced[schema.GroupKind{Group: version.Group, Kind: resource.Kind}] = resource.Namespaced
			w.served = append(w.served, list.GroupVersion, list.GroupVersion+"/"+resource.Kind)
		}
	}
}

// all looks at the releases of layers, some at once.
func (w *upgradeWork) all(ctx context.Context, of []*v1alpha1.AddonsLayer, say func(format string, args ...any)) (map[objects.ID]upgrade.Release, error) {
	found := map[objects.ID]upgrade.Release{}
	ids := upgrade.ReleasesOf(of...)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rendersAtOnce)
	for _, id := range ids {
		release := w.Objects[id]
		if release == nil {
			continue
		}
		group.Go(func() error {
			looked := w.release(ctx, release)
			w.mu.Lock()
			defer w.mu.Unlock()
			found[id] = looked
			say("rendered %d of %d charts", len(found), len(ids))
			return ctx.Err()
		})
	}
	return found, group.Wait()
}

// release looks at one release.
func (w *upgradeWork) release(ctx context.Context, release *unstructured.Unstructured) upgrade.Release {
	deployed := upgrade.DeployedBy(release)
	looked := upgrade.Release{Chart: strings.TrimSpace(deployed.Chart + " " + deployed.Version)}
	looked.Live, _ = charts.RemovedAPIs(upgrade.InventoryOf(release), w.to) // the version was read before
	rendering, err := w.render(ctx, release, deployed, w.to)
	if err == nil {
		looked.Rendered, _ = charts.RemovedAPIs(slices.Concat(rendering.Objects, rendering.Hooks, rendering.CRDs), w.to)
		return looked
	}
	looked.Problem = err.Error()
	var problem *charts.Problem
	switch {
	case errors.Is(err, charts.ErrKubeVersion):
		looked.Refuses = true
	case errors.As(err, &problem) && problem.Reason == charts.RenderFailed:
		// Where it fails today, too, that says nothing of the version.
		if today := w.versionFor(release); today != "" {
			_, err = w.render(ctx, release, deployed, today)
			looked.Refuses = err == nil
		}
	}
	return looked
}

// versionFor returns the version of the cluster that a release is for; empty where
// it is not known.
func (w *upgradeWork) versionFor(release *unstructured.Unstructured) string {
	if !isRemote(release) {
		return w.version
	}
	for _, cluster := range w.Clusters {
		name, _, _ := unstructured.NestedString(release.Object, "spec", "kubeConfig", "secretRef", "name")
		if cluster.Namespace == release.GetNamespace() && reserved.KubeConfigName(cluster.Name) == name {
			return cluster.Status.Version
		}
	}
	return ""
}

func isRemote(release *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedMap(release.Object, "spec", "kubeConfig")
	return found
}

func (w *upgradeWork) render(ctx context.Context, release *unstructured.Unstructured, deployed upgrade.Deployment, version string) (*charts.Rendering, error) {
	request := charts.Request{
		Release: upgrade.Pin(release, deployed), KubeVersion: version, Revision: deployed.Revision + 1,
		Find: func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
			object, err := w.find(ctx, id)
			return upgrade.Pin(object, deployed), err
		},
		// What is rendered is what the cluster has, as it has it.
		Trust:   func(*unstructured.Unstructured) charts.Trust { return charts.TrustAll },
		Secrets: charts.Secrets{True: w.options.ShowSecrets},
	}
	if !isRemote(release) {
		request.APIVersions = w.served
		request.Namespaced = func(kind schema.GroupKind) (namespaced, known bool) {
			namespaced, known = w.namespaced[kind]
			return namespaced, known
		}
	}
	rendering, err := w.renderer.Render(ctx, request)
	return rendering, refusedStandIns(err)
}

// find returns what a release refers to: a source that was read, or a ConfigMap or
// Secret, which is read once.
func (w *upgradeWork) find(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	if object := w.Objects[id]; object != nil {
		return object, nil
	}
	for part, err := range w.Unread {
		if part.Group == id.Group && part.Kind == id.Kind {
			return nil, unreadable(err, part.GroupVersionResource)
		}
	}
	resource, is := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}[id.Kind]
	if id.Group != "" || !is {
		return nil, nil
	}
	w.mu.Lock()
	object, known := w.seen[id]
	w.mu.Unlock()
	if known {
		return object, nil
	}
	core := schema.GroupVersionResource{Version: "v1", Resource: resource}
	object, err := w.client.Resource(core).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object = nil
	case apierrors.IsForbidden(err):
		return nil, unreadable(err, core)
	case err != nil:
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[id] = object
	return object, nil
}

// unreadable says why something may not be read.
func unreadable(err error, resource schema.GroupVersionResource) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not read %s", resource.GroupResource())
	}
	return fmt.Errorf("the cluster does not serve %s", resource.GroupResource())
}
