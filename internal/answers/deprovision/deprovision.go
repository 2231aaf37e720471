// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deprovision says what the removal of layers would do, in order, and what
// stands in its way. It may import fleet, and the rules of the controller; it reads
// nothing but what it is given.
package deprovision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/platforms"
)

// Leaving is a layer that would be removed.
type Leaving struct {
	// Turn in which it goes: those of one turn go together. 0 where it does not go.
	Turn    int    `json:"turn"`
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	Version string `json:"version"`
	// After are the layers that go before it.
	After []string `json:"after"`
	// Releases that are uninstalled.
	Releases []string `json:"releases"`
	// LeftBehind are the releases and objects that stay on its cluster, because that is given
	// up.
	LeftBehind []string `json:"leftBehind"`
	// InTheWay says what keeps it from going, or from going well.
	InTheWay []string `json:"inTheWay"`
	// Notes say what else becomes of something.
	Notes []string `json:"notes"`
}

// Seen is what was found out about a layer that is on the cluster that Strata runs
// in.
type Seen struct {
	// Blockers stand in the way of its deletion.
	Blockers []layers.Blocker
	// Doomed counts, for each entry of deleteBefore, what is deleted first; -1 where
	// that is not known.
	Doomed []int
	// Unknown says what could not be looked up.
	Unknown []string
}

// Removal is what is decided from.
type Removal struct {
	fleet.World
	// Going are the layers that would be removed.
	Going []*v1alpha1.AddonsLayer
	// Platform that would be deleted with its layers; empty for none.
	Platform string
	// Abandon asks what would be if the Platform gave up what is on clusters that do not
	// answer.
	Abandon bool
	// Releases are all HelmReleases; nil where they are not known, and
	// ReleasesUnread says why.
	Releases       []*unstructured.Unstructured
	ReleasesUnread string
	// Balancers are the Services of type LoadBalancer of the cluster that Strata runs
	// in, as namespace/name.
	Balancers map[string]bool
	// Seen is what was found out about layers, by their names.
	Seen map[string]Seen
}

// Of says what the removal of layers would do, in order, and what stands in
// its way.
func Of(r Removal) []Leaving {
	going := map[string]*v1alpha1.AddonsLayer{}
	for _, layer := range r.Going {
		going[layer.Name] = layer
	}
	releases, blocked := r.releasesByLayer(), r.platformBlocked()
	found := []Leaving{}
	for _, departure := range layers.Departures(r.Going, r.Layers, r.Now) {
		layer := going[departure.Name]
		if layer == nil {
			continue
		}
		one := Leaving{
			Turn: departure.Turn, Name: layer.Name, Cluster: r.ClusterOf(layer), Version: layer.Spec.Version, After: append([]string{}, departure.After...),
			Releases: []string{}, LeftBehind: []string{}, InTheWay: []string{}, Notes: []string{},
		}
		if blocked != "" {
			one.InTheWay = append(one.InTheWay, fmt.Sprintf("Platform %s %s", r.Platform, blocked))
		}
		if departure.Blocked != "" {
			one.InTheWay = append(one.InTheWay, departure.Blocked)
		}
		isForsaken := r.place(&one, layer)
		for _, release := range releases[layer.Name] {
			r.release(&one, layer, release, isForsaken)
		}
		slices.Sort(one.LeftBehind)
		r.seen(&one, layer)
		r.notes(&one, layer)
		found = append(found, one)
	}
	return found
}

// platformBlocked says who is in the way of the Platform's deletion; empty where nobody
// is.
func (r Removal) platformBlocked() string {
	o := platforms.Observation{
		Now: r.Now, Namespace: r.Namespace, Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{}, Platforms: map[string]*v1alpha1.Platform{},
	}
	for _, platform := range r.Platforms {
		o.Platforms[platform.Name] = platform
	}
	switch o.Platform = o.Platforms[r.Platform]; {
	case r.Platform == "":
		return ""
	case o.Platform == nil:
		o.Platform = &v1alpha1.Platform{} // It may not be listed, or is gone.
		o.Platform.Name = r.Platform
	}
	if r.Abandon {
		o.Platform = o.Platform.DeepCopy()
		metav1.SetMetaDataAnnotation(&o.Platform.ObjectMeta, v1alpha1.AbandonAnnotation, "true")
	}
	for _, cluster := range r.Clusters {
		o.Clusters[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}] = cluster
	}
	for _, layer := range r.Layers {
		if layer.Labels[v1alpha1.PlatformLabel] == r.Platform {
			o.Layers = append(o.Layers, layer)
		} else {
			o.Others = append(o.Others, layer)
		}
	}
	return platforms.InTheWay(o)
}

