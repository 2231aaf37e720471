// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fences   = regexp.MustCompile("(?ms)^```.*?\n```")
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	schemes  = regexp.MustCompile(`^[a-z]+:`)
)

// anchor is what a heading is linked by where the documents are read.
func anchor(heading string) string {
	text := linked.ReplaceAllString(heading, "$1")
	return strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// Every link between documents leads to a file that is there, and to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "git", "ls-files", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	pages, anchors := map[string]string{}, map[string]map[string]bool{}
	for _, name := range strings.Fields(string(output)) {
		if _, err := os.Stat(filepath.Dir(name)); err != nil { // where a new one is added
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name], anchors[name] = fences.ReplaceAllString(string(text), ""), map[string]bool{}
		for _, found := range headings.FindAllStringSubmatch(pages[name], -1) {
			anchors[name][anchor(found[1])] = true
		}
	}
	checked := 0
	for name, text := range pages {
		// Patterns of fields look like links there; the page is generated.
		if name == filepath.Join("docs", "api.md") {
			continue
		}
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			if schemes.MatchString(found[1]) {
				continue
			}
			checked++
			path, at, _ := strings.Cut(found[1], "#")
			to := name
			if path != "" {
				to = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", name, found[1])
			} else if _, is := anchors[to]; is && at != "" && !anchors[to][at] {
				t.Errorf("%s links to %s, and there is no such heading", name, found[1])
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d links were looked at", checked)
	}
}
