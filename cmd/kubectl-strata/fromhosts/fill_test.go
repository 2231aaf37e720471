// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
)

// Flags that say nothing without others are refused before anything is asked.
func TestFillingFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--install":                           "name it with --from-dir",
		"--layers a":                          "name it with --from-dir",
		"--source a":                          "name it with --from-dir",
		"--from-dir a --flux b":               "are for --install",
		"--from-dir a --set a=b":              "are for --install",
		"--from-dir a --values b":             "are for --install",
		"--from-dir a --install --timeout 0s": "longer than nothing",
		"":                                    "",
		"--from-dir a":                        "",
		"--from-dir a --install --flux b --set c=d": "",
		"--from-dir a --source b --layers c,d":      "",
		"--from-dir a --install --timeout 1h2m":     "",
	} {
		var f filling
		command := &cobra.Command{}
		f.addFlags(command, setup.Build{})
		if err := command.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		err := f.check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
	var f filling
	f.addFlags(&cobra.Command{}, setup.Build{})
	if f.Timeout != 15*time.Minute {
		t.Errorf("nodes and layers are waited for %s", f.Timeout)
	}
}
