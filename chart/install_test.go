// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page about the installation counts what the chart has: a kind that is added or
// taken away is seen here.
func TestInstallPageCountsTheChart(t *testing.T) {
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]int{}
	for _, each := range render(t, "{}") {
		has[each.GetObjectKind().GroupVersionKind().Kind]++
	}
	line := regexp.MustCompile(`(?m)^ +install Strata [^:]+: (.*)$`).FindSubmatch(page)
	if line == nil {
		t.Fatal("the page does not show what an installation brings")
	}
	shown := map[string]int{}
	for _, item := range strings.Split(string(line[1]), ", ") {
		var kind string
		var count int
		if _, err := fmt.Sscanf(item, "%d %s", &count, &kind); err != nil {
			t.Fatalf("%q is no count of a kind: %v", item, err)
		}
		shown[kind] = count
	}
	for kind, count := range has {
		if shown[kind] != count {
			t.Errorf("the page shows %d of %s, and the chart has %d", shown[kind], kind, count)
		}
		delete(shown, kind)
	}
	for kind, count := range shown {
		t.Errorf("the page shows %d of %s, and the chart has none", count, kind)
	}
	if want := fmt.Sprintf("CRDs: all %d are there", has["CustomResourceDefinition"]); !strings.Contains(string(page), want) {
		t.Errorf("the page does not say %q", want)
	}
}
