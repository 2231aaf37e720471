// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/layers"
)

// recordedUID is what Strata's own copy of a kubeconfig has said last.
type recordedUID struct {
	// of is the RemoteCluster, and uid the cluster that may be written to.
	of  types.UID
	uid string
}

// Hub returns the UID of the cluster that the controller runs in; empty where it is
// not known.
func (r *Remotes) Hub() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uids[""]
}

// RecordedFor returns which cluster may be written to. said is what Strata's own copy
// of the kubeconfig says; where somebody has deleted that, what it said last counts.
func (r *Remotes) RecordedFor(cluster string, of types.UID, said string) string {
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

// Identified notes what a cluster is known by, and returns the names of all clusters
// of which it matters now, or did.
func (r *Remotes) Identified(cluster, uid string) []string {
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
func (r *Remotes) same(uid string) []string {
	var found []string
	for name, known := range r.uids {
		if known == uid && uid != "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// Named returns all names of a cluster, in order.
func (r *Remotes) Named(uid string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.same(uid)
}

// TwinsOf returns the other names of a cluster, in order.
func (r *Remotes) TwinsOf(cluster string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := r.uids[cluster]
	return slices.DeleteFunc(r.same(uid), func(name string) bool { return name == cluster })
}

// Twins returns the clusters that have several names. It is not to be changed.
func (r *Remotes) Twins() layers.Twins {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = layers.TwinsOf(r.uids)
	}
	return r.known
}

// Mistakes notes why people have to decide on a cluster; empty where they need not.
// It tells whether that is news.
func (r *Remotes) Mistakes(cluster, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.mistaken[cluster]
	r.mistaken[cluster] = why
	if why == "" {
		delete(r.mistaken, cluster)
	}
	return was != why
}

// MistakenFor returns why people have to decide on a cluster; empty where they need
// not.
func (r *Remotes) MistakenFor(cluster string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mistaken[cluster]
}
