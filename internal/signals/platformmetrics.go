// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/conditions"
)

// labelPlatform is the label that names a Platform.
const labelPlatform = "platform"

var (
	platformReady = prometheus.NewDesc("strata_platform_ready",
		"Whether each Platform is Ready: 1, 0, or -1 for unknown.", []string{labelPlatform}, nil)
	platformReason = prometheus.NewDesc("strata_platform_reason",
		"The reason of each Platform's Ready condition: 1 for the one it has.", []string{labelPlatform, "reason"}, nil)
	platformClusters = prometheus.NewDesc("strata_platform_clusters",
		"How many clusters of each Platform are in each state.", []string{labelPlatform, "state"}, nil)
	platformLayers = prometheus.NewDesc("strata_platform_layers",
		"How many layers each Platform has.", []string{labelPlatform}, nil)
	platformLayersDeployed = prometheus.NewDesc("strata_platform_layers_deployed",
		"How many of the layers of each Platform are deployed.", []string{labelPlatform}, nil)
	platformInfo = prometheus.NewDesc("strata_platform_info",
		"The bundle of each Platform, and the version that its clusters are moved to.", []string{labelPlatform, "family", "version"}, nil)
	platformStage = prometheus.NewDesc("strata_platform_stage",
		"The state of each stage of each Platform: 1 for the one it is in.", []string{labelPlatform, "stage", "state"}, nil)
	platformStageClusters = prometheus.NewDesc("strata_platform_stage_clusters",
		"How many clusters each stage of each Platform has.", []string{labelPlatform, "stage"}, nil)
	platformStageUpdated = prometheus.NewDesc("strata_platform_stage_clusters_updated",
		"How many clusters of each stage of each Platform are well at its version.", []string{labelPlatform, "stage"}, nil)
	platformApproval = prometheus.NewDesc("strata_platform_stage_approval_since_timestamp_seconds",
		"Since when each stage of each Platform has waited for an approval, in seconds since 1970.", []string{labelPlatform, "stage"}, nil)
)

// platformMetrics reads the Platforms from the cache when it is scraped.
type platformMetrics struct {
	reader client.Reader
}

// NewPlatformMetrics returns a collector of what Platforms report.
func NewPlatformMetrics(reader client.Reader) prometheus.Collector {
	return &platformMetrics{reader: reader}
}

// Describe names the metrics.
func (m *platformMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		platformReady, platformReason, platformClusters, platformLayers, platformLayersDeployed, platformInfo, platformStage, platformStageClusters,
		platformStageUpdated, platformApproval,
	} {
		descriptions <- description
	}
}

// Collect reads the Platforms. There are no metrics while the cache cannot answer.
func (m *platformMetrics) Collect(metrics chan<- prometheus.Metric) {
	list := &v1alpha1.PlatformList{}
	if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		collectPlatform(&list.Items[i], metrics)
	}
}

func collectPlatform(platform *v1alpha1.Platform, metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{platform.Name}, labels...)...)
	}
	status := &platform.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	gauge(platformReady, conditions.Number(ready))
	if ready != nil && ready.Reason != "" {
		gauge(platformReason, 1, ready.Reason)
	}
	for state, count := range map[string]int32{
		"ready": status.Clusters.Ready, "progressing": status.Clusters.Progressing, "waiting": status.Clusters.Waiting, "failed": status.Clusters.Failed,
		"unreachable": status.Clusters.Unreachable,
	} {
		gauge(platformClusters, float64(count), state)
	}
	gauge(platformLayers, float64(status.Layers.Total))
	gauge(platformLayersDeployed, float64(status.Layers.Deployed))
	if platform.Spec.Bundle != nil {
		gauge(platformInfo, 1, platform.Spec.Bundle.Family, status.Version)
	}
	seen := map[string]bool{}
	for _, stage := range status.Stages {
		if seen[stage.Name] {
			continue // A status may be written by others, and no series twice.
		}
		seen[stage.Name] = true
		gauge(platformStageClusters, float64(stage.Total), stage.Name)
		gauge(platformStageUpdated, float64(stage.Updated), stage.Name)
		if stage.State != "" {
			gauge(platformStage, 1, stage.Name, stage.State)
		}
		if stage.Approval != "" && stage.WaitingSince != nil {
			gauge(platformApproval, float64(stage.WaitingSince.Unix()), stage.Name)
		}
	}
}
