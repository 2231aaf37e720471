// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/objects"
)

func specOf(t *testing.T, text string) v1alpha1.CapabilityProviderSpec {
	t.Helper()
	spec := v1alpha1.CapabilityProviderSpec{}
	if err := yaml.UnmarshalStrict([]byte("capability: database/postgresql\n"+text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// What cannot be made of any claim is said with its field before anybody claims.
func TestMistakesOfProviders(t *testing.T) {
	object := func(id, template string) string {
		return fmt.Sprintf("- {id: %s, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, %s}}\n", id, id, template)
	}
	for name, test := range map[string]struct{ spec, want string }{
		"a version":         {`versions: [">=15"]`, `spec.versions[0]: ">=15" is no version`},
		"a schema":          {`parameters: {schema: {type: string}}`, "spec.parameters.schema: must be of the type object"},
		"a field of one":    {`parameters: {schema: {type: object, propertys: {}}}`, "spec.parameters.schema: is no schema"},
		"a structural one":  {`parameters: {schema: {type: object, properties: {a: {}}}}`, "spec.parameters.schema: "},
		"rules":             {`parameters: {schema: {type: object, x-kubernetes-validations: [{rule: "true"}]}}`, "x-kubernetes-validations: rules are not evaluated here"},
		"a selector":        {`allowedNamespaces: {matchExpressions: [{key: a, operator: Wrong}]}`, "spec.allowedNamespaces: "},
		"an expression":     {"objects:\n" + object("a", `data: {a: "${claim.}"}`), "spec.objects[a].template: data.a: ${claim.} is no expression"},
		"a variable":        {"objects:\n" + object("a", `data: {a: "${cluster.name}"}`), "there are the variables claim, objects, parameters, passwords"},
		"no name":           {"objects:\n- {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {}}}", "spec.objects[a].template.metadata.name: is missing"},
		"owners":            {"objects:\n- {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: []}}}", "ownerReferences: is not for objects that are applied"},
		"another object":    {"objects:\n" + object("a", `data: {a: "${objects.b.data.a}"}`), "spec.objects[a].template: there is no object b"},
		"all objects":       {"objects:\n" + object("a", `data: {a: "${string(objects.size())}"}`), "reads objects as a whole"},
		"itself":            {"objects:\n" + object("a", `data: {a: "${objects.a.data.b}"}`), "spec.objects: objects wait for each other: a -> a"},
		"a circle":          {"objects:\n" + object("a", `data: {a: "${objects.b.data.b}"}`) + "- {id: b, dependsOn: [a], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}", "objects wait for each other: a -> b -> a"},
		"dependsOn":         {"objects:\n- {id: a, dependsOn: [gone], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}", "spec.objects[a].dependsOn: there is no object gone"},
		"ready":             {"objects:\n- {id: a, ready: \"'yes'\", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}", "spec.objects[a].ready: 'yes' is of the type string, and must be true or false"},
		"a password":        {"passwords: [{name: app}]\npublishes: [{key: a, value: \"${passwords.other}\"}]", "spec.publishes[a]: there is no password other"},
		"a password told":   {"passwords: [{name: app}]\nobjects:\n" + object("a", `data: {a: "${passwords.app}"}`), "reads passwords, which only Secrets may hold"},
		"a password asked":  {"passwords: [{name: app}]\nready: passwords.app.size() > 3", "spec.ready: reads passwords"},
		"a name of one":     {"passwords: [{name: app}]\npublishes: [{key: a, secretKeyRef: {name: \"${passwords.app}\", key: b}}]", "no name is made of a password"},
		"an object in one":  {"publishes: [{key: a, value: \"${objects.x.status.host}\"}]", "spec.publishes[a]: there is no object x"},
		"ready of all":      {"ready: objects.x.status.up", "spec.ready: there is no object x"},
		"a kind of ours":    {"objects:\n- {id: a, template: {apiVersion: kraan.io/v1alpha1, kind: Platform, metadata: {name: a}}}", "no provider makes objects of kraan.io"},
		"a kind in a guise": {"objects:\n- {id: a, template: {apiVersion: \"${'kraan.io/v1alpha1'}\", kind: Platform, metadata: {name: a}}}", "apiVersion and kind must stand there"},
		"what is observed":  {"objects:\n- {id: a, mode: Observe, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}}, data: {a: b}}}", "spec.objects[a].template.data: is not given for what is only observed"},
		"an observed label": {"objects:\n- {id: a, mode: Observe, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}}}}", "spec.objects[a].template.metadata.labels: is not given"},
		"observed Secrets":  {"objects:\n- {id: a, mode: Observe, template: {apiVersion: v1, kind: Secret, metadata: {name: a}}}", "spec.objects[a].template.kind: Secrets are not observed"},
		"too much":          {"objects:\n" + object("a", "data: {a: \""+strings.Repeat("x", 300<<10)+"\"}"), "spec.objects: the templates have "},
	} {
		blueprint, problems := capabilities.Understand(specOf(t, test.spec))
		if blueprint != nil || len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), test.want) {
			t.Errorf("%s: it says %q, and not %q", name, problems, test.want)
		}
	}
}

// instanceOf returns an instance of a provider for a claim with parameters.
func instanceOf(t *testing.T, spec, parameters string) capabilities.Instance {
	t.Helper()
	blueprint, problems := capabilities.Understand(specOf(t, spec))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	claim := &v1alpha1.CapabilityClaim{}
	claim.Name, claim.Namespace, claim.UID = "db", "shop", "uid-1"
	claim.Spec.Capability = "Database/PostgreSQL"
	claim.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(parameters)}
	given, problem := blueprint.Parameters(claim.Spec)
	if problem != "" {
		t.Fatal(problem)
	}
	return capabilities.Instance{
		Claim: claim, Blueprint: blueprint, Provider: "cnpg", Version: "16.4", Parameters: given, Namespace: "shop",
		Scopes: map[schema.GroupKind]objects.Scope{{Kind: "ConfigMap"}: objects.ScopeNamespaced, {Kind: "Secret"}: objects.ScopeNamespaced},
		Live:   map[string]*unstructured.Unstructured{},
	}
}

