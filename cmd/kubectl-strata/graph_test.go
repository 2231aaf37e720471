// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

func TestGraphIsGolden(t *testing.T) {
	objects := apitest.Load(t, "testdata/graph.yaml")
	for range 2 {
		server := apitest.New(t, objects...)
		for name, args := range map[string]string{
			"graph.dot": "graph", "graph.mermaid": "graph -o mermaid", "graph.svg": "graph -o svg", "graph.json": "graph -o json", "graph-base.mermaid": "graph base -o mermaid",
		} {
			code, out, errOut := commandLine(t, server, terminal.Screen{}, args)
			if code != exitFine || errOut != "" {
				t.Errorf("%s: exit code %d: %s", args, code, errOut)
			}
			golden(t, name, out)
		}
		slices.Reverse(objects)
	}
}

func TestGraphWithoutLayers(t *testing.T) {
	server := apitest.New(t)
	code, out, _ := commandLine(t, server, terminal.Screen{}, "graph -o json")
	if want := "{\n    \"nodes\": [],\n    \"edges\": []\n}\n"; code != exitFine || out != want {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, format := range []string{"dot", "mermaid", "svg"} {
		if code, out, _ := commandLine(t, server, terminal.Screen{}, "graph -o "+format); code != exitFine || out == "" {
			t.Errorf("%s: exit code %d: %q", format, code, out)
		}
	}
}

func TestGraphSuggestsANearName(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/graph.yaml")...)
	code, _, errOut := commandLine(t, server, terminal.Screen{}, "graph bse")
	if code != exitError || !strings.Contains(errOut, "there is no layer bse; did you mean base?") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	code, _, errOut = commandLine(t, server, terminal.Screen{}, "graph -o png")
	if code != exitError || !strings.Contains(errOut, `--output is "png": it must be dot, mermaid, svg or json`) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// What is in a picture is of others' making, and a picture may be on any page.
func TestGraphSVGIsSafe(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/graph.yaml")...)
	_, out, _ := commandLine(t, server, terminal.Screen{}, "graph -o svg")
	allowed := map[string]bool{"svg": true, "title": true, "rect": true, "g": true, "text": true, "path": true}
	decoder := xml.NewDecoder(strings.NewReader(out))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		if !allowed[start.Name.Local] {
			t.Errorf("the picture has an element %s", start.Name.Local)
		}
		for _, attribute := range start.Attr {
			name := attribute.Name.Local
			if strings.HasPrefix(name, "on") || name == "href" || name == "style" || strings.Contains(attribute.Value, "url(") {
				t.Errorf("%s has an attribute %s=%q", start.Name.Local, name, attribute.Value)
			}
		}
	}
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "&lt;script&gt;") {
		t.Errorf("the message is not escaped, or not there:\n%s", out)
	}
}
