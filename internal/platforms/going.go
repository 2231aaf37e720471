// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/placement"
)

// How much a policy leaves: where two apply, the one that leaves more is taken.
var leaves = map[v1alpha1.DeletionPolicy]int{
	"": 0, v1alpha1.DeletionPolicyDelete: 1, v1alpha1.DeletionPolicyOrphan: 2, v1alpha1.DeletionPolicyAbandon: 3,
}

// gentler returns which of two policies leaves more, and the first of equals.
func gentler(a, b v1alpha1.DeletionPolicy) v1alpha1.DeletionPolicy {
	if leaves[b] > leaves[a] {
		return b
	}
	return a
}

// policyAt returns what a policy is on a cluster: the one that Strata runs in is never
// abandoned, and there what would be stays without owner.
func policyAt(policy v1alpha1.DeletionPolicy, place types.NamespacedName) v1alpha1.DeletionPolicy {
	if policy == v1alpha1.DeletionPolicyAbandon && place.Name == "" {
		return v1alpha1.DeletionPolicyOrphan
	}
	return policy
}

// alongWith returns what becomes of what Platforms have on a cluster that goes; empty
// where it is not taken along.
func alongWith(remote *v1alpha1.RemoteCluster) v1alpha1.DeletionPolicy {
	if remote.Annotations[v1alpha1.AbandonAnnotation] == "true" {
		return v1alpha1.DeletionPolicyAbandon
	}
	switch policy := remote.Spec.DeletionPolicy; policy {
	case v1alpha1.ClusterDeletionDelete, v1alpha1.ClusterDeletionOrphan, v1alpha1.ClusterDeletionAbandon:
		return v1alpha1.DeletionPolicy(policy)
	default:
		return ""
	}
}

// goes says that a cluster is being deleted, by itself or with the layer of another
// Platform that has made it; empty where it is not.
func (d *decider) goes(remote *v1alpha1.RemoteCluster) string {
	name := types.NamespacedName{Namespace: remote.Namespace, Name: remote.Name}
	if remote.DeletionTimestamp != nil {
		return fmt.Sprintf("RemoteCluster %s is being deleted", name)
	}
	if maker, _ := d.makerOf(name); maker != nil && maker.DeletionTimestamp != nil {
		return fmt.Sprintf("RemoteCluster %s goes with layer %s of Platform %s", name, maker.Name, maker.Labels[v1alpha1.PlatformLabel])
	}
	return ""
}

// part adds a layer to those that are deleted, with the policy by which it goes. One that is
// being deleted goes by a policy that leaves more from then on: its cluster may have been given
// up meanwhile.
func (d *decider) part(layer *v1alpha1.AddonsLayer, policy v1alpha1.DeletionPolicy) {
	marked := d.marked(layer)
	policy = policyAt(policy, placement.Of(layer, d.Namespace))
	if layer.DeletionTimestamp != nil {
		if leaves[policy] > max(leaves[layer.Spec.DeletionPolicy], leaves[v1alpha1.DeletionPolicyDelete]) {
			marked = marked.DeepCopy()
			marked.Spec.DeletionPolicy = policy
		}
		if marked != layer {
			d.decision.Write = append(d.decision.Write, marked)
		}
		return
	}
	d.decision.Delete = append(d.decision.Delete, layer)
	if layer.Spec.DeletionPolicy == policy && layer.Spec.OrphanGrace != nil {
		if marked != layer {
			d.decision.Write = append(d.decision.Write, marked)
		}
		return
	}
	changed := marked.DeepCopy()
	changed.Spec.DeletionPolicy = policy
	if changed.Spec.OrphanGrace == nil {
		// Nothing will adopt what it has, and a grace for each in turn would add up;
		// where somebody has given the layer one, that stays.
		changed.Spec.OrphanGrace = &metav1.Duration{}
	}
	d.decision.Write = append(d.decision.Write, changed)
}

// confirms tells whether the platform confirms that a layer goes with volumes and custom
// objects, which the layer does not know yet. What goes while the platform stays is confirmed
// on the layer alone.
func (d *decider) confirms(layer *v1alpha1.AddonsLayer) bool {
	return d.Platform.DeletionTimestamp != nil && d.Platform.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" &&
		layer.Annotations[v1alpha1.ConfirmDeletionAnnotation] != "true"
}

