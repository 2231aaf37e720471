// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/objects/objectstest"
)

// TestNoClusterOfHostsPanics decides upon clusters of which any optional part is missing, also
// such as never come about: members without hosts, hosts without versions, an empty answer.
func TestNoClusterOfHostsPanics(t *testing.T) {
	versions := []string{"", older, old, current, "v1", "none"}
	rapid.Check(t, func(t *rapid.T) {
		var all []kind
		for k := range traitsOf {
			all = append(all, k)
		}
		slices.Sort(all)
		n := rapid.IntRange(0, 4).Draw(t, "hosts")
		s := situation{
			replace: rapid.Bool().Draw(t, "replace"), version: rapid.SampledFrom(versions).Draw(t, "version"), target: rapid.SampledFrom(versions).Draw(t, "target"),
			kept: rapid.Bool().Draw(t, "kept"), late: rapid.Bool().Draw(t, "late"), takesOver: rapid.Bool().Draw(t, "takes over"),
			deadLeft: rapid.IntRange(0, 2).Draw(t, "dead"), liveLeft: rapid.IntRange(0, 2).Draw(t, "alive"), nodesLeft: rapid.IntRange(0, 2).Draw(t, "nodes"),
		}
		for range n {
			s.kinds = append(s.kinds, rapid.SampledFrom(all).Draw(t, "kind"))
			s.versions = append(s.versions, rapid.SampledFrom(versions).Draw(t, "host's version"))
		}
		o := objectstest.Bare(t, s.observe())
		hosts.Decide(o)
		hosts.Classes(o)
		_, _ = hosts.Restore(o, hosts.Wish{ClusterID: id, Version: s.version})
	})
}
