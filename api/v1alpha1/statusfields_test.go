// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
)

// statuses are the statuses of all kinds.
var statuses = map[string]any{
	v1alpha1.AddonsLayerKind:        v1alpha1.AddonsLayerStatus{},
	v1alpha1.PlatformKind:           v1alpha1.PlatformStatus{},
	v1alpha1.RemoteClusterKind:      v1alpha1.RemoteClusterStatus{},
	v1alpha1.HostClusterKind:        v1alpha1.HostClusterStatus{},
	v1alpha1.CapabilityProviderKind: v1alpha1.CapabilityProviderStatus{},
	v1alpha1.CapabilityClaimKind:    v1alpha1.CapabilityClaimStatus{},
	v1alpha1.ClusterDiscoveryKind:   v1alpha1.ClusterDiscoveryStatus{},
	v1alpha1.HelmApplicationKind:    v1alpha1.HelmApplicationStatus{},
	v1alpha1.ApplicationBundleKind:  v1alpha1.ApplicationBundleStatus{},
}

// whole are types that are one field.
var whole = []reflect.Type{
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[metav1.Condition](),
}

// paths returns the paths of the fields of a type.
func paths(of reflect.Type, at string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct && !slices.Contains(whole, of.Elem()) {
			at += "[]"
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || slices.Contains(whole, of) {
		return []string{at}
	}
	var found []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		found = append(found, paths(of.Field(i).Type, strings.TrimPrefix(at+"."+name, "."))...)
	}
	return found
}

// Each field of each status is in a class, and each class is of a field that there is: who adds a
// field has to say what may follow from it.
func TestEveryFieldOfAStatusHasAClass(t *testing.T) {
	for kind, status := range statuses {
		want := paths(reflect.TypeOf(status), "")
		slices.Sort(want)
		var got []string
		for path, class := range v1alpha1.StatusFields(kind) {
			got = append(got, path)
			if (class.IsVerified() || class.IsBelieved()) == (class.By == "") || class == (v1alpha1.StatusClass{}) {
				t.Errorf("%s: %s is in no class, or does not say by what", kind, path)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: fields (-) and classes (+) differ: %s", kind, diff)
		}
	}
	if v1alpha1.StatusFields("Other") != nil {
		t.Error("a kind that there is not has classes")
	}
}

// No field of a status is acted on as it is.
func TestNothingIsBelieved(t *testing.T) {
	for kind := range statuses {
		for path, class := range v1alpha1.StatusFields(kind) {
			if class.IsBelieved() {
				t.Errorf("%s: %s is acted on as it is: sign it, or verify it by something", kind, path)
			}
		}
	}
}

// A layer takes what it lists for ready by the generation and the conditions of its status,
// whatever its kind is: no kind says that nothing follows from them.
func TestLayersReadTheStatusOfWhatTheyList(t *testing.T) {
	for kind := range statuses {
		for _, path := range []string{"observedGeneration", "conditions"} {
			if class := v1alpha1.StatusFields(kind)[path]; !class.IsListed() && class != v1alpha1.Signed {
				t.Errorf("%s: %s is in a class of which nothing follows", kind, path)
			}
		}
		for path, class := range v1alpha1.StatusFields(kind) {
			if class.IsListed() && path != "observedGeneration" && path != "conditions" {
				t.Errorf("%s: no layer reads %s", kind, path)
			}
		}
	}
}
