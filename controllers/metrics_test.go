// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
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
			l.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: ready}}
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
	collector := NewLayerMetrics(reader)
	const want = `
# HELP strata_layer_ready Whether each layer is Ready: 1, 0, or -1 for unknown.
# TYPE strata_layer_ready gauge
strata_layer_ready{layer="apps"} 0
strata_layer_ready{layer="base"} 1
strata_layer_ready{layer="mesh"} -1
strata_layer_ready{layer="new"} -1
# HELP strata_layer_resources How many objects each layer has, by their status.
# TYPE strata_layer_resources gauge
strata_layer_resources{layer="apps",status="Deployed"} 2
strata_layer_resources{layer="apps",status="InstallFailed"} 1
strata_layer_resources{layer="base",status="Deployed"} 1
# HELP strata_layer_state The state of each layer: 1 for the one it is in.
# TYPE strata_layer_state gauge
strata_layer_state{layer="apps",state="Failed"} 1
strata_layer_state{layer="base",state="Deployed"} 1
strata_layer_state{layer="mesh",state="Applying"} 1
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
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
