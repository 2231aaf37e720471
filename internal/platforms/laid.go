// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// presence says whether a layer of a bundle is on a cluster.
type presence int

const (
	// absent: it is not, and what there is of it goes.
	absent presence = iota
	// present: it is.
	present
	// unknown: nobody can tell yet. What there is of it stays as it is.
	unknown
)

// laid is a layer of a bundle as it is to be on one cluster.
type laid struct {
	*v1alpha1.BundleLayer
	presence
	// name of the AddonsLayer, and label the value of PlatformLayerLabel on it.
	name, label string
	// why the presence is unknown.
	why string
	// place is the cluster that the layer goes to.
	place types.NamespacedName
	spec  v1alpha1.AddonsLayerSpec
	// draft is the AddonsLayer as it is to be, where it is present; changed is true
	// where it must be written.
	draft   *v1alpha1.AddonsLayer
	changed bool
}

// laying lays out one bundle on one cluster.
type laying struct {
	Observation
	bundle *v1alpha1.ApplicationBundle
	inputs map[string]any
	// prefix is put before the names of layers.
	prefix string
	// raw are the inputs in the form in which layers have them.
	raw    []byte
	target types.NamespacedName
	names  *namer
	// instance is the name of the installation.
	instance string
}

// lay returns the layers of a bundle on a cluster, each behind those that it depends
// on, and otherwise by name. Edges through layers that are absent are contracted.
func lay(
	o Observation, names *namer, bundle *v1alpha1.ApplicationBundle, prefix string, inputs map[string]any, target types.NamespacedName,
) ([]*laid, error) {
	if inputs == nil {
		inputs = map[string]any{}
	}
	raw, err := json.Marshal(inputs)
	if err != nil {
		return nil, fmt.Errorf("inputs cannot be written: %w", err)
	}
	l := &laying{Observation: o, bundle: bundle, prefix: prefix, inputs: inputs, raw: raw, target: target, names: names}
	if l.instance, err = names.instance(target); err != nil {
		return nil, err
	}
	order, edges := orderOf(bundle)
	found := map[string]*laid{}
	var all []*laid
	for _, name := range order {
		one := l.layer(bundles.LayerOf(bundle, name))
		if on := found[one.On]; on != nil && on.presence == absent {
			// Its cluster goes with that layer.
			one.presence = absent
		}
		found[name] = one
		all = append(all, one)
	}
	there := func(name string) bool { return found[name] != nil && found[name].presence != absent }
	after := map[string][]string{}
	for _, one := range all {
		if one.TeardownAfter != nil {
			after[one.Name] = one.TeardownAfter
		}
	}
	for _, one := range all {
		if one.presence != present {
			continue
		}
		for _, dependency := range contract(one.Name, edges, there) {
			one.spec.Prereqs.DependsOn = append(one.spec.Prereqs.DependsOn, found[dependency].name+"@"+bundle.Spec.Version)
		}
		one.spec.Prereqs.DependsOn = sorted(one.spec.Prereqs.DependsOn)
		for _, first := range contract(one.Name, after, there) {
			one.spec.TeardownAfter = append(one.spec.TeardownAfter, found[first].name)
		}
		if one.TeardownAfter != nil && len(one.spec.TeardownAfter) == 0 {
			// It waits for nobody, which its own name says; without any, those that
			// depend on it would go first.
			one.spec.TeardownAfter = []string{one.name}
		}
		one.spec.TeardownAfter = sorted(one.spec.TeardownAfter)
	}
	return all, nil
}

