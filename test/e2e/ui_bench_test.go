// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/browser"
)

// changes is how many changes are measured.
const changes = 200

// BenchmarkChangesReachTheScreen says how long a change at the API server takes to the
// screen, and to a bare watch beside it. The suite's controller leaves the layer alone.
func BenchmarkChangesReachTheScreen(b *testing.B) {
	path, err := builtPlugin()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-screen", Labels: map[string]string{"team": "bench-screen", "e2e.kraan.io/controller": "nobody"}},
		Spec:       v1alpha1.AddonsLayerSpec{Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "none", Path: "./none"}},
	}
	if err := stack.client.Create(ctx, layer); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stack.client.Delete(context.Background(), layer) })
	watched := make(chan time.Time, changes)
	watch, err := stack.client.Watch(ctx, &v1alpha1.AddonsLayerList{}, client.MatchingLabels{"team": "bench-screen"})
	if err != nil {
		b.Fatal(err)
	}
	defer watch.Stop()
	address := startUI(b, path, stack.plane.Kubeconfig(), "-l", "team=bench-screen")
	tab := browser.Open(b)
	tab.Go(address)
	tab.Says(".node", "bench-screen")
	browser.Value[bool](tab, `(() => {
		window.seen = new Map();
		new MutationObserver(() => {
			const text = document.querySelector(".node .why")?.textContent ?? "";
			if (!window.seen.has(text)) window.seen.set(text, Date.now());
		}).observe(document.getElementById("layers"), {subtree: true, childList: true, characterData: true});
		return true;
	})()`)
	var screen, bare []time.Duration
	for b.Loop() {
		screen, bare = nil, nil
		for i := range changes {
			message := fmt.Sprintf("change %d", i)
			patch := fmt.Sprintf(`{"status":{"observedGeneration":1,"state":"Failed","conditions":[{"type":"Ready","status":"False","reason":"X","message":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, message)
			began := time.Now()
			if err := stack.client.Status().Patch(ctx, layer, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				b.Fatal(err)
			}
			for event := range watch.ResultChan() {
				if at, is := event.Object.(*v1alpha1.AddonsLayer); is && len(at.Status.Conditions) > 0 && at.Status.Conditions[0].Message == message {
					watched <- time.Now()
					break
				}
			}
			bare = append(bare, (<-watched).Sub(began))
			tab.Until(fmt.Sprintf("window.seen.has(%q)", message))
			at := time.UnixMilli(browser.Value[int64](tab, fmt.Sprintf("window.seen.get(%q)", message)))
			screen = append(screen, at.Sub(began))
		}
		browser.Value[bool](tab, "(window.seen.clear(), true)")
	}
	b.ReportMetric(float64(p95(screen).Milliseconds()), "screen-p95-ms")
	b.ReportMetric(float64(p95(bare).Milliseconds()), "watch-p95-ms")
	b.ReportMetric(float64((p95(screen) - p95(bare)).Milliseconds()), "more-ms")
}

func p95(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*95/100]
}
