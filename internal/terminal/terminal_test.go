// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

var wide = []Column{{Name: "NAME"}, {Name: "STATE", Role: roleOfState}, {Name: "REVISION", Expendable: 2}, {Name: "SINCE", Expendable: 1}, {Name: "WHY"}}

func roleOfState(state string) Role {
	return RoleOf(map[string]string{"Deployed": "good", "Failed": "bad"}[state])
}

var rows = [][]string{
	{"base", "Deployed", "main@sha1:01234567", "3d", ""},
	{"applications", "Failed", "", "40s", "the chart \x1b[31mdoes\nnot exist, and nobody knows where it has gone"},
}

func TestTable(t *testing.T) {
	for name, c := range map[string]struct {
		screen Screen
		want   string
		reason string
	}{
		"pipe": {Screen{}, `NAME           STATE      REVISION             SINCE   WHY
base           Deployed   main@sha1:01234567   3d
applications   Failed     -                    40s     the chart ^[[31mdoes not exist, and nobody knows where it has gone
`, "everything, with escapes made visible"},
		"60": {Screen{Width: 60}, `NAME           STATE      SINCE   WHY
base           Deployed   3d
applications   Failed     40s     the chart ^[[31mdoes not …
`, "the revision goes first"},
		"40": {Screen{Width: 40}, `NAME           STATE
base           Deployed
applications   Failed
  the chart ^[[31mdoes not exist, and
  nobody knows where it has gone
`, "the message has its own lines"},
		"16": {Screen{Width: 16}, `NAME           …
base           …
applications   …
  the chart
  ^[[31mdoes not
  exist, and
  nobody knows
  where it has
  gone
`, "nothing is wider than the screen"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.screen.Table(&out, wide, rows); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("%s: got\n%s\nwant\n%s", c.reason, out.String(), c.want)
			}
		})
	}
}

func TestTableIsPainted(t *testing.T) {
	var out bytes.Buffer
	if err := (Screen{Colour: true}).Table(&out, wide, rows); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\x1b[32mDeployed\x1b[0m   main") || !strings.Contains(out.String(), "\x1b[31mFailed\x1b[0m     -") {
		t.Errorf("states are not painted, or their colours move the columns:\n%q", out.String())
	}
}

func TestWrap(t *testing.T) {
	text := "waits for base@1.1.0:\n base is at 1.0.1"
	for width, want := range map[int][]string{
		0:  {"waits for base@1.1.0: base is at 1.0.1"},
		20: {"waits for", "  base@1.1.0: base", "  is at 1.0.1"},
		5:  {"waits", "  for", "  base@1.1.0:", "  base", "  is", "  at", "  1.0.1"},
	} {
		if got := (Screen{Width: width}).Wrap(text, "  "); !slices.Equal(got, want) {
			t.Errorf("at %d columns: %q, want %q", width, got, want)
		}
	}
}

func TestOfAPipe(t *testing.T) {
	if got := Of(&bytes.Buffer{}, func(string) (string, bool) { return "", false }); got != (Screen{}) {
		t.Errorf("a buffer is taken for a terminal: %+v", got)
	}
}

func TestOfAPipeThatIsToLookLikeATerminal(t *testing.T) {
	for _, c := range []struct {
		environment map[string]string
		want        Screen
		reason      string
	}{
		{map[string]string{"COLUMNS": "80"}, Screen{}, "a shell that exports COLUMNS does not make a pipe a terminal"},
		{map[string]string{"CLICOLOR_FORCE": "0", "COLUMNS": "80"}, Screen{}, "0 asks for nothing"},
		{map[string]string{"CLICOLOR_FORCE": "1"}, Screen{Colour: true}, "colours, and lines of any length"},
		{map[string]string{"CLICOLOR_FORCE": "1", "COLUMNS": "80", "TERM": "dumb"}, Screen{Colour: true, Width: 80}, "what kind of terminal there is does not matter"},
		{map[string]string{"CLICOLOR_FORCE": "1", "COLUMNS": "-1"}, Screen{Colour: true}, "no width that could be"},
		{map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1", "COLUMNS": "80"}, Screen{Width: 80}, "NO_COLOR goes before"},
	} {
		got := Of(&bytes.Buffer{}, func(name string) (string, bool) {
			value, set := c.environment[name]
			return value, set
		})
		if got != c.want {
			t.Errorf("%v: %+v, want %+v: %s", c.environment, got, c.want, c.reason)
		}
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	for width, want := range map[int]string{0: "", 12: "\r\x1b[Kbase of lay…\r\x1b[K"} {
		var out bytes.Buffer
		progress := NewProgress(&out, Screen{Width: width})
		progress.Say("base of %s", "layers")
		progress.Done()
		progress.Done()
		if out.String() != want {
			t.Errorf("at %d columns: %q, want %q", width, out.String(), want)
		}
	}
}
