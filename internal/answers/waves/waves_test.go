// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package waves

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
)

// layer writes down a layer that depends on others.
func layer(name, state, cluster, platform string, needs ...string) string {
	ready := map[string]string{"Deployed": "True", "Applying": "Unknown"}[state]
	if ready == "" {
		ready = "False"
	}
	spec := ""
	if cluster != "" {
		spec = fmt.Sprintf("  cluster: {namespace: fleet, name: %s}\n", cluster)
	}
	if platform != "" {
		platform = ", labels: {platform.kraan.io/name: " + platform + "}"
	}
	return fmt.Sprintf(`---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %s, generation: 1%s}
spec:
  version: "1"
%s  prereqs: {dependsOn: [%s]}
status: {state: %s, observedGeneration: 1, conditions: [{type: Ready, status: "%s", reason: X, message: of %s}]}
`, name, platform, spec, strings.Join(needs, ", "), state, ready, name)
}

// written writes a graph in a few lines.
func written(g Graph) []string {
	var lines []string
	for _, group := range g.Groups {
		text := group.Cluster
		for _, lane := range group.Lanes {
			text += " " + lane.Platform + ":"
			for _, wave := range lane.Waves {
				text += fmt.Sprint(wave)
			}
		}
		lines = append(lines, strings.TrimSpace(text+" "+group.Left))
	}
	return append(lines, g.Left)
}

func TestWaves(t *testing.T) {
	for name, test := range map[string]struct {
		objects string
		most    int
		want    []string
	}{
		"in order of what waits for what": {
			layer("c", "Deployed", "", "", "b@1.0", "a") + layer("b", "Deployed", "", "", "a") + layer("a", "Deployed", "", "") + layer("z", "Deployed", "", ""),
			9,
			[]string{":[a z][b][c]", ""},
		},
		"by cluster and platform": {
			layer("a", "Deployed", "east", "p") + layer("b", "Deployed", "east", "q", "a") + layer("c", "Deployed", "", ""),
			9,
			[]string{":[c]", "fleet/east p:[a][] q:[][b]", ""},
		},
		"what is missing stands first": {layer("a", "ApplyPending", "", "", "gone"), 9, []string{":[gone][a]", ""}},
		"a circle ends":                {layer("a", "ApplyPending", "", "", "b") + layer("b", "ApplyPending", "", "", "a"), 9, []string{":[b][a]", ""}},
		"the worst stay": {
			layer("a", "Deployed", "", "") + layer("b", "Failed", "", "") + layer("c", "ApplyPending", "", "") + layer("d", "Deployed", "east", ""),
			2,
			[]string{":[b c] and 1 more, all deployed", "and 2 more, all deployed"},
		},
		"what is left out and not well is said": {
			layer("a", "Failed", "", "") + layer("b", "Failed", "", "") + layer("c", "Applying", "", ""),
			1,
			[]string{":[a] and 2 more: 1 failed, 1 under way", "and 2 more: 1 failed, 1 under way"},
		},
		"nothing": {"", 9, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := Of(snapshottest.New(t, test.objects), nil, test.most)
			if diff := cmp.Diff(test.want, written(g)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// However many layers that do not exist are named, what is drawn has an end.
func TestNamesOfNothingAreBounded(t *testing.T) {
	var gone []string
	for i := range 1000 {
		gone = append(gone, fmt.Sprintf("gone-%d", i))
	}
	if g := Of(snapshottest.New(t, layer("a", "ApplyPending", "", "", gone...)), nil, 5); len(g.Nodes) != 10 {
		t.Errorf("%d nodes are drawn", len(g.Nodes))
	}
}

func TestNodes(t *testing.T) {
	g := Of(snapshottest.New(t, layer("a", "ApplyPending", "", "", "gone")), nil, 9)
	want := map[string]Node{
		"a":    {Name: "a", Version: "1", State: "ApplyPending", Fares: "Waiting", Why: "of a", Needs: []string{"gone"}},
		"gone": {Name: "gone", State: "Missing", Fares: "Failed", Why: "there is no such layer"},
	}
	if diff := cmp.Diff(want, g.Nodes); diff != "" {
		t.Error(diff)
	}
}
