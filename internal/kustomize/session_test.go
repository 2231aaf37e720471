// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func session(t *testing.T) *Session {
	t.Helper()
	s := NewSession()
	t.Cleanup(s.Close)
	return s
}

// patched is a list that a patch adds to, by the schema of its kind.
func patched(schema string) *Request {
	r := request("resources: [a.yaml]\n"+schema+"patches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: a}\n    spec: {template: {spec: {containers: [{name: two, image: b}]}}}\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: one, image: a}]}}}\n")
	// By this schema a patch replaces the list.
	r.Files["base/schema.json"] = []byte(`{"definitions": {"io.k8s.api.apps.v1.Deployment": {"properties": {"spec": {"type": "object"}}, "type": "object",
		"x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}]}}}`)
	return r
}

// A session answers what a process for each build answers, whatever was built before.
func TestSession(t *testing.T) {
	s := session(t)
	several := []struct {
		name    string
		request *Request
	}{
		{"releases", releases(3)},
		{"a patch", patched("")},
		{"a schema that a directory brings", patched("openapi: {path: schema.json}\n")},
		{"a patch after it", patched("")},
		{"a schema whose name is not written out", patched(`"\x6fpenapi": {path: schema.json}` + "\n")},
		{"a patch after that", patched("")},
		{"a refusal", request("resources: [b.yaml]\n", "")},
		{"releases after it", releases(2)},
		{"too much memory", request("resources: [a.yaml]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: ["+strings.Repeat("1,", 1_200_000)+"]\n")},
		{"releases after that", releases(1)},
	}
	var lists []string
	for _, test := range several {
		t.Run(test.name, func(t *testing.T) {
			want, wrong := Build(t.Context(), test.request)
			got, err := s.Build(t.Context(), test.request)
			if fmt.Sprintf("%T %v", wrong, wrong) != fmt.Sprintf("%T %v", err, err) {
				t.Fatalf("%T %v, want %T %v", err, err, wrong, wrong)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if len(got) > 0 && got[0].Kind == "Deployment" {
				lists = append(lists, fmt.Sprint(strings.Count(got[0].Text, "image:")))
			}
		})
	}
	if want := []string{"2", "1", "2", "1", "2"}; !slices.Equal(lists, want) {
		t.Errorf("containers after the patches: %v, want %v", lists, want)
	}
}

func generated(t *testing.T, r *Request) (*Kustomization, error) {
	t.Helper()
	d := NewDirectory()
	defer d.Close()
	return d.Generate(t.Context(), r)
}

// Files that one request of a session is generated from are not seen by the next.
func TestSessionGenerates(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := session(t)
	object := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	for i, files := range []map[string][]byte{{"base/a.yaml": object, "base/b.yaml": object}, {"base/c.yaml": object}} {
		r := &Request{Directory: "base", Files: files, Generate: map[string]any{"targetNamespace": "team"}}
		want, err := generated(t, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(string(got.Text), "team") || strings.Contains(string(got.Text), "c.yaml") != (i == 1) {
			t.Errorf("%s\n%s", got.Text, diff)
		}
	}
	s.Close()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A build that is given up ends, and the session goes on.
func TestSessionIsGivenUp(t *testing.T) {
	s := session(t)
	if _, err := s.Build(t.Context(), releases(1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Build(ctx, doubling(20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := s.Build(t.Context(), releases(1)); err != nil {
		t.Errorf("the next one: %v", err)
	}
	// The system may end a process at any time.
	if err := s.builds.process.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), releases(1)); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}
