// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers"
)

var spec = v1alpha1.CapabilityProviderSpec{
	Capability: "Database/PostgreSQL",
	Plugin: &v1alpha1.CapabilityPlugin{Kinds: []v1alpha1.CapabilityKind{
		{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Secret"},
	}},
}

func wanted(id, template string, change ...func(*pluginv1.Object)) *pluginv1.PlanResponse {
	object := &pluginv1.Object{Id: id, Template: []byte(template)}
	for _, each := range change {
		each(object)
	}
	return &pluginv1.PlanResponse{Objects: []*pluginv1.Object{object}}
}

func published(key string) *pluginv1.PlanResponse {
	return &pluginv1.PlanResponse{Publishes: []*pluginv1.Value{{Key: key}}}
}

// What a plug-in wants is refused as a whole where it may not have a part of it.
func TestWhatPluginsMaySay(t *testing.T) {
	const server = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`
	for name, test := range map[string]struct {
		plan *pluginv1.PlanResponse
		want string
	}{
		"an ID of ours":       {wanted("binding", server), `wants an object "binding" that has no ID`},
		"no ID":               {wanted("", server), "has no ID"},
		"an ID with a slash":  {wanted("a/b", server), "has no ID"},
		"no JSON":             {wanted("a", "{"), "is no JSON"},
		"no object":           {wanted("a", "[]"), "is no JSON"},
		"another kind":        {wanted("a", `{"apiVersion": "kraan.io/v1alpha1", "kind": "AddonsLayer"}`), "is of the kind kraan.io/v1alpha1/AddonsLayer, which spec.plugin.kinds does not have"},
		"a kind in a guise":   {wanted("a", `{"apiVersion": "${'v1'}", "kind": "Pod"}`), "which spec.plugin.kinds does not have"},
		"another namespace":   {wanted("a", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "kube-system"}}`), "is in the namespace kube-system, and not in shop"},
		"a guised namespace":  {wanted("a", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "${'kube-system'}"}}`), "is in the namespace ${'kube-system'}, and not in shop"},
		"a mode":              {wanted("a", server, func(o *pluginv1.Object) { o.Mode = 7 }), "has a mode that is none: 7"},
		"data that go":        {wanted("a", server, func(o *pluginv1.Object) { o.HoldsData, o.DeleteOnRename = true, true }), "holds data"},
		"what is observed":    {wanted("a", server, func(o *pluginv1.Object) { o.Mode, o.HoldsData = pluginv1.Mode_MODE_OBSERVE, true }), "is only observed"},
		"a key of ours":       {published("provider"), `publishes the key "provider"`},
		"a key that is none":  {published("a/b"), `publishes the key "a/b"`},
		"too many objects":    {&pluginv1.PlanResponse{Objects: make([]*pluginv1.Object, 51)}, "wants 51 objects"},
		"too many values":     {&pluginv1.PlanResponse{Publishes: make([]*pluginv1.Value, 51)}, "publishes 51 values"},
		"an ID for terminals": {wanted("\x1b[31m", server), `wants an object "[31m" that has no ID`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := providers.Fill(spec, "shop", test.plan); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// What a plug-in may say becomes what templates would.
func TestFill(t *testing.T) {
	plan := wanted("users", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"app": "${passwords.app}"}}`, func(o *pluginv1.Object) {
		o.Mode, o.HoldsData, o.Waits = pluginv1.Mode_MODE_CREATE_ONCE, true, "has\nno disk"
	})
	plan.Waits = "waits for the moon"
	plan.Publishes = []*pluginv1.Value{{Key: "a", From: &pluginv1.Value_SecretKey{SecretKey: &pluginv1.SecretKey{Name: "${passwords.app}", Key: "app"}}}}
	filled, err := providers.Fill(spec, "shop", plan)
	if err != nil {
		t.Fatal(err)
	}
	object := filled.Spec.Objects[0]
	if object.Mode != v1alpha1.CapabilityCreateOnce || !object.HoldsData || !strings.Contains(string(object.Template.Raw), `"kraan.io/holds-data":"true"`) {
		t.Errorf("the object is %+v", object)
	}
	if filled.Waits != plan.Waits || strings.Contains(filled.Lacks["users"], "\n") || filled.Spec.Publishes[0].SecretKeyRef.Name != "$${passwords.app}" {
		t.Errorf("it is %+v", filled)
	}
	if len(spec.Objects) > 0 {
		t.Error("the provider itself was changed")
	}
}

// A provider offers what its plug-in describes, or says why it offers nothing.
func TestPromise(t *testing.T) {
	describes := func(of ...*pluginv1.Capability) *pluginv1.DescribeResponse {
		return &pluginv1.DescribeResponse{Capabilities: of}
	}
	some := &pluginv1.Capability{
		Capability: "database/postgresql", Versions: []string{"15.8", "16.4"}, Schema: []byte(`{"type": "object"}`),
		Passwords: []*pluginv1.Password{{Name: "app"}, {Name: "root", Length: 3}},
	}
	promised, err := providers.Promise(spec, describes(&pluginv1.Capability{Capability: "cache/redis"}, some))
	if err != nil || len(promised.Versions) != 2 || promised.Parameters == nil || promised.Passwords[0].Length != 0 || promised.Passwords[1].Length != 16 {
		t.Errorf("it offers %+v: %v", promised, err)
	}
	narrow := *spec.DeepCopy()
	narrow.Versions = []string{"16.4", "17.0"}
	if promised, err = providers.Promise(narrow, describes(some)); err != nil || len(promised.Versions) != 1 {
		t.Errorf("it offers %v: %v", promised.Versions, err)
	}
	narrow.Versions = []string{"17.0"}
	for want, test := range map[string]struct {
		spec v1alpha1.CapabilityProviderSpec
		says *pluginv1.DescribeResponse
	}{
		"serves no Database/PostgreSQL":      {spec, describes()},
		"has none of spec.versions":          {narrow, describes(some)},
		"describes a schema that is no JSON": {spec, describes(&pluginv1.Capability{Capability: "database/postgresql", Schema: []byte("{")})},
		`describes the password "a.b"`:       {spec, describes(&pluginv1.Capability{Capability: "database/postgresql", Passwords: []*pluginv1.Password{{Name: "a.b"}}})},
		"describes 51 versions":              {spec, describes(&pluginv1.Capability{Capability: "database/postgresql", Versions: make([]string, 51)})},
	} {
		if _, err := providers.Promise(test.spec, test.says); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, and not %s", err, want)
		}
	}
}

// A plug-in sees nothing of a Secret but its metadata, and nothing that changes with each write.
func TestWhatPluginsSee(t *testing.T) {
	object := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "data": map[string]any{"app": "precious"},
			"metadata": map[string]any{"name": "a", "resourceVersion": "7", "managedFields": []any{}},
		}}
	}
	request, err := providers.Asked{
		Claim: &v1alpha1.CapabilityClaim{}, Objects: map[string]*unstructured.Unstructured{"users": object("Secret"), "server": object("ConfigMap")},
	}.Request()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(request.Objects["users"]); strings.Contains(got, "precious") || !strings.Contains(got, `"name":"a"`) {
		t.Errorf("of a Secret it sees %s", got)
	}
	if got := string(request.Objects["server"]); strings.Contains(got, "resourceVersion") || !strings.Contains(got, "precious") {
		t.Errorf("it sees %s", got)
	}
}
