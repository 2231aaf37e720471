// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"pgregory.net/rapid"
)

func TestRangeTakes(t *testing.T) {
	for _, test := range []struct {
		reason, wanted string
		in, out        []string
	}{
		{"none takes any", "", []string{"0.0.1", "v3.0.0", "1.0.0-rc.1"}, nil},
		{"a v does not matter", "v1.0.0", []string{"1.0.0", "v1.0.0", "1"}, []string{"1.0.1", "1.0.0-rc.1"}},
		{"nor does build metadata", "=1.0.0", []string{"1.0.0+build.7"}, nil},
		{"an incomplete version is a range", "1.2", []string{"1.2.0", "1.2.9"}, []string{"1.3.0"}},
		{"blanks do not matter", "  >=  1.1   <2 ", []string{"1.1.0", "1.9.9"}, []string{"1.0.9", "2.0.0"}},
		{"commas are and", ">=1.1,<2", []string{"1.1.0", "1.9.9"}, []string{"1.0.9", "2.0.0"}},
		{"a pre-release counts by precedence", ">=3", []string{"3.1.0-rc.1"}, []string{"3.0.0-rc.1"}},
		{"but not ahead of its own release", ">=3 <4", []string{"3.1.0-rc.1"}, []string{"4.0.0-rc.1"}},
		{"unless the range names one", ">=3.0.0-0 <4", []string{"3.0.0-rc.1", "4.0.0-rc.1"}, []string{"4.0.0"}},
		{"exactly this pre-release", "3.0.0-rc.1", []string{"3.0.0-rc.1", "v3.0.0-rc.1"}, []string{"3.0.0", "3.0.0-rc.2"}},
		{"either", "^1 || ^3", []string{"1.5.0", "3.0.0"}, []string{"2.0.0", "4.0.0"}},
	} {
		parsed, err := parseRange(test.wanted)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range test.in {
			if !parsed.takes(number(t, text)) {
				t.Errorf("%s: %q does not take %s", test.reason, test.wanted, text)
			}
		}
		for _, text := range test.out {
			if parsed.takes(number(t, text)) {
				t.Errorf("%s: %q takes %s", test.reason, test.wanted, text)
			}
		}
	}
}

func number(t *testing.T, text string) *semver.Version {
	t.Helper()
	version, err := parseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestRangeNames(t *testing.T) {
	for text, want := range map[string]bool{
		"2.0.0-rc.1": true, "v2.0.0-rc.1": true, "=2.0.0-rc.1": true, "= v2.0.0-rc.1": true,
		"": false, ">=2.0.0-rc.1": false, "^2.0.0-rc.1": false, "2.0.0": false, "2": false, "2.0.0-rc.1 || 3.0.0": false,
	} {
		parsed, err := parseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.names(number(t, "2.0.0-rc.1")); got != want {
			t.Errorf("%q names 2.0.0-rc.1: %t, want %t", text, got, want)
		}
	}
}

// A range of bounds alone is not given to the library, and takes what the library
// would take.
func TestPlainRangesTakeWhatTheLibraryTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 3)
		join := func(label string) string {
			return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers.Draw(t, label)), " ", "."), "[]")
		}
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			parts = append(parts, rapid.SampledFrom([]string{">=", "<", ">= ", "< ", ">=v", "<v"}).Draw(t, "operator")+join("bound"))
		}
		text := strings.Join(parts, rapid.SampledFrom([]string{" ", ",", ", "}).Draw(t, "separator"))
		parsed, err := parseRange(text)
		if err != nil || parsed.plain == nil {
			t.Fatalf("%q: %v, %v", text, parsed.plain, err)
		}
		version := semver.MustParse(join("version"))
		if got, want := parsed.takes(version), parsed.releases.Check(version); got != want {
			t.Fatalf("%q takes %s: %t, the library says %t", text, version, got, want)
		}
	})
}
