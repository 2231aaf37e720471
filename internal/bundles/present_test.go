// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// chosen is a request of three applications, each after the one before; the second is there
// as the inputs say.
func chosen(t *testing.T, when, inputs string) Request {
	t.Helper()
	request := requestOf(t, "apps")
	request.Bundle.Status.Digest = ""
	request.Bundle.Spec.Inputs = []v1alpha1.BundleInput{{Name: "middle", Type: v1alpha1.InputBoolean, Default: rawJSON("true")}}
	layer := LayerOf(request.Bundle, "apps")
	layer.Job, layer.WaitFor = nil, nil
	layer.Applications = []v1alpha1.BundleApplication{
		{Name: "first", Application: "podinfo", Version: "6.5.0"},
		{Name: "middle", Application: "podinfo", Version: "6.5.0", When: when, DependsOn: []string{"first"}},
		{Name: "last", Application: "podinfo", Version: "6.5.0", DependsOn: []string{"middle"}},
	}
	request.Inputs = nil
	if inputs != "" {
		request.Inputs = &apiextensionsv1.JSON{Raw: []byte(inputs)}
	}
	return request
}

// releasesOf returns the names of the releases with what they depend on, in order.
func releasesOf(t *testing.T, request Request) string {
	t.Helper()
	var all []string
	for _, manifest := range render(t, request) {
		if manifest.Object.GetKind() != "HelmRelease" {
			continue
		}
		text := manifest.Object.GetName()
		on, _, _ := unstructured.NestedSlice(manifest.Object.Object, "spec", "dependsOn")
		for _, one := range on {
			text += ">" + one.(map[string]any)["name"].(string)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestApplicationsThatAreThereAsInputsSay(t *testing.T) {
	for _, test := range []struct{ when, inputs, want string }{
		{"", "", "first last>middle middle>first"},
		{"inputs.middle", "", "first last>middle middle>first"},
		{"inputs.middle", `{"middle": false}`, "first last>first"},
		{"cluster.name == 'prod'", "", "first last>middle middle>first"},
		{"cluster.name == 'other'", "", "first last>first"},
	} {
		if got := releasesOf(t, chosen(t, test.when, test.inputs)); got != test.want {
			t.Errorf("when %q, with %s: %q, want %q", test.when, test.inputs, got, test.want)
		}
	}
}

func TestAllOfALayerIsOff(t *testing.T) {
	request := chosen(t, "inputs.middle", `{"middle": false}`)
	layer := LayerOf(request.Bundle, "apps")
	layer.Applications = layer.Applications[1:2]
	layer.Applications[0].DependsOn = nil
	if got := render(t, request); len(got) > 0 {
		t.Errorf("it lists %d objects", len(got))
	}
	before, err := RenderBefore(request)
	if err != nil || len(before) == 0 {
		t.Errorf("before it listed %d objects: %v", len(before), err)
	}
	if of := Before(nil, request.Bundle, request.Bundle.Spec.Version); of != request.Bundle {
		t.Errorf("a version is entered from itself, and not from %v", of)
	}
}

// What is not known yet is waited for, and what has no answer names its field.
func TestApplicationsWhoseWhenHasNoAnswer(t *testing.T) {
	request := chosen(t, "cluster.version.startsWith('v1')", "")
	request.Cluster.Version = ""
	var waiting *Waiting
	if _, err := Render(request); !errors.As(err, &waiting) {
		t.Errorf("it says %v", err)
	}
	request = chosen(t, "inputs.middle == 'x' ? true : inputs.nothing", "")
	if _, err := Render(request); err == nil || !strings.Contains(err.Error(), "applications[middle].when") {
		t.Errorf("it says %v", err)
	}
	problems := strings.Join(Check(request.Bundle, request.Applications), "; ")
	if !strings.Contains(problems, "layers[apps].applications[middle].when: there is no input nothing") {
		t.Errorf("the bundle is published with %s", problems)
	}
}
