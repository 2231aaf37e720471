// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package near_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/near"
)

func TestNear(t *testing.T) {
	names := []string{"a", "apps", "base", "bases", "bootstrap", "mesh", "mesh-gateway", "monitoring"}
	for _, c := range []struct {
		wrote  string
		want   []string
		reason string
	}{
		{"bas", []string{"base", "bases"}, "a letter is missing, or two"},
		{"bsae", []string{"base"}, "two letters changed places"},
		{"boostrap", []string{"bootstrap"}, "a letter is missing"},
		{"Bootstrap", []string{"bootstrap"}, "capitals do not count"},
		{"gateway", []string{"mesh-gateway"}, "a part of the name"},
		{"monitorng", []string{"monitoring"}, "a letter is missing"},
		{"zzz", nil, "nothing is near"},
		{"platform-a", nil, "a letter is in every word"},
		{"", nil, "nothing was written"},
	} {
		if diff := cmp.Diff(c.want, near.Near(c.wrote, names)); diff != "" {
			t.Errorf("near %q (-want +got): %s\n%s", c.wrote, c.reason, diff)
		}
	}
}