const sizedSchema = "parameters: {schema: {type: object, properties: {size: {type: string, default: 1Gi}, count: {type: integer}}}}\n"

func TestObjectsOfAnInstance(t *testing.T) {
	i := instanceOf(t, sizedSchema+`
objects:
- id: a
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-a"}, data: {of: "${claim.namespace}/${claim.version}", size: "${parameters.size}"}, status: {x: y}}
- id: b
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: other}, data: {host: "${objects.a.status.host}"}}
`, `{"count": 3}`)
	made, err := i.Objects()
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "db-a", "namespace": "shop"},
		"data": map[string]any{"of": "shop/16.4", "size": "1Gi"},
	}
	if diff := cmp.Diff(want, made[0].Object.Object); diff != "" || made[0].Of != "cnpg" {
		t.Error(diff)
	}
	if made[1].Object != nil || made[1].Waits != "waits for a" || !cmp.Equal(made[1].DependsOn, []string{"a"}) {
		t.Errorf("the second is %+v", made[1])
	}
	i.Live["a"] = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
	if made, err = i.Objects(); err != nil || !strings.Contains(made[1].Waits, "waits for what it reads: data.host: ${objects.a.status.host}: there is no host") {
		t.Errorf("the second is %+v: %v", made[1], err)
	}
	i.Live["a"].Object["status"] = map[string]any{"host": "10.0.0.1"}
	if made, err = i.Objects(); err != nil || made[1].Object == nil || made[1].Object.GetNamespace() != "other" {
		t.Errorf("the second is %+v: %v", made[1], err)
	}
}

