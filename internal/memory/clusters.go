// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"

	"github.com/strata-project/strata/internal/ownwrites"
)

// Clusters remembers RemoteClusters as this process has written them last, and
// which of their statuses wait. It is safe for concurrent use.
type Clusters struct {
	mu   sync.Mutex
	last map[types.NamespacedName]*v1alpha1.RemoteCluster
	// due holds until when a status waits that was put off.
	due Due[types.NamespacedName]
}

// NewClusters returns a memory of no RemoteClusters.
func NewClusters() *Clusters {
	return &Clusters{last: map[types.NamespacedName]*v1alpha1.RemoteCluster{}}
}

func nameOf(cluster *v1alpha1.RemoteCluster) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
}

// Wrote records a RemoteCluster as it was after a write, which also tells what
// was put off.
func (c *Clusters) Wrote(cluster *v1alpha1.RemoteCluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[nameOf(cluster)] = cluster.DeepCopy()
	c.due.Forget(nameOf(cluster))
}

// Newest returns the newer of a RemoteCluster in the cache and the last one
// written: one whose status does not name yet what was made for it would have
// that made again. It is cached itself or a copy of the memory's.
func (c *Clusters) Newest(cached *v1alpha1.RemoteCluster) *v1alpha1.RemoteCluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last[nameOf(cached)]
	if last == nil {
		return cached
	}
	if last.UID != cached.UID || !ownwrites.Older(cached.ResourceVersion, last.ResourceVersion) {
		delete(c.last, nameOf(cached))
		return cached
	}
	return last.DeepCopy()
}

// PutOff returns how long a status still waits that may be written so long after
// it was first put off; 0 when that is over.
func (c *Clusters) PutOff(cluster *v1alpha1.RemoteCluster, now time.Time, lag time.Duration) time.Duration {
	return c.due.PutOff(nameOf(cluster), now, lag)
}

// Forget drops a RemoteCluster that is gone.
func (c *Clusters) Forget(cluster types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, cluster)
	c.due.Forget(cluster)
}