// Blocked tells whether something stands in the way of one of them.
func Blocked(all []Leaving) bool {
	return slices.ContainsFunc(all, func(l Leaving) bool { return len(l.InTheWay) > 0 })
}

func (r Removal) releasesByLayer() map[string][]*unstructured.Unstructured {
	found := map[string][]*unstructured.Unstructured{}
	for _, release := range r.Releases {
		if layer := release.GetLabels()[v1alpha1.LayerLabel]; layer != "" {
			found[layer] = append(found[layer], release)
		}
	}
	return found
}

// place says what is wrong with the cluster that a layer is on: without that nothing
// can be uninstalled. It tells whether what is there is given up.
func (r Removal) place(one *Leaving, layer *v1alpha1.AddonsLayer) bool {
	name := placement.Of(layer, r.Namespace)
	if name.Name == "" || len(layer.Status.Resources) == 0 {
		return false
	}
	at := slices.IndexFunc(r.Clusters, func(c *v1alpha1.RemoteCluster) bool {
		return types.NamespacedName{Namespace: c.Namespace, Name: c.Name} == name
	})
	var cluster *v1alpha1.RemoteCluster
	if at >= 0 {
		cluster = r.Clusters[at]
	}
	going := layer.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: r.Now}
	if r.abandons(layer) {
		metav1.SetMetaDataAnnotation(&going.ObjectMeta, v1alpha1.AbandonAnnotation, "true")
	}
	hint := fmt.Sprintf("to leave behind what is there set the annotation %s to \"true\"", v1alpha1.AbandonAnnotation)
	if layer.Labels[v1alpha1.PlatformLabel] == r.Platform && r.Platform != "" {
		hint += " on the Platform"
	}
	switch {
	case layers.IsForsaken(going, cluster):
		one.Notes = append(one.Notes, "what is on its cluster is given up and stays")
		for _, resource := range layer.Status.Resources {
			if resource.Cluster == name.String() {
				one.LeftBehind = append(one.LeftBehind, kinds.ParseResourceKind(resource.Kind).Kind+" "+strings.TrimPrefix(resource.Namespace+"/"+resource.Name, "/"))
			}
		}
		return true
	case cluster == nil:
		one.InTheWay = append(one.InTheWay, fmt.Sprintf("RemoteCluster %s does not exist; %s", name, hint))
	case layers.IsMistaken(cluster) != "":
		one.InTheWay = append(one.InTheWay, fmt.Sprintf("RemoteCluster %s: %s; %s", name, layers.IsMistaken(cluster), hint))
	case meta.IsStatusConditionFalse(cluster.Status.Conditions, v1alpha1.ReachableCondition):
		said := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReachableCondition).Message
		one.InTheWay = append(one.InTheWay, fmt.Sprintf("RemoteCluster %s does not answer (%s); %s", name, said, hint))
	}
	return false
}

// abandons tells whether the Platform that would be deleted gives up what a layer of it has on
// a cluster that does not answer.
func (r Removal) abandons(layer *v1alpha1.AddonsLayer) bool {
	if r.Platform == "" || layer.Labels[v1alpha1.PlatformLabel] != r.Platform {
		return false
	}
	return r.Abandon || slices.ContainsFunc(r.Platforms, func(platform *v1alpha1.Platform) bool {
		return platform.Name == r.Platform && platform.Annotations[v1alpha1.AbandonAnnotation] == "true"
	})
}

