// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// isAsked tells whether the plug-in of a Deployment is asked.
func isAsked(t *testing.T, obj *unstructured.Unstructured) bool {
	t.Helper()
	of := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, of); err != nil {
		t.Fatal(err)
	}
	return waitsFor(of) == ""
}

// Whatever somebody has written into the fields of a Deployment's status of which nothing is to
// follow, its plug-in is asked as it was. Those that the plug-in itself verifies would be found if
// they were among them.
func TestForgedStatusOfADeployment(t *testing.T) {
	asked := map[string]bool{"observedGeneration": false, "availableReplicas": false}
	for name, status := range map[string]appsv1.DeploymentStatus{
		"runs":           {ObservedGeneration: 2, AvailableReplicas: 1},
		"has no Pod":     {ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse}}},
		"is another one": {ObservedGeneration: 1, AvailableReplicas: 1},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: status})
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{Object: content}
		honest := isAsked(t, obj)
		for _, forgery := range forged.EachForeign(t, "Deployment", obj) {
			if isAsked(t, forgery.Object) != honest {
				t.Errorf("%s: %s: its plug-in is asked: %t", name, forgery.Name, !honest)
			}
		}
		for path := range asked {
			for _, forgery := range forged.OfForeign(t, path, obj) {
				asked[path] = asked[path] || isAsked(t, forgery.Object) && !honest
			}
		}
	}
	for path, found := range asked {
		if class := v1alpha1.ForeignStatusFields("Deployment")[path]; found != class.IsVerified() {
			t.Errorf("a forged %s has a plug-in asked: %t", path, found)
		}
	}
}
