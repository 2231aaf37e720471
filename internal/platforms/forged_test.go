// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// writesOf returns what a decision writes.
func writesOf(d Decision) any { return []any{d.Bundles, d.Write, d.Delete, d.DeleteBundles, d.Gone} }

// Whatever somebody has written into the fields of a Platform's status of which nothing is to
// follow, at each step of a roll-out its layers are written and deleted as if they had not.
func TestForgedStatusOfAPlatform(t *testing.T) {
	w := sized(t)
	w.Platform.Spec.Bundle.Version = "1.1.0"
	wrote := 0
	for range 12 {
		honest := Decide(w.Observation)
		wrote += len(honest.Write)
		for _, forgery := range forged.Each(t, v1alpha1.PlatformKind, w.Platform.Status, func(s v1alpha1.PlatformStatus) v1alpha1.PlatformStatus { return *s.DeepCopy() }) {
			o := w.Observation
			o.Platform = w.Platform.DeepCopy()
			o.Platform.Status = forgery.Status
			if diff := cmp.Diff(writesOf(honest), writesOf(Decide(o))); diff != "" {
				t.Fatalf("%s: %s", forgery.Name, diff)
			}
		}
		w.apply(t)
		w.engine()
	}
	if wrote == 0 {
		t.Error("nothing was written that could have been forged")
	}
}