// marked returns a layer with what the platform says of its deletion: the layer itself where
// that is nothing new.
func (d *decider) marked(layer *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	confirms := d.confirms(layer)
	abandons := d.Platform.DeletionTimestamp != nil && layer.Annotations[v1alpha1.AbandonAnnotation] != "true" &&
		d.givesUp(placement.Of(layer, d.Namespace))
	if !confirms && !abandons {
		return layer
	}
	changed := layer.DeepCopy()
	if confirms {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.ConfirmDeletionAnnotation, "true")
	}
	if abandons {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.AbandonAnnotation, "true")
	}
	return changed
}

// givesUp tells whether the platform, when it is deleted, leaves behind what it has on a
// cluster: it says so, and the cluster does not answer, is not the right one, or has no
// RemoteCluster any more. A cluster that answers is emptied as always.
func (d *decider) givesUp(place types.NamespacedName) bool {
	return place.Name != "" && d.Platform.Annotations[v1alpha1.AbandonAnnotation] == "true" && doesNotAnswer(d.Clusters[place])
}

// doesNotAnswer tells whether nothing can be uninstalled from a cluster; remote is nil where
// there is no RemoteCluster.
func doesNotAnswer(remote *v1alpha1.RemoteCluster) bool {
	return remote == nil || awayMessage(remote) != "" || v1alpha1.IsMistaken(remote.Status.Conditions)
}

