// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	repo "helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/yaml"
)

// clone returns what a fresh clone of the repository holds.
func clone(t *testing.T, r *Repo) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	if _, err := git("", "clone", "--quiet", r.URL(), dir); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range []string{"a.txt", "dir/b.txt", "c.txt"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	return files, nil
}

func TestGitServer(t *testing.T) {
	t.Parallel()
	server, err := NewGitServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := server.NewRepo("team/repo")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, step := range []struct {
		reason string
		edit   func() (string, error)
		want   map[string]string
	}{
		{
			reason: "files are added",
			edit: func() (string, error) {
				return r.Commit("Add", map[string]string{"a.txt": "1", "dir/b.txt": "1"})
			},
			want: map[string]string{"a.txt": "1", "dir/b.txt": "1"},
		},
		{
			reason: "a file is replaced, the others stay",
			edit:   func() (string, error) { return r.Commit("Change", map[string]string{"a.txt": "2"}) },
			want:   map[string]string{"a.txt": "2", "dir/b.txt": "1"},
		},
		{
			reason: "a folder is removed",
			edit:   func() (string, error) { return r.Remove("Remove", "dir") },
			want:   map[string]string{"a.txt": "2"},
		},
		{
			reason: "the whole tree is replaced",
			edit: func() (string, error) {
				return r.Replace("Replace", fstest.MapFS{"c.txt": {Data: []byte("3")}})
			},
			want: map[string]string{"c.txt": "3"},
		},
		{
			reason: "a commit without a change is a new revision",
			edit:   func() (string, error) { return r.Commit("Nothing", nil) },
			want:   map[string]string{"c.txt": "3"},
		},
	} {
		sha, err := step.edit()
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if len(sha) != 40 || seen[sha] {
			t.Errorf("%s: revision %q is not new", step.reason, sha)
		}
		seen[sha] = true
		got, err := clone(t, r)
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if !mapsEqual(got, step.want) {
			t.Errorf("%s: got %v, want %v", step.reason, got, step.want)
		}
	}
	if err := r.Tag("v1.0.0"); err != nil {
		t.Error(err)
	}
	if _, err := r.Commit("Outside", map[string]string{"../outside": ""}); err == nil || !strings.Contains(err.Error(), `path "../outside" is not inside the repository`) {
		t.Errorf("a path outside the repository: %v", err)
	}

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := clone(t, r); err == nil || !strings.Contains(err.Error(), "Failed to connect to 127.0.0.1 port") {
		t.Errorf("a stopped server serves: %v", err)
	}
	if _, err := r.Commit("While away", map[string]string{"a.txt": "4"}); err != nil {
		t.Errorf("commit while the server is away: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := clone(t, r)
	if want := map[string]string{"a.txt": "4", "c.txt": "3"}; err != nil || !mapsEqual(got, want) {
		t.Errorf("after the server came back: got %v, %v, want %v", got, err, want)
	}
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, found := b[key]; !found || other != value {
			return false
		}
	}
	return true
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func TestChartServer(t *testing.T) {
	t.Parallel()
	server, err := NewChartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := server.AddBuiltin("podinfo", "5.0.0", "6.0.0"); err != nil {
		t.Fatal(err)
	}
	if err := server.AddFiles(map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: own\nversion: 0.1.0\n",
		"templates/nothing.yaml": "",
	}); err != nil {
		t.Fatal(err)
	}
	if err := server.AddFiles(map[string]string{"Chart.yaml": "name: broken\n"}); err == nil || !strings.Contains(err.Error(), "chart.metadata.version is required") {
		t.Errorf("a chart without a version: %v", err)
	}
	if err := server.Remove("podinfo", "5.0.0"); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, server.URL()+"/index.yaml")
	index := &repo.IndexFile{}
	if err := yaml.UnmarshalStrict(body, index); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"podinfo": "6.0.0", "own": "0.1.0"} {
		versions := index.Entries[name]
		if len(versions) != 1 || versions[0].Version != want {
			t.Errorf("index of chart %s: got %v, want version %s alone", name, versions, want)
			continue
		}
		if status, archive := get(t, server.URL()+"/"+versions[0].URLs[0]); status != http.StatusOK || len(archive) == 0 {
			t.Errorf("archive of chart %s: status %d, %d bytes", name, status, len(archive))
		}
	}
	if status, _ := get(t, server.URL()+"/podinfo-5.0.0.tgz"); status != http.StatusNotFound {
		t.Errorf("withdrawn chart: status %d, want 404", status)
	}
}
