// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/dependents"
)

// kraanKind is how Kraan's metrics name the kind.
const kraanKind = v1alpha1.AddonsLayerKind + ".kraan.io"

// Results of a roll-out: the values of the label result.
const (
	rollOutDeployed = "deployed"
	rollOutFailed   = "failed"
)

// Results of a probe: the values of the label result.
const (
	probeAnswered = "answered"
	probeFailed   = "failed"
)

// Meters count what is done for layers and RemoteClusters. The series of each go
// with it. A nil Meters counts nothing.
type Meters struct {
	corrections, prunes, adoptions *prometheus.CounterVec
	rollOuts, looks, probes        *prometheus.HistogramVec
	lastSeen                       *prometheus.GaugeVec
	foreign                        *prometheus.CounterVec
}

// NewMeters returns meters that stand at zero.
func NewMeters() *Meters {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"layer"})
	}
	m := &Meters{
		corrections: counter(
			"strata_layer_drift_corrections_total",
			"How many times an object of the layer was restored after somebody else had changed or deleted it.",
		),
		prunes:    counter("strata_layer_prunes_total", "How many objects were removed because the layer no longer lists them, or is deleted."),
		adoptions: counter("strata_layer_adoptions_total", "How many objects the layer has taken over."),
		rollOuts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "strata_layer_rollout_duration_seconds",
			Help:    "How long roll-outs took from their begin until they were deployed or had failed.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"layer", "result"}),
		looks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reconcile_duration_seconds",
			Help: "How long one look at the layer took. Kraan's metric.",
			// These are Kraan's: 10 ns to 10 s.
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 10),
		}, []string{"kind", "name", "namespace"}),
		probes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "strata_remote_cluster_probe_duration_seconds",
			Help:    "How long each RemoteCluster took to answer, or not to.",
			Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{labelCluster, "result"}),
		lastSeen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "strata_remote_cluster_last_seen_timestamp_seconds",
			Help: "When each RemoteCluster has answered last, in seconds since 1970.",
		}, []string{labelCluster}),
		foreign: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strata_foreign_statuses_total",
			Help: "How many statuses of Strata's objects did not count because something else than the controller had written them, by their kind.",
		}, []string{"kind"}),
	}
	for _, kind := range v1alpha1.SignedKinds() {
		m.foreign.WithLabelValues(kind) // it stands at zero before the first one
	}
	return m
}

func (m *Meters) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.corrections, m.prunes, m.adoptions, m.rollOuts, m.looks, m.probes, m.lastSeen, m.foreign}
}

// Describe names the metrics.
func (m *Meters) Describe(descriptions chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(descriptions)
	}
}

// Collect reads the metrics.
func (m *Meters) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(metrics)
	}
}

// Did counts actions that were carried out.
func (m *Meters) Did(layer string, results []dependents.Result) {
	if m == nil {
		return
	}
	// Whatever exists stands at zero: a series that begins with its first event
	// hides that event from rate().
	corrections, prunes, adoptions := m.corrections.WithLabelValues(layer), m.prunes.WithLabelValues(layer), m.adoptions.WithLabelValues(layer)
	for _, result := range results {
		if result.Err != nil || result.Outdated {
			continue
		}
		switch {
		case result.Action.Verb == dependents.VerbDelete:
			prunes.Inc()
		case result.IsAdoption():
			adoptions.Inc()
		}
		if result.IsCorrection() {
			corrections.Inc()
		}
	}
}

// Reported measures a roll-out that has come to its end since before.
func (m *Meters) Reported(layer *v1alpha1.AddonsLayer, before v1alpha1.AddonsLayerStatus, now time.Time) {
	if m == nil {
		return
	}
	status := &layer.Status
	attempt := status.Attempt
	if attempt == nil || attempt.StartTime.IsZero() {
		return
	}
	var result string
	switch {
	case status.State == v1alpha1.StateDeployed && (status.Digest != before.Digest || status.Version != before.Version) &&
		attempt.Digest == status.Digest && attempt.Version == status.Version:
		result = rollOutDeployed
	case status.Rollback != nil && before.Rollback == nil && before.State == v1alpha1.StateApplying && before.Attempt != nil &&
		(before.Attempt.Digest != before.Digest || before.Attempt.Version != before.Version):
		// What is taken back at once is never Failed.
		result, attempt = rollOutFailed, before.Attempt
	case status.State == v1alpha1.StateFailed && before.State == v1alpha1.StateApplying &&
		(attempt.Digest != status.Digest || attempt.Version != status.Version):
		result = rollOutFailed
	default:
		return
	}
	// A clock that went backwards must not make a duration less than nothing.
	m.rollOuts.WithLabelValues(layer.Name, result).Observe(max(now.Sub(attempt.StartTime.Time), 0).Seconds())
}

// Looked measures one look at a layer.
func (m *Meters) Looked(layer string, began time.Time) {
	if m != nil {
		m.looks.WithLabelValues(kraanKind, layer, "").Observe(time.Since(began).Seconds())
	}
}

// Forget removes the series of a layer that is gone.
func (m *Meters) Forget(layer string) {
	if m == nil {
		return
	}
	for _, vector := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.corrections, m.prunes, m.adoptions, m.rollOuts} {
		vector.DeletePartialMatch(prometheus.Labels{"layer": layer})
	}
	m.looks.DeletePartialMatch(prometheus.Labels{"name": layer})
}

// ForeignStatus counts a status that did not count.
func (m *Meters) ForeignStatus(kind string) {
	if m == nil {
		return
	}
	m.foreign.WithLabelValues(kind).Inc()
}

// Probed measures one question to a RemoteCluster.
func (m *Meters) Probed(cluster string, answer clusters.Answer, took time.Duration) {
	if m == nil {
		return
	}
	result := probeAnswered
	if answer.Err != nil {
		result = probeFailed
	}
	m.probes.WithLabelValues(cluster, result).Observe(took.Seconds())
	if !answer.LastSeen.IsZero() {
		m.lastSeen.WithLabelValues(cluster).Set(float64(answer.LastSeen.Unix()))
	}
}

// ForgetCluster removes the series of a RemoteCluster that is gone.
func (m *Meters) ForgetCluster(cluster string) {
	if m == nil {
		return
	}
	m.probes.DeletePartialMatch(prometheus.Labels{labelCluster: cluster})
	m.lastSeen.DeleteLabelValues(cluster)
}
