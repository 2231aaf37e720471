// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file again")

const printed = "NAME   STATE\r\n" +
	"base   \x1b[32mDeployed\x1b[0m\n" +
	"apps   \x1b[1;31mFailed\x1b[22m there\x1b[39m & <back>\n" +
	"\r\x1b[Kreading layers\r\x1b[Kdone \x1b]0;title\x1b[2Jhere\n" +
	"\x1b[2mfaint\x1b[0m\t\x07\x1b[38;5;9mplain\x1b[0m \x1b[96mbright\x1b[0m"

func TestPictureIsGolden(t *testing.T) {
	const path = "testdata/terminal.svg"
	lines := append([]line{prompt(`kubectl strata get | grep "<a>"`)}, parse(printed)...)
	got := draw("kubectl <strata>", 40, lines)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test -update writes it again), -want +got:\n%s", path, diff)
	}
}

func TestStyles(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   []line
	}{
		"nothing":          {"", nil},
		"empty lines":      {"\n\n", []line{nil, nil}},
		"no last newline":  {"a", []line{{{"a", plain}}}},
		"a colour goes on": {"\x1b[33ma\nb", []line{{{"a", style{colour: 3}}}, {{"b", style{colour: 3}}}}},
		"cut short":        {"a\x1b[3", []line{{{"a", plain}}}},
		"an escape alone":  {"a\x1b", []line{{{"a", plain}}}},
		"no codes":         {"\x1b[31ma\x1b[mb", []line{{{"a", style{colour: 1}}, {"b", plain}}}},
	} {
		if diff := cmp.Diff(c.want, parse(c.output), cmp.AllowUnexported(span{}, style{})); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
}

func TestLongLinesAreFolded(t *testing.T) {
	got := fold(parse("abcd\x1b[31mefgh\x1b[0mij\n\nabc"), 3)
	red := style{colour: 1}
	want := []line{{{"abc", plain}}, {{"d", plain}, {"ef", red}}, {{"gh", red}, {"i", plain}}, {{"j", plain}}, nil, {{"abc", plain}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{}, style{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever a command prints, the picture is XML without elements of its making.
func FuzzPicture(f *testing.F) {
	f.Add(printed)
	f.Add("\x1b[31m</text><script>\xff\x00")
	elements := []string{"svg", "title", "rect", "circle", "text", "tspan"}
	f.Fuzz(func(t *testing.T, output string) {
		decoder := xml.NewDecoder(strings.NewReader(draw(output, 40, parse(output))))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if start, is := token.(xml.StartElement); is && !slices.Contains(elements, start.Name.Local) {
				t.Fatalf("the picture has an element %s", start.Name.Local)
			}
		}
	})
}

func TestOutputIsThatOfATerminal(t *testing.T) {
	got, err := output(t.Context(), `echo "$CLICOLOR_FORCE $COLUMNS"; exit 2`, 72)
	if err != nil || got != "1 72\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := output(t.Context(), "no-such-program-here", 72); err == nil || !strings.Contains(err.Error(), "cannot run \"no-such-program-here\": exit status 127") {
		t.Errorf("a program that is not there: %v", err)
	}
}
