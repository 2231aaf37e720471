// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"testing"

	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/terminal"
)

func TestChecksFit(t *testing.T) {
	findings := []checks.Finding{
		{Check: "a", Result: checks.OK, What: "well"},
		{Check: "b", Result: checks.Warn, What: "a message \x1b[31m that is longer than a narrow terminal has room for", Do: "do something about it that is also long"},
	}
	want := "✔ well\n! a message ^[[31m that is\n  longer than a narrow\n  terminal has room for\n  -> do something about it\n     that is also long\n"
	if got := Checks(terminal.Screen{Width: 26}, findings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = "ok    well\nwarn  a message ^[[31m that is longer than a narrow terminal has room for\n      -> do something about it that is also long\n"
	if got := Checks(terminal.Screen{}, findings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
