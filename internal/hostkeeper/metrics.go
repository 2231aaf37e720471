// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
)

// labelHostCluster is the label that names a HostCluster, as namespace/name.
const labelHostCluster = "host_cluster"

var (
	hostClusterReady = prometheus.NewDesc("strata_host_cluster_ready",
		"Whether each HostCluster is Ready: 1, 0, or -1 for unknown.", []string{labelHostCluster}, nil)
	hostClusterReason = prometheus.NewDesc("strata_host_cluster_reason",
		"The reason of each HostCluster's Ready condition: 1 for the one it has.", []string{labelHostCluster, "reason"}, nil)
	hostClusterHosts = prometheus.NewDesc("strata_host_cluster_hosts",
		"How many hosts of each HostCluster are Healthy, Empty, Dirty, InProgress, Broken or Unreachable.", []string{labelHostCluster, "class"}, nil)
	hostClusterCertificates = prometheus.NewDesc("strata_host_cluster_certificates_end_timestamp_seconds",
		"When the first certificate of a host of each HostCluster ends, in seconds since 1970.", []string{labelHostCluster}, nil)
	hostClusterInfo = prometheus.NewDesc("strata_host_cluster_info",
		"The version of Kubernetes that each HostCluster is at.", []string{labelHostCluster, "version"}, nil)
)

// clusterMetrics reads the HostClusters from the cache when it is scraped, so that there
// is nothing left of one that is gone.
type clusterMetrics struct {
	reader client.Reader
}

// NewMetrics returns a collector of what HostClusters report, which it reads from a cache.
func NewMetrics(reader client.Reader) prometheus.Collector {
	return &clusterMetrics{reader: reader}
}

// Describe names the metrics.
func (m *clusterMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{hostClusterReady, hostClusterReason, hostClusterHosts, hostClusterCertificates, hostClusterInfo} {
		descriptions <- description
	}
}

// Collect reads the HostClusters. There are no metrics while the cache cannot answer.
func (m *clusterMetrics) Collect(metrics chan<- prometheus.Metric) {
	list := &v1alpha1.HostClusterList{}
	if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		name := client.ObjectKeyFromObject(cluster).String()
		gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition)
		gauge(hostClusterReady, conditions.Number(ready))
		if ready != nil && ready.Reason != "" {
			gauge(hostClusterReason, 1, ready.Reason)
		}
		counts := map[string]int{}
		for _, host := range cluster.Status.Hosts {
			counts[host.Class]++
		}
		for class, count := range counts {
			gauge(hostClusterHosts, float64(count), class)
		}
		if end := cluster.Status.CertificatesEnd; !end.IsZero() {
			gauge(hostClusterCertificates, float64(end.Unix()))
		}
		if cluster.Status.Version != "" {
			gauge(hostClusterInfo, 1, cluster.Status.Version)
		}
	}
}
