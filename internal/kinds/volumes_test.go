// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestUnconsumedClass(t *testing.T) {
	claim := func(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"storageClassName": "late"}}}
		obj.SetGroupVersionKind(VolumeClaimKind.WithVersion("v1"))
		for _, change := range changes {
			change(obj)
		}
		return obj
	}
	spec := func(field, value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)[field] = value }
	}
	for name, tc := range map[string]struct {
		live  *unstructured.Unstructured
		class string
		is    bool
	}{
		"nobody wants it yet":       {claim(), "late", true},
		"a Pod wants it":            {claim(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{selectedNode: "n1"}) }), "", false},
		"somebody names its volume": {claim(spec("volumeName", "pv-1")), "late", false},
		"without a class":           {claim(spec("storageClassName", "")), "", false},
		"on its way out":            {claim(func(o *unstructured.Unstructured) { now := metav1.Now(); o.SetDeletionTimestamp(&now) }), "", false},
		"of another kind": {claim(func(o *unstructured.Unstructured) {
			o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		}), "", false},
		"of another group": {claim(func(o *unstructured.Unstructured) { o.SetAPIVersion("example.com/v1") }), "", false},
	} {
		if class, is := UnconsumedClass(tc.live); is != tc.is || class != tc.class {
			t.Errorf("%s: got %q, %t", name, class, is)
		}
	}
}

func TestWaitsForConsumers(t *testing.T) {
	for mode, want := range map[any]bool{"WaitForFirstConsumer": true, "Immediate": false, nil: false, 7: false} {
		if got := WaitsForConsumers(&unstructured.Unstructured{Object: map[string]any{"volumeBindingMode": mode}}); got != want {
			t.Errorf("%v: got %t", mode, got)
		}
	}
}