// layer returns one layer without its edges to others.
func (l *laying) layer(of *v1alpha1.BundleLayer) *laid {
	instance, label := l.instance, l.prefix+of.Name
	one := &laid{BundleLayer: of, name: l.names.name(l.target, label), label: label, place: l.target}
	missing := func(field string, err error) *laid {
		one.presence, one.why = unknown, fmt.Sprintf("layer %s of bundle %s: %s: %v", of.Name, l.bundle.Name, field, err)
		return one
	}
	var err error
	if one.place, err = bundles.PlaceOf(l.bundle, of.Name, instance, l.inputs, l.target); err != nil {
		return missing("onClusterOf", err)
	}
	if of.When != "" && one.place.Name != "" && l.Clusters[one.place] == nil {
		// Nothing is known of it, not even which labels it does not have.
		return missing("when", &bundles.Waiting{Reason: fmt.Sprintf("waits for RemoteCluster %s, which does not exist", one.place)})
	}
	there, err := bundles.When(of, instance, l.inputs, factsOf(l.Observation, one.place))
	var waiting *bundles.Waiting
	switch {
	case errors.As(err, &waiting):
		return missing("when", waiting)
	case err != nil:
		return missing("when", err)
	case !there:
		return one
	}
	one.presence = present
	one.spec = v1alpha1.AddonsLayerSpec{
		Version: l.bundle.Spec.Version, Timeout: timeoutOf(of),
		Prereqs:            v1alpha1.PrereqsSpec{K8sVersion: l.bundle.Spec.KubeVersion},
		ServiceAccountName: l.Platform.Spec.ServiceAccountName, DeletionPolicy: gentler(l.Platform.Spec.DeletionPolicy, of.DeletionPolicy),
	}
	one.spec.WatchHealth = of.WatchHealth
	l.template(one)
	one.spec.DeletionPolicy = policyAt(one.spec.DeletionPolicy, one.place)
	if one.place.Name != "" {
		one.spec.Cluster = &v1alpha1.ClusterReference{Namespace: one.place.Namespace, Name: one.place.Name}
	}
	if one.spec.WaitFor, one.spec.DeleteBefore, err = bundles.Hooks(of, instance, l.inputs); err != nil {
		return missing("waitFor or deleteBefore", err)
	}
	if of.Source != nil {
		one.spec.Source = *of.Source
		return one
	}
	one.spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: l.bundle.Name, Path: "./" + of.Name}
	one.spec.Instance, one.spec.Inputs = instance, &apiextensionsv1.JSON{Raw: l.raw}
	return one
}

// template adds what all layers of the platform have.
func (l *laying) template(one *laid) {
	template := l.Platform.Spec.LayerTemplate
	if template == nil {
		return
	}
	one.spec.Interval, one.spec.OrphanGrace = template.Interval, template.OrphanGrace
	if one.Timeout == nil && template.Timeout != nil {
		one.spec.Timeout = template.Timeout
	}
	if labels := plain(template.Labels); len(labels) > 0 {
		one.spec.CommonMetadata = &v1alpha1.CommonMetadata{Labels: labels}
	}
	if one.WatchHealth == nil {
		one.spec.WatchHealth = template.WatchHealth
	}
	if one.Source == nil {
		one.spec.Releases = template.Releases
	}
}

// orderOf returns the layers of a bundle, each behind those that it depends on, and
// what each depends on. Those on a circle, which no sound bundle has, come last.
func orderOf(bundle *v1alpha1.ApplicationBundle) (names []string, edges map[string][]string) {
	edges = map[string][]string{}
	var left []string
	for _, layer := range bundle.Spec.Layers {
		left = append(left, layer.Name)
		edges[layer.Name] = slices.Clone(layer.DependsOn)
		if layer.On != "" {
			edges[layer.Name] = append(edges[layer.Name], layer.On)
		}
	}
	slices.Sort(left)
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(name string) bool {
			return !slices.ContainsFunc(edges[name], func(on string) bool { return slices.Contains(left, on) })
		})
		next = max(next, 0)
		names = append(names, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return names, edges
}

// contract returns what something leads to, sorted, where each that is not there is
// replaced by what that leads to. It does not lead to itself.
func contract(name string, edges map[string][]string, there func(string) bool) []string {
	var found []string
	seen := map[string]bool{name: true}
	for queue := slices.Clone(edges[name]); len(queue) > 0; queue = queue[1:] {
		next := queue[0]
		switch {
		case seen[next]:
		case there(next):
			found = append(found, next)
		default:
			queue = append(queue, edges[next]...)
		}
		seen[next] = true
	}
	return sorted(found)
}

// clusterTimeout is how long a cluster may take to appear where a bundle does not
// say: to make one takes longer than to install something.
const clusterTimeout = 30 * time.Minute

func timeoutOf(layer *v1alpha1.BundleLayer) *metav1.Duration {
	if layer.Timeout == nil && layer.RemoteCluster != nil {
		return &metav1.Duration{Duration: clusterTimeout}
	}
	return layer.Timeout
}
