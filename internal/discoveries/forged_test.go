// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package discoveries

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// writes returns what a discovery writes.
func writes(d Decision) any { return []any{d.Make, d.Change, d.Delete, d.Consume} }

// Whatever somebody has written into the status of a ClusterDiscovery, it makes, changes and deletes
// the same.
func TestForgedStatusOfADiscovery(t *testing.T) {
	o := made(observation(cluster("a"), cluster("b")))
	o.Found = append(o.Found[:1], cluster("c"))
	o.Found[0].Labels = map[string]string{"env": "other"}
	honest := writes(Decide(o))
	if d := Decide(o); len(d.Make) == 0 || len(d.Change)+len(d.Delete) == 0 {
		t.Fatalf("it decides nothing that could be forged: %+v", d)
	}
	for _, forgery := range forged.Each(t, v1alpha1.ClusterDiscoveryKind, o.Discovery.Status, func(s v1alpha1.ClusterDiscoveryStatus) v1alpha1.ClusterDiscoveryStatus { return *s.DeepCopy() }) {
		changed := o
		changed.Discovery = o.Discovery.DeepCopy()
		changed.Discovery.Status = forgery.Status
		if diff := cmp.Diff(honest, writes(Decide(changed))); diff != "" {
			t.Errorf("%s: %s", forgery.Name, diff)
		}
	}
}

// Which cluster a HostCluster is, and whether it has one, its status does not say.
func TestForgedStatusOfAHostCluster(t *testing.T) {
	status := v1alpha1.HostClusterStatus{ObservedGeneration: 1, ID: "fleet/edge/1", Version: "v1.36.3", KubeConfig: "edge-kubeconfig"}
	parse := func(status v1alpha1.HostClusterStatus, secrets Secrets) Found {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.HostCluster{Status: status})
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{Object: content}
		obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.HostClusterKind))
		obj.SetName("edge")
		return Parse(obj, secrets)
	}
	for _, secrets := range []Secrets{{}, {Handed: map[string]Handed{"edge": {ID: "fleet/edge/1", Version: "v1.36.3"}}}} {
		honest := parse(status, secrets)
		for _, forgery := range forged.Each(t, v1alpha1.HostClusterKind, status, func(s v1alpha1.HostClusterStatus) v1alpha1.HostClusterStatus { return *s.DeepCopy() }) {
			if diff := cmp.Diff(honest, parse(forgery.Status, secrets)); diff != "" {
				t.Errorf("%s: %s", forgery.Name, diff)
			}
		}
	}
}

// What the status of a ClusterProfile says comes into its RemoteCluster, and so is believed: each
// of its fields would be found if it were in a class of which nothing follows.
func TestForgedStatusOfAClusterProfile(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"version": map[string]any{"kubernetes": "v1.36.3"}, "properties": []any{map[string]any{"name": "env", "value": "prod"}},
	}}}
	obj.SetGroupVersionKind(GroupKindOf(&v1alpha1.ClusterDiscovery{Spec: v1alpha1.ClusterDiscoverySpec{Kind: v1alpha1.DiscoveredClusterProfile}}).WithVersion("v1alpha1"))
	obj.SetName("a")
	obj.SetUID("uid")
	made := func(obj *unstructured.Unstructured) any {
		return writes(Decide(observation(Parse(obj, Secrets{Profiles: map[string][]string{"a": {"a-kubeconfig"}}}))))
	}
	honest := made(obj)
	for path, class := range v1alpha1.ForeignStatusFields("ClusterProfile") {
		found := false
		for _, forgery := range forged.OfForeign(t, path, obj, "v1.37.0") {
			found = found || !cmp.Equal(honest, made(forgery.Object))
		}
		if found == class.IsForgeable() {
			t.Errorf("a forged %s has something else written: %t", path, found)
		}
	}
}
