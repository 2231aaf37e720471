// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/web/webtest"
)

// However many Platforms there are, and however many clusters one of them has, what a tab is
// sent has an end, and words say how much is left out.
func TestRolloutsAreBounded(t *testing.T) {
	long := strings.Repeat("very long ", 10_000)
	s := &snapshot.Snapshot{Unread: map[snapshot.Part]error{}}
	all := metav1.LabelSelector{}
	for i := range 500 {
		platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("platform-%03d", i), UID: "x"}}
		platform.Spec = v1alpha1.PlatformSpec{Bundle: &v1alpha1.PlatformBundle{Family: "edge", Version: "1.0.0"}, ClusterSelector: &v1alpha1.ClusterSelector{LabelSelector: all}}
		platform.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: "False", Reason: "Waiting", Message: long}}
		for j := range 10 {
			platform.Status.Worst = append(platform.Status.Worst, v1alpha1.ClusterTrouble{Cluster: fmt.Sprint(j), Reason: long})
		}
		s.Platforms = append(s.Platforms, platform)
	}
	for i := range 60 {
		layer := v1alpha1.BundleLayer{Name: "base", Applications: []v1alpha1.BundleApplication{{Name: "app", Application: "app", Version: "1.0.0"}}}
		s.Bundles = append(s.Bundles, &v1alpha1.ApplicationBundle{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge-1-%d-0", i)},
			Spec:       v1alpha1.ApplicationBundleSpec{Family: "edge", Version: fmt.Sprintf("1.%d.0", i), Layers: []v1alpha1.BundleLayer{layer}},
		})
	}
	s.Applications = []*v1alpha1.HelmApplication{{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.HelmApplicationSpec{
		Versions: []v1alpha1.HelmApplicationVersion{{Version: "1.0.0"}},
	}}}
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprintf("label-%04d", i)] = "x"
	}
	for i := range 1000 {
		cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: fmt.Sprintf("edge-%04d", i)}}
		cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReachableCondition, Status: "False", Message: long}, {Type: v1alpha1.ReadyCondition, Status: "False", Message: long}}
		if i == 0 {
			cluster.Labels = many
		}
		s.Clusters = append(s.Clusters, cluster)
	}
	server := served(t, webtest.Play(s, nil))
	size := func(m message) (sum int) {
		for _, part := range m.Set {
			sum += len(part)
		}
		return sum
	}
	first := stream(t, server, "view=platforms").next()
	if n := size(first); n > 200_000 || string(first.Set["platforms"]) == "" || !strings.Contains(string(first.Set["platforms"]), `"more":470`) {
		t.Errorf("%d bytes are sent of 500 Platforms: %s", n, first.Set["platforms"])
	}
	alone := stream(t, server, "view=platforms&platform=platform-000&plan=1.0.0&cluster=fleet/edge-0000").next()
	var view struct {
		More     int
		States   []struct{ Count int }
		Versions []struct{ Version string }
	}
	if err := json.Unmarshal(alone.Set["rollout"], &view); err != nil {
		t.Fatal(err)
	}
	if n := size(alone); n > 1_500_000 || view.More != 900 || len(view.Versions) != 30 || view.Versions[0].Version != "1.59.0" {
		t.Errorf("%d bytes are sent of a Platform with 1000 clusters, %+v", n, view)
	}
	if opened := string(alone.Set["opened"]); strings.Count(opened, "label-") != 30 {
		t.Errorf("%d labels of a cluster are sent", strings.Count(opened, "label-"))
	}
}