// Names come from claims, and get nobody anywhere.
func TestHostileParameters(t *testing.T) {
	for _, name := range []string{"../../api", "a/b", "", "a b", "${x}", "UPPER/../x", strings.Repeat("x", 2000)} {
		i := instanceOf(t, "parameters: {schema: {type: object, properties: {name: {type: string}}}}\nobjects:\n"+
			`- {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${parameters.name}", namespace: "${parameters.name}"}}}`, fmt.Sprintf(`{"name": %q}`, name))
		if made, err := i.Objects(); err == nil {
			t.Errorf("of %q it makes %s", name, made[0].Identity())
		}
	}
	i := instanceOf(t, "parameters: {schema: {type: object, properties: {count: {type: integer}}}}\nobjects:\n"+
		`- {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "${[1,2].map(x, [1,2].map(y, parameters.count)).map(z, string(z[0][0])).join()}"}}}`, `{"count": 3}`)
	if _, err := i.Objects(); err == nil {
		t.Error("it makes nonsense")
	}
}

const withPasswords = `
passwords: [{name: app, length: 20}]
objects:
- {id: users, template: {apiVersion: v1, kind: Secret, metadata: {name: users, labels: {wrong: "${passwords.app}"}}, stringData: {app: "${passwords.app}"}}}
publishes:
- {key: uri, value: "db://${passwords.app}@x"}
- {key: bad, value: "${passwords.app + 1}"}
`

// What is wrong with what holds a password is said without it.
func TestPasswordsAreNotTold(t *testing.T) {
	const secret = "Xk29fjR0someSecret/1"
	i := instanceOf(t, withPasswords, `{}`)
	made, err := i.Objects()
	if err != nil || made[0].Waits != "waits for the claim's passwords" {
		t.Fatalf("%+v: %v", made, err)
	}
	i.Passwords = map[string]string{"app": secret}
	if _, err := i.Objects(); err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("it tells %v", err)
	}
	_, err = i.Binding(nil, "")
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "spec.publishes[bad].value") {
		t.Errorf("it says %v", err)
	}
}

// A binding is made of Secrets of the instance alone: its own objects, and what they own.
func TestWhichSecretsAreRead(t *testing.T) {
	i := instanceOf(t, "objects:\n- {id: cluster, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}", `{}`)
	cluster := &unstructured.Unstructured{Object: map[string]any{}}
	cluster.SetUID("cluster-uid")
	cluster.SetNamespace("shop")
	i.Live["cluster"] = cluster
	cluster.SetLabels(map[string]string{v1alpha1.ClaimLabel: "uid-1"})
	observed := cluster.DeepCopy()
	observed.SetLabels(nil)
	observed.SetUID("observed-uid")
	i.Live["observed"] = observed
	secret := func(namespace string, metadata map[string]any) *unstructured.Unstructured {
		metadata["name"], metadata["namespace"] = "s", namespace
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata}}
	}
	owned := func(uid string) []any {
		return []any{map[string]any{"uid": uid, "kind": "Cluster", "name": "x", "apiVersion": "v1"}}
	}
	own := map[objects.ID]bool{{Kind: "Secret", Namespace: "shop", Name: "s"}: true}
	for name, test := range map[string]struct {
		secret *unstructured.Unstructured
		known  map[objects.ID]bool
		want   bool
	}{
		"anybody's":                    {secret("shop", map[string]any{}), nil, false},
		"the claim's":                  {secret("shop", map[string]any{"labels": map[string]any{v1alpha1.ClaimLabel: "uid-1"}}), own, true},
		"one that says so":             {secret("shop", map[string]any{"labels": map[string]any{v1alpha1.ClaimLabel: "uid-1"}}), nil, false},
		"another claim's":              {secret("shop", map[string]any{"labels": map[string]any{v1alpha1.ClaimLabel: "uid-2"}}), own, false},
		"of an object":                 {secret("shop", map[string]any{"ownerReferences": owned("cluster-uid")}), nil, true},
		"of one that is only observed": {secret("shop", map[string]any{"ownerReferences": owned("observed-uid")}), nil, false},
		"of another object":            {secret("shop", map[string]any{"ownerReferences": owned("other")}), nil, false},
		"of an object elsewhere":       {secret("other", map[string]any{"ownerReferences": owned("cluster-uid")}), nil, false},
		"of an object, by no UID":      {secret("shop", map[string]any{"ownerReferences": owned("")}), nil, false},
		"listed, and not the claim's":  {secret("shop", map[string]any{}), own, false},
	} {
		if got := i.Owns(test.known, test.secret); got != test.want {
			t.Errorf("%s: it is %v", name, got)
		}
	}
}

