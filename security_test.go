// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every promise of docs/security.md names a test that attacks it, and each of
// these tests exists.
func TestPromisesHaveTests(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## Promises")
	if !found {
		t.Fatal("docs/security.md has no section of promises")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	tests := testsOf(t)
	name := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`)
	promises := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise ") {
			continue
		}
		promises++
		names := name.FindAllString(line, -1)
		if len(names) == 0 {
			t.Errorf("nothing attacks this promise: %s", line)
		}
		for _, each := range names {
			if !tests[each] {
				t.Errorf("there is no %s, which is to attack: %s", each, line)
			}
		}
	}
	if promises == 0 {
		t.Error("no promise was found: the table has another form")
	}
}

// A workflow runs no action but at a commit that is written down: a tag can be moved to
// another one, also in the workflow that has the key of releases.
func TestActionsArePinned(t *testing.T) {
	workflows, err := fs.Glob(os.DirFS("."), ".github/workflows/*.y*ml")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("no workflow was found: %v", err)
	}
	uses := regexp.MustCompile(`^\s*(?:- )?uses:\s*(.*)$`)
	pinned := regexp.MustCompile(`^(?:\./\S+|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	found := 0
	for _, workflow := range workflows {
		data, err := os.ReadFile(workflow)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			match := uses.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if match == nil {
				continue
			}
			found++
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s is not OWNER/NAME@COMMIT # vMAJOR.MINOR.PATCH", workflow, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no action was found: workflows have another form")
	}
}

// testsOf returns the names of all tests and fuzz tests of the module.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	names := map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(data, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