// giveUp notes the clusters that layers of the platform have made and that it leaves behind:
// others who have something there do not wait for them either.
func (d *decider) giveUp() []types.NamespacedName {
	var names []types.NamespacedName
	for name := range d.made() {
		if d.givesUp(name) && alongWith(d.Clusters[name]) != v1alpha1.DeletionPolicyAbandon {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	d.Clusters = maps.Clone(d.Clusters)
	for _, name := range names {
		remote := d.Clusters[name].DeepCopy()
		metav1.SetMetaDataAnnotation(&remote.ObjectMeta, v1alpha1.AbandonAnnotation, "true")
		d.Clusters[name] = remote
	}
	return names
}

// made returns the clusters that layers of the platform have made, with these.
func (d *decider) made() map[types.NamespacedName]*v1alpha1.AddonsLayer {
	found := map[types.NamespacedName]*v1alpha1.AddonsLayer{}
	for name, remote := range d.Clusters {
		if maker := d.own[remote.Labels[v1alpha1.LayerLabel]]; maker != nil && hasMade(maker, remote) {
			found[name] = maker
		}
	}
	return found
}

// guests names who has something on a cluster that goes with a layer of the platform and
// is not taken along, sorted.
func (d *decider) guests(cluster types.NamespacedName) []string {
	along := alongWith(d.Clusters[cluster])
	var names []string
	for _, layer := range d.others.on[cluster] {
		switch {
		case along == v1alpha1.DeletionPolicyAbandon, along != "" && IsMade(layer):
		case IsMade(layer):
			names = append(names, "Platform "+layer.Labels[v1alpha1.PlatformLabel])
		default:
			names = append(names, "AddonsLayer "+layer.Name)
		}
	}
	return sorted(names)
}

// inTheWay says of each cluster that layers of the platform have made who has something
// there and is not taken along, and of Platforms which depend on this one that they are
// installed, sorted.
func (d *decider) inTheWay() []string {
	var all []string
	for cluster := range d.made() {
		if names := d.guests(cluster); len(names) > 0 {
			all = append(all, fmt.Sprintf("%s is on RemoteCluster %s, which this platform has made", strings.Join(names, ", "), cluster))
		}
	}
	before := comesAfter(d.Observation)
	for _, name := range Downstream(d.Observation) {
		// Those of a circle would wait for each other for ever.
		if len(d.others.of[name]) > 0 && !before[name] {
			all = append(all, fmt.Sprintf("Platform %s depends on this one", name))
		}
	}
	return sorted(all)
}

// blocked says who is in the way of the platform's deletion; empty where nobody is.
func (d *decider) blocked() string {
	if d.Platform.Annotations[v1alpha1.ForceDeleteAnnotation] == "true" {
		return ""
	}
	const most = 5
	all := d.inTheWay()
	if len(all) == 0 {
		return ""
	}
	more := ""
	if n := len(all) - most; n > 0 {
		all, more = all[:most], fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("is not deleted: %s%s; delete that first, take it off the cluster, or set the annotation %s to \"true\"%s",
		strings.Join(all, ", "), more, v1alpha1.ForceDeleteAnnotation, d.toAbandon(slices.Collect(maps.Keys(d.made()))))
}

// toAbandon says that the platform can leave behind what is on clusters that do not answer;
// empty where all of these do, or it says so already.
func (d *decider) toAbandon(places []types.NamespacedName) string {
	if d.Platform.Annotations[v1alpha1.AbandonAnnotation] == "true" ||
		!slices.ContainsFunc(places, func(place types.NamespacedName) bool { return place.Name != "" && doesNotAnswer(d.Clusters[place]) }) {
		return ""
	}
	return fmt.Sprintf("; the annotation %s: \"true\" on the Platform leaves behind what is on clusters that do not answer "+
		"(kubectl strata deprovision --platform %s --abandon --plan shows what that is)", v1alpha1.AbandonAnnotation, d.Platform.Name)
}

// InTheWay says who is in the way of a Platform's deletion, whether it is being deleted or
// not; empty where nobody is.
func InTheWay(o Observation) string {
	d := newDecider(o)
	d.giveUp()
	return d.blocked()
}

// leave deletes the layers that are not to be there any more. One that has made a cluster
// stays with all that the platform has there as long as others are on it.
func (d *decider) leave() {
	going := map[types.NamespacedName]v1alpha1.DeletionPolicy{}
	stays := map[types.NamespacedName]bool{}
	for cluster, maker := range d.made() {
		if d.keep[maker.Name] || !IsMade(maker) {
			continue
		}
		if guests := d.guests(cluster); len(guests) > 0 && maker.DeletionTimestamp == nil {
			stays[cluster], d.keep[maker.Name] = true, true
			d.waits = append(d.waits, complaint{v1alpha1.ReasonDeletionBlocked, fmt.Sprintf(
				"layer %s stays: %s is on RemoteCluster %s, which it has made", maker.Name, strings.Join(guests, ", "), cluster)})
			continue
		}
		going[cluster] = alongWith(d.Clusters[cluster])
	}
	slices.SortFunc(d.waits, func(a, b complaint) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.message, b.message))
	})
	for _, layer := range d.Layers {
		place := placement.Of(layer, d.Namespace)
		d.keep[layer.Name] = d.keep[layer.Name] || stays[place]
		if !IsMade(layer) || d.keep[layer.Name] {
			continue
		}
		if d.drops(layer) && !isDropped(layer) {
			changed := layer.DeepCopy()
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.PlatformDroppedAnnotation, "true")
			d.decision.Write = append(d.decision.Write, changed)
		}
		along, isAlong := d.along[layer.Name]
		if policy := gentler(along, going[place]); isAlong || policy != "" {
			d.part(layer, gentler(layer.Spec.DeletionPolicy, policy))
			continue
		}
		if layer.DeletionTimestamp != nil {
			continue
		}
		d.decision.Delete = append(d.decision.Delete, layer)
	}
}

// drops tells whether others come after a layer that is not to be there any more although
// the platform stays on its cluster: it was switched off, or a version of the bundle has it
// no more.
func (d *decider) drops(layer *v1alpha1.AddonsLayer) bool {
	stays := d.Platform.DeletionTimestamp == nil && slices.ContainsFunc(d.members, func(m *member) bool {
		return m.gone == "" && clusterValue(m.target) == layer.Labels[v1alpha1.PlatformClusterLabel]
	})
	return stays && slices.ContainsFunc(d.others.on[placement.Of(layer, d.Namespace)], func(other *v1alpha1.AddonsLayer) bool {
		return IsMade(other) && dependsOn(other, layer.Name)
	})
}

// isDropped tells whether that was said of a layer. What others have on its cluster does not
// come after it: it would wait for them, and they for it.
func isDropped(layer *v1alpha1.AddonsLayer) bool {
	return layer.Annotations[v1alpha1.PlatformDroppedAnnotation] == "true"
}

func dependsOn(layer *v1alpha1.AddonsLayer, name string) bool {
	return slices.Contains(dependencies.Names(layer.Spec.Prereqs.DependsOn), name)
}
