// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

var (
	layerState = prometheus.NewDesc("strata_layer_state",
		"The state of each layer: 1 for the one it is in.", []string{"layer", "state"}, nil)
	layerReady = prometheus.NewDesc("strata_layer_ready",
		"Whether each layer is Ready: 1, 0, or -1 for unknown.", []string{"layer"}, nil)
	layerResources = prometheus.NewDesc("strata_layer_resources",
		"How many objects each layer has, by their status.", []string{"layer", "status"}, nil)
)

// layerMetrics reads the layers from the cache when it is scraped, so that
// there is nothing left of a layer that is gone.
type layerMetrics struct {
	reader client.Reader
}

// NewLayerMetrics returns a collector of what layers report.
func NewLayerMetrics(reader client.Reader) prometheus.Collector { return &layerMetrics{reader: reader} }

// Describe names the metrics.
func (m *layerMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- layerState
	descriptions <- layerReady
	descriptions <- layerResources
}

// Collect reads the layers. There are no metrics while the cache cannot answer.
func (m *layerMetrics) Collect(metrics chan<- prometheus.Metric) {
	list := &v1alpha1.AddonsLayerList{}
	if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		collect(&list.Items[i], metrics)
	}
}

func collect(layer *v1alpha1.AddonsLayer, metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{layer.Name}, labels...)...)
	}
	if layer.Status.State != "" {
		gauge(layerState, 1, string(layer.Status.State))
	}
	ready := -1.0
	switch condition := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); {
	case condition == nil:
	case condition.Status == metav1.ConditionTrue:
		ready = 1
	case condition.Status == metav1.ConditionFalse:
		ready = 0
	}
	gauge(layerReady, ready)
	counts := map[string]float64{}
	for _, resource := range layer.Status.Resources {
		counts[resource.Status]++
	}
	for status, count := range counts {
		gauge(layerResources, count, status)
	}
}
