// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
)

// labelCluster is the label that names a RemoteCluster, as namespace/name. A label
// cluster would be taken for the one that Prometheus itself is in.
const labelCluster = "remote_cluster"

var (
	clusterReady = prometheus.NewDesc("strata_remote_cluster_ready",
		"Whether each RemoteCluster is Ready: 1, 0, or -1 for unknown.", []string{labelCluster}, nil)
	clusterReason = prometheus.NewDesc("strata_remote_cluster_reason",
		"The reason of each RemoteCluster's Ready condition: 1 for the one it has.", []string{labelCluster, "reason"}, nil)
	clusterReachable = prometheus.NewDesc("strata_remote_cluster_reachable",
		"Whether each RemoteCluster answers: 1, 0, or -1 for unknown.", []string{labelCluster}, nil)
	clusterReachableSince = prometheus.NewDesc("strata_remote_cluster_reachable_since_timestamp_seconds",
		"Since when each RemoteCluster has answered, or has not, in seconds since 1970.", []string{labelCluster}, nil)
	clusterExpiration = prometheus.NewDesc("strata_remote_cluster_credentials_expiration_timestamp_seconds",
		"When the credentials of each RemoteCluster end, in seconds since 1970.", []string{labelCluster}, nil)
	clusterExpiring = prometheus.NewDesc("strata_remote_cluster_credentials_expiring",
		"Whether the credentials of each RemoteCluster end soon for how long they last: 1 or 0.", []string{labelCluster}, nil)
	clusterLayers = prometheus.NewDesc("strata_remote_cluster_layers",
		"How many layers name each RemoteCluster.", []string{labelCluster}, nil)
	clusterLayersDeployed = prometheus.NewDesc("strata_remote_cluster_layers_deployed",
		"How many of the layers that name each RemoteCluster are deployed.", []string{labelCluster}, nil)
	clusterInfo = prometheus.NewDesc("strata_remote_cluster_info",
		"The version of Kubernetes that each RemoteCluster has answered.", []string{labelCluster, "version"}, nil)
)

// clusterMetrics reads the RemoteClusters from the cache when it is scraped, so
// that there is nothing left of one that is gone.
type clusterMetrics struct {
	reader client.Reader
}

// NewClusterMetrics returns a collector of what RemoteClusters report.
func NewClusterMetrics(reader client.Reader) prometheus.Collector {
	return &clusterMetrics{reader: reader}
}

// Describe names the metrics.
func (m *clusterMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		clusterReady, clusterReason, clusterReachable, clusterReachableSince, clusterExpiration, clusterExpiring, clusterLayers, clusterLayersDeployed, clusterInfo,
	} {
		descriptions <- description
	}
}

// Collect reads the RemoteClusters. There are no metrics while the cache cannot
// answer.
func (m *clusterMetrics) Collect(metrics chan<- prometheus.Metric) {
	list := &v1alpha1.RemoteClusterList{}
	if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		collectCluster(&list.Items[i], metrics)
	}
}

func collectCluster(cluster *v1alpha1.RemoteCluster, metrics chan<- prometheus.Metric) {
	name := client.ObjectKeyFromObject(cluster).String()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
	}
	status := &cluster.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	gauge(clusterReady, conditions.Number(ready))
	if ready != nil && ready.Reason != "" {
		gauge(clusterReason, 1, ready.Reason)
	}
	reachable := meta.FindStatusCondition(status.Conditions, v1alpha1.ReachableCondition)
	gauge(clusterReachable, conditions.Number(reachable))
	if reachable != nil && reachable.Status != metav1.ConditionUnknown {
		gauge(clusterReachableSince, float64(reachable.LastTransitionTime.Unix()))
	}
	if !status.CredentialsExpire.IsZero() {
		gauge(clusterExpiration, float64(status.CredentialsExpire.Unix()))
	}
	if expiring := meta.FindStatusCondition(status.Conditions, v1alpha1.CredentialsExpiringCondition); expiring != nil {
		gauge(clusterExpiring, max(conditions.Number(expiring), 0))
	}
	gauge(clusterLayers, float64(status.Layers.Total))
	gauge(clusterLayersDeployed, float64(status.Layers.Deployed))
	if status.Version != "" {
		gauge(clusterInfo, 1, status.Version)
	}
}
