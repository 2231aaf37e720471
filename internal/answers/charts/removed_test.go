// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func objectOf(apiVersion, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	object.SetName("it")
	object.SetNamespace("apps")
	return object
}

func TestRemovedAPIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, apiVersion, kind, at string
		want                         *RemovedAPI
	}{
		{"served", "apps/v1", "Deployment", "1.34", nil},
		{"the core", "v1", "ConfigMap", "1.34", nil},
		{"not removed yet", "policy/v1beta1", "PodDisruptionBudget", "1.24", nil},
		{"removed in that version", "policy/v1beta1", "PodDisruptionBudget", "v1.25.3", &RemovedAPI{RemovedIn: "1.25", Replacement: "policy/v1/PodDisruptionBudget"}},
		{"removed long before", "extensions/v1beta1", "Ingress", "1.37", &RemovedAPI{RemovedIn: "1.22", Replacement: "networking.k8s.io/v1/Ingress"}},
		{"moved to another group", "extensions/v1beta1", "Deployment", "1.30", &RemovedAPI{RemovedIn: "1.16", Replacement: "apps/v1/Deployment"}},
		{"a version that the library does not know any more", "autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.30", &RemovedAPI{Replacement: "autoscaling/v2/HorizontalPodAutoscaler"}},
		{"another of them", "batch/v2alpha1", "CronJob", "1.30", &RemovedAPI{Replacement: "batch/v1/CronJob"}},
		{"a kind of a group that the library has without it", "policy/v1beta1", "PodSecurityPolicy", "1.30", &RemovedAPI{}},
		{"and one that has no group any more", "extensions/v1beta1", "PodSecurityPolicy", "1.30", &RemovedAPI{}},
		{"CRDs", "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "1.22", &RemovedAPI{RemovedIn: "1.22", Replacement: "apiextensions.k8s.io/v1/CustomResourceDefinition"}},
		{"a version that may come", "apps/v9", "Deployment", "1.60", nil},
		{"not there yet", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "1.28", &RemovedAPI{IntroducedIn: "1.29", Replacement: "flowcontrol.apiserver.k8s.io/v1beta3/FlowSchema"}},
		{"a group of others below k8s.io", "gateway.networking.k8s.io/v1beta1", "Gateway", "1.34", nil},
		{"a custom resource", "example.dev/v1alpha1", "Widget", "1.34", nil},
	} {
		got, err := RemovedAPIs([]*unstructured.Unstructured{objectOf(c.apiVersion, c.kind)}, c.at)
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		var want []RemovedAPI
		if c.want != nil {
			c.want.APIVersion = c.apiVersion
			c.want.ID.Group, _, _ = cut(c.apiVersion)
			c.want.ID.Kind, c.want.ID.Namespace, c.want.ID.Name = c.kind, "apps", "it"
			want = append(want, *c.want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", c.reason, diff)
		}
	}
	for _, version := range []string{"", "latest", "2.0", "one"} {
		if _, err := RemovedAPIs(nil, version); err == nil || !strings.Contains(err.Error(), "is no version of Kubernetes") {
			t.Errorf("%q is taken for a version of Kubernetes: %v", version, err)
		}
	}
}

func cut(apiVersion string) (group, version string, found bool) {
	for i := range apiVersion {
		if apiVersion[i] == '/' {
			return apiVersion[:i], apiVersion[i+1:], true
		}
	}
	return "", apiVersion, false
}

// A CRD may take up a group of Kubernetes' own that has gone.
func TestAVersionThatACRDDefinesIsNotRemoved(t *testing.T) {
	t.Parallel()
	crd := parse(t, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.extensions}
spec:
  group: extensions
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1alpha9, served: true, storage: true}]`)
	widget := objectOf("extensions/v1alpha9", "Widget")
	if got, err := RemovedAPIs([]*unstructured.Unstructured{widget, crd}, "1.34"); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := RemovedAPIs([]*unstructured.Unstructured{widget}, "1.34"); err != nil || len(got) != 1 {
		t.Errorf("without the CRD: got %v, %v", got, err)
	}
}

func TestServedVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at, version string
		want        bool
	}{
		{"1.24", "policy/v1beta1/PodDisruptionBudget", true},
		{"1.25", "policy/v1beta1/PodDisruptionBudget", false},
		{"1.34", "policy/v1", true},
		{"1.34", "v1/ConfigMap", true},
		{"1.34", "v1", true},
		{"1.34", "networking.k8s.io/v1/Ingress", true},
		{"1.34", "apiextensions.k8s.io/v1/CustomResourceDefinition", true},
		{"1.34", "extensions/v1beta1/Ingress", false},
		{"1.34", "internal.apiserver.k8s.io/v1alpha1", false},
	} {
		served, err := servedVersions(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(served, c.version); got != c.want {
			t.Errorf("%s in %s: got %t", c.version, c.at, got)
		}
	}
}
