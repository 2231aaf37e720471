// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package directories

import (
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFind(t *testing.T) {
	wide := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune("name: moved\n")) {
		wide = append(wide, byte(unit), byte(unit>>8))
	}
	for name, tc := range map[string]struct {
		reason, text string
		found        bool
		unknown      bool
	}{
		"another name":      {"it cannot mean the object", "kind: [\nname: other\n", false, false},
		"its name":          {"where it stands says nothing in a file that cannot be read", "kind: [\n# moved\n", true, false},
		"part of a name":    {"what is longer may be cut off", "name: removed", true, false},
		"escaped":           {"YAML reads it as the name", `name: "m\u006fv\x65d"`, true, false},
		"on two lines":      {"a line that goes on is one", "name: \"mo\\\n   ved\"", true, false},
		"another backslash": {"is kept as it is", `name: "a\qb\"`, false, false},
		"two bytes a letter": {
			"which YAML allows", string(wide), false, true,
		},
		"binary":            {"it is in base64", "name: !!binary bW92ZWQ=", false, true},
		"encrypted name":    {"SOPS can encrypt all", "metadata:\n  name: ENC[AES256_GCM,data:x]\n", false, true},
		"encrypted whole":   {"SOPS can encrypt a file", `{"data": "ENC[AES256_GCM,data:x]"}`, false, true},
		"encrypted content": {"its name is to be read", "metadata: {name: other}\ndata: {a: \"ENC[AES256_GCM,data:x]\"}", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := Unread{Texts: []Text{{File: "broken.yaml", Data: []byte(tc.text)}}}.Find([]string{"moved"})
			if _, has := found.Names["moved"]; has != tc.found || (found.Unknown != "") != tc.unknown {
				t.Errorf("%s: %+v", tc.reason, found)
			}
		})
	}
	listed := Unread{Listed: map[string]string{"moved": "good.yaml"}, Unknown: "it has a prefix"}.Find([]string{"moved", "other"})
	if diff := cmp.Diff(Mentions{Names: map[string]string{"moved": "good.yaml"}, Unknown: "it has a prefix"}, listed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However the letters of a name are escaped, it is found.
func TestEscapedNamesAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z0-9-]{2,12}`).Draw(t, "name")
		text := `name: "`
		for _, letter := range name {
			text += rapid.SampledFrom([]string{
				string(letter), string(letter), hex(`\x`, 2, letter), hex(`\u`, 4, letter), hex(`\U`, 8, letter), "\\\n \t" + string(letter),
			}).Draw(t, "letter")
		}
		if found := (Unread{Texts: []Text{{Data: []byte(text)}}}).Find([]string{name}); len(found.Names) == 0 {
			t.Errorf("%q is not found in %q", name, text)
		}
	})
}

func hex(prefix string, digits int, letter rune) string {
	const all = "0123456789abcdef"
	text := ""
	for range digits {
		text = string(all[letter&15]) + text
		letter >>= 4
	}
	return prefix + text
}
