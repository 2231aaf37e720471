// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/placement"
)

// release returns a HelmRelease that installs on a cluster.
func release(namespace, name, cluster string) unstructured.Unstructured {
	obj := unstructured.Unstructured{Object: map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": map[string]any{
		"kubeConfig": map[string]any{"secretRef": map[string]any{"name": reserved.KubeConfigName(cluster)}},
	}}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func TestThrough(t *testing.T) {
	all := []unstructured.Unstructured{release("fleet", "a", "prod"), release("fleet", "b", "prod-2"), release("other", "c", "prod")}
	var names []string
	for _, found := range Through(types.NamespacedName{Namespace: "fleet", Name: "prod"}, all) {
		names = append(names, found.GetName())
	}
	if diff := cmp.Diff([]string{"a"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLeft(t *testing.T) {
	there := &v1alpha1.ClusterReference{Namespace: "fleet", Name: "prod"}
	named := func(name string, do func(*v1alpha1.AddonsLayer)) v1alpha1.AddonsLayer {
		l := v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}}
		do(&l)
		return l
	}
	all := []v1alpha1.AddonsLayer{
		named("belongs", func(l *v1alpha1.AddonsLayer) { l.Spec.Cluster = there }),
		named("has", func(l *v1alpha1.AddonsLayer) {
			l.Status.Resources = []v1alpha1.Resource{{Name: "a", Cluster: "fleet/prod"}}
		}),
		named("moved", func(l *v1alpha1.AddonsLayer) { l.Status.Cluster = "fleet/prod" }),
		named("home", func(*v1alpha1.AddonsLayer) {}),
	}
	releases := []unstructured.Unstructured{release("fleet", "a", "prod")}
	going := func(l *v1alpha1.AddonsLayer) {
		l.Spec.Cluster, l.DeletionTimestamp = there, &metav1.Time{Time: now}
	}
	ofPlatform := func(l *v1alpha1.AddonsLayer) {
		l.Spec.Cluster, l.Status.Cluster, l.Labels = there, "fleet/prod", map[string]string{v1alpha1.PlatformLabel: "edge"}
		l.Status.Resources = []v1alpha1.Resource{{Name: "repository"}}
	}
	along := []v1alpha1.AddonsLayer{
		named("elsewhere", func(l *v1alpha1.AddonsLayer) {
			going(l)
			l.Status.Cluster = "fleet/other"
		}),
		named("emptied", func(l *v1alpha1.AddonsLayer) {
			ofPlatform(l)
			l.Status.Resources = nil
		}),
		named("going", going),
		named("platforms", ofPlatform),
	}
	waits := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", DeletionTimestamp: &metav1.Time{Time: now}}}
	abandons := waits.DeepCopy()
	abandons.Spec.DeletionPolicy = v1alpha1.ClusterDeletionAbandon
	for name, test := range map[string]struct {
		cluster *v1alpha1.RemoteCluster
		want    []string
	}{
		"waits": {waits, []string{"AddonsLayer belongs", "AddonsLayer has", "AddonsLayer moved", "HelmRelease fleet/a"}},
		// A layer that has moved may wait for one that waits for this to end.
		"abandons": {abandons, []string{"AddonsLayer has", "HelmRelease fleet/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Left(test.cluster, all, releases, "gotk-system")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// What the layers that go with it wait for is this RemoteCluster's word.
	if diff := cmp.Diff([]string{"AddonsLayer going", "AddonsLayer platforms"}, Left(abandons, along, nil, "gotk-system")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	claim := func(namespace, on string) *v1alpha1.CapabilityClaim {
		return &v1alpha1.CapabilityClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
			Status:     v1alpha1.CapabilityClaimStatus{Objects: []v1alpha1.Dependent{{ID: "binding", Name: "a"}, {ID: "server", Name: "b", Cluster: on}}},
		}
	}
	claims := []*v1alpha1.CapabilityClaim{claim("shop", "fleet/prod"), claim("fleet", "fleet/prod"), claim("fleet", "fleet/other"), claim("prod", "")}
	if diff := cmp.Diff([]string{"CapabilityClaim fleet/db", "CapabilityClaim shop/db"}, ClaimsLeft(waits, claims)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := ClaimsLeft(abandons, claims); len(got) > 0 {
		t.Errorf("what is given up waits for %v", got)
	}
}

// A deleted copy goes when it can be made anew and nobody needs it meanwhile.
func TestLetsCopyGo(t *testing.T) {
	deleted := func(o *Observation) { o.Live.SetDeletionTimestamp(&metav1.Time{Time: now}) }
	plain, going, marked := release("fleet", "a", "prod"), release("fleet", "b", "prod"), release("fleet", "c", "prod")
	going.SetDeletionTimestamp(&metav1.Time{Time: now})
	marked.SetLabels(map[string]string{v1alpha1.OrphanedLabel: "2026-01-02T03.04.05Z"})
	for name, test := range map[string]struct {
		o       Observation
		through []unstructured.Unstructured
		want    bool
	}{
		"nobody has deleted it":            {observation(), nil, false},
		"none":                             {observation(func(o *Observation) { o.Live = nil }), nil, false},
		"it can be made anew":              {observation(deleted), []unstructured.Unstructured{plain}, true},
		"the Secret has gone":              {observation(deleted, func(o *Observation) { o.Source.Found = false }), nil, false},
		"the Secret cannot be used":        {observation(deleted, func(o *Observation) { o.Source.Err = cmpError{} }), nil, false},
		"a release is being uninstalled":   {observation(deleted), []unstructured.Unstructured{plain, going}, false},
		"a release is about to be deleted": {observation(deleted), []unstructured.Unstructured{plain, marked}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LetsCopyGo(test.o, test.through); got != test.want {
				t.Errorf("it goes: %t", got)
			}
		})
	}
}

type cmpError struct{}

func (cmpError) Error() string { return "holds no kubeconfig" }

// A deleted copy that stays for now follows the Secret: with credentials that do not
// count any more nothing could be uninstalled, and it would stay for ever.
func TestRefreshed(t *testing.T) {
	deleted := func(o *Observation) { o.Live.SetDeletionTimestamp(&metav1.Time{Time: now}) }
	rotated := func(o *Observation) { o.Access = &Access{KubeConfig: []byte("token: new"), Digest: "two"} }
	for name, test := range map[string]struct {
		o    Observation
		want string
	}{
		"nobody has deleted it": {observation(rotated), ""},
		"none":                  {observation(func(o *Observation) { o.Live = nil }), ""},
		"as it is":              {observation(deleted), ""},
		"rotated":               {observation(deleted, rotated), "token: new"},
		"nothing is known":      {observation(deleted, func(o *Observation) { o.Access = nil }), ""},
		"somebody else's":       {observation(deleted, rotated, func(o *Observation) { o.Live.SetLabels(nil) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refreshed := Refreshed(test.o); refreshed != nil {
				text, _, _ := unstructured.NestedString(refreshed.Object, "data", placement.KubeConfigKey)
				data, err := base64.StdEncoding.DecodeString(text)
				if err != nil || refreshed.GetResourceVersion() != test.o.Live.GetResourceVersion() {
					t.Fatal(err, refreshed.GetResourceVersion())
				}
				got = string(data)
			}
			if got != test.want {
				t.Errorf("it becomes %q, want %q", got, test.want)
			}
		})
	}
}

func TestAgain(t *testing.T) {
	cluster := &v1alpha1.RemoteCluster{}
	for name, test := range map[string]struct {
		until time.Time
		want  time.Duration
	}{
		"nothing is due":        {time.Time{}, DefaultInterval},
		"something is due":      {now.Add(3 * time.Second), 3 * time.Second},
		"something is due late": {now.Add(time.Hour), DefaultInterval},
		"something was due":     {now.Add(-time.Hour), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Again(cluster, Decision{Until: test.until}, now); got != test.want {
				t.Errorf("it is looked at again after %s", got)
			}
		})
	}
}