// A bound claim says what has changed of its provider, and nothing where that does not
// concern it.
func TestOutdated(t *testing.T) {
	was := specOf(t, "versions: ['15.8', '16.4']\nserviceAccountName: a\npublishes: [{key: a, value: b}]")
	bound := &capabilities.Bound{Provider: "cnpg", Version: "16.4", Spec: was}
	changed := func(change func(*v1alpha1.CapabilityProviderSpec)) *capabilities.Provider {
		spec := *was.DeepCopy()
		change(&spec)
		return &capabilities.Provider{Name: "cnpg", Spec: spec}
	}
	for name, test := range map[string]struct {
		claim    v1alpha1.CapabilityClaimSpec
		provider *capabilities.Provider
		want     string
	}{
		"nothing":       {v1alpha1.CapabilityClaimSpec{}, changed(func(*v1alpha1.CapabilityProviderSpec) {}), ""},
		"gone":          {v1alpha1.CapabilityClaimSpec{}, nil, "CapabilityProvider cnpg has gone"},
		"a template":    {v1alpha1.CapabilityClaimSpec{}, changed(func(s *v1alpha1.CapabilityProviderSpec) { s.Publishes[0].Value = "c" }), "CapabilityProvider cnpg has another publishes"},
		"an account":    {v1alpha1.CapabilityClaimSpec{}, changed(func(s *v1alpha1.CapabilityProviderSpec) { s.ServiceAccountName, s.Ready = "b", "true" }), "has another ready, serviceAccountName"},
		"a version":     {v1alpha1.CapabilityClaimSpec{}, changed(func(s *v1alpha1.CapabilityProviderSpec) { s.Versions = append(s.Versions, "16.10") }), "it would get version 16.10"},
		"another range": {v1alpha1.CapabilityClaimSpec{Version: "<16"}, changed(func(*v1alpha1.CapabilityProviderSpec) {}), "spec.version asks for <16; it would get version 15.8"},
		"another one":   {v1alpha1.CapabilityClaimSpec{Provider: "other"}, changed(func(*v1alpha1.CapabilityProviderSpec) {}), "spec.provider names CapabilityProvider other"},
		"the same one":  {v1alpha1.CapabilityClaimSpec{Provider: "cnpg"}, changed(func(*v1alpha1.CapabilityProviderSpec) {}), ""},
		"whom it serves": {v1alpha1.CapabilityClaimSpec{}, changed(func(s *v1alpha1.CapabilityProviderSpec) {
			s.AllowedNamespaces, s.Default, s.Description = nil, true, "x"
		}), ""},
		"a version taken": {v1alpha1.CapabilityClaimSpec{Version: ">=15"}, changed(func(s *v1alpha1.CapabilityProviderSpec) { s.Versions = []string{"15.8"} }), "it would get version 15.8"},
	} {
		if got := capabilities.Outdated(bound, test.claim, test.provider); got != test.want && (test.want == "" || !strings.Contains(got, test.want)) {
			t.Errorf("%s: it says %q, and not %q", name, got, test.want)
		}
	}
}

// What a plug-in says stays in its namespace, also where an expression says so that nobody has
// seen before it is filled.
func TestConfined(t *testing.T) {
	i := instanceOf(t, "objects:\n- {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: \"${{'name': 'a', 'namespace': 'kube-system'}}\"}}", `{}`)
	if made, err := i.Objects(); err != nil || made[0].Object.GetNamespace() != "kube-system" {
		t.Fatalf("of a template it is %v: %v", made, err)
	}
	i.Confined = true
	if _, err := i.Objects(); err == nil || err.Error() != "spec.objects[a].template.metadata: namespace: is kube-system, and not shop" {
		t.Errorf("of a plug-in it says %v", err)
	}
}
