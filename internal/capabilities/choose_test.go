// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
)

// provider is one that serves every namespace, changed by a test.
func provider(name string, versions []string, change ...func(*capabilities.Provider)) capabilities.Provider {
	made := capabilities.Provider{Name: name, Spec: v1alpha1.CapabilityProviderSpec{
		Capability: "database/postgresql", Versions: versions, AllowedNamespaces: &metav1.LabelSelector{},
	}}
	for _, each := range change {
		each(&made)
	}
	made.Blueprint, _ = capabilities.Understand(made.Spec)
	return made
}

func schemaOf(text string) func(*capabilities.Provider) {
	return func(p *capabilities.Provider) {
		p.Spec.Parameters = &v1alpha1.CapabilityParameters{Schema: apiextensionsv1.JSON{Raw: []byte(text)}}
	}
}

const sized = `{"type": "object", "properties": {"size": {"type": "string", "pattern": "^[0-9]+Gi$"}}, "required": ["size"]}`

// One provider is chosen by what the claim says, and where none is, it is said of each why.
func TestChoose(t *testing.T) {
	isDefault := func(p *capabilities.Provider) { p.Spec.Default = true }
	labelled := func(p *capabilities.Provider) { p.Labels = map[string]string{"tier": "gold"} }
	forTeam := func(p *capabilities.Provider) {
		p.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	}
	forNobody := func(p *capabilities.Provider) { p.Spec.AllowedNamespaces = nil }
	onlyOf := func(clusters ...string) func(*capabilities.Provider) {
		return func(p *capabilities.Provider) { p.Spec.AllowedClusters = clusters }
	}
	onlyIn := func(namespaces ...string) func(*capabilities.Provider) {
		return func(p *capabilities.Provider) { p.Spec.AllowedClusterNamespaces = namespaces }
	}
	other := func(p *capabilities.Provider) { p.Spec.Capability = "cache/redis" }
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	size := &apiextensionsv1.JSON{Raw: []byte(`{"size": "10Gi"}`)}
	for name, test := range map[string]struct {
		claim     v1alpha1.CapabilityClaimSpec
		namespace map[string]string
		providers []capabilities.Provider
		want      string
	}{
		"none":              {want: "NoProvider there is no provider of database/postgresql"},
		"of something else": {providers: []capabilities.Provider{provider("redis", []string{"7.2.0"}, other)}, want: "NoProvider there is no provider of"},
		"of another cluster": {
			v1alpha1.CapabilityClaimSpec{Cluster: "edge"},
			nil,
			[]capabilities.Provider{provider("a", []string{"15.8"}), provider("b", []string{"15.8"}, onlyOf("edge")), provider("c", []string{"14.0"}, onlyOf("other"))},
			"Ambiguous 2 providers of database/postgresql fit: a; b.",
		},
		"of a cluster that is not served": {
			v1alpha1.CapabilityClaimSpec{Cluster: "edge"},
			nil,
			[]capabilities.Provider{provider("a", []string{"15.8"}, onlyOf("one", "two"))},
			"NoProvider no provider of database/postgresql fits: a serves claims of the clusters one; two, and not of edge",
		},
		"of the home of a provider for clusters": {
			v1alpha1.CapabilityClaimSpec{},
			nil,
			[]capabilities.Provider{provider("a", []string{"15.8"}, onlyOf("one"))},
			"NoProvider no provider of database/postgresql fits: a serves claims of the clusters one, and not of the one that Strata runs in",
		},
		"of another namespace of a cluster": {
			v1alpha1.CapabilityClaimSpec{Cluster: "edge", ClusterNamespace: "mail"},
			nil,
			[]capabilities.Provider{provider("a", []string{"15.8"}, onlyIn("shop")), provider("b", []string{"15.8"}, onlyIn("shop", "mail"))},
			"b 15.8",
		},
		"the highest version":               {providers: []capabilities.Provider{provider("a", []string{"15.8.0", "16.10.0", "16.4.0"})}, want: "a 16.10.0"},
		"of a range":                        {v1alpha1.CapabilityClaimSpec{Version: ">=15 <16"}, nil, []capabilities.Provider{provider("a", []string{"15.8.0", "16.4.0"})}, "a 15.8.0"},
		"without its numbers":               {v1alpha1.CapabilityClaimSpec{Version: ">=15"}, nil, []capabilities.Provider{provider("a", []string{"15.8", "16.4"})}, "a 16.4"},
		"an exact one":                      {v1alpha1.CapabilityClaimSpec{Version: "15.8"}, nil, []capabilities.Provider{provider("a", []string{"15.8", "16.4"})}, "a 15.8"},
		"not that":                          {v1alpha1.CapabilityClaimSpec{Version: ">=17"}, nil, []capabilities.Provider{provider("a", []string{"15.8", "16.4"})}, "NoProvider no provider of database/postgresql fits: a has 15.8, 16.4, and not >=17"},
		"several":                           {providers: []capabilities.Provider{provider("b", []string{"16.4"}), provider("a", []string{"15.8"})}, want: "Ambiguous 2 providers of database/postgresql fit: a; b. Name one"},
		"the default":                       {providers: []capabilities.Provider{provider("a", []string{"15.8"}), provider("b", []string{"16.4"}, isDefault)}, want: "b 16.4"},
		"two defaults":                      {providers: []capabilities.Provider{provider("a", []string{"15.8"}, isDefault), provider("b", []string{"16.4"}, isDefault)}, want: "Ambiguous 2 providers"},
		"the named one":                     {v1alpha1.CapabilityClaimSpec{Provider: "a"}, nil, []capabilities.Provider{provider("a", []string{"15.8"}), provider("b", []string{"16.4"}, isDefault)}, "a 15.8"},
		"the named one, which does not fit": {v1alpha1.CapabilityClaimSpec{Provider: "b", Version: ">=17"}, nil, []capabilities.Provider{provider("a", []string{"15.8"}), provider("b", []string{"16.4"})}, "NoProvider CapabilityProvider b, which is named, has 16.4, and not >=17"},
		"by labels":                         {v1alpha1.CapabilityClaimSpec{ProviderSelector: gold}, nil, []capabilities.Provider{provider("a", []string{"15.8"}), provider("b", []string{"16.4"}, labelled)}, "b 16.4"},
		"for a team":                        {v1alpha1.CapabilityClaimSpec{}, map[string]string{"team": "shop"}, []capabilities.Provider{provider("a", []string{"15.8"}, forTeam)}, "a 15.8"},
		"for another team":                  {providers: []capabilities.Provider{provider("a", []string{"15.8"}, forTeam), provider("b", []string{"16.4"}, forNobody)}, want: "a does not serve this namespace; b does not serve this namespace"},
		"with parameters":                   {v1alpha1.CapabilityClaimSpec{Parameters: size}, nil, []capabilities.Provider{provider("a", []string{"15.8"}, schemaOf(sized)), provider("b", []string{"16.4"})}, "a 15.8"},
		"without them":                      {providers: []capabilities.Provider{provider("a", []string{"15.8"}, schemaOf(sized))}, want: "a does not take the parameters: parameters.size: Required value"},
		"with a schema that is none":        {v1alpha1.CapabilityClaimSpec{Parameters: size}, nil, []capabilities.Provider{provider("a", []string{"15.8"}, schemaOf(`{"type": "string"}`))}, "a has mistakes in its specification, which its status names"},
	} {
		test.claim.Capability = "Database/PostgreSQL"
		got := capabilities.Choose(capabilities.Seeker{Claim: test.claim, Namespace: "shop", NamespaceLabels: test.namespace, Controller: "strata-system"}, test.providers)
		said := strings.TrimSpace(got.Provider + " " + got.Version)
		if got.Reason != "" {
			said = fmt.Sprintf("%s %s", got.Reason, strings.ReplaceAll(got.Message, "Database/PostgreSQL", "database/postgresql"))
		}
		if got.Reason == "" && said != test.want || !strings.Contains(said, test.want) {
			t.Errorf("%s: it is %q, and not %q", name, said, test.want)
		}
	}
	many := make([]capabilities.Provider, 100)
	for i := range many {
		many[i] = provider(fmt.Sprintf("p-%03d", i), []string{"1.0.0"})
	}
	if got := capabilities.Choose(capabilities.Seeker{Claim: v1alpha1.CapabilityClaimSpec{Capability: "database/postgresql"}}, many); !strings.Contains(got.Message, "; and 90 more") {
		t.Error(got.Message)
	}
}
