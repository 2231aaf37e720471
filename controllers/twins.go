// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

// recordedUID is what Strata's own copy of a kubeconfig has said last.
type recordedUID struct {
	// of is the RemoteCluster, and uid the cluster that may be written to.
	of  types.UID
	uid string
}

// hub returns the UID of the cluster that the controller runs in; empty where it is
// not known.
func (r *remotes) hub() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uids[""]
}

// recordedFor returns which cluster may be written to. said is what Strata's own copy
// of the kubeconfig says; where somebody has deleted that, what it said last counts.
func (r *remotes) recordedFor(cluster string, of types.UID, said string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if said != "" {
		r.recorded[cluster] = recordedUID{of, said}
	}
	if known := r.recorded[cluster]; known.of == of {
		return known.uid
	}
	return ""
}

// identified notes what a cluster is known by, and returns the names of all clusters
// of which it matters now, or did.
func (r *remotes) identified(cluster, uid string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.uids[cluster]
	if was == uid {
		return nil
	}
	before := r.same(was)
	r.known = nil
	delete(r.uids, cluster)
	if uid != "" {
		r.uids[cluster] = uid
	}
	var found []string
	for _, names := range [][]string{before, r.same(uid)} {
		if len(names) > 1 {
			found = append(found, names...)
		}
	}
	if len(found) > 0 {
		r.changes++
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// same returns the names of a cluster, in order; the one that the controller runs in
// has an empty one.
func (r *remotes) same(uid string) []string {
	var found []string
	for name, known := range r.uids {
		if known == uid && uid != "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// named returns all names of a cluster, in order.
func (r *remotes) named(uid string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.same(uid)
}

// twinsOf returns the other names of a cluster, in order.
func (r *remotes) twinsOf(cluster string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := r.uids[cluster]
	return slices.DeleteFunc(r.same(uid), func(name string) bool { return name == cluster })
}

// twins returns the clusters that have several names. It is not to be changed.
func (r *remotes) twins() layers.Twins {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = layers.TwinsOf(r.uids)
	}
	return r.known
}

// mistakes notes why people have to decide on a cluster; empty where they need not.
// It tells whether that is news.
func (r *remotes) mistakes(cluster, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.mistaken[cluster]
	r.mistaken[cluster] = why
	if why == "" {
		delete(r.mistaken, cluster)
	}
	return was != why
}

// mistakenFor returns why people have to decide on a cluster; empty where they need
// not.
func (r *remotes) mistakenFor(cluster string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mistaken[cluster]
}

// wakeTwins looks again at clusters of which others have turned out to be the same,
// and at their layers.
func (r *AddonsLayerReconciler) wakeTwins(ctx context.Context, clusters []string) {
	if len(clusters) == 0 {
		return
	}
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list layers")
	}
	for i := range list.Items {
		layer := &list.Items[i]
		if slices.Contains(clusters, layers.ClusterName(layers.PlaceOf(layer, r.Settings.Namespace))) {
			r.looks.set(layer.Name, nil)
			r.wake(layer.Name)
		}
	}
	for _, cluster := range clusters {
		if namespace, name, remote := strings.Cut(cluster, "/"); remote {
			r.wakeCluster(types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
}

// allSeen tells whether this process has looked at every RemoteCluster, so that it
// knows which of them are the same cluster.
func (r *AddonsLayerReconciler) allSeen(ctx context.Context) bool {
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return !slices.ContainsFunc(list.Items, func(c v1alpha1.RemoteCluster) bool {
		return !r.remotes.seen(client.ObjectKeyFromObject(&c).String())
	})
}
