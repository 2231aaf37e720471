// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/objects"
)

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

func layer(t *testing.T, text string) *v1alpha1.AddonsLayer {
	t.Helper()
	found := &v1alpha1.AddonsLayer{}
	parse(t, text, found)
	return found
}

func releaseID(name string) objects.ID {
	return objects.ID{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease", Namespace: "apps", Name: name}
}

var budget = charts.RemovedAPI{
	ID:         objects.ID{Group: "policy", Kind: "PodDisruptionBudget", Namespace: "apps", Name: "web"},
	APIVersion: "policy/v1beta1", RemovedIn: "1.25", Replacement: "policy/v1/PodDisruptionBudget",
}

func TestOf(t *testing.T) {
	t.Parallel()
	has := "{metadata: {name: base}, spec: {version: 1.0.0}, status: {resources: [{kind: helmreleases.helm.toolkit.fluxcd.io, namespace: apps, name: web, status: Deployed}, {kind: helmreleases.helm.toolkit.fluxcd.io, namespace: apps, name: going, status: Deleting}, {kind: ConfigMap, namespace: apps, name: web, status: Deployed}]}}"
	coming := budget
	coming.RemovedIn, coming.IntroducedIn, coming.Replacement = "", "1.40", ""
	gone := budget
	gone.RemovedIn = ""
	for _, c := range []struct {
		reason, layer string
		release       *Release
		unread        map[string]string
		upgrade       string
		messages      []string
	}{
		{"nothing is said", "{metadata: {name: base}, spec: {version: 1.0.0}}", nil, nil, Yes, nil},
		{"within its range", "{metadata: {name: base}, spec: {prereqs: {k8sVersion: '>=1.20 <2'}}}", nil, nil, Yes, nil},
		{"a minimum that is later", "{metadata: {name: base}, spec: {prereqs: {k8sVersion: '1.99'}}}", nil, nil, No, []string{"no: its prereqs.k8sVersion is for Kubernetes 1.99"}},
		{"a range that is none", "{metadata: {name: base}, spec: {prereqs: {k8sVersion: 'x y'}}}", nil, nil, Unknown, []string{`unknown: its prereqs.k8sVersion cannot be understood: "x y" is neither a version such as 1.30 nor a range such as >=1.30 <2`}},
		{"a release that is fine", has, &Release{Chart: "web 1.0.0"}, nil, Yes, nil},
		{"a release that is not there", has, nil, nil, Unknown, []string{"unknown: HelmRelease apps/web cannot be looked at: it is not there"}},
		{"a release that may not be read", has, nil, map[string]string{"HelmRelease": "you may not"}, Unknown, []string{"unknown: HelmRelease apps/web cannot be looked at: you may not"}},
		{"a chart that is away", has, &Release{Problem: "away"}, nil, Unknown, []string{"unknown: HelmRelease apps/web: away"}},
		{"a chart that refuses", has, &Release{Problem: "not here", Refuses: true}, nil, No, []string{"no: HelmRelease apps/web: not here"}},
		{
			"an object that is rendered", has, &Release{Chart: "web 1.0.0", Rendered: []charts.RemovedAPI{budget}}, nil, No,
			[]string{"no: HelmRelease apps/web (chart web 1.0.0) renders PodDisruptionBudget apps/web at policy/v1beta1, which Kubernetes 1.25 has removed (it is policy/v1/PodDisruptionBudget now)"},
		},
		{
			"an object that is there, and a chart that is away", has, &Release{Problem: "away", Live: []charts.RemovedAPI{gone}}, nil, No,
			[]string{"no: HelmRelease apps/web is deployed with PodDisruptionBudget apps/web at policy/v1beta1, which Kubernetes does not have any more (it is policy/v1/PodDisruptionBudget now)" + stuck, "unknown: HelmRelease apps/web: away"},
		},
		{
			"an object that is rendered, and there", has, &Release{Rendered: []charts.RemovedAPI{coming}, Live: []charts.RemovedAPI{coming}}, nil, No,
			[]string{"no: HelmRelease apps/web renders, and is deployed with, PodDisruptionBudget apps/web at policy/v1beta1, which Kubernetes has not before 1.40" + stuck},
		},
		{"a bundle that is not there", "{metadata: {name: base}, spec: {source: {kind: ApplicationBundle, name: none, path: ./a}}}", nil, nil, Unknown, []string{"unknown: there is no ApplicationBundle none, which says what the layer is for"}},
		{"a bundle that may not be read", "{metadata: {name: base}, spec: {source: {kind: ApplicationBundle, name: none, path: ./a}}}", nil, map[string]string{"ApplicationBundle": "you may not"}, Unknown, []string{"unknown: what ApplicationBundle none is for is not known: you may not"}},
		{"a bundle without that layer", "{metadata: {name: base}, spec: {source: {kind: ApplicationBundle, name: shop, path: ./b}}}", nil, nil, Unknown, []string{"no: ApplicationBundle shop is for Kubernetes <1.30", "unknown: ApplicationBundle shop has no layer ./b"}},
		{
			"a bundle with applications", "{metadata: {name: base}, spec: {source: {kind: ApplicationBundle, name: shop, path: ./a}}}", nil, nil, No,
			[]string{"no: ApplicationBundle shop is for Kubernetes <1.30", "no: HelmApplication web v1.0.0 is for Kubernetes <1.29", "unknown: HelmApplication web has no version 3.0.0"},
		},
	} {
		bundle, app := &v1alpha1.ApplicationBundle{}, &v1alpha1.HelmApplication{}
		parse(t, "{metadata: {name: shop}, spec: {kubeVersion: <1.30, layers: [{name: a, applications: [{name: front, application: web, version: v1.0.0}, {name: back, application: web, version: 2.0.0}, {name: web, version: 3.0.0}]}]}}", bundle)
		parse(t, "{metadata: {name: web}, spec: {versions: [{version: 1.0.0, kubeVersion: <1.29}, {version: 2.0.0}]}}", app)
		in := Input{
			Kubernetes: "1.37", Layers: []*v1alpha1.AddonsLayer{layer(t, c.layer)}, Unread: c.unread, Releases: map[objects.ID]Release{},
			Bundles: []*v1alpha1.ApplicationBundle{bundle}, Applications: []*v1alpha1.HelmApplication{app},
		}
		if c.release != nil {
			in.Releases[releaseID("web")] = *c.release
		}
		got := Of(in)
		var messages []string
		for _, reason := range got.Layers[0].Reasons {
			messages = append(messages, reason.Upgrade+": "+reason.Message)
		}
		if diff := cmp.Diff(c.messages, messages); diff != "" {
			t.Errorf("%s:\n%s", c.reason, diff)
		}
		want := c.upgrade
		if slices.ContainsFunc(got.Layers[0].Reasons, func(r Reason) bool { return r.Upgrade == No }) {
			want = No
		}
		if got.Upgrade != want || got.Layers[0].Upgrade != want {
			t.Errorf("%s: %s, layer %s, want %s", c.reason, got.Upgrade, got.Layers[0].Upgrade, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for want, verdicts := range map[string][]string{
		"Yes: 1 layer is ready for Kubernetes 1.37.":                                     {Yes},
		"Yes: 2 layers are ready for Kubernetes 1.37.":                                   {Yes, Yes},
		"No: 1 of 2 layers is not ready for Kubernetes 1.37.":                            {Yes, No},
		"No: 2 of 3 layers are not ready for Kubernetes 1.37, and of 1 it is not known.": {No, Unknown, No},
		"Unknown: 1 of 2 layers may not be ready for Kubernetes 1.37.":                   {Unknown, Yes},
	} {
		report := Report{Kubernetes: "1.37"}
		for _, verdict := range verdicts {
			report.Layers = append(report.Layers, Layer{Name: "a", Upgrade: verdict})
		}
		if got := report.Verdict(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What clusters and charts say may hold anything.
func TestInventory(t *testing.T) {
	t.Parallel()
	release := &unstructured.Unstructured{}
	parse(t, `status: {inventory: {entries: [
	  {id: apps_web_policy_PodDisruptionBudget, v: v1beta1}, {id: apps_it__ConfigMap, v: v1},
	  {id: _system__node_rbac.authorization.k8s.io_ClusterRole, v: v1}, {id: wrong, v: v1}, {id: a_b, v: v1}, {id: a_b__ConfigMap}]}}`, &release.Object)
	var got []string
	for _, object := range InventoryOf(release) {
		got = append(got, object.GetAPIVersion()+" "+objects.IDOf(object).String())
	}
	want := []string{"policy/v1beta1 PodDisruptionBudget apps/web", "v1 ConfigMap apps/it", "rbac.authorization.k8s.io/v1 ClusterRole system:node"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := InventoryOf(&unstructured.Unstructured{Object: map[string]any{}}); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestDeployedByAndPin(t *testing.T) {
	t.Parallel()
	release := &unstructured.Unstructured{Object: map[string]any{
		"kind": "HelmRelease",
		"spec": map[string]any{"chart": map[string]any{"spec": map[string]any{"version": "1.x"}}},
		"status": map[string]any{"history": []any{
			map[string]any{"version": int64(4), "status": "failed", "chartName": "web", "chartVersion": "1.9.0"},
			map[string]any{"version": int64(2), "status": "superseded", "chartName": "web", "chartVersion": "1.1.0"},
			map[string]any{"version": int64(3), "status": "deployed", "chartName": "web", "chartVersion": "1.2.0", "ociDigest": "sha256:abc"},
		}},
	}}
	deployed := DeployedBy(release)
	if diff := cmp.Diff(Deployment{Chart: "web", Version: "1.2.0", Digest: "sha256:abc", Revision: 3}, deployed); diff != "" {
		t.Error(diff)
	}
	oci := &unstructured.Unstructured{Object: map[string]any{"kind": "OCIRepository", "spec": map[string]any{"ref": map[string]any{"semver": "1.x"}}}}
	chart := &unstructured.Unstructured{Object: map[string]any{"kind": "HelmChart", "spec": map[string]any{"version": "1.x"}}}
	other := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "spec": map[string]any{"version": "1.x"}}}
	for _, c := range []struct {
		object *unstructured.Unstructured
		path   []string
		want   string
	}{
		{release, []string{"spec", "chart", "spec", "version"}, "1.2.0"},
		{oci, []string{"spec", "ref", "digest"}, "sha256:abc"},
		{chart, []string{"spec", "version"}, "1.2.0"},
		{other, []string{"spec", "version"}, "1.x"},
	} {
		before := c.object.DeepCopy()
		got, _, _ := unstructured.NestedString(Pin(c.object, deployed).Object, c.path...)
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.object.GetKind(), got, c.want)
		}
		if diff := cmp.Diff(before, c.object); diff != "" {
			t.Errorf("%s was changed:\n%s", c.object.GetKind(), diff)
		}
	}
	if Pin(release, Deployment{}) != release || Pin(nil, deployed) != nil {
		t.Error("without a deployment there is nothing to pin")
	}
}
