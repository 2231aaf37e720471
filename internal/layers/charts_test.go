// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// waitsForChart has a release wait for its chart, of the version that was tried last.
func waitsForChart(since time.Duration) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(obj.Object, map[string]any{
			"chart": "podinfo", "version": "6.0.0", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"},
		}, "spec", "chart", "spec")
		obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "lastAttemptedRevision": "6.0.0", "conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "SourceNotReady", "message": "HelmChart is not ready",
			"lastTransitionTime": testNow.Add(-since).Format(time.RFC3339),
		}}}
	}
}

// requested has Flux been asked to look at a release.
func requested(ago time.Duration) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		obj.SetAnnotations(map[string]string{v1alpha1.ReconcileRequestAnnotation: testNow.Add(-ago).Format(time.RFC3339Nano)})
	}
}

// Flux is asked to look at a release whose chart is there and of which it does not know, once,
// and for a layer that goes on by itself only.
func TestFluxIsAskedToLook(t *testing.T) {
	dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	there, waits := true, false
	for name, test := range map[string]struct {
		reason string
		layer  *v1alpha1.AddonsLayer
		live   *unstructured.Unstructured
		chart  *bool
		want   string
		looked bool
		until  time.Duration
	}{
		"at once": {reason: "as a rule the chart is there in a moment", live: live("a", waitsForChart(time.Second)), until: time.Second},
		"later":   {reason: "it is followed", live: live("a", waitsForChart(time.Minute)), chart: &waits, looked: true},
		"there":   {reason: "Flux would look in half a minute", live: live("a", waitsForChart(3*time.Second)), chart: &there, looked: true, want: "Request a"},
		"there, and asked a moment ago": {
			reason: "Flux may be at it", live: live("a", waitsForChart(3*time.Second), requested(time.Second)), chart: &there, looked: true, until: 9 * time.Second,
		},
		"there, and asked long ago": {
			reason: "that was about something else", live: live("a", waitsForChart(3*time.Second), requested(time.Minute)), chart: &there, looked: true, want: "Request a",
		},
		"there, and asked in the future": {
			reason: "a clock was set back", live: live("a", waitsForChart(3*time.Second), requested(-time.Hour)), chart: &there, looked: true, want: "Request a",
		},
		"held": {
			reason: "nothing is done", layer: layer(isDeployed(dir), annotation(v1alpha1.HoldAnnotation, "freeze")), live: live("a", waitsForChart(3*time.Second)), chart: &there,
		},
		"going": {reason: "it goes", layer: layer(isDeployed(dir), deleted), live: live("a", waitsForChart(3*time.Second)), chart: &there, want: "Mark a"},
		"of another layer": {
			reason: "that one asks", live: live("a", waitsForChart(3*time.Second), of("mesh")), chart: &there,
		},
		"ready": {reason: "it waits for nothing", live: live("a"), chart: &there},
	} {
		t.Run(name, func(t *testing.T) {
			of := test.layer
			if of == nil {
				of = layer(isDeployed(dir))
			}
			o := observation(of, dir, lives(test.live))
			looked := o.AwaitedCharts()
			want := map[objects.ID]objects.ID{}
			if test.looked {
				want[releaseID("a")] = objects.ID{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart", Namespace: "default", Name: "default-a"}
			}
			if diff := cmp.Diff(want, looked); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if test.chart != nil {
				o.Charts = map[objects.ID]bool{releaseID("a"): *test.chart}
			}
			d := Decide(o)
			if got := verbs(d.Plan); got != test.want && test.live.GetLabels()[v1alpha1.LayerLabel] == "base" {
				t.Errorf("%s: it does %q, want %q", test.reason, got, test.want)
			}
			if late := d.Until.Sub(testNow.Truncate(time.Second)); test.until > 0 && (late <= 0 || late > test.until+time.Second) {
				t.Errorf("%s: it is looked at again after %s", test.reason, late)
			}
			for _, action := range d.Plan.Actions {
				patch := action.Patch("base", Keys)
				meta, _ := patch["metadata"].(map[string]any)
				annotations, _ := meta["annotations"].(map[string]any)
				if action.Verb == "Request" && annotations[v1alpha1.ReconcileRequestAnnotation] != testNow.Format(time.RFC3339Nano) {
					t.Errorf("the request says %v", patch)
				}
			}
		})
	}
}
