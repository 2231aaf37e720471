// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/test/reads"
)

const ours = "github.com/strata-project/strata/"

// imports returns what each package of the answers imports, and each package that these
// need in turn.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	reads.AddPrograms(".", "./...")
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		found[names[0]] = names[1:]
	}
	return found
}

// The linter sees only what a package imports itself.
func TestAnswersDoNotKnowHowTheyAreShown(t *testing.T) {
	all := imports(t)
	if len(all[ours+"internal/answers/why"]) == 0 {
		t.Fatalf("of %d packages none is why", len(all))
	}
	for name, imported := range all {
		for _, shown := range []string{"internal/terminal", "cmd/", "controllers"} {
			if strings.HasPrefix(name, ours+shown) {
				t.Errorf("answers need %s", name)
			}
		}
		// The rules of the API server for CEL, which lint goes by, come with the flags
		// of its components. No command is made of those.
		if slices.Contains(imported, "github.com/spf13/cobra") && name != "k8s.io/component-base/cli/flag" {
			t.Errorf("answers need cobra for %s", name)
		}
	}
}
