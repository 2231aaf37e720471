// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/reserved"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/test/bench/report"
)

// Every cluster has releases and an object of its own, although one API server
// stands in for all of them and their directories call the releases the same.
func TestFleetHasObjectsOfItsOwn(t *testing.T) {
	w, err := newFleet(size{clusters: 2, layers: 2, releases: 3})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cluster-000", "cluster-001"}, w.clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if w.releases() != 2*2*3 || len(w.layers) != 2*2 || len(w.files()) != 2*2*(3+1) {
		t.Errorf("there are %d releases, %d layers and %d files", w.releases(), len(w.layers), len(w.files()))
	}
	want := []string{
		"layers/cluster-001-layer-00/layer-00-release-00.yaml", "layers/cluster-001-layer-00/layer-00-release-01.yaml",
		"layers/cluster-001-layer-00/layer-00-release-02.yaml", "layers/cluster-001-layer-00/settings.yaml",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(w.puts["cluster-001-layer-00"].files))); diff != "" {
		t.Errorf("files of a layer (-want +got):\n%s", diff)
	}
	seen := map[string]bool{}
	for _, manifest := range w.manifestsOf(w.layers) {
		var obj struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				KubeConfig struct{ SecretRef struct{ Name string } }
				Values     struct{ Mark string }
			}
		}
		if err := yaml.Unmarshal([]byte(manifest), &obj); err != nil {
			t.Fatal(err)
		}
		name := obj.Metadata.Name
		if seen[obj.Kind+name] {
			t.Errorf("%s %s is there twice", obj.Kind, name)
		}
		seen[obj.Kind+name] = true
		if obj.Kind != helmReleaseKind {
			if _, ok := w.puts[name]; !ok {
				t.Errorf("%s %s is not named after its layer", obj.Kind, name)
			}
			continue
		}
		cluster := strings.Join(strings.SplitN(name, "-", 3)[:2], "-")
		if obj.Spec.KubeConfig.SecretRef.Name != reserved.KubeConfigName(cluster) || obj.Spec.Values.Mark != w.marks[name] {
			t.Errorf("%s belongs on %q and has the mark %q, want %q", name, obj.Spec.KubeConfig.SecretRef.Name, obj.Spec.Values.Mark, w.marks[name])
		}
	}
	if len(seen) != 2*2*(3+1) {
		t.Errorf("%d objects come of the directories, want %d", len(seen), 2*2*(3+1))
	}
}

// RemoteClusters at their defaults are what the targets are for.
func TestProbeIntervalIsTheProduct(t *testing.T) {
	if got := clusters.IntervalOf(&v1alpha1.RemoteCluster{}); got != report.ProbeInterval {
		t.Errorf("a cluster is asked every %s, and judged by %s", got, report.ProbeInterval)
	}
}

func TestClusterOfAFleet(t *testing.T) {
	s := &strataSystem{}
	data, err := json.MarshalIndent(s.Cluster("cluster-007"), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "kind": "RemoteCluster",
 "apiVersion": "kraan.io/v1alpha1",
 "metadata": {
  "name": "cluster-007"
 },
 "spec": {
  "kubeConfig": {
   "secretRef": {
    "name": "cluster-007"
   }
  }
 }
}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status := func(ready string, generation int) string {
		data, err := json.Marshal(map[string]any{"observedGeneration": generation, "conditions": []any{
			map[string]any{"type": v1alpha1.ReachableCondition, "status": "True"}, map[string]any{"type": v1alpha1.ReadyCondition, "status": ready},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct {
		reason, status string
		want           bool
	}{
		{"nothing is known", "", false},
		{"it is ready", status("True", 2), true},
		{"it answers, and is not ready", status("Unknown", 2), false},
		{"it was ready as it was before", status("True", 1), false},
	} {
		o := object{Status: json.RawMessage(c.status)}
		o.Metadata.Generation = 2
		if got := s.Joined(o); got != c.want {
			t.Errorf("%s: joined is %t", c.reason, got)
		}
	}
	for text, want := range map[string]int{"": 0, `{}`: 0, `{"layers":{"deployed":7,"total":9}}`: 7} {
		if got := s.Deployed(object{Status: json.RawMessage(text)}); got != want {
			t.Errorf("%s: %d layers are deployed, want %d", text, got, want)
		}
	}
}
