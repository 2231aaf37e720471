// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// hostileText speaks to terminals, and looks like HTML and Markdown.
const hostileText = " \x1b[2J\x1b]0;title\a\rforged\b\u009b31m\u202e<script>alert(1)</script>|`$(id)` ![x](http://evil.example)"

// spoilt puts the hostile text into every text of a status, and into annotations.
func spoilt(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, object := range objects {
		for _, field := range []string{"status", "message", "reason", "note"} {
			if value, has := object.Object[field]; has {
				object.Object[field] = spoiltValue(field, value)
			}
		}
		if metadata, is := object.Object["metadata"].(map[string]any); is && metadata["annotations"] != nil {
			metadata["annotations"] = spoiltValue("message", metadata["annotations"])
		}
	}
	return objects
}

// spoiltFields hold texts of any kind.
var spoiltFields = regexp.MustCompile(`(?i)message|revision|version|chart|name|cluster|url|digest|reason`)

func spoiltValue(field string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			within := key
			if field == "message" {
				within = field
			}
			value[key] = spoiltValue(within, each)
		}
	case []any:
		for i, each := range value {
			value[i] = spoiltValue(field, each)
		}
	case string:
		if spoiltFields.MatchString(field) {
			return value + hostileText
		}
	}
	return value
}

// dangerous is what no output may hold beside what the plug-in paints itself.
var dangerous = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

var ownColours = regexp.MustCompile(`\x1b\[(0|1|2|22|31|32|33|36)(;(0|22))?m`)

// Texts on the cluster are of many authors, and every command shows some of them.
func TestNoCommandSpeaksToTheTerminalForOthers(t *testing.T) {
	for _, file := range []string{"see.yaml", "graph.yaml", "fleet.yaml", "clusters.yaml", "departing.yaml", "check.yaml"} {
		server := apitest.New(t, spoilt(apitest.Load(t, filepath.Join("testdata", file)))...)
		var names []string
		for _, object := range apitest.Load(t, filepath.Join("testdata", file)) {
			if object.GetKind() == "AddonsLayer" {
				names = append(names, object.GetName())
			}
		}
		commands := []string{
			"get", "get -o wide", "get -o json", "get -o yaml", "get -o name", "clusters", "clusters -o wide", "clusters -o json", "check", "check -o json", "graph", "graph -o dot", "graph -o mermaid", "graph -o svg",
			"why", "tree", "tree --objects", "events", "events -o json", "app", "bundle", "platform", "owner deployment/x", "diff", "plan --no-charts", "version",
		}
		for _, name := range names {
			commands = append(commands, "why "+name, "tree "+name+" --objects", "events "+name, "history "+name, "history "+name+" -o yaml", "rollback "+name+" --to 1 --plan", "rollback "+name+" --to 99", "deprovision "+name, "__complete why "+name[:1], "__complete get "+name[:1])
		}
		for _, args := range commands {
			for _, screen := range []terminal.Screen{{}, {Width: 40, Colour: true}} {
				_, out, errOut := commandLine(t, server, screen, args)
				if found := dangerous.FindString(ownColours.ReplaceAllString(out+errOut, "")); found != "" {
					t.Errorf("%s: %s prints %q:\n%q", file, args, found, out+errOut)
				}
				if strings.Contains(args, "svg") && strings.Contains(out, "<script") {
					t.Errorf("%s: %s has a script in it", file, args)
				}
			}
		}
	}
}

// A folder has texts of its author in it, and so have its files' names.
func TestNoFolderSpeaksToTheTerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "base"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"layers.yaml":              "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base, annotations: {kraan.io/hold: \"a\\e[2J\\x9b31m\\u202e\"}}\nspec: {version: 1.0.0, \"a\\e[2J\": b, source: {name: addons, path: ./base}}\n",
		"base/a\x1b[2J\u009b.yaml": "apiVersion: v1\nkind: \"Config\\e[2JMap\"\nmetadata: {name: \"a\\e[2J\\r\\b\"}\ndata: [\"\\e]0;x\\a\"]\n",
		"base/b.yaml":              "kind: [\x1b[2J\n",
		"base/c.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"\\u202e\\x9b\", namespace: \"x\\e[2J\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, args := range []string{
		"lint .", "lint . -o json", "lint . -o sarif", "lint . -o junit", "lint . --k8s 1.34", "plan --offline --from-dir .", "plan --offline --from-dir . -o markdown", "plan --offline --from-dir . -o json",
		"lint \x1b[2J", "plan --offline --from-git \x1b[2J", "get \x1b[2J --server http://127.0.0.1:1",
	} {
		_, out, errOut := commandLine(t, nil, terminal.Screen{}, args)
		if found := dangerous.FindString(out + errOut); found != "" {
			t.Errorf("%q prints %q:\n%q", args, found, out+errOut)
		}
	}
}
