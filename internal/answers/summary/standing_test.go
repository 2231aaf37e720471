// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"testing"

	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/terminal"
)

func TestEveryStandingHasARole(t *testing.T) {
	for state, want := range map[string]terminal.Role{
		"Deployed": terminal.Good, "True": terminal.Good, "yes": terminal.Good,
		"Applying": terminal.Busy, objects.StatusMissing: terminal.Busy, "Unknown": terminal.Busy,
		"Failed": terminal.Bad, "False": terminal.Bad, "no": terminal.Bad,
		"Blocked": terminal.Warning, "unknown": terminal.Warning, "anything": terminal.Warning,
		"": terminal.Plain, "-": terminal.Plain,
	} {
		if got := terminal.RoleOf(summary.Standing(state)); got != want {
			t.Errorf("%q: role %d, want %d", state, got, want)
		}
	}
}
