// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/printable"
)

func TestCommand(t *testing.T) {
	for want, words := range map[string][]string{
		"kubectl strata why base":                        {"why", "base"},
		"kubectl strata rollback base --to '11; reboot'": {"rollback", "base", "--to", "11; reboot"},
		`kubectl strata hold a --reason 'it'\''s mine'`:  {"hold", "a", "--reason", "it's mine"},
		"kubectl strata plan -l 'team=a,env!=b'":         {"plan", "-l", "team=a,env!=b"},
		"kubectl strata why '$(id)'":                     {"why", "$(id)"},
		"kubectl strata why ''":                          {"why", ""},
		"kubectl strata why '~root'":                     {"why", "~root"},
		"kubectl strata why 'a b'":                       {"why", "a\nb"},
	} {
		if got := printable.Command("kubectl strata", words...); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

// A real shell takes each word for one, and for the very same, whatever it holds.
func TestShellsReadTheWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching("[-a-z '\"$`\\\\;|&<>()*?!~#{}\\[\\]=]{0,12}")), 1, 4).Draw(t, "words")
		want := make([]string, 0, len(words))
		for _, word := range words {
			want = append(want, printable.Line(word, 0))
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", printable.Command(`printf '%s\n'`, words...)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, want) {
			t.Fatalf("a shell reads %q, want %q", got, want)
		}
	})
}
