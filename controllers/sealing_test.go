// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Decisions and statuses of before are signed once, for the object that they are on. From then on nothing counts that has none.
func TestWhatIsOlderThanSignaturesIsSignedOnce(t *testing.T) {
	f := newBareFixture(t)
	note := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: v1alpha1.DecisionsSignedName}}
	f.must(f.client.Delete(f.ctx, note))
	const old = `{"rollout":{"target":"1.0.0","since":"2026-01-02T03:04:05Z"}}`
	name := f.name("old")
	platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"test": f.namespace}, Annotations: map[string]string{v1alpha1.DecidedAnnotation: old},
	}}
	platform.Spec.Bundle = &v1alpha1.PlatformBundle{Family: "none", Version: "1.0.0"}
	f.must(f.client.Create(f.ctx, platform))
	// Another controller looks after the layer, and has yet to be upgraded.
	layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name("shard")}, Spec: v1alpha1.AddonsLayerSpec{
		Source: v1alpha1.SourceSpec{Name: "x", Path: "./x"}, Version: "1.0.0",
	}}
	f.must(f.client.Create(f.ctx, layer))
	layer.Status = v1alpha1.AddonsLayerStatus{State: v1alpha1.StateDeployed, Version: "1.0.0", ObservedGeneration: 1}
	f.must(f.client.Status().Update(f.ctx, layer))
	f.start(nil)
	f.eventually("it is noted that all are signed", func() error {
		return f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: v1alpha1.DecisionsSignedName}, note)
	})
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: name}, platform))
	text := platform.Annotations[v1alpha1.DecidedAnnotation]
	if !strings.Contains(text, `"mac":"`) || !strings.Contains(text, fmt.Sprintf("%q", platform.UID)) || !strings.Contains(text, `"target":"1.0.0"`) {
		t.Errorf("it is not signed: %s", text)
	}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.name("shard")}, layer))
	if status := layer.Status; status.MAC == "" || status.State != v1alpha1.StateDeployed || status.Version != "1.0.0" {
		t.Errorf("the status is not signed as it is: %+v", status)
	}
	f.eventually("it counts", func() error {
		seen := &v1alpha1.AddonsLayer{}
		if err := f.reconciler.Client.Get(f.ctx, types.NamespacedName{Name: f.name("shard")}, seen); err != nil {
			return err
		}
		if seen.Status.Version != "1.0.0" || seen.ResourceVersion != layer.ResourceVersion {
			return fmt.Errorf("it is %+v", seen.Status)
		}
		return nil
	})
	layer.Status.MAC, layer.Status.Version = "", "2.0.0"
	f.must(f.client.Status().Update(f.ctx, layer))
	f.eventually("what has none any more does not count", func() error {
		seen := &v1alpha1.AddonsLayer{}
		if err := f.reconciler.Client.Get(f.ctx, types.NamespacedName{Name: f.name("shard")}, seen); err != nil {
			return err
		}
		if !v1alpha1.IsForeign(seen.Status.Conditions) {
			return fmt.Errorf("it is %+v", seen.Status)
		}
		return nil
	})
	f.must(f.client.Delete(f.ctx, layer))
	if f.reconciler.seal().Unsigned {
		t.Error("what has no signature is still taken")
	}
	f.must(f.client.Delete(f.ctx, platform))
}

// A layer of 10000 objects is refused before anything is written, and says so.
func TestLayerThatCannotBeRecorded(t *testing.T) {
	f := newFixture(t, nil)
	var text strings.Builder
	for i := range 10000 {
		_, _ = fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: object-number-%05d}\n", f.namespace, i)
	}
	f.publish("main@sha1:1", map[string]string{"many/all.yaml": text.String()})
	f.layer("many")
	f.eventually("the layer is refused", func() error {
		layer := f.get("many")
		for _, condition := range layer.Status.Conditions {
			if condition.Type == v1alpha1.StalledCondition && condition.Reason == v1alpha1.ReasonInventoryTooLarge && strings.Contains(condition.Message, f.name("many")) {
				if len(layer.Status.Resources) > 0 {
					return fmt.Errorf("it has %d objects", len(layer.Status.Resources))
				}
				return nil
			}
		}
		return fmt.Errorf("%v", layer.Status.Conditions)
	})
	made := &corev1.ConfigMapList{}
	f.must(f.client.List(f.ctx, made, client.InNamespace(f.namespace)))
	for i := range made.Items {
		if strings.HasPrefix(made.Items[i].Name, "object-") {
			t.Fatalf("%s was made", made.Items[i].Name)
		}
	}
}