// release says what becomes of a release, and of volumes and balancers of it. What it has
// installed on a cluster that is given up stays there.
func (r Removal) release(one *Leaving, layer *v1alpha1.AddonsLayer, release *unstructured.Unstructured, isForsaken bool) {
	name := release.GetNamespace() + "/" + release.GetName()
	if isForsaken && layers.TargetOf(release) == placement.Of(layer, r.Namespace).String() {
		one.LeftBehind = append(one.LeftBehind, "what HelmRelease "+name+" has installed")
		return
	}
	if layer.Spec.OnDeletion() != v1alpha1.DeletionPolicyDelete {
		return
	}
	one.Releases = append(one.Releases, name)
	annotations := release.GetAnnotations()
	byStrata := annotations[v1alpha1.SuspendedByHoldAnnotation] != "" || annotations[v1alpha1.SuspendedByLossAnnotation] != ""
	switch {
	case !objects.IsSuspended(release) || byStrata:
	case layer.Annotations[v1alpha1.AbandonAnnotation] == "true":
		one.Notes = append(one.Notes, fmt.Sprintf("HelmRelease %s is suspended: what it has installed stays", name))
	default:
		one.InTheWay = append(
			one.InTheWay,
			fmt.Sprintf(
				"HelmRelease %s is suspended, so that Flux would not uninstall it: resume it, or leave behind what it has installed with the annotation %s=\"true\"",
				name,
				v1alpha1.AbandonAnnotation,
			),
		)
	}
	entries, _, _ := unstructured.NestedSlice(release.Object, "status", "inventory", "entries")
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		id, _ := fields["id"].(string)
		// The form is namespace_name_group_kind.
		namespace, rest, _ := strings.Cut(id, "_")
		switch object, kind, _ := strings.Cut(rest, "_"); {
		case kind == "_PersistentVolumeClaim":
			one.Notes = append(one.Notes, fmt.Sprintf("PersistentVolumeClaim %s/%s goes with HelmRelease %s, unless its chart keeps it", namespace, object, name))
		case kind == "_Service" && one.Cluster == fleet.Home && r.Balancers[namespace+"/"+object]:
			one.Notes = append(one.Notes, fmt.Sprintf("Service %s/%s of type LoadBalancer goes with HelmRelease %s", namespace, object, name))
		}
	}
}

// confirmed tells whether it is confirmed that a layer goes with what its deletion would
// lose: on the layer, or on the Platform that would be deleted with it.
func (r Removal) confirmed(layer *v1alpha1.AddonsLayer) bool {
	return layer.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" ||
		slices.ContainsFunc(r.Platforms, func(platform *v1alpha1.Platform) bool {
			return platform.Name == r.Platform && platform.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" &&
				layer.Labels[v1alpha1.PlatformLabel] == r.Platform
		})
}

// seen says what was found out about the layer.
func (r Removal) seen(one *Leaving, layer *v1alpha1.AddonsLayer) {
	seen := r.Seen[layer.Name]
	for _, blocker := range seen.Blockers {
		text := blocker.String()
		if r.confirmed(layer) {
			one.Notes = append(one.Notes, text+", which is confirmed")
		} else {
			one.InTheWay = append(one.InTheWay, fmt.Sprintf("%s: delete them first, or set the annotation %s to \"true\"", text, v1alpha1.ConfirmDeletionAnnotation))
		}
	}
	for i, hook := range layer.Spec.DeleteBefore {
		what := strings.TrimSpace(hook.Kind + " " + hook.Namespace)
		switch {
		case i >= len(seen.Doomed) || seen.Doomed[i] < 0:
			one.Notes = append(one.Notes, fmt.Sprintf("deletes first what there is of %s (spec.deleteBefore); how many is not known", what))
		case seen.Doomed[i] > 0:
			one.Notes = append(one.Notes, fmt.Sprintf("deletes first %d of %s (spec.deleteBefore)", seen.Doomed[i], what))
		}
	}
	for _, unknown := range seen.Unknown {
		one.Notes = append(one.Notes, "not known: "+unknown)
	}
	slices.Sort(one.InTheWay)
}

func (r Removal) notes(one *Leaving, layer *v1alpha1.AddonsLayer) {
	add := func(format string, args ...any) { one.Notes = append(one.Notes, fmt.Sprintf(format, args...)) }
	if layer.Spec.OnDeletion() != v1alpha1.DeletionPolicyDelete {
		add("deletionPolicy is Orphan: everything stays, without an owner")
	}
	if hold := layers.HoldOf(layer, r.Now); hold.Active {
		add("is held (%s), which does not keep it from being deleted", hold.Reason)
	}
	if r.ReleasesUnread != "" {
		add("not known: which releases it has (%s)", r.ReleasesUnread)
	}
	if platform := layer.Labels[v1alpha1.PlatformLabel]; platform != "" && platforms.IsMade(layer) && platform != r.Platform {
		add("Platform %s would make it anew: take its cluster off that, or delete the Platform", platform)
	}
	if one.Cluster != fleet.Home && len(layer.Status.Resources) > 0 {
		add("not known: objects of others on %s, which is not asked", one.Cluster)
	}
}
