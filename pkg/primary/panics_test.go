// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/pkg/primary"
)

// A kind whose code panics says so of its object, and nothing of what it panicked with, until a
// look has ended well.
func TestPanicOfAKind(t *testing.T) {
	f := newFixture(t)
	kind, panics := chain(), atomic.Bool{}
	plain := kind.Wants
	kind.Wants = func(thing *Thing, seen primary.Seen) ([]primary.Dependent, error) {
		if panics.Load() {
			panic("hunter2")
		}
		return plain(thing, seen)
	}
	panics.Store(true)
	f.start(-1, kind)
	f.thing("broken", "one")
	told := f.says("broken", v1alpha1.ReasonInternalError, "log has its stack under the hash")
	for _, condition := range told.Status.Conditions {
		if strings.Contains(condition.Message, "hunter2") {
			t.Error(condition.Message)
		}
	}
	panics.Store(false)
	f.says("broken", primary.ReasonReady)
}
