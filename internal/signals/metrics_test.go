// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
)

// layerReader lists layers.
type layerReader struct {
	client.Reader
	items []v1alpha1.AddonsLayer
	err   error
}

func (r *layerReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.AddonsLayerList).Items = r.items
	return r.err
}

func TestLayerMetrics(t *testing.T) {
	layer := func(name string, state v1alpha1.State, ready metav1.ConditionStatus, resources ...string) v1alpha1.AddonsLayer {
		l := v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.AddonsLayerStatus{State: state}}
		if ready != "" {
			l.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "Because", LastTransitionTime: metav1.Unix(1000, 0)},
			}
		}
		for _, status := range resources {
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{Status: status})
		}
		return l
	}
	reader := &layerReader{items: []v1alpha1.AddonsLayer{
		layer("apps", v1alpha1.StateFailed, metav1.ConditionFalse, "Deployed", "InstallFailed", "Deployed"),
		layer("base", v1alpha1.StateDeployed, metav1.ConditionTrue, "Deployed"),
		layer("mesh", v1alpha1.StateApplying, metav1.ConditionUnknown),
		layer("new", "", ""),
	}}
	reader.items[0].Status.StateSince = metav1.Unix(2000, 0)
	reader.items[0].Status.Conditions = append(reader.items[0].Status.Conditions, metav1.Condition{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue})
	reader.items[1].Status.Conditions = append(reader.items[1].Status.Conditions, metav1.Condition{Type: v1alpha1.DeployedCondition, Status: metav1.ConditionTrue})
	reader.items[1].Status.Conditions = append(reader.items[1].Status.Conditions,
		metav1.Condition{Type: v1alpha1.ContestedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonContestedFields})
	collector := NewLayerMetrics(reader, "strata-system")
	const want = `
# HELP strata_layer_contested Whether somebody else wants something of a layer otherwise: 1 for the reason of its Contested condition.
# TYPE strata_layer_contested gauge
strata_layer_contested{layer="base",reason="ContestedFields"} 1
# HELP strata_layer_ready Whether each layer is Ready: 1, 0, or -1 for unknown.
# TYPE strata_layer_ready gauge
strata_layer_ready{layer="apps"} 0
strata_layer_ready{layer="base"} 1
strata_layer_ready{layer="mesh"} -1
strata_layer_ready{layer="new"} -1
# HELP strata_layer_reason The reason of each layer's Ready condition: 1 for the one it has.
# TYPE strata_layer_reason gauge
strata_layer_reason{layer="apps",reason="Because"} 1
strata_layer_reason{layer="base",reason="Because"} 1
strata_layer_reason{layer="mesh",reason="Because"} 1
# HELP strata_layer_resources How many objects each layer has, by their status.
# TYPE strata_layer_resources gauge
strata_layer_resources{layer="apps",status="Deployed"} 2
strata_layer_resources{layer="apps",status="InstallFailed"} 1
strata_layer_resources{layer="base",status="Deployed"} 1
# HELP strata_layer_stalled Whether only an author can mend what is wrong with each layer: 1 or 0.
# TYPE strata_layer_stalled gauge
strata_layer_stalled{layer="apps"} 1
strata_layer_stalled{layer="base"} 0
strata_layer_stalled{layer="mesh"} 0
strata_layer_stalled{layer="new"} 0
# HELP strata_layer_state The state of each layer: 1 for the one it is in.
# TYPE strata_layer_state gauge
strata_layer_state{layer="apps",state="Failed"} 1
strata_layer_state{layer="base",state="Deployed"} 1
strata_layer_state{layer="mesh",state="Applying"} 1
# HELP strata_layer_state_since_timestamp_seconds Since when each layer is in its state, in seconds since 1970.
# TYPE strata_layer_state_since_timestamp_seconds gauge
strata_layer_state_since_timestamp_seconds{layer="apps"} 2000
strata_layer_state_since_timestamp_seconds{layer="base"} 1000
strata_layer_state_since_timestamp_seconds{layer="mesh"} 1000
`
	own := []string{
		"strata_layer_contested", "strata_layer_ready", "strata_layer_reason", "strata_layer_resources", "strata_layer_stalled", "strata_layer_state",
		"strata_layer_state_since_timestamp_seconds",
	}
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want), own...); err != nil {
		t.Error(err)
	}
	kraans(t, collector)
	problems, err := testutil.CollectAndLint(collector)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint says %v, %v", problems, err)
	}
	reader.items = nil
	if got := testutil.CollectAndCount(collector); got != 0 {
		t.Errorf("%d metrics are left of layers that are gone", got)
	}
	reader.err = errors.New("the cache has not started")
	reader.items = []v1alpha1.AddonsLayer{layer("base", v1alpha1.StateDeployed, metav1.ConditionTrue)}
	if got := testutil.CollectAndCount(collector); got != 0 {
		t.Errorf("%d metrics although the cache cannot answer", got)
	}
}

// kraans checks what is there of Kraan's metric and not 0.
func kraans(t *testing.T, collector prometheus.Collector) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	series := 0
	for _, family := range families {
		if family.GetName() != "reconcile_condition" {
			continue
		}
		for _, metric := range family.GetMetric() {
			series++
			if metric.GetGauge().GetValue() != 1 {
				continue
			}
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			got = append(got, strings.Join(labels, " "))
		}
	}
	var want []string
	for _, line := range []string{"apps Deployed Unknown", "apps Failed True", "base Deployed True", "base Failed False", "mesh Deployed Unknown", "mesh Failed False", "new Deployed Unknown", "new Failed Unknown"} {
		words := strings.Fields(line)
		want = append(want, "kind=AddonsLayer.kraan.io name="+words[0]+" namespace= status="+words[2]+" type="+words[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || series != 4*len(want) {
		t.Errorf("%d series; those that are 1 (-want +got):\n%s", series, diff)
	}
}

// All that the controller exports of its own is named as Prometheus' users
// expect.
func TestMetricsAreConventional(t *testing.T) {
	meters, fetches, writes := NewMeters(), NewFetchMeter(), NewWriteMeter()
	meters.Did("base", nil)
	meters.Looked("base", time.Now())
	meters.rollOuts.WithLabelValues("base", rollOutDeployed)
	meters.Probed("fleet/prod", clusters.Answer{LastSeen: time.Now()}, time.Second)
	writes.WithLabelValues("patch", "namespaces", resultSuccess)
	registry := prometheus.NewPedanticRegistry()
	for _, collector := range []prometheus.Collector{meters, fetches, writes} {
		registry.MustRegister(collector)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint says %v, %v", problems, err)
	}
}
