// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
)

// clusterReader lists RemoteClusters.
type clusterReader struct {
	client.Reader
	items []v1alpha1.RemoteCluster
	err   error
}

func (r *clusterReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.RemoteClusterList).Items = r.items
	return r.err
}

func TestClusterMetrics(t *testing.T) {
	cluster := func(namespace, name string, ready, reachable metav1.ConditionStatus) v1alpha1.RemoteCluster {
		c := v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if ready != "" {
			c.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "Because", LastTransitionTime: metav1.Unix(500, 0)},
				{Type: v1alpha1.ReachableCondition, Status: reachable, LastTransitionTime: metav1.Unix(1000, 0)},
			}
		}
		return c
	}
	reader := &clusterReader{items: []v1alpha1.RemoteCluster{
		cluster("fleet", "away", metav1.ConditionFalse, metav1.ConditionFalse),
		cluster("fleet", "prod", metav1.ConditionTrue, metav1.ConditionTrue),
		cluster("other", "prod", metav1.ConditionUnknown, metav1.ConditionUnknown),
		cluster("fleet", "new", "", ""),
	}}
	prod := &reader.items[1].Status
	prod.Version, prod.Layers = "v1.30.1", v1alpha1.LayerCount{Deployed: 2, Total: 3}
	expire := metav1.Unix(2000, 0)
	prod.CredentialsExpire = &expire
	prod.Conditions = append(prod.Conditions, metav1.Condition{Type: v1alpha1.CredentialsExpiringCondition, Status: metav1.ConditionFalse})
	away := &reader.items[0].Status
	away.Conditions = append(away.Conditions, metav1.Condition{Type: v1alpha1.CredentialsExpiringCondition, Status: metav1.ConditionTrue})
	collector := NewClusterMetrics(reader)
	const want = `
# HELP strata_remote_cluster_credentials_expiration_timestamp_seconds When the credentials of each RemoteCluster end, in seconds since 1970.
# TYPE strata_remote_cluster_credentials_expiration_timestamp_seconds gauge
strata_remote_cluster_credentials_expiration_timestamp_seconds{remote_cluster="fleet/prod"} 2000
# HELP strata_remote_cluster_credentials_expiring Whether the credentials of each RemoteCluster end soon for how long they last: 1 or 0.
# TYPE strata_remote_cluster_credentials_expiring gauge
strata_remote_cluster_credentials_expiring{remote_cluster="fleet/away"} 1
strata_remote_cluster_credentials_expiring{remote_cluster="fleet/prod"} 0
# HELP strata_remote_cluster_info The version of Kubernetes that each RemoteCluster has answered.
# TYPE strata_remote_cluster_info gauge
strata_remote_cluster_info{remote_cluster="fleet/prod",version="v1.30.1"} 1
# HELP strata_remote_cluster_layers How many layers name each RemoteCluster.
# TYPE strata_remote_cluster_layers gauge
strata_remote_cluster_layers{remote_cluster="fleet/away"} 0
strata_remote_cluster_layers{remote_cluster="fleet/new"} 0
strata_remote_cluster_layers{remote_cluster="fleet/prod"} 3
strata_remote_cluster_layers{remote_cluster="other/prod"} 0
# HELP strata_remote_cluster_layers_deployed How many of the layers that name each RemoteCluster are deployed.
# TYPE strata_remote_cluster_layers_deployed gauge
strata_remote_cluster_layers_deployed{remote_cluster="fleet/away"} 0
strata_remote_cluster_layers_deployed{remote_cluster="fleet/new"} 0
strata_remote_cluster_layers_deployed{remote_cluster="fleet/prod"} 2
strata_remote_cluster_layers_deployed{remote_cluster="other/prod"} 0
# HELP strata_remote_cluster_reachable Whether each RemoteCluster answers: 1, 0, or -1 for unknown.
# TYPE strata_remote_cluster_reachable gauge
strata_remote_cluster_reachable{remote_cluster="fleet/away"} 0
strata_remote_cluster_reachable{remote_cluster="fleet/new"} -1
strata_remote_cluster_reachable{remote_cluster="fleet/prod"} 1
strata_remote_cluster_reachable{remote_cluster="other/prod"} -1
# HELP strata_remote_cluster_reachable_since_timestamp_seconds Since when each RemoteCluster has answered, or has not, in seconds since 1970.
# TYPE strata_remote_cluster_reachable_since_timestamp_seconds gauge
strata_remote_cluster_reachable_since_timestamp_seconds{remote_cluster="fleet/away"} 1000
strata_remote_cluster_reachable_since_timestamp_seconds{remote_cluster="fleet/prod"} 1000
# HELP strata_remote_cluster_ready Whether each RemoteCluster is Ready: 1, 0, or -1 for unknown.
# TYPE strata_remote_cluster_ready gauge
strata_remote_cluster_ready{remote_cluster="fleet/away"} 0
strata_remote_cluster_ready{remote_cluster="fleet/new"} -1
strata_remote_cluster_ready{remote_cluster="fleet/prod"} 1
strata_remote_cluster_ready{remote_cluster="other/prod"} -1
# HELP strata_remote_cluster_reason The reason of each RemoteCluster's Ready condition: 1 for the one it has.
# TYPE strata_remote_cluster_reason gauge
strata_remote_cluster_reason{reason="Because",remote_cluster="fleet/away"} 1
strata_remote_cluster_reason{reason="Because",remote_cluster="fleet/prod"} 1
strata_remote_cluster_reason{reason="Because",remote_cluster="other/prod"} 1
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(collector)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint says %v, %v", problems, err)
	}
	reader.err = errors.New("the cache has not started")
	if got := testutil.CollectAndCount(collector); got != 0 {
		t.Errorf("%d metrics although the cache cannot answer", got)
	}
	reader.items, reader.err = nil, nil
	if got := testutil.CollectAndCount(collector); got != 0 {
		t.Errorf("%d metrics are left of RemoteClusters that are gone", got)
	}
}

// A layer whose cluster has no namespace means one of the controller's own.
func TestLayersNameTheirClusters(t *testing.T) {
	layer := func(name string, cluster *v1alpha1.ClusterReference) v1alpha1.AddonsLayer {
		return v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AddonsLayerSpec{Cluster: cluster}}
	}
	reader := &layerReader{items: []v1alpha1.AddonsLayer{
		layer("home", nil), layer("full", &v1alpha1.ClusterReference{Namespace: "fleet", Name: "prod"}), layer("brief", &v1alpha1.ClusterReference{Name: "prod"}),
	}}
	const want = `
