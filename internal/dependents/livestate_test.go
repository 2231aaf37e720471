// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What only an author can mend is told from what may pass, and from what the live object is
// the cause of, as the API server words it.
func TestIsMistake(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil)
	for _, test := range []struct {
		err  error
		want bool
	}{
		{invalid, true},
		{fmt.Errorf("wrapped: %w", invalid), true},
		{&LiveStateError{Err: invalid}, false},
		{fmt.Errorf("wrapped: %w", &LiveStateError{Err: invalid}), false},
		{apierrors.NewBadRequest(`HelmRelease in version "v2" cannot be handled as a HelmRelease: strict decoding error: unknown field "spec.x"`), true},
		{apierrors.NewInternalError(errors.New(`failed to create typed patch object (a/b; v1, Kind=X): .spec.x: field not declared in schema`)), true},
		{apierrors.NewInternalError(errors.New(`failed to create typed patch object: errors: .spec.env: duplicate entries for key [name="A"]`)), true},
		{apierrors.NewInternalError(errors.New("etcdserver: no leader")), false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("no")), false},
		{apierrors.NewTimeoutError("later", 1), false},
	} {
		if got := IsMistake(test.err); got != test.want {
			t.Errorf("IsMistake(%v) is %t", test.err, got)
		}
	}
}
