// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// A release waits for what is not given to it, also where that exists, and the layer
// goes on with its other objects.
func TestDecideWaitsForWhatIsNotGiven(t *testing.T) {
	place := prod
	secret := objects.ID{Kind: "Secret", Namespace: "default", Name: "db"}
	place.Given = map[objects.ID]placement.Given{secret: {Withheld: "is not given"}}
	placed, err := place.Put(directoriestest.Of(newRevision, directoriestest.HelmRelease("a", "valuesFrom", []any{map[string]any{"kind": "Secret", "name": "db"}}), directoriestest.HelmRelease("b")))
	if err != nil {
		t.Fatal(err)
	}
	o := observation(layer(), placed)
	for _, m := range placed.Manifests {
		o.Scopes[m.ID().ServedKind()] = objects.ScopeNamespaced
		if m.Object.GetKind() == "Namespace" {
			o.Scopes[m.ID().ServedKind()] = objects.ScopeCluster
		}
	}
	o.Live[secret] = directoriestest.Secret("default", "db")
	decision := Decide(o)
	if decision.State != v1alpha1.StateApplying || decision.Stalled || !strings.Contains(decision.Message, "Secret default/db") || !strings.Contains(decision.Message, "is not given") {
		t.Errorf("the layer is %s: %s", decision.State, decision.Message)
	}
	written := verbs(decision.Plan)
	if !strings.Contains(written, "prod-b-") || strings.Contains(written, "prod-a-") {
		t.Errorf("the plan is %s", written)
	}
}

// What the layer's account may is asked again in time.
func TestDecideAsksAgain(t *testing.T) {
	o := observation(layer(isDeployed(oldDir)), oldDir, lives(live("a")))
	o.AskAgain = testNow.Add(7)
	if until := Decide(o).Until; !until.Equal(o.AskAgain) {
		t.Errorf("it is decided again at %s, want %s", until, o.AskAgain)
	}
}

// Rules across namespaces judge what was written, and what came of it.
func TestCrossNamespaceRulesJudgeWhatWasWritten(t *testing.T) {
	for name, test := range map[string]struct {
		manifest directories.Manifest
		refused  string
	}{
		"its own":             {directoriestest.HelmRelease("a", "valuesFrom", []any{map[string]any{"kind": "Secret", "name": "x"}}), ""},
		"a source elsewhere":  {chartFrom("elsewhere"), "HelmRelease default/a refers to the namespace elsewhere"},
		"one beside it":       {chartFrom(""), "HelmRelease fleet/prod-a-"}, // of default, seen from fleet
		"one of fleet":        {chartFrom("fleet"), "HelmRelease default/a refers to the namespace fleet"},
		"a release elsewhere": {directoriestest.HelmRelease("a", "dependsOn", []any{map[string]any{"name": "b", "namespace": "elsewhere"}}), "spec.dependsOn[0].namespace: HelmRelease default/a refers to the namespace elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			place := prod
			place.OwnNamespaceOnly = true
			placed, err := place.Put(directoriestest.Of(newRevision, test.manifest))
			if err != nil {
				t.Fatal(err)
			}
			o := observation(layer(), placed, ownNamespaceOnly)
			blocked := contentAccessGate(o)
			if (blocked != nil) != (test.refused != "") || blocked != nil && !strings.Contains(blocked.Message, test.refused) {
				t.Errorf("it says %+v, want %q", blocked, test.refused)
			}
		})
	}
}
