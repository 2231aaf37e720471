// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

func remoteCluster(uid, version, says string) *v1alpha1.RemoteCluster {
	return &v1alpha1.RemoteCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: types.UID(uid), ResourceVersion: version},
		Status:     v1alpha1.RemoteClusterStatus{Version: says},
	}
}

func TestNewestCluster(t *testing.T) {
	for name, test := range map[string]struct {
		written, cached *v1alpha1.RemoteCluster
		want            string
	}{
		"nothing written":   {nil, remoteCluster("a", "9", "cached"), "cached"},
		"cache lags behind": {remoteCluster("a", "10", "written"), remoteCluster("a", "9", "cached"), "written"},
		"cache has it":      {remoteCluster("a", "10", "written"), remoteCluster("a", "10", "cached"), "cached"},
		"cache is ahead":    {remoteCluster("a", "10", "written"), remoteCluster("a", "11", "cached"), "cached"},
		"another one":       {remoteCluster("a", "10", "written"), remoteCluster("b", "9", "cached"), "cached"},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClusters()
			if test.written != nil {
				c.Wrote(test.written)
				test.written.Status.Version = "changed afterwards"
			}
			for range 2 {
				got := c.Newest(test.cached)
				if got.Status.Version != test.want {
					t.Errorf("got the one that is %s, want %s", got.Status.Version, test.want)
				}
				if got != test.cached {
					got.Status.Version = "changed by whom it was given"
				}
			}
			c.Forget(types.NamespacedName{Namespace: "fleet", Name: "prod"})
			if c.Newest(test.cached) != test.cached {
				t.Error("a cluster that was forgotten is remembered")
			}
		})
	}
}

func TestPutOffCluster(t *testing.T) {
	const lag = 2 * time.Second
	c, now, prod := NewClusters(), time.Unix(1000, 0), remoteCluster("a", "1", "")
	wait := func(cluster *v1alpha1.RemoteCluster, want time.Duration) {
		t.Helper()
		if got := c.PutOff(cluster, now, lag); got != want {
			t.Errorf("%s/%s waits %s, want %s", cluster.Namespace, cluster.Name, got, want)
		}
	}
	other := remoteCluster("a", "1", "")
	other.Namespace = "elsewhere"
	wait(prod, lag)
	now = now.Add(500 * time.Millisecond)
	wait(prod, 1500*time.Millisecond)
	wait(other, lag)
	now = now.Add(1500 * time.Millisecond)
	wait(prod, 0)
	c.Wrote(prod)
	wait(prod, lag)
	c.Forget(types.NamespacedName{Namespace: "fleet", Name: "prod"})
	now = now.Add(100 * time.Millisecond)
	wait(prod, lag)
	now = now.Add(-time.Hour) // the clock is set back
	wait(prod, lag)
}
