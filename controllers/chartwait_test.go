// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// released returns a HelmRelease of the test.
func (f *fixture) released(name string) *helmv2.HelmRelease {
	f.Helper()
	found := &helmv2.HelmRelease{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found))
	return found
}

// waitsForChart plays helm-controller, which has looked at a release while its chart was not
// there and will look again when its own patience ends: it takes the chart that comes for the
// one that it has tried.
func (f *fixture) waitsForChart(name string) {
	f.Helper()
	f.eventually("release "+name+" waits for its chart", func() error {
		release := f.released(name)
		release.Status.LastAttemptedRevision = "6.0.0"
		release.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: "SourceNotReady", Message: "HelmChart is not ready", LastTransitionTime: metav1.Now()},
			{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Progressing", Message: "Fulfilling prerequisites", LastTransitionTime: metav1.Now()},
		}
		return f.client.Status().Update(f.ctx, release)
	})
}

// TestFluxIsAskedWhenAChartIsThere shows that a release whose chart has come, at a version that
// was tried before, is reconciled by helm-controller at once. Strata does not ask for that while
// the chart is missing.
func TestFluxIsAskedWhenAChartIsThere(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("v1", map[string]string{"base/release.yaml": f.release("app")})
	f.layer("base")
	f.ready("app")
	f.deployed("base", "v1")

	chart := &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.namespace + "-app"},
		Spec:       sourcev1.HelmChartSpec{Chart: "podinfo", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: "HelmRepository", Name: "charts"}},
	}
	f.must(f.client.Create(f.ctx, chart))
	chart.Status.ObservedGeneration = chart.Generation
	chart.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "ChartPullError", Message: "no such chart", LastTransitionTime: metav1.Now(), ObservedGeneration: chart.Generation,
	}}
	f.must(f.client.Status().Update(f.ctx, chart))
	f.waitsForChart("app")
	f.eventually("the layer sees that", func() error {
		if state := f.get("base").Status.State; state == v1alpha1.StateDeployed {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})

	before := time.Now()
	generation := f.released("app").Generation
	chart.Status.Artifact = &fluxmeta.Artifact{
		Path: "charts/app", URL: f.files.URL + "/charts/app", Revision: "6.0.0", Digest: "sha256:" + fmt.Sprintf("%064d", 1), LastUpdateTime: metav1.Now(),
	}
	chart.Status.Conditions[0].Status, chart.Status.Conditions[0].Reason, chart.Status.Conditions[0].Message = metav1.ConditionTrue, "ChartPullSucceeded", "pulled"
	f.must(f.client.Status().Update(f.ctx, chart))
	f.eventually("Flux is asked to look", func() error {
		asked := f.released("app").Annotations[v1alpha1.ReconcileRequestAnnotation]
		at, err := time.Parse(time.RFC3339Nano, asked)
		if err != nil {
			return fmt.Errorf("it is asked at %q", asked)
		}
		if at.Before(before) {
			t.Errorf("it is asked at %s, before there is anything to see", asked)
		}
		return nil
	})
	if now := f.released("app").Generation; now != generation {
		t.Errorf("the request has changed the release: it is at generation %d and was at %d", now, generation)
	}
	f.ready("app")
	f.deployed("base", "v1")
}
