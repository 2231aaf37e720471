// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// alone are the rules of one object by itself: what is shown in documents refers to
// what is not shown.
var alone = []string{ruleUnreadable, ruleSyntax, ruleManifest, ruleKustomization, ruleSchema, ruleUnknownField, ruleRelease, ruleBundle, ruleCatalogue}

// What a document shows as a manifest is one that the API server takes, and so are the
// samples.
func TestShownManifestsAreValid(t *testing.T) {
	files := fstest.MapFS{}
	root := os.DirFS("../../..")
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "chart/*.md", "examples/*.md"} {
		found, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	for _, name := range documents {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for line, block := range shown(string(text)) {
			files[fmt.Sprintf("%s-%d/object.yaml", name, line)] = &fstest.MapFile{Data: []byte(block)}
		}
	}
	samples, err := fs.Glob(root, "config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range samples {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) != "kustomization.yaml" {
			files[name] = &fstest.MapFile{Data: text}
		}
	}
	if len(files) < 15 {
		t.Errorf("%d manifests are shown: are all of them found?", len(files))
	}
	report, err := Run(t.Context(), Options{Files: files, Now: today})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		if slices.Contains(alone, finding.Rule) {
			t.Errorf("%s: line %d of it: %s: %s", finding.File, finding.Line, finding.Field, finding.Message)
		}
	}
}

// shown returns the manifests of a document by the lines on which they begin: blocks
// that are indented by four blanks and begin with an apiVersion.
func shown(document string) map[int]string {
	const indent = "    "
	blocks := map[int]string{}
	begin := 0
	for i, line := range strings.Split(document, "\n") {
		code, isCode := strings.CutPrefix(line, indent)
		switch {
		case begin == 0 && strings.HasPrefix(code, "apiVersion:") && isCode:
			begin = i + 1
		case !isCode && line != "":
			begin = 0
		}
		if begin > 0 {
			blocks[begin] += code + "\n"
		}
	}
	return blocks
}
