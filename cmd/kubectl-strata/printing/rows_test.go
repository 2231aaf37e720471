// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/answers/bundles"
)

func TestChangesOfHostileNames(t *testing.T) {
	text := ChangesMarkdown("a|b", "<img>", []bundles.Change{{Layer: "x|y", What: "a\n| b |", Verb: bundles.Changed, From: "@all", To: "`c`"}})
	if strings.Count(text, "\n") != 5 || strings.Contains(text, "<") || strings.Contains(text, "@all") {
		t.Errorf("it breaks out of its table:\n%s", text)
	}
}
