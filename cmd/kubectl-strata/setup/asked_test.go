// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
)

// asking returns an installation at whose terminal somebody gives answers, and what is
// written there. No answers stand for no terminal.
func asking(answers string) (*installation, *bytes.Buffer) {
	said := &bytes.Buffer{}
	c := &console.Console{Out: said, ErrOut: said}
	if answers != "" {
		c.Answers = strings.NewReader(answers)
	}
	return &installation{setup: &setup{Console: c}, namespace: "strata-system"}, said
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{
		"y\n": nil, "Yes\n": nil, "n\n": console.ErrNotWanted, "\n": console.ErrNotWanted, "yep\n": console.ErrNotWanted, "y": nil,
	} {
		i, said := asking(answer)
		if err := i.Confirm("Go on?", false); !errors.Is(err, want) || !strings.Contains(said.String(), "Go on? [y/N]") {
			t.Errorf("%q: %v: %s", answer, err, said)
		}
	}
	i, _ := asking("")
	if err := i.Confirm("Go on?", true); err != nil {
		t.Error(err)
	}
	if err := i.Confirm("Go on?", false); err == nil || !strings.Contains(err.Error(), "give --yes") {
		t.Error(err)
	}
	if i, _ = asking(strings.Repeat("y", 5000)); i.Confirm("Go on?", true) == nil {
		t.Error("an answer without end is taken")
	}
}

// A plug-in that was built by hand knows no image: it asks for one, and where nobody is
// there it ends before it installs one that nobody has pushed.
func TestTheImageIsAskedFor(t *testing.T) {
	loaded, err := Build{}.chart()
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct {
		answers string
		given   map[string]any
		want    map[string]any
		problem string
	}{
		"nobody there": {problem: "give --set image.repository=HOST/PATH"},
		"no answer":    {answers: "\n", problem: "nothing was done"},
		"no image":     {answers: "my image\n", problem: `"my image" is no image`},
		"a tag":        {answers: "registry.example:5000/strata:1.0\n", want: map[string]any{"repository": "registry.example:5000/strata", "tag": "1.0", "digest": ""}},
		"a digest":     {answers: "registry.example/strata@" + digest + "\n", want: map[string]any{"repository": "registry.example/strata", "tag": "", "digest": digest}},
		"a value":      {given: map[string]any{"image": map[string]any{"repository": "mirror/strata"}}, want: map[string]any{"repository": "mirror/strata"}},
	} {
		i, said := asking(c.answers)
		got, err := i.withImage(loaded, c.given)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v: %s", name, err, said)
			}
			continue
		}
		image, _ := got["image"].(map[string]any)
		if err != nil || len(image) != len(c.want) {
			t.Errorf("%s: %v: %v", name, err, got)
		}
		for key, want := range c.want {
			if image[key] != want {
				t.Errorf("%s: %s is %v, want %v", name, key, image[key], want)
			}
		}
	}
}

// What is applied as Flux comes from a file or by https, is bounded, and is Flux.
func TestFluxIsAskedFor(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct{ answers, want string }{
		"no answer":     {"\n", ""},
		"no such file":  {"nothing.yaml\n", "cannot read Flux's manifests"},
		"not encrypted": {"http://flux.example.invalid/install.yaml\n", "is no https address"},
	} {
		i, said := asking(c.answers)
		found, err := i.lackingFlux(ctx, checks.Facts{})
		if len(found) > 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if !strings.Contains(said.String(), "as flux install --export prints them") {
			t.Errorf("%s: it is not asked for: %s", name, said)
		}
	}
	i, _ := asking("")
	for name, content := range map[string]string{"broken": "a: [", "something else": "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n"} {
		i.flux = filepath.Join(t.TempDir(), "flux.yaml")
		if err := os.WriteFile(i.flux, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := i.lackingFlux(ctx, checks.Facts{}); err == nil || len(found) > 0 {
			t.Errorf("%s is taken for Flux", name)
		}
	}
}

func TestManifestsFromAddresses(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://flux.example.invalid/", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/endless":
			for w != nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/install.yaml":
			_, _ = w.Write([]byte("kind: Namespace"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	client := server.Client()
	for path, want := range map[string]string{
		"/away": "not https", "/round": "on and on", "/endless": "is larger than 16 MiB", "/none": "404", "/install.yaml": "",
	} {
		text, err := manifestsBy(context.Background(), client, server.URL+path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %d bytes", path, err, len(text))
		}
	}
}