# HELP strata_layer_cluster The RemoteCluster that each layer belongs on, as namespace/name: 1 for the one it names.
# TYPE strata_layer_cluster gauge
strata_layer_cluster{layer="brief",remote_cluster="strata-system/prod"} 1
strata_layer_cluster{layer="full",remote_cluster="fleet/prod"} 1
`
	if err := testutil.CollectAndCompare(NewLayerMetrics(reader, "strata-system"), strings.NewReader(want), "strata_layer_cluster"); err != nil {
		t.Error(err)
	}
}

func TestProbesAreMeasured(t *testing.T) {
	m := NewMeters()
	answered := clusters.Answer{At: time.Unix(3000, 0), LastSeen: time.Unix(3000, 0)}
	m.Probed("fleet/prod", answered, 20*time.Millisecond)
	m.Probed("fleet/prod", clusters.Answer{At: time.Unix(3005, 0), LastSeen: time.Unix(3000, 0), Err: errors.New("away")}, 10*time.Second)
	m.Probed("fleet/never", clusters.Answer{At: time.Unix(3005, 0), Err: errors.New("away")}, time.Second)
	const want = `
# HELP strata_remote_cluster_last_seen_timestamp_seconds When each RemoteCluster has answered last, in seconds since 1970.
# TYPE strata_remote_cluster_last_seen_timestamp_seconds gauge
strata_remote_cluster_last_seen_timestamp_seconds{remote_cluster="fleet/prod"} 3000
`
	if err := testutil.CollectAndCompare(m.lastSeen, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if got := testutil.CollectAndCount(m.probes); got != 3 {
		t.Errorf("there are %d series of probes, want two of fleet/prod and one of fleet/never", got)
	}
	m.ForgetCluster("fleet/prod")
	m.ForgetCluster("fleet/never")
	if left := seriesLeft(m); left > 0 {
		t.Errorf("%d series are left of RemoteClusters that are gone", left)
	}
	var none *Meters
	none.Probed("fleet/prod", answered, time.Second)
	none.ForgetCluster("fleet/prod")
}
