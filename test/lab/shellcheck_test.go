// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/strata-project/strata/test/lab"
)

// Debian's shellcheck finds nothing in what is run on hosts.
func TestShellcheckFindsNothing(t *testing.T) {
	t.Parallel()
	if why := lab.Missing(); why != "" {
		t.Skip(why)
	}
	programs, err := lab.Debian(t.Context(), "shellcheck", "shellcheck")
	if err != nil {
		t.Skipf("it needs Debian's shellcheck: %v", err)
	}
	var files []string
	for _, pattern := range []string{"../../internal/scripts/testdata/*.golden", "../../internal/probes/*.sh", "*.sh"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		files = append(files, found...)
	}
	// A script has all the values and functions that any action uses: SC2034 names those
	// that one does not.
	args := append([]string{"-s", "sh", "-e", "SC2034"}, files...)
	if out, err := exec.CommandContext(t.Context(), filepath.Join(programs, "usr", "bin", "shellcheck"), args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
