// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One odd file harms itself: all others are found.
func TestLook(t *testing.T) {
	const group = "kustomize.toolkit.fluxcd.io"
	object := func(name string) string {
		return "apiVersion: " + group + "/v1\nkind: Kustomization\nmetadata: {name: " + name + "}\n"
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.yaml":             object("a"),
		"list.yaml":          "- source: {kind: Namespace}\n  targets: [{select: {group: " + group + "}}]\n",
		"several.yaml":       "# nothing\n---\n" + object("b") + "---\n- " + group + "\n---\njust a text of " + group + "\n---\n" + object("c"),
		"broken.yaml":        object("d") + "---\napiVersion: " + group + "/v1\nkind: Kustomization\nmetadata:\n  name: e\n bad: [\n",
		"notes.yaml":         "about: " + group + "\n bad: [\n",
		"chart/ks.yaml":      "apiVersion: " + group + "/v1\n{{ if .Values.x }}\nkind: [\n{{ end }}\n",
		"other.yaml":         "apiVersion: v1\nkind: ConfigMap\n",
		".hidden/a.yaml":     object("hidden"),
		"not-a-manifest.txt": object("text"),
	})
	r, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	found, problems, err := r.Look(t.Context(), []string{group})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range found {
		names = append(names, m.File+" "+m.Object.GetName())
	}
	if diff := cmp.Diff([]string{"a.yaml a", "broken.yaml d", "several.yaml b", "several.yaml c"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(problems) != 1 || !strings.HasPrefix(problems[0], "broken.yaml:") || !strings.Contains(problems[0], "cannot be read as YAML") {
		t.Errorf("problems are %q", problems)
	}
	if _, _, err := r.Look(t.Context(), []string{group}, "gone"); err == nil || !strings.Contains(err.Error(), "has no gone") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
