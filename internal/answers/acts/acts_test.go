// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	rules "github.com/strata-project/strata/internal/platforms"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// cluster returns layers: one that was deployed twice, one that is held with its releases, one that its
// specification holds, and one of a bundle; three depend on the first.
func cluster() *snapshot.Snapshot {
	at := func(name string, change func(*v1alpha1.AddonsLayer)) *v1alpha1.AddonsLayer {
		layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		layer.Spec.Source = v1alpha1.SourceSpec{Name: "addons", Namespace: "flux-system"}
		if name != "base" {
			layer.Spec.Prereqs.DependsOn = []string{"base@^1"}
		}
		change(layer)
		return layer
	}
	return &snapshot.Snapshot{Now: now, Layers: []*v1alpha1.AddonsLayer{
		at("base", func(layer *v1alpha1.AddonsLayer) {
			layer.Status.History = []v1alpha1.HistoryEntry{
				{ID: "2", Version: "2", Revision: "main@sha1:2", Result: v1alpha1.ResultFailed}, {ID: "1", Version: "1", Revision: "main@sha1:1", Result: v1alpha1.ResultDeployed},
			}
		}),
		at("held", func(layer *v1alpha1.AddonsLayer) {
			layer.Annotations[v1alpha1.HoldAnnotation], layer.Annotations[v1alpha1.HoldReleasesAnnotation] = "x", "true"
		}),
		at("written", func(layer *v1alpha1.AddonsLayer) { layer.Spec.Hold = true }),
		at("bundled", func(layer *v1alpha1.AddonsLayer) {
			layer.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: "edge-1"}
		}),
	}}
}

func observeNothing(*v1alpha1.Platform) rules.Observation { return rules.Observation{} }

// What an act comes to: what it says, and what it writes, or why it cannot be done.
func TestIntents(t *testing.T) {
	for name, test := range map[string]struct {
		act Act
		// want is what is written, and says what is said.
		want, says string
		err        string
	}{
		"a hold": {
			Act{Kind: Hold, Layer: "base", Reason: "freeze"},
			"addonslayers base map[kraan.io/hold:freeze kraan.io/hold-releases:<nil> kraan.io/hold-until:<nil>]",
			"until it is resumed. Its deletion goes on. Layers that need another version of it wait: held, written, bundled.", "",
		},
		"a hold that ends": {
			Act{Kind: Hold, Layer: "held", Reason: "freeze", Until: "4h", Releases: true},
			"addonslayers held map[kraan.io/hold:freeze kraan.io/hold-releases:true kraan.io/hold-until:2026-12-01T16:00:00Z]",
			"until 2026-12-01T16:00:00Z, or until it is resumed. Its deletion goes on. Its HelmReleases are suspended", "",
		},
		"a hold without a reason":       {Act{Kind: Hold, Layer: "base"}, "", "", "the reason is missing"},
		"a hold that is none":           {Act{Kind: Hold, Layer: "base", Reason: "false"}, "", "", `cannot be "false"`},
		"a hold that has ended":         {Act{Kind: Hold, Layer: "base", Reason: "x", Until: "2026-12-01T11:00:00Z"}, "", "", "the end has passed"},
		"a hold that ended before":      {Act{Kind: Hold, Layer: "base", Reason: "x", Until: "-1h"}, "", "", "the end has passed"},
		"a hold until something":        {Act{Kind: Hold, Layer: "base", Reason: "x", Until: "monday"}, "", "", "neither a time such as 2026-12-07T08:00:00Z"},
		"a layer that is not there":     {Act{Kind: Hold, Layer: "nowhere", Reason: "x"}, "", "", "there is no layer nowhere"},
		"an end":                        {Act{Kind: Resume, Layer: "held"}, "addonslayers held map[kraan.io/hold:<nil> kraan.io/hold-releases:<nil> kraan.io/hold-until:<nil>]", "Its HelmReleases are resumed", ""},
		"an end of nothing":             {Act{Kind: Resume, Layer: "base"}, "", "", "layer base is not held"},
		"an end where it is written":    {Act{Kind: Resume, Layer: "written"}, "", "", "held by its spec.hold"},
		"a look":                        {Act{Kind: Reconcile, Layer: "base"}, "addonslayers base map[reconcile.fluxcd.io/requestedAt:2026-12-01T12:00:00Z]", "Its gates count as before.", ""},
		"a look at the source":          {Act{Kind: Reconcile, Layer: "base", Source: true}, "gitrepositories flux-system/addons map[reconcile.fluxcd.io/requestedAt:2026-12-01T12:00:00Z]; addonslayers base", "is fetched now, for all layers", ""},
		"a look at a bundle":            {Act{Kind: Reconcile, Layer: "bundled", Source: true}, "addonslayers bundled map[reconcile.fluxcd.io/requestedAt:2026-12-01T12:00:00Z]", "is not fetched: nobody has to", ""},
		"a way back":                    {Act{Kind: Rollback, Layer: "base", To: "1"}, "addonslayers base map[kraan.io/rollback-to:1]", "goes back to deployment 1: version 1 of revision main@sha1:1.", ""},
		"a way back to what has failed": {Act{Kind: Rollback, Layer: "base", To: "2"}, "", "", "go back to one that was deployed"},
		"a way back to nothing":         {Act{Kind: Rollback, Layer: "base", To: "3"}, "", "", "has no deployment 3"},
		"an approval of nothing":        {Act{Kind: Approve, Platform: "edge", Stage: "x"}, "", "", "there is no platform edge"},
		"something else":                {Act{Kind: "delete", Layer: "base"}, "", "", `nothing that is called "delete"`},
	} {
		t.Run(name, func(t *testing.T) {
			intent, err := Intend(cluster(), test.act, "strata-system", observeNothing)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(intent.Patches) > 0 {
					t.Errorf("it comes to %+v, %v; want %s", intent, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var patches []string
			for _, patch := range intent.Patches {
				patches = append(patches, fmt.Sprintf("%s %s %v", patch.Resource.Resource, snapshot.Named(patch.Namespace, patch.Name), patch.Annotations))
			}
			if got := strings.Join(patches, "; "); !strings.HasPrefix(got, test.want) {
				t.Errorf("it writes %s, want %s", got, test.want)
			}
			if got := strings.Join(intent.Says, " "); !strings.Contains(got, test.says) || intent.Done == "" {
				t.Errorf("it says %s; %s", got, intent.Done)
			}
		})
	}
}
