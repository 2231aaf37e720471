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
	"github.com/strata-project/strata/internal/placement"
)

var (
	layerState = prometheus.NewDesc("strata_layer_state",
		"The state of each layer: 1 for the one it is in.", []string{"layer", "state"}, nil)
	layerReady = prometheus.NewDesc("strata_layer_ready",
		"Whether each layer is Ready: 1, 0, or -1 for unknown.", []string{"layer"}, nil)
	layerSince = prometheus.NewDesc("strata_layer_state_since_timestamp_seconds",
		"Since when each layer is in its state, in seconds since 1970.", []string{"layer"}, nil)
	layerReason = prometheus.NewDesc("strata_layer_reason",
		"The reason of each layer's Ready condition: 1 for the one it has.", []string{"layer", "reason"}, nil)
	layerStalled = prometheus.NewDesc("strata_layer_stalled",
		"Whether only an author can mend what is wrong with each layer: 1 or 0.", []string{"layer"}, nil)
	layerContested = prometheus.NewDesc("strata_layer_contested",
		"Whether somebody else wants something of a layer otherwise: 1 for the reason of its Contested condition.", []string{"layer", "reason"}, nil)
	kraanCondition = prometheus.NewDesc("reconcile_condition",
		"Whether each layer is Deployed or Failed: 1 for the status that the condition has. Kraan's metric.",
		[]string{"kind", "name", "namespace", "type", "status"}, nil)
	layerResources = prometheus.NewDesc("strata_layer_resources",
		"How many objects each layer has, by their status.", []string{"layer", "status"}, nil)
	layerCluster = prometheus.NewDesc("strata_layer_cluster",
		"The RemoteCluster that each layer belongs on, as namespace/name: 1 for the one it names.", []string{"layer", labelCluster}, nil)
)

// layerMetrics reads the layers from the cache when it is scraped, so that
// there is nothing left of a layer that is gone.
type layerMetrics struct {
	reader    client.Reader
	namespace string
}

// NewLayerMetrics returns a collector of what layers report. namespace is that of
// clusters whose namespace a layer does not give.
func NewLayerMetrics(reader client.Reader, namespace string) prometheus.Collector {
	return &layerMetrics{reader: reader, namespace: namespace}
}

// Describe names the metrics.
func (m *layerMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- layerState
	descriptions <- layerReady
	descriptions <- layerSince
	descriptions <- layerReason
	descriptions <- layerStalled
	descriptions <- layerContested
	descriptions <- kraanCondition
	descriptions <- layerResources
	descriptions <- layerCluster
}

// Collect reads the layers. There are no metrics while the cache cannot answer.
func (m *layerMetrics) Collect(metrics chan<- prometheus.Metric) {
	list := &v1alpha1.AddonsLayerList{}
	if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		collect(&list.Items[i], m.namespace, metrics)
	}
}

func collect(layer *v1alpha1.AddonsLayer, namespace string, metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{layer.Name}, labels...)...)
	}
	if layer.Status.State != "" {
		gauge(layerState, 1, string(layer.Status.State))
		if since := since(&layer.Status); !since.IsZero() {
			gauge(layerSince, float64(since.Unix()))
		}
	}
	condition := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition)
	if condition != nil && condition.Reason != "" {
		gauge(layerReason, 1, condition.Reason)
	}
	gauge(layerReady, conditions.Number(condition))
	if cluster := placement.ClusterName(placement.Of(layer, namespace)); cluster != "" {
		gauge(layerCluster, 1, cluster)
	}
	stalled := 0.0
	if meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.StalledCondition) {
		stalled = 1
	}
	gauge(layerStalled, stalled)
	if contested := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ContestedCondition); contested != nil && contested.Status == metav1.ConditionTrue {
		gauge(layerContested, 1, contested.Reason)
	}
	collectKraan(layer, metrics)
	counts := map[string]float64{}
	for _, resource := range layer.Status.Resources {
		counts[resource.Status]++
	}
	for status, count := range counts {
		gauge(layerResources, count, status)
	}
}

// since returns when a layer came into its state. A status of an earlier
// version does not say; what it says of being ready is at least as old.
func since(status *v1alpha1.AddonsLayerStatus) metav1.Time {
	if !status.StateSince.IsZero() {
		return status.StateSince
	}
	if condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition); condition != nil {
		return condition.LastTransitionTime
	}
	return metav1.Time{}
}

// collectKraan writes the metric that Kraan has. A layer is in one state, and
// Kraan's conditions are its states.
func collectKraan(layer *v1alpha1.AddonsLayer, metrics chan<- prometheus.Metric) {
	deployed, failed := metav1.ConditionUnknown, metav1.ConditionUnknown
	if condition := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.DeployedCondition); condition != nil {
		deployed = condition.Status
	}
	switch layer.Status.State {
	case "":
	case v1alpha1.StateFailed:
		failed = metav1.ConditionTrue
	default:
		failed = metav1.ConditionFalse
	}
	for kind, is := range map[string]metav1.ConditionStatus{v1alpha1.DeployedCondition: deployed, string(v1alpha1.StateFailed): failed} {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown, "Deleted"} {
			value := 0.0
			if status == is {
				value = 1
			}
			metrics <- prometheus.MustNewConstMetric(kraanCondition, prometheus.GaugeValue, value, kraanKind, layer.Name, "", kind, string(status))
		}
	}
}
