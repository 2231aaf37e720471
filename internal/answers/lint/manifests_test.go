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

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
	decoder := typed(t)
	for name, file := range files {
		for _, text := range strings.Split("\n"+string(file.Data), "\n---\n") {
			if _, _, err := decoder.Decode([]byte(text), nil, nil); err != nil && !runtime.IsNotRegisteredError(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
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

// typed returns what reads an object of Flux or Kubernetes, and refuses a field that
// its type lacks.
func typed(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sourcev1.AddToScheme, helmv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// shown returns the manifests of a document by the lines on which they begin: blocks
// that are indented by four blanks and begin with an apiVersion.
func shown(document string) map[int]string {
	const indent = "    "
	blocks := map[int]string{}
	begin, last := 0, ""
	for i, line := range strings.Split(document, "\n") {
		code, isCode := strings.CutPrefix(line, indent)
		before := last
		last = code
		switch {
		case strings.HasPrefix(before, "$ cat > charts/"):
			// The files of a chart are none of Kubernetes.
		case begin == 0 && strings.HasPrefix(code, "apiVersion:") && isCode:
			begin = i + 1
		case !isCode && line != "", code == "EOF":
			// A document that a command reads ends with its mark.
			begin = 0
		}
		if begin > 0 {
			blocks[begin] += code + "\n"
		}
	}
	return blocks
}
