// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
	"github.com/strata-project/strata/internal/answers/tree"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/terminal"
)

// large is a cluster of 200 layers in one chain and across, each with 5 releases of
// 10 objects.
func large(b *testing.B) *snapshot.Snapshot {
	b.Helper()
	var text strings.Builder
	for l := range 200 {
		fmt.Fprintf(&text, "---\napiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: layer-%d, generation: 1}\nspec:\n  version: 1.0.0\n  source: {name: addons, namespace: gotk-system, path: ./layer}\n", l)
		if l > 0 {
			fmt.Fprintf(&text, "  prereqs: {dependsOn: [layer-%d, layer-%d]}\n", l/2, l-1)
		}
		fmt.Fprintf(&text, "status:\n  state: ApplyPending\n  observedGeneration: 1\n  conditions: [{type: Ready, status: \"False\", reason: DependencyNotDeployed, message: waits}]\n  blockedBy: [{kind: AddonsLayer, name: layer-%d, reason: DependencyNotDeployed, message: waits}]\n  resources:\n", max(0, l-1))
		for r := range 5 {
			fmt.Fprintf(&text, "  - {namespace: ns-%d, name: release-%d, kind: helmreleases.helm.toolkit.fluxcd.io, status: Deployed}\n", l, r)
		}
		for r := range 5 {
			fmt.Fprintf(&text, "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: release-%d, namespace: ns-%d}\nstatus:\n  inventory:\n    entries:\n", r, l)
			for e := range 10 {
				fmt.Fprintf(&text, "    - {id: ns-%d_object-%d-%d_apps_Deployment, v: v1}\n", l, r, e)
			}
		}
	}
	s, err := snapshot.New(snapshottest.Noon, snapshottest.Objects(b, text.String())...)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkTree(b *testing.B) {
	s := large(b)
	for b.Loop() {
		roots := make([]Node, 0, len(s.Layers))
		for _, layer := range s.Layers {
			roots = append(roots, Tree(tree.Of(s, layer, nil, 2), 2, false))
		}
		if text := Draw(terminal.Screen{Width: 100, Colour: true}, roots); !strings.Contains(text, "10 objects") {
			b.Fatal(text)
		}
	}
}

func BenchmarkWhy(b *testing.B) {
	s := large(b)
	for b.Loop() {
		answer := why.Of(s, s.Layer("layer-199")).Conclude(s, "kubectl strata")
		if text := Why(terminal.Screen{Width: 100}, answer, s.Now); len(answer.Chain) < 100 {
			b.Fatal(text)
		}
	}
}
