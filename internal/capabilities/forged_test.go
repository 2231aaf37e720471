// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/test/forged"
)

// readersOfABinding are releases that have yet to take the next passwords, each for another reason.
func readersOfABinding() map[string]*unstructured.Unstructured {
	older := release("shop", "two", "True")
	older.SetGeneration(2)
	chart := release("shop", "two", "True")
	chart.Object["spec"] = map[string]any{"chart": map[string]any{"spec": map[string]any{
		"version": "2.0.0", "sourceRef": map[string]any{"kind": "HelmRepository"},
	}}}
	chart.Object["status"].(map[string]any)["lastAttemptedRevision"] = "1.0.0"
	return map[string]*unstructured.Unstructured{
		"has those of before": release("shop", "one", "True"),
		"is not ready":        release("shop", "two", "False"),
		"is at another one":   older,
		"has another chart":   chart,
	}
}

// endsPasswords tells whether passwords of before end although a release reads them.
func endsPasswords(reader *unstructured.Unstructured) bool {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waits, _ := capabilities.Taking{
		Claim: &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}, Number: 1,
		Binding:  capabilities.Rotation{Number: 1, Since: begun, Readers: map[string]string{"shop": "one"}},
		Releases: []*unstructured.Unstructured{reader}, Now: begun.Add(time.Hour),
	}.Waits()
	return waits == ""
}

// Whatever somebody has written into the fields of a HelmRelease's status of which nothing is to
// follow, passwords that it has yet to replace stay. Those that are believed would be found if
// they were among them.
func TestForgedStatusOfAReaderEndsNoPasswords(t *testing.T) {
	ends := map[string]bool{"lastAttemptedConfigDigest": false, "conditions[Ready]": false, "observedGeneration": false, "lastAttemptedRevision": false}
	for name, reader := range readersOfABinding() {
		if endsPasswords(reader) {
			t.Fatalf("of a release that %s the passwords of before end", name)
		}
		for _, forgery := range forged.EachForeign(t, "HelmRelease", reader, "2.0.0") {
			if endsPasswords(forgery.Object) {
				t.Errorf("%s: %s: the passwords that it has end", name, forgery.Name)
			}
		}
		for path := range ends {
			for _, forgery := range forged.OfForeign(t, path, reader, "2.0.0") {
				ends[path] = ends[path] || endsPasswords(forgery.Object)
			}
		}
	}
	for path, found := range ends {
		if class := v1alpha1.ForeignStatusFields("HelmRelease")[path]; found != class.IsBelieved() {
			t.Errorf("a forged %s ends the passwords that a release has: %t", path, found)
		}
	}
}
