// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"大きさ", 1, "…"}, {"abc", 0, "abc"},
	} {
		if got := Clip(c.text, c.limit); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		limit        int
		want         string
	}{
		{"nothing", "", 10, ""},
		{"what is plain stays", "waits for base@1.1.0: Deployed", 0, "waits for base@1.1.0: Deployed"},
		{"other alphabets stay", "Größe: 大きさ", 0, "Größe: 大きさ"},
		{"lines become one", "v1.30.1\n\x1b[31mforged\r\nline", 0, "v1.30.1 [31mforged line"},
		{"the other control characters", "a\u009b31mb\x00c\x7f", 0, "a 31mb c"},
		{"separators of lines", "a\u2028b\u2029c\u0085d", 0, "a b c d"},
		{"the direction of writing", "user\u202Etxt.exe \u2066x\u2069\u200F", 0, "usertxt.exe x"},
		{"what cannot be seen", "ad\u200Bmin\uFEFF\u00AD\U000E0041\u3164", 0, "admin"},
		{"what is no text", "a\xff\xfeb", 0, "ab"},
		{"spaces", "  a \t b  ", 0, "a b"},
		{"as long as allowed", "abcdefgh", 8, "abcdefgh"},
		{"longer", "abcdefghi", 8, "abcde..."},
		{"a character is not cut in two", "ääääää", 8, "ää..."},
		{"a limit of nearly nothing", "abcdef", 2, ".."},
	} {
		if got := Line(c.text, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	given := map[string]any{"a\n": []any{"b\nc", int64(1), nil, map[string]any{"d": strings.Repeat("e", 20)}}}
	want := map[string]any{"a\n": []any{"b c", int64(1), nil, map[string]any{"d": "eeeee..."}}}
	if got := Texts(given, 8); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if given["a\n"].([]any)[0] != "b\nc" {
		t.Error("what was given has changed")
	}
}

func FuzzLine(f *testing.F) {
	f.Add("v1.30.1\n\x1b[31mforged line", 64)
	f.Add("\u202E\u2066 a\xffb  ", 5)
	f.Add(strings.Repeat("ä", 50), 64)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := Line(text, limit)
		switch {
		case limit > 0 && len(got) > limit:
			t.Errorf("%d bytes, want %d at most", len(got), limit)
		case !utf8.ValidString(got):
			t.Errorf("%q is no text", got)
		case strings.IndexFunc(got, func(char rune) bool {
			return !unicode.IsPrint(char) && char != ' ' && unicode.In(char, unicode.C, unicode.Zl, unicode.Zp)
		}) >= 0:
			t.Errorf("%q has what is not printable", got)
		case Line(got, limit) != got:
			t.Errorf("%q becomes %q", got, Line(got, limit))
		}
	})
}
