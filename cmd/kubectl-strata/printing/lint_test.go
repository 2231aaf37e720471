// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/strata-project/strata/internal/answers/lint"
)

func linted(t *testing.T, files fs.FS) *lint.Report {
	t.Helper()
	report, err := lint.Run(t.Context(), lint.Options{Files: files, Kubernetes: "1.34", Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestLintOnNarrowTerminals(t *testing.T) {
	report := linted(t, os.DirFS("../../../internal/answers/lint/testdata/broken"))
	report.Findings = append(report.Findings,
		lint.Finding{Rule: "syntax", Level: lint.Error, File: "a folder/100%.yaml", Message: "\x1b[2J <&\"]]>\n\x00"})
	text := Lint(report, 40)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if len(line) > 40 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("wider than 40 columns: %s", line)
		}
		if strings.ContainsAny(line, "\x1b\x00") {
			t.Errorf("moves the cursor: %q", line)
		}
	}
}

func TestLintShowsTheFirstFindings(t *testing.T) {
	files := fstest.MapFS{"layers.yaml": {Data: []byte("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: a}\nspec: {version: 1.0.0, source: {name: addons, namespace: gotk-system, path: ./a}}\n")}}
	for i := range 500 {
		files[fmt.Sprintf("a/%03d.yaml", i)] = &fstest.MapFile{Data: []byte("a: [")}
	}
	report := linted(t, files)
	text := Lint(report, 0)
	if got := strings.Count(text, ": error syntax: "); got != 50 {
		t.Errorf("%d findings are shown, want 50", got)
	}
	if !strings.HasSuffix(text, "\nand 450 more, all of them with -o json:\n  450 syntax in 450 files\n\n500 errors and 0 warnings in 501 files, 1 layer and 0 releases.\n") {
		t.Errorf("the text ends with %q", text[len(text)-200:])
	}
}
