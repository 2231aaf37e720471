// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// unshared returns the copies of Secrets that layers of other clusters have, and would not
// be given now. It reads no more of Secrets than their metadata. namespace is the
// controller's, which layers and clusters without one mean.
func (c *Cluster) unshared(ctx context.Context, namespace string) ([]checks.Unshared, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	copies, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LayerLabel})
	if err != nil || len(copies.Items) == 0 {
		return nil, err
	}
	s, err := c.Read(ctx, snapshot.Layers, snapshot.Clusters, snapshot.HostClusters, snapshot.Providers)
	if err != nil {
		return nil, err
	}
	settings := defaultSettings
	settings.Namespace = namespace
	referrers := placement.Referrers{
		Clusters: s.Clusters, Hosts: s.HostClusters, Providers: s.Providers, Layers: s.Layers, NamespaceOf: settings.NamespaceFor,
	}
	var found []checks.Unshared
	for i := range copies.Items {
		place, origin, is := copiedFor(s, &copies.Items[i], namespace)
		if !is {
			continue
		}
		beside := origin
		beside.Namespace = place.Cluster.Namespace
		live, err := secrets.Namespace(beside.Namespace).Get(ctx, beside.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // it is a copy of what is elsewhere, and was made with leave
		}
		if err != nil {
			return nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
		if err != nil {
			return nil, err
		}
		seen := placement.Looked{Object: &unstructured.Unstructured{Object: content}, Unasked: "a check does not ask"}
		unshared := checks.Unshared{Layer: place.Layer, Secret: beside.Key().String(), Cluster: placement.ClusterName(place.Cluster), Never: referrers.Kept(beside)}
		if verdict := place.Judge(origin, beside, seen); unshared.Never == "" && verdict.Unshared {
			unshared.Share = place.HowToShare(beside)
		} else if unshared.Never == "" {
			continue
		}
		found = append(found, unshared)
	}
	slices.SortFunc(found, func(a, b checks.Unshared) int {
		return strings.Compare(a.Layer+" "+a.Secret, b.Layer+" "+b.Secret)
	})
	return found, nil
}

// copiedFor says which layer has a copy, on which cluster, and what it is a copy of; false
// for what was copied with leave, and for what is no copy.
func copiedFor(s *snapshot.Snapshot, copied *metav1.PartialObjectMetadata, namespace string) (placement.Place, objects.ID, bool) {
	cluster, name, placed := strings.Cut(copied.Annotations[v1alpha1.PlacedForAnnotation], "/")
	of := strings.Split(copied.Annotations[v1alpha1.CopyOfAnnotation], "/")
	if !placed || len(of) != 3 || of[0] != "Secret" {
		return placement.Place{}, objects.ID{}, false
	}
	place := placement.Place{Layer: copied.Labels[v1alpha1.LayerLabel], Cluster: types.NamespacedName{Namespace: cluster, Name: name}}
	if layer := s.Layer(place.Layer); layer != nil && placement.Of(layer, namespace) == place.Cluster {
		place.Account = layer.Spec.ServiceAccountName
	}
	origin := objects.ID{Kind: "Secret", Namespace: of[1], Name: of[2]}
	live := &unstructured.Unstructured{}
	live.SetLabels(copied.Labels)
	live.SetAnnotations(copied.Annotations)
	return place, origin, place.WasGiven(origin, live)
}
