// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/directories"
)

func TestParseDependency(t *testing.T) {
	exact := func(version string) Dependency { return Dependency{Name: "base", Version: version} }
	ranged := func(version string) Dependency { return Dependency{Name: "base", Version: version, Range: true} }
	const noName, noRange = " does not begin with the name of a layer", " asks for a range that cannot be understood: write one such as base@>=1.1 <2, base@^2, base@~1.4 or base@1.x"
	const noVersion = " has no version behind the @: write name@version, or the name alone for any version"
	const blanks = " has blanks or commas in its version: write name@version with one exact version, or a range such as base@>=1.1 <2"
	cases := []struct {
		reason, text string
		want         Dependency
		err          string
	}{
		{"a version", "base@1.0.0", exact("1.0.0"), ""},
		{"a version that is no semantic one", "base@0.1.01", exact("0.1.01"), ""},
		{"any string", "base@spring-2026", exact("spring-2026"), ""},
		{"a bare name", "base", exact(""), ""},
		{"the version is all that follows", "base@a@b", exact("a@b"), ""},
		{"a path is data", "base@../../x", exact("../../x"), ""},
		{"a name with dots", "a.b-c@1", Dependency{Name: "a.b-c", Version: "1"}, ""},
		{"an x in a pre-release is a letter", "base@1.0.0-x.7", exact("1.0.0-x.7"), ""},
		{"an x behind a dash", "base@1-x", exact("1-x"), ""},
		{"an x alone is a name", "base@x", exact("x"), ""},
		{"an x before a number", "base@x.1", exact("x.1"), ""},
		{"an x between numbers", "base@1.x.3", exact("1.x.3"), ""},
		{"more x than numbers fit", "base@1.2.3.x", exact("1.2.3.x"), ""},
		{"four places", "base@1.x.x.x", exact("1.x.x.x"), ""},
		{"a word with an x", "base@v1.next", exact("v1.next"), ""},
		{"a dash without blanks", "base@1.0-2.0", exact("1.0-2.0"), ""},
		{"build metadata", "base@1.0.0+x", exact("1.0.0+x"), ""},
		{"a minimum", "base@>=1.1", ranged(">=1.1"), ""},
		{"from, to", "base@>=1.1 <2", ranged(">=1.1 <2"), ""},
		{"from, to, with a comma", "base@>=1.1, <2", ranged(">=1.1, <2"), ""},
		{"a caret", "base@^2", ranged("^2"), ""},
		{"a tilde", "base@~1.4", ranged("~1.4"), ""},
		{"alternatives", "base@^1 || ^3", ranged("^1 || ^3"), ""},
		{"exactly, as a range", "base@=1.0.0", ranged("=1.0.0"), ""},
		{"not", "base@!=1.0.0", ranged("!=1.0.0"), ""},
		{"a wildcard", "base@1.x", ranged("1.x"), ""},
		{"a capital wildcard", "base@1.X", ranged("1.X"), ""},
		{"two wildcards", "base@v1.x.x", ranged("v1.x.x"), ""},
		{"a wildcard for the patch", "base@1.2.x", ranged("1.2.x"), ""},
		{"two ranges with wildcards", "base@1.x 1.2.x", ranged("1.x 1.2.x"), ""},
		{"a wildcard among others", "base@1.x, <1.4", ranged("1.x, <1.4"), ""},
		{"a star", "base@*", ranged("*"), ""},
		{"a star behind a number", "base@1.*", ranged("1.*"), ""},
		{"from - to", "base@1.1 - 1.9", ranged("1.1 - 1.9"), ""},
		{"blanks around a range", "base@ >=1.1 ", ranged(" >=1.1 "), ""},
		{"nothing", "", Dependency{}, noName + ": write name@version"},
		{"no name", "@1.0.0", Dependency{}, noName + ": write name@version"},
		{"blanks in the name", "base @1", Dependency{}, noName + ": write name@version"},
		{"capitals", "Base@1", Dependency{}, noName + ": names of layers have no capitals: write name@version"},
		{"capitals and more", "Base!@1", Dependency{}, noName + ": write name@version"},
		{"a dash at the end of the name", "base-@1", Dependency{}, noName + ": write name@version"},
		{"letters of others", "bäse@1", Dependency{}, noName + ": write name@version"},
		{"no version", "base@", Dependency{}, noVersion},
		{"blanks for a version", "base@ ", Dependency{}, noVersion},
		{"a blank behind the version", "base@1.0.0 ", Dependency{}, blanks},
		{"two versions", "base@1.0.0 2.0.0", Dependency{}, blanks},
		{"two versions and a comma", "base@1.0.0,2.0.0", Dependency{}, blanks},
		{"an operator alone", "base@>=", Dependency{}, noRange},
		{"words", "base@>=two", Dependency{}, noRange},
		{"four numbers", "base@>=1.2.3.4", Dependency{}, noRange},
		{"operators the wrong way", "base@1.0<", Dependency{}, noRange},
		{"half an alternative", "base@^1 ||", Dependency{}, noRange},
		{"one bar", "base@1|2", Dependency{}, noRange},
		{"a second @", "base@>=1@2", Dependency{}, noRange},
		{"a star in a word", "base@feature*", Dependency{}, noRange},
	}
	for _, tc := range cases {
		got, err := Parse(tc.text)
		text := ""
		if err != nil {
			text = strings.TrimPrefix(err.Error(), fmt.Sprintf("%q", tc.text))
		}
		if got != tc.want || text != tc.err {
			t.Errorf("%s: %q: got %+v, %v", tc.reason, tc.text, got, err)
		}
	}
}

