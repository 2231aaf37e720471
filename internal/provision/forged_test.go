// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// keepsItsHost tells whether a Pod keeps its host from being drained.
func keepsItsHost(t *testing.T, obj *unstructured.Unstructured) bool {
	t.Helper()
	pod := corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pod); err != nil {
		t.Fatal(err)
	}
	return len(withoutController([]corev1.Pod{pod})) > 0
}

// Whatever somebody has written into the fields of a Pod's status of which nothing is to follow,
// a Pod that nothing would make again keeps its host. Its phase would be found if it were among
// them.
func TestForgedStatusOfAPod(t *testing.T) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alone"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	})
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: content}
	if !keepsItsHost(t, obj) {
		t.Fatal("a Pod that nothing would make again does not keep its host")
	}
	for _, forgery := range forged.EachForeign(t, "Pod", obj, string(corev1.PodSucceeded)) {
		if !keepsItsHost(t, forgery.Object) {
			t.Errorf("%s: its host is drained", forgery.Name)
		}
	}
	drained := false
	for _, forgery := range forged.OfForeign(t, "phase", obj, string(corev1.PodSucceeded)) {
		drained = drained || !keepsItsHost(t, forgery.Object)
	}
	if class := v1alpha1.ForeignStatusFields("Pod")["phase"]; drained != class.IsBelieved() {
		t.Errorf("a forged phase has its host drained: %t", drained)
	}
}
