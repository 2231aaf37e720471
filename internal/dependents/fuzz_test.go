// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What an API server says of a missing right is understood whole or not at all,
// whatever an account or a resource is called.
func FuzzDenial(f *testing.F) {
	f.Add(`User "system:serviceaccount:a:b" cannot create resource "configmaps" in API group "" in the namespace "default"`, "")
	f.Add(`User "a\"b" cannot impersonate resource "users" in API group "" at the cluster scope: why`, "x")
	f.Add(`admission webhook "x" denied the request: User "a" cannot b`, "forbidden: ")
	f.Fuzz(func(t *testing.T, text, name string) {
		if _, denied := DenialOf(errors.New(text)); denied {
			t.Fatal("an error that is not Forbidden denies a right")
		}
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, name, errors.New(text))
		denial, denied := DenialOf(err)
		if !denied {
			if denial != (Denial{}) {
				t.Fatalf("%+v besides no", denial)
			}
			return
		}
		if denial.Verb == "" || !strings.Contains(err.Error(), denial.Verb) || !strings.HasPrefix(denial.String(), denial.Verb+" resource ") {
			t.Fatalf("%q becomes %+v", text, denial)
		}
	})
}
