// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package decisions_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
)

type ruling struct {
	Stage string `json:"stage,omitempty"`
	Count int    `json:"count,omitempty"`
}

// What is written is read again, and what nobody can have written is nothing at all,
// also where a part of it could be read.
func TestRead(t *testing.T) {
	some := ruling{Stage: "canary", Count: 2}
	for text, want := range map[string]ruling{
		decisions.Text(some):             some,
		"":                               {},
		"x":                              {},
		`{"stage":"canary"`:              {},
		`{"stage":"canary","count":"y"}`: {},
	} {
		obj := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.DecidedAnnotation: text}}
		if got := decisions.Read[ruling](obj); got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
	if got := decisions.Read[ruling](&metav1.ObjectMeta{}); got != (ruling{}) {
		t.Errorf("an object without annotations has %+v", got)
	}
	if got := decisions.Text(ruling{}); got != "" {
		t.Errorf("nothing is written as %q", got)
	}
}
