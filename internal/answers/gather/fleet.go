// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/platforms"
)

// installable is what the fleet is read from, each part with one list.
var installable = []snapshot.Part{snapshot.Applications, snapshot.Bundles, snapshot.Platforms, snapshot.Layers, snapshot.Clusters}

// Fleet reads a management cluster, and more parts at the same time. Without the needed part there is nothing to say; what
// is missing of the others the snapshot tells.
func (c *Cluster) Fleet(ctx context.Context, needed snapshot.Part, more ...snapshot.Part) (fleet.World, *snapshot.Snapshot, error) {
	s, err := c.needing(ctx, needed, slices.Concat(installable, more)...)
	if err != nil {
		return fleet.World{}, nil, err
	}
	return fleet.World{
		Now: s.Now, Applications: s.Applications, Bundles: s.Bundles, Platforms: s.Platforms, Layers: s.Layers, Clusters: s.Clusters,
		Namespace: c.ControllerNamespace(ctx),
	}, s, nil
}

// DefaultNamespace is where the chart's page installs the controller.
const DefaultNamespace = "strata-system"

// ControllerNamespace returns the namespace of the controller, in which references
// are looked up that name none. A user who may not look for it gets the usual one.
func (c *Cluster) ControllerNamespace(ctx context.Context) string {
	client, err := c.Dynamic()
	if err != nil {
		return DefaultNamespace
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	list, err := client.Resource(deployments).List(ctx, metav1.ListOptions{LabelSelector: ControllerLabels})
	if err != nil || len(list.Items) == 0 {
		return DefaultNamespace
	}
	first := slices.MinFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return first.GetNamespace()
}

// Platforms is what Platforms are decided from.
type Platforms struct {
	World fleet.World
	// Missing says what could not be read, sorted as far as lists go.
	Missing []string

	client dynamic.Interface
	// version of the API server; empty where it does not say.
	version string
}

// Platforms reads what Platforms are decided from.
func (c *Cluster) Platforms(ctx context.Context) (*Platforms, *snapshot.Snapshot, error) {
	w, s, err := c.Fleet(ctx, snapshot.Platforms)
	if err != nil {
		return nil, nil, err
	}
	p := &Platforms{World: w}
	if p.client, err = c.Dynamic(); err != nil {
		return nil, nil, err
	}
	for part, err := range s.Unread {
		p.Missing = append(p.Missing, fmt.Sprintf("%s: %v", part.GroupResource(), err))
	}
	slices.Sort(p.Missing)
	if asked, err := c.Discovery(); err == nil {
		p.version = versionOf(asked)
	}
	return p, s, nil
}

// Observe gathers what the controller would decide from at a moment.
func (p *Platforms) Observe(ctx context.Context, platform *v1alpha1.Platform, at time.Time) platforms.Observation {
	o := platforms.Observation{
		Now: at, Namespace: p.World.Namespace, Platform: platforms.Trusted(platform), Bundles: p.World.Bundles, Version: p.version,
		Catalogue: map[string]*v1alpha1.HelmApplication{}, Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{},
		ConfigMaps: map[types.NamespacedName]map[string]string{}, ConfigMapErrors: map[types.NamespacedName]error{}, Taken: map[string]*v1alpha1.AddonsLayer{},
		Platforms: map[string]*v1alpha1.Platform{},
	}
	for _, other := range p.World.Platforms {
		o.Platforms[other.Name] = other
	}
	for _, app := range p.World.Applications {
		o.Catalogue[app.Name] = app
	}
	for _, cluster := range p.World.Clusters {
		o.Clusters[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}] = cluster
	}
	others := map[string]*v1alpha1.AddonsLayer{}
	for _, layer := range p.World.Layers {
		if layer.Labels[v1alpha1.PlatformLabel] == platform.Name {
			o.Layers = append(o.Layers, layer)
		} else {
			others[layer.Name] = layer
			o.Others = append(o.Others, layer)
		}
	}
	if platform.DeletionTimestamp.IsZero() {
		for _, ref := range platform.Spec.InputsFrom {
			p.configMap(ctx, &o, types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name})
		}
	}
	for _, name := range platforms.Names(o) {
		if other := others[name]; other != nil {
			o.Taken[name] = other
		}
	}
	return o
}

func (p *Platforms) configMap(ctx context.Context, o *platforms.Observation, name types.NamespacedName) {
	configMaps := p.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	found, err := configMaps.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		o.ConfigMapErrors[name] = err
		p.Missing = append(p.Missing, fmt.Sprintf("ConfigMap %s: %v", name, err))
	default:
		data, _, _ := unstructured.NestedStringMap(found.Object, "data")
		o.ConfigMaps[name] = data
	}
}