func TestDependencyAccepts(t *testing.T) {
	cases := []struct {
		reason, dependency, version string
		want                        bool
		explained                   string
	}{
		{"an exact version is itself", "base@1.0.0", "1.0.0", true, ""},
		{"and nothing that means the same", "base@1.0.0", "v1.0.0", false, ""},
		{"nor one with other zeros", "base@0.1.01", "0.1.1", false, ""},
		{"no semantic version, but exact", "base@0.1.01", "0.1.01", true, ""},
		{"a name takes any version", "base", "spring-2026", true, ""},
		{"in the range", "base@>=1.1 <2", "1.1.0", true, ""},
		{"the last of the range", "base@>=1.1 <2", "1.99.99", true, ""},
		{"below", "base@>=1.1 <2", "1.0.1", false, ""},
		{"above", "base@>=1.1 <2", "2.0.0", false, ""},
		{"numbers, not text", "base@>=1.9", "1.10.0", true, ""},
		{"a v does not matter", "base@^1", "v1.2.3", true, ""},
		{"missing numbers are zero", "base@~1.4", "1.4", true, ""},
		{"a tilde ends", "base@~1.4", "1.5.0", false, ""},
		{"a caret ends", "base@^2", "3.0.0", false, ""},
		{"a caret below 1 ends sooner", "base@^0.2", "0.3.0", false, ""},
		{"a wildcard", "base@1.x", "1.7.2", true, ""},
		{"the other alternative", "base@^1 || ^3", "3.1.0", true, ""},
		{"between the alternatives", "base@^1 || ^3", "2.1.0", false, ""},
		{"build metadata does not matter", "base@=1.0.0", "1.0.0+7", true, ""},
		{"any semantic version", "base@*", "0.0.1", true, ""},
		{"a pre-release", "base@>=1.0.0", "2.0.0-rc.1", false, ", a pre-release, which is taken only by a range that names one"},
		{"a pre-release, even in any range", "base@*", "1.0.0-1", false, ", a pre-release, which is taken only by a range that names one"},
		{"a pre-release that is named", "base@>=2.0.0-0", "2.0.0-rc.1", true, ""},
		{"leading zeros make none", "base@>=0.1", "0.1.01", false, ", which is no semantic version, so that no range takes it"},
		{"words", "base@*", "spring-2026", false, ", which is no semantic version, so that no range takes it"},
		{"four numbers", "base@*", "1.2.3.4", false, ", which is no semantic version, so that no range takes it"},
		{"the text of the range", "base@1.x", "1.x", false, ", which is no semantic version, so that no range takes it"},
		{"nothing", "base@*", "", false, ""},
	}
	for _, tc := range cases {
		dependency, err := Parse(tc.dependency)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		if got := dependency.Accepts(tc.version); got != tc.want {
			t.Errorf("%s: %s and %s: got %t", tc.reason, tc.dependency, tc.version, got)
		}
		if got := dependency.Explain(tc.version); !tc.want && got != tc.explained {
			t.Errorf("%s: %s and %s: explained as %q", tc.reason, tc.dependency, tc.version, got)
		}
	}
}

func FuzzParseDependency(f *testing.F) {
	for _, seed := range []string{"base@1.0.0", "base", "base@a@b", "@", "", "mesh@>=2.1 <3", "a..b@1", "base@\x00", "Ä@1", "a@1.x", "a@1 - 2", "a@^1||~2.3", "A@", "a@ ", "a@*-x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dependency, err := Parse(text)
		if err != nil {
			if dependency != (Dependency{}) {
				t.Errorf("%q: %+v besides an error", text, dependency)
			}
			return
		}
		if dependency.String() != text || strings.Contains(dependency.Name, "@") || dependency.Name == "" {
			t.Errorf("%q becomes %+v", text, dependency)
		}
		if names := Names([]string{text, text}); !slices.Equal(names, []string{dependency.Name}) {
			t.Errorf("%q names %v", text, names)
		}
		if !dependency.Range && dependency.Version != "" && !dependency.Accepts(dependency.Version) {
			t.Errorf("%q does not accept itself", text)
		}
	})
}

func TestDependencies(t *testing.T) {
	got, err := ParseAll([]string{"a@1", "b@", "c", "", "d@^1"})
	if diff := cmp.Diff([]Dependency{{Name: "a", Version: "1"}, {Name: "c"}, {Name: "d", Version: "^1", Range: true}}, got); diff != "" {
		t.Errorf("those that can be understood are returned (-want +got):\n%s", diff)
	}
	if err == nil || !strings.HasPrefix(err.Error(), `spec.prereqs.dependsOn[1]: "b@" has no version behind the @: `) {
		t.Errorf("the first that cannot be understood is named: %v", err)
	}
	if got, err := ParseAll(nil); got != nil || err != nil {
		t.Errorf("none are none: %v, %v", got, err)
	}
}

func TestContentError(t *testing.T) {
	cases := map[string]directories.ContentError{
		"what":                     {Message: "what"},
		"a.yaml: what":             {File: "a.yaml", Message: "what"},
		"a.yaml:3: what":           {File: "a.yaml", Line: 3, Message: "what"},
		"a.yaml:3: kind: what":     {File: "a.yaml", Line: 3, Field: "kind", Message: "what"},
		"spec.source.path: what":   {Field: "spec.source.path", Message: "what"},
		"spec.source.path:  what ": {Field: "spec.source.path", Line: 3, Message: " what "},
	}
	for want, err := range cases {
		if got := errors.Join(&err).Error(); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
