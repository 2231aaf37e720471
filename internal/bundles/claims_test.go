// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// What a bundle says of an instance that is there already is said in the claim, which then has
// no parameters of its own; and so is a rotation, and who else may have the instance.
func TestApplicationsShareInstances(t *testing.T) {
	shared := []v1alpha1.CapabilityRequirement{{
		Name: "db", Rotation: &v1alpha1.CapabilityRotation{Number: 2}, AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	}}
	bound := []v1alpha1.CapabilityRequirement{{Name: "db", BoundTo: &v1alpha1.CapabilityClaimReference{Namespace: "orders", Name: "orders-db"}}}
	for name, test := range map[string]struct {
		refined []v1alpha1.CapabilityRequirement
		want    map[string]any
	}{
		"one of its own": {shared, map[string]any{
			"capability": "database/postgresql", "parameters": map[string]any{"size": "1Gi"}, "rotation": map[string]any{"number": int64(2)},
			"allowedNamespaces": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		}},
		"another one's": {bound, map[string]any{
			"capability": "database/postgresql", "boundTo": map[string]any{"namespace": "orders", "name": "orders-db"},
		}},
	} {
		requires := []v1alpha1.CapabilityRequirement{{
			Name: "db", Capability: "database/postgresql", Parameters: rawJSON(`{"size": "1Gi"}`), Rotation: &v1alpha1.CapabilityRotation{Number: 1},
		}}
		for _, manifest := range render(t, requiring(t, requires, test.refined, nil)) {
			if manifest.ID().Kind != v1alpha1.CapabilityClaimKind {
				continue
			}
			if diff := cmp.Diff(test.want, manifest.Object.Object["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
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

// What an application has is offered once its release is ready.
func TestApplicationsProvide(t *testing.T) {
	request := requiring(t, nil, nil, nil)
	app := request.Applications[ApplicationName(LayerAt(request.Bundle, request.Path).Applications[0])]
	for i := range app.Spec.Versions {
		app.Spec.Versions[i].Provides = []v1alpha1.ProvidedCapability{{
			Name: "api", Capability: "http/shop", ServiceAccountName: "bindings", Publishes: []v1alpha1.PublishedValue{{Key: "url", Value: "http://${claim.name}.shop"}},
		}}
	}
	var provider, release directories.Manifest
	for _, manifest := range render(t, request) {
		switch manifest.ID().Kind {
		case v1alpha1.CapabilityProviderKind:
			provider = manifest
		case "HelmRelease":
			release = manifest
		}
	}
	if provider.Object == nil {
		t.Fatal("it has no provider")
	}
	version := LayerAt(request.Bundle, request.Path).Applications[0].Version
	want := map[string]any{
		"capability": "http/shop", "versions": []any{version}, "namespace": release.ID().Namespace, "serviceAccountName": "bindings",
		"publishes": []any{map[string]any{"key": "url", "value": "http://${claim.name}.shop"}},
	}
	if diff := cmp.Diff(want, provider.Object.Object["spec"]); diff != "" {
		t.Errorf("the provider (-want +got):\n%s", diff)
	}
	if provider.ID().Namespace != "" || provider.ID().Name != "prod-apps-"+release.ID().Name+"-api" || !cmp.Equal(provider.Needs, []objects.ID{release.ID()}) {
		t.Errorf("the provider is %s and waits for %v", provider.ID(), provider.Needs)
	}
}

// A bundle says which capabilities none of its layers provides before they are needed.
func TestLackingCapabilities(t *testing.T) {
	object := func(text string) v1alpha1.Manifest { return v1alpha1.Manifest{JSON: *rawJSON(text)} }
	provider := object(`{"apiVersion": "kraan.io/v1alpha1", "kind": "CapabilityProvider", "metadata": {"name": "a"}, "spec": {"capability": "Cache/Redis"}}`)
	needs := func(name string, capabilities ...string) v1alpha1.BundleApplication {
		application := v1alpha1.BundleApplication{Name: name, Version: "1.0.0", Chart: &v1alpha1.ChartSource{}}
		for _, capability := range capabilities {
			application.Requires = append(application.Requires, v1alpha1.CapabilityRequirement{Name: "x", Capability: capability})
		}
		return application
	}
	catalogued := &v1alpha1.HelmApplication{Spec: v1alpha1.HelmApplicationSpec{Versions: []v1alpha1.HelmApplicationVersion{{
		Version: "1.0.0", ApplicationContent: v1alpha1.ApplicationContent{
			Provides: []v1alpha1.ProvidedCapability{{Name: "api", Capability: "http/shop"}},
			Requires: []v1alpha1.CapabilityRequirement{{Name: "db", Capability: "Database/PostgreSQL"}},
		},
	}}}}
	layer := func(name string, after []string, applications ...v1alpha1.BundleApplication) v1alpha1.BundleLayer {
		return v1alpha1.BundleLayer{Name: name, DependsOn: after, Applications: applications}
	}
	shop := v1alpha1.BundleApplication{Name: "shop", Version: "1.0.0"}
	for name, test := range map[string]struct {
		layers []v1alpha1.BundleLayer
		has    []string
		want   string
	}{
		"nothing is needed":    {[]v1alpha1.BundleLayer{layer("a", nil, needs("a"))}, nil, ""},
		"nobody has it":        {[]v1alpha1.BundleLayer{layer("a", nil, needs("a", "cache/redis"), needs("b", "Cache/Redis", "queue/amqp"))}, nil, "; needs cache/redis, queue/amqp, which no layer of it provides"},
		"of the catalogue":     {[]v1alpha1.BundleLayer{layer("a", nil, shop)}, nil, "; needs database/postgresql, which"},
		"clusters have it":     {[]v1alpha1.BundleLayer{layer("a", nil, shop)}, []string{"database/PostgreSQL"}, ""},
		"an object before":     {[]v1alpha1.BundleLayer{{Name: "base", Objects: []v1alpha1.Manifest{provider}}, layer("mid", []string{"base"}), layer("a", []string{"mid"}, needs("a", "cache/redis"))}, nil, ""},
		"an object beside":     {[]v1alpha1.BundleLayer{{Name: "base", Objects: []v1alpha1.Manifest{provider}}, layer("a", nil, needs("a", "cache/redis"))}, nil, "; needs cache/redis"},
		"an application":       {[]v1alpha1.BundleLayer{layer("shop", nil, shop), layer("a", []string{"shop"}, needs("a", "HTTP/Shop"))}, []string{"database/postgresql"}, ""},
		"one of the same":      {[]v1alpha1.BundleLayer{layer("shop", nil, shop, needs("a", "http/shop"))}, []string{"database/postgresql"}, ""},
		"an unknown one":       {[]v1alpha1.BundleLayer{layer("a", nil, v1alpha1.BundleApplication{Name: "gone", Version: "9.0.0"})}, nil, ""},
		"layers in a circle":   {[]v1alpha1.BundleLayer{layer("a", []string{"b"}, needs("a", "cache/redis")), layer("b", []string{"a"})}, nil, "; needs cache/redis"},
		"another kind of name": {[]v1alpha1.BundleLayer{{Name: "base", Objects: []v1alpha1.Manifest{object(`{"kind": "CapabilityProvider"}`), object(`[]`)}}, layer("a", []string{"base"}, needs("a", "cache/redis"))}, nil, "; needs cache/redis"},
	} {
		bundle := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{Layers: test.layers, Capabilities: test.has}}
		got := Observation{Bundle: bundle, Catalogue: map[string]*v1alpha1.HelmApplication{"shop": catalogued}}.lacking()
		if got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s: it says %q, and not %q", name, got, test.want)
		}
	}
}
