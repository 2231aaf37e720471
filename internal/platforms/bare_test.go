// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects/objectstest"
)

// TestNoPlatformPanics decides upon platforms in any state of which any optional part is
// missing: bundles, clusters, layers, statuses, annotations.
func TestNoPlatformPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(0, 4).Draw(t, "looks") {
			w.apply(t)
			w.engine()
			w.Now = w.Now.Add(time.Hour)
		}
		p := w.Platform.DeepCopy()
		p.Spec.Hold = rapid.Bool().Draw(t, "held")
		if rapid.Bool().Draw(t, "approved") {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.ApproveAnnotation, "first")
		}
		if rapid.Bool().Draw(t, "another version") {
			p.Spec.Bundle.Version = w.versions[len(w.versions)-1]
		}
		if rapid.Bool().Draw(t, "deleted") {
			p.DeletionTimestamp = &metav1.Time{Time: w.Now}
		}
		w.Platform = p
		for name := range w.Clusters {
			if rapid.Bool().Draw(t, "away") {
				w.answers(name.Name, false)
			}
		}
		w.Others = append(slices.Clone(w.Layers), w.Others...)
		o := objectstest.Bare(t, w.Observation, "Observation.Platform")
		d := Decide(o)
		Look(o)
		Names(o)
		Targets(o)
		Upstream(o, func(string) *v1alpha1.AddonsLayer { return nil })
		Downstream(o)
		InTheWay(o)
		o.Platform = o.Platform.DeepCopy()
		o.Platform.Status = d.Status
		Decide(o)
	})
}
