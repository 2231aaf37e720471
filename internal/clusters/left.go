// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// Through returns those of some HelmReleases that install on a cluster.
func Through(cluster types.NamespacedName, releases []unstructured.Unstructured) []unstructured.Unstructured {
	var found []unstructured.Unstructured
	for i := range releases {
		if layers.TargetOf(&releases[i]) == cluster.String() {
			found = append(found, releases[i])
		}
	}
	return found
}

// Left names what a RemoteCluster that is being deleted waits for, in order:
// layers that still have something there or belong there, or whose status does not
// count, and the HelmReleases that install there. Where what is there is given up, it
// waits for the layers that go with it. namespace is that of clusters whose namespace is not given.
func Left(cluster *v1alpha1.RemoteCluster, all []v1alpha1.AddonsLayer, through []unstructured.Unstructured, namespace string) []string {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	var found []string
	for i := range all {
		layer := &all[i]
		// What a layer that has moved was deployed on last does not matter once
		// that is given up: it may wait for a layer that waits for this to end.
		named := placement.Of(layer, namespace) == name || slices.Contains(layers.ClustersLeft(layer), name)
		waits := named && !layers.IsForsaken(layer, cluster) || goesAlong(layer, cluster, namespace)
		if waits || hasObjects(layer, name) || v1alpha1.IsForeign(layer.Status.Conditions) {
			found = append(found, "AddonsLayer "+layer.Name)
		}
	}
	for i := range through {
		found = append(found, objects.IDOf(&through[i]).String())
	}
	slices.Sort(found)
	return found
}

// goesAlong tells whether a layer goes with a RemoteCluster that is given up. By that alone
// the layer knows that it is not to wait for an answer, so that the RemoteCluster goes after it.
// A layer that has something on yet another cluster may take longer, and stays after it.
func goesAlong(layer *v1alpha1.AddonsLayer, cluster *v1alpha1.RemoteCluster, namespace string) bool {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	if !layers.IsGivenUp(cluster) || placement.Of(layer, namespace) != name ||
		slices.ContainsFunc(layers.ClustersLeft(layer), func(other types.NamespacedName) bool { return other != name }) {
		return false
	}
	// A layer of a Platform is deleted once what it has here is gone.
	return layer.DeletionTimestamp != nil ||
		layer.Labels[v1alpha1.PlatformLabel] != "" && layer.Status.Cluster == name.String() && len(layer.Status.Resources) > 0
}

// ClaimsLeft names the claims that a RemoteCluster that is being deleted waits for, in order:
// those that have objects there, unless what is there is given up.
func ClaimsLeft(cluster *v1alpha1.RemoteCluster, claims []*v1alpha1.CapabilityClaim) []string {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	var found []string
	for _, claim := range claims {
		isThere := func(known v1alpha1.Dependent) bool { return known.Cluster == name.String() }
		if !layers.IsGivenUp(cluster) && slices.ContainsFunc(claim.Status.Objects, isThere) {
			found = append(found, "CapabilityClaim "+claim.Namespace+"/"+claim.Name)
		}
	}
	slices.Sort(found)
	return found
}

// Again returns when a RemoteCluster is looked at next where nobody wakes it before.
// Nobody is woken by a release that goes, and a layer does not name a cluster that it
// has left before it was deployed there.
func Again(cluster *v1alpha1.RemoteCluster, d Decision, now time.Time) time.Duration {
	again := IntervalOf(cluster)
	if !d.Until.IsZero() {
		again = min(again, max(d.Until.Sub(now), time.Second))
	}
	return again
}

// hasObjects tells whether a layer says that it has objects on a cluster.
func hasObjects(layer *v1alpha1.AddonsLayer, cluster types.NamespacedName) bool {
	return slices.ContainsFunc(layer.Status.Resources, func(r v1alpha1.Resource) bool { return r.Cluster == cluster.String() })
}

// Refreshed returns a copy of a kubeconfig that somebody has deleted, and that stays
// for now, as the Secret is by now; nil where it is. With credentials that do not
// count any more nothing could be uninstalled through it, and it would stay for good.
func Refreshed(o Observation) *unstructured.Unstructured {
	verdict := Judge(o)
	if o.Live == nil || o.Live.GetDeletionTimestamp() == nil || o.Access == nil || o.Unlocated || o.Live.GetLabels()[v1alpha1.ClusterLabel] != o.Cluster.Name ||
		verdict.Keeps {
		return nil
	}
	copied := o.wantedCopy(verdict.Record)
	wanted := copied.Manifest()
	if isCopy(o.Live, wanted) {
		return nil
	}
	refreshed := o.Live.DeepCopy()
	refreshed.Object["data"] = wanted.Object["data"]
	annotations := refreshed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{v1alpha1.ClusterUIDAnnotation, v1alpha1.CopyMACAnnotation} {
		if annotations[key] = wanted.GetAnnotations()[key]; annotations[key] == "" {
			delete(annotations, key)
		}
	}
	refreshed.SetAnnotations(annotations)
	return refreshed
}

// LetsCopyGo tells whether a copy of a kubeconfig that somebody has deleted may go,
// so that it can be made anew. Without it Flux would skip to uninstall a release, so
// that it stays while one is being uninstalled, or is about to be, and for as long
// as there is nothing else that it could be made of, or another cluster answers.
func LetsCopyGo(o Observation, through []unstructured.Unstructured) bool {
	if o.Live == nil || o.Live.GetDeletionTimestamp() == nil || !o.Source.Found || o.Source.Err != nil || !Judge(o).Open {
		return false
	}
	return !slices.ContainsFunc(through, func(release unstructured.Unstructured) bool {
		return release.GetDeletionTimestamp() != nil || release.GetLabels()[v1alpha1.OrphanedLabel] != ""
	})
}
