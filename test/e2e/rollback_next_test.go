// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// A good commit after one that was rolled back is deployed within a timeout that is shorter than
// the half minute for which Flux waits where its chart is not at hand. What Flux says of the chart
// of before is not taken for something about this commit.
func TestGoodCommitAfterARollbackIsNotCalledFailed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bad, good func(*fixture) string
		// back is true where the good commit comes once the layer has gone back, and not meanwhile.
		back bool
	}{
		// Nothing of the release changes by the good commit, so that nothing has Flux look at it.
		"no such repository, then all as it was": {
			func(f *fixture) string {
				return strings.Replace(f.configMapRelease("apps", "two"), "name: charts", "name: nowhere", 1)
			},
			func(f *fixture) string { return f.configMapRelease("apps", "one") }, false,
		},
		"no such version, then another one": {
			func(f *fixture) string { return f.releaseWithoutChart("apps", "two") },
			func(f *fixture) string {
				return strings.Replace(f.configMapRelease("apps", "three"), "1.0.0", "2.0.0", 1)
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "one"), "apps/beside.yaml": f.configMapRelease("beside", "one")})
			f.layer("apps", func(l *v1alpha1.AddonsLayer) {
				l.Spec.Rollback, l.Spec.Timeout = true, &metav1.Duration{Duration: 12 * time.Second}
			})
			f.deployed("apps", first)
			f.push(map[string]string{"apps/release.yaml": tc.bad(f)})
			f.eventually("the layer goes back", func() error {
				if layer := f.get("apps"); layer.Status.Rollback == nil {
					return fmt.Errorf("it does not: %s", readyMessage(layer))
				}
				return nil
			})
			if tc.back {
				f.rolledBack("apps", "1.0.0", first)
			}

			w, begun := f.witness(), time.Now()
			revision := f.push(map[string]string{"apps/release.yaml": tc.good(f), "apps/beside.yaml": f.configMapRelease("beside", "three")})
			f.eventually("the good commit is deployed", func() error {
				for _, status := range w.statuses("apps") {
					if back := status.Rollback; back != nil && back.Revision == revision ||
						status.State == v1alpha1.StateFailed && status.Attempt != nil && status.Attempt.Revision == revision {
						f.Fatalf("the good commit is called failed: %+v", status)
					}
				}
				if layer := f.get("apps"); layer.Status.State != v1alpha1.StateDeployed || layer.Status.Revision != revision {
					return fmt.Errorf("it is %s at %s: %s", layer.Status.State, layer.Status.Revision, readyMessage(layer))
				}
				return nil
			})
			t.Logf("the good commit was deployed after %s", time.Since(begun).Round(10*time.Millisecond))
		})
	}
}
