// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A look-up insists on its questions as long as an API server says that it is
// busy, and a few times at most.
func TestInsist(t *testing.T) {
	busy, forbidden := apierrors.NewTooManyRequestsError("busy"), apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	for name, tc := range map[string]struct {
		answers []error
		ended   bool
		asked   int
		want    error
	}{
		"answered at once":  {[]error{nil}, false, 1, nil},
		"answered later":    {[]error{busy, apierrors.NewInternalError(errors.New("x")), nil}, false, 3, nil},
		"never answered":    {[]error{busy, busy, busy, busy, nil}, false, 4, busy},
		"refused for good":  {[]error{busy, forbidden, nil}, false, 2, forbidden},
		"nobody waits more": {[]error{busy, nil}, true, 1, busy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ended {
				cancel()
			}
			asked := 0
			err := Insist(ctx, func() error {
				asked++
				return tc.answers[asked-1]
			})
			if !errors.Is(err, tc.want) || asked != tc.asked {
				t.Errorf("asked %d times, and got %v", asked, err)
			}
		})
	}
}
