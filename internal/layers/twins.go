// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/reserved"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// Twins holds the other names of each cluster that Strata knows by several: those of
// RemoteClusters as IDs have them, and an empty one for the cluster that Strata runs
// in. They are one for conflicts: an object has one owner, and a Helm release is
// installed once, whatever name leads there.
type Twins map[string][]string

// IDs returns an object by all names of its cluster, its own first.
func (t Twins) IDs(id objects.ID) []objects.ID {
	found := []objects.ID{id}
	for _, cluster := range t[id.Cluster] {
		found = append(found, id.On(cluster))
	}
	return found
}

// Identities returns what HelmReleaseIdentity says of a Helm release by all names of
// its cluster, its own first.
func (t Twins) Identities(identity string) []string {
	found := []string{identity}
	cluster, release, known := clusterIn(identity)
	if !known {
		return found
	}
	for _, other := range t[cluster] {
		namespace, name, remote := strings.Cut(other, "/")
		if !remote {
			found = append(found, release)
			continue
		}
		found = append(found, namespace+"/"+reserved.KubeConfigName(name)+"/"+release)
	}
	return found
}

// clusterIn takes an identity apart: the cluster as IDs name it, and the Helm release
// there. A cluster that is reached by a kubeconfig other than Strata's own copies is
// not known.
func clusterIn(identity string) (cluster, release string, known bool) {
	parts := strings.SplitN(identity, "/", 3)
	if len(parts) < 3 {
		return "", identity, true
	}
	name, ours := strings.CutPrefix(parts[1], reserved.KubeConfigName(""))
	return parts[0] + "/" + name, parts[2], ours
}

// AllIDs returns objects by all names of their clusters.
func (t Twins) AllIDs(ids iter.Seq[objects.ID]) iter.Seq[objects.ID] {
	return func(yield func(objects.ID) bool) {
		for id := range ids {
			for _, twin := range t.IDs(id) {
				if !yield(twin) {
					return
				}
			}
		}
	}
}

// AllIdentities is as AllIDs, of Helm releases.
func (t Twins) AllIdentities(identities iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for identity := range identities {
			for _, twin := range t.Identities(identity) {
				if !yield(twin) {
					return
				}
			}
		}
	}
}

// Elsewhere returns the name by which another layer reaches the cluster of this one,
// where it is another name, and whether it does. What such a layer has is not taken
// over: both layers must name the same RemoteCluster for that.
func (o Observation) Elsewhere(other *v1alpha1.AddonsLayer) (cluster string, elsewhere bool) {
	twins := o.Twins[o.cluster()]
	place := placement.ClusterName(placement.Of(other, o.Settings.Namespace))
	if len(twins) == 0 || place == o.cluster() {
		return "", false
	}
	if slices.Contains(twins, place) {
		return place, true
	}
	for _, left := range ClustersLeft(other) {
		if slices.Contains(twins, left.String()) {
			return left.String(), true
		}
	}
	return "", false
}

// nameOfCluster names a cluster as messages do.
func nameOfCluster(cluster string) string {
	if cluster == "" {
		return "the cluster that Strata runs in"
	}
	return "RemoteCluster " + cluster
}

// TwinsOf returns the twins among clusters, by what each is known by; what is not
// known has none.
func TwinsOf(uids map[string]string) Twins {
	groups := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(uids)) {
		if uid := uids[name]; uid != "" {
			groups[uid] = append(groups[uid], name)
		}
	}
	found := Twins{}
	for _, names := range groups {
		if len(names) < 2 {
			continue
		}
		for _, name := range names {
			found[name] = slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		}
	}
	return found
}

// Apart returns what tells of another layer that it can list nothing which this one has or
// lists, because of the cluster that it is on: to look at what each of them lists costs a
// fleet of a thousand clusters most of its time.
//
// What the layers of another cluster list is there, or on the cluster that Strata runs in
// under a name with a digest of theirs, and so it is no other cluster's. A layer is compared
// with all where it is on the cluster that Strata runs in, which may list anything there;
// where it has something there that was not put beside its own cluster, as one that has moved
// has; and where it makes RemoteClusters, whose names have no digest.
func (o Observation) Apart() func(other *v1alpha1.AddonsLayer) bool {
	own, here := o.cluster(), map[string]bool{"": true}
	if own == "" || !o.isBeside(own) {
		return func(*v1alpha1.AddonsLayer) bool { return false }
	}
	for _, twin := range o.Twins.IDs(objects.ID{Cluster: own}) {
		here[twin.Cluster] = true
	}
	for id := range o.Twins.AllIDs(maps.Keys(o.Live)) {
		here[id.Cluster] = true
	}
	for _, left := range ClustersLeft(o.Layer) {
		here[placement.ClusterName(left)] = true
	}
	return func(other *v1alpha1.AddonsLayer) bool {
		return !here[placement.ClusterName(placement.Of(other, o.Settings.Namespace))]
	}
}

// isBeside tells whether all that the layer has or lists on the cluster that Strata runs in
// was put there for its own cluster.
func (o Observation) isBeside(own string) bool {
	for id, live := range o.Live {
		switch {
		case id.Cluster != "":
		case id.Kind == v1alpha1.RemoteClusterKind:
			return false
		case live != nil && TargetOf(live) != own && live.GetAnnotations()[v1alpha1.PlacedForAnnotation] != own:
			return false
		}
	}
	return true
}
