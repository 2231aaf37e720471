// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// PlaceOf returns the cluster that a layer goes to: that of the layer which it is
// on, or root. The error is a ContentError.
func PlaceOf(bundle *v1alpha1.ApplicationBundle, layer, instance string, inputs map[string]any, root types.NamespacedName) (types.NamespacedName, error) {
	return placeOf(bundle, layer, instance, inputs, root, len(bundle.Spec.Layers))
}

// placeOf goes through at most so many layers: a bundle that was not checked may
// have some that are on each other.
func placeOf(
	bundle *v1alpha1.ApplicationBundle,
	name, instance string,
	inputs map[string]any,
	root types.NamespacedName,
	most int,
) (types.NamespacedName, error) {
	layer := LayerOf(bundle, name)
	switch {
	case layer == nil:
		return types.NamespacedName{}, wrongPlace(bundle, fmt.Sprintf("layers[%s]", name), "there is no such layer")
	case layer.On == "":
		return root, nil
	case most <= 0:
		return types.NamespacedName{}, wrongPlace(bundle, fmt.Sprintf("layers[%s].onClusterOf", name), "the layer is on itself")
	}
	return clusterOf(bundle, layer.On, instance, inputs, root, most-1)
}

// clusterOf returns the RemoteCluster that a layer with a remoteCluster makes, where
// the bundle is installed on root.
func clusterOf(
	bundle *v1alpha1.ApplicationBundle,
	name, instance string,
	inputs map[string]any,
	root types.NamespacedName,
	most int,
) (types.NamespacedName, error) {
	layer := LayerOf(bundle, name)
	if layer == nil || layer.RemoteCluster == nil {
		return types.NamespacedName{}, wrongPlace(bundle, fmt.Sprintf("layers[%s].remoteCluster", name), "the layer has none, so that no layer can be on it")
	}
	at, err := placeOf(bundle, name, instance, inputs, root, most)
	if err != nil {
		return types.NamespacedName{}, err
	}
	namespace := at.Namespace
	if at.Name == "" {
		if namespace, err = namespaceOf(bundle, layer, instance, inputs); err != nil {
			return types.NamespacedName{}, err
		}
	}
	return types.NamespacedName{Namespace: namespace, Name: Name(instance, name)}, nil
}

// namespaceOf fills the namespace of a layer's remoteCluster.
func namespaceOf(bundle *v1alpha1.ApplicationBundle, layer *v1alpha1.BundleLayer, instance string, inputs map[string]any) (string, error) {
	field := fmt.Sprintf("layers[%s].remoteCluster.kubeConfig.secretRef.namespace", layer.Name)
	fill, err := newPlainFiller(instance, inputs)
	if err != nil {
		return "", err
	}
	namespace, err := fill.text(layer.RemoteCluster.KubeConfig.SecretRef.Namespace)
	if err != nil {
		return "", wrongPlace(bundle, field, err.Error())
	}
	if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
		return "", wrongPlace(bundle, field, fmt.Sprintf("%q is not the name of a namespace: %s", short(namespace), wrong[0]))
	}
	return namespace, nil
}

func wrongPlace(bundle *v1alpha1.ApplicationBundle, field, message string) error {
	return &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, File: originOf(bundle.Name), Field: field, Message: message}
}

// remoteCluster renders the RemoteCluster of a layer. It is always on the cluster
// that Strata runs in; what it is reached with may be on another.
func (r *rendering) remoteCluster(cluster *v1alpha1.BundleCluster) error {
	namespace, err := namespaceOf(r.Bundle, r.layer, r.instance(), r.inputs)
	if err != nil {
		return err
	}
	field := "remoteCluster.kubeConfig.secretRef.name"
	secret, err := r.fillPlain.text(cluster.KubeConfig.SecretRef.Name)
	if err != nil {
		return r.unfilled(field, err)
	}
	if wrong := validation.IsDNS1123Subdomain(secret); len(wrong) > 0 {
		return r.mistake(field, "%q is not the name of a Secret: %s", short(secret), wrong[0])
	}
	reference := map[string]any{"name": secret}
	if cluster.KubeConfig.SecretRef.Key != "" {
		reference["key"] = cluster.KubeConfig.SecretRef.Key
	}
	kubeConfig := map[string]any{"secretRef": reference}
	spec := map[string]any{"kubeConfig": kubeConfig}
	if cluster.Interval != nil {
		spec["interval"] = cluster.Interval.Duration.String()
	}
	if cluster.DeletionPolicy != "" {
		spec["deletionPolicy"] = string(cluster.DeletionPolicy)
	}
	obj := newObject(v1alpha1.GroupVersion.String(), v1alpha1.RemoteClusterKind, namespace, Name(r.instance(), r.layer.Name))
	if on := r.Cluster.Name; on.Name != "" {
		obj.SetNamespace(on.Namespace)
		reference["namespace"], kubeConfig["clusterRef"] = namespace, map[string]any{"name": on.Name}
	}
	labels := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(cluster.Labels)) {
		if labels[key], err = r.fillText("remoteCluster.labels["+key+"]", cluster.Labels[key]); err != nil {
			return err
		}
	}
	setTexts(obj, "labels", labels)
	obj.Object["spec"] = spec
	r.add("remoteCluster", obj).Home = true
	return nil
}

// ClustersFor returns the RemoteClusters that a layer of a bundle may read of, by the names of
// the layers that make them. Its own installation has made them: they lie where that has them
// made, whoever else has some of the name elsewhere. None where it reads of none, or where
// Render says what is wrong.
func (r Request) ClustersFor() map[string]types.NamespacedName {
	layer := LayerAt(r.Bundle, r.Path)
	if layer == nil || !makesClusters(r.Bundle) || !mentionsClusters(layer) {
		return nil
	}
	return r.clustersMade()
}

// clustersMade returns the RemoteClusters that layers of the bundle make, by their names.
func (r Request) clustersMade() map[string]types.NamespacedName {
	given, err := decodeObject(r.Inputs)
	if err != nil {
		return nil
	}
	inputs, _ := Resolve(r.Bundle, given)
	instance, found := cmp.Or(r.Instance, r.Layer), map[string]types.NamespacedName{}
	for i := range r.Bundle.Spec.Layers {
		layer := &r.Bundle.Spec.Layers[i]
		if layer.RemoteCluster == nil {
			continue
		}
		namespace := r.Cluster.Name.Namespace
		if r.Cluster.Name.Name == "" {
			if namespace, err = namespaceOf(r.Bundle, layer, instance, inputs); err != nil {
				return nil
			}
		}
		found[layer.Name] = types.NamespacedName{Namespace: namespace, Name: Name(instance, layer.Name)}
	}
	return found
}

func makesClusters(bundle *v1alpha1.ApplicationBundle) bool {
	return slices.ContainsFunc(bundle.Spec.Layers, func(layer v1alpha1.BundleLayer) bool { return layer.RemoteCluster != nil })
}

// mentionsClusters tells whether templates of a layer may read of clusters that others make.
func mentionsClusters(layer *v1alpha1.BundleLayer) bool {
	text, err := json.Marshal(layer)
	return err == nil && bytes.Contains(text, []byte(varClusters))
}

// ReadsClusters tells whether some layer of a bundle reads of clusters that others make.
func ReadsClusters(bundle *v1alpha1.ApplicationBundle) bool {
	return makesClusters(bundle) && slices.ContainsFunc(bundle.Spec.Layers, func(layer v1alpha1.BundleLayer) bool { return mentionsClusters(&layer) })
}

// isTemplate tells whether a text has something to be filled.
func isTemplate(text string) bool { return strings.Contains(text, "${") }
