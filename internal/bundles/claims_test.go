// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

// requiring is a layer whose application requires a database, and a bundle that says which.
func requiring(t *testing.T, version, refined []v1alpha1.CapabilityRequirement, values []v1alpha1.BindingValue) Request {
	t.Helper()
	request := requestOf(t, "apps")
	layer := LayerAt(request.Bundle, request.Path)
	layer.Applications = layer.Applications[:1]
	application := &layer.Applications[0]
	application.DependsOn, application.ForEach, application.When = nil, "", ""
	application.Requires = refined
	app := request.Applications[ApplicationName(*application)]
	for i := range app.Spec.Versions {
		app.Spec.Versions[i].Requires, app.Spec.Versions[i].ValuesFrom = version, values
	}
	app.Status, request.Bundle.Status = v1alpha1.HelmApplicationStatus{}, v1alpha1.ApplicationBundleStatus{}
	return request
}

// An application that requires something has a claim for it, in its own namespace; its release
// waits for that and takes values of the binding.
func TestApplicationsClaim(t *testing.T) {
	request := requiring(
		t,
		[]v1alpha1.CapabilityRequirement{{Name: "db", Capability: "database/postgresql", Version: ">=15", Parameters: rawJSON(`{"size": "1Gi", "text": "${kept}"}`)}},
		[]v1alpha1.CapabilityRequirement{{Name: "db", Provider: "cnpg-${instance.name}", Parameters: rawJSON(`{"size": "${inputs.domain}"}`)}},
		[]v1alpha1.BindingValue{{Capability: "db", Key: "uri", TargetPath: "database.uri"}},
	)
	var claim, release directories.Manifest
	for _, manifest := range render(t, request) {
		switch manifest.ID().Kind {
		case v1alpha1.CapabilityClaimKind:
			claim = manifest
		case "HelmRelease":
			release = manifest
		}
	}
	if claim.Object == nil || release.Object == nil {
		t.Fatal("it has no claim, or no release")
	}
	want := map[string]any{
		"capability": "database/postgresql", "version": ">=15", "provider": "cnpg-prod",
		"parameters": map[string]any{"size": "example.com", "text": "${kept}"},
	}
	if diff := cmp.Diff(want, claim.Object.Object["spec"]); diff != "" {
		t.Errorf("the claim (-want +got):\n%s", diff)
	}
	if claim.ID().Name != release.ID().Name+"-db" || claim.ID().Namespace != release.ID().Namespace || !strings.Contains(claim.File, ".requires[db]") {
		t.Errorf("the claim is %s of %s, of release %s", claim.ID(), claim.File, release.ID())
	}
	if diff := cmp.Diff([]objects.ID{claim.ID()}, release.Needs); diff != "" {
		t.Errorf("the release waits for (-want +got):\n%s", diff)
	}
	values := release.Object.Object["spec"].(map[string]any)["valuesFrom"].([]any)
	last := map[string]any{"kind": "Secret", "name": claim.ID().Name + "-binding", "valuesKey": "uri", "targetPath": "database.uri"}
	if diff := cmp.Diff(last, values[len(values)-1]); diff != "" {
		t.Errorf("the last of its values (-want +got):\n%s", diff)
	}
}

// What is wrong with what an application requires is said with its field.
func TestMistakesOfRequirements(t *testing.T) {
	db := []v1alpha1.CapabilityRequirement{{Name: "db", Capability: "database/postgresql"}}
	for name, test := range map[string]struct {
		version, refined []v1alpha1.CapabilityRequirement
		values           []v1alpha1.BindingValue
		want             string
	}{
		"no capability": {nil, []v1alpha1.CapabilityRequirement{{Name: "db"}}, nil, "requires[db].capability: is missing"},
		"no such value": {db, nil, []v1alpha1.BindingValue{{Capability: "cache", Key: "uri", TargetPath: "a"}}, "valuesFrom[0].capability: nothing is required as cache"},
		"a provider":    {db, []v1alpha1.CapabilityRequirement{{Name: "db", Provider: "${inputs.domain}/x"}}, nil, `requires[db].provider: "example.com/x" is not the name of a CapabilityProvider`},
		"a template":    {db, []v1alpha1.CapabilityRequirement{{Name: "db", Parameters: rawJSON(`{"a": "${inputs.gone}"}`)}}, nil, "requires[db].parameters"},
	} {
		_, err := Render(requiring(t, test.version, test.refined, test.values))
		var content *directories.ContentError
		if !errors.As(err, &content) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: it says %v, and not %q", name, err, test.want)
		}
	}
}
