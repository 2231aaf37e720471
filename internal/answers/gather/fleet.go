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
	"github.com/strata-project/strata/internal/decisions"
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
	return WorldOf(s, c.ControllerNamespace(ctx)), s, nil
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
	p.Missing = Missing(s)
	if asked, err := c.Discovery(); err == nil {
		p.version = versionOf(asked)
	}
	return p, s, nil
}

// Missing says what Platforms are decided from that could not be read, sorted.
func Missing(s *snapshot.Snapshot) []string {
	var missing []string
	for _, part := range installable {
		if err := s.Unread[part]; err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", part.GroupResource(), err))
		}
	}
	slices.Sort(missing)
	return missing
}

// About is what is known of the cluster that Strata runs in beside its objects.
type About struct {
	// Namespace of the controller.
	Namespace string
	// Version of the API server; empty where it does not say.
	Version string
}

// About reads what is known of the cluster beside its objects.
func (c *Cluster) About(ctx context.Context) About {
	about := About{Namespace: c.ControllerNamespace(ctx)}
	if asked, err := c.Discovery(); err == nil {
		about.Version = versionOf(asked)
	}
	return about
}

// WorldOf returns what a snapshot holds of the fleet.
func WorldOf(s *snapshot.Snapshot, namespace string) fleet.World {
	return fleet.World{
		Now: s.Now, Applications: s.Applications, Bundles: s.Bundles, Platforms: s.Platforms, Layers: s.Layers, Clusters: s.Clusters, Namespace: namespace,
	}
}

// Observe gathers what the controller would decide from at a moment.
func (p *Platforms) Observe(ctx context.Context, platform *v1alpha1.Platform, at time.Time) platforms.Observation {
	return Observation(p.World, p.version, platform, at, func(name types.NamespacedName) (map[string]string, error) {
		configMaps := p.client.Resource(snapshot.ConfigMaps.GroupVersionResource)
		found, err := configMaps.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			p.Missing = append(p.Missing, fmt.Sprintf("ConfigMap %s: %v", name, err))
			return nil, err
		}
		return DataOf(found), nil
	})
}

// DataOf returns what a ConfigMap holds; it is not nil.
func DataOf(configMap *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(configMap.Object, "data")
	if data == nil {
		data = map[string]string{}
	}
	return data
}

// Observation puts together what the controller would decide from at a moment. version is
// that of the API server, empty where it is not known, and configMap returns what a
// ConfigMap holds; nil where there is none.
func Observation(
	w fleet.World,
	version string,
	platform *v1alpha1.Platform,
	at time.Time,
	configMap func(name types.NamespacedName) (map[string]string, error),
) platforms.Observation {
	o := platforms.Observation{
		Now: at, Namespace: w.Namespace, Platform: platforms.Trusted(platform, decisions.Seal{}), Bundles: w.Bundles, Version: version,
		Catalogue: map[string]*v1alpha1.HelmApplication{}, Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{},
		ConfigMaps: map[types.NamespacedName]map[string]string{}, ConfigMapErrors: map[types.NamespacedName]error{}, Taken: map[string]*v1alpha1.AddonsLayer{},
		Platforms: map[string]*v1alpha1.Platform{},
	}
	for _, other := range w.Platforms {
		o.Platforms[other.Name] = other
	}
	for _, app := range w.Applications {
		o.Catalogue[app.Name] = app
	}
	for _, cluster := range w.Clusters {
		o.Clusters[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}] = cluster
	}
	others := map[string]*v1alpha1.AddonsLayer{}
	for _, layer := range w.Layers {
		if layer.Labels[v1alpha1.PlatformLabel] == platform.Name {
			o.Layers = append(o.Layers, layer)
		} else {
			others[layer.Name] = layer
			o.Others = append(o.Others, layer)
		}
	}
	if platform.DeletionTimestamp.IsZero() {
		for _, ref := range platform.Spec.InputsFrom {
			name := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}
			switch data, err := configMap(name); {
			case err != nil:
				o.ConfigMapErrors[name] = err
			case data != nil:
				o.ConfigMaps[name] = data
			}
		}
	}
	for _, name := range platforms.Names(o) {
		if other := others[name]; other != nil {
			o.Taken[name] = other
		}
	}
	return o
}
