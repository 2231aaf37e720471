// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Branch is the branch of the repositories of a GitServer.
const Branch = "main"

// GitServer serves Git repositories over smart HTTP, by Git's own backend.
type GitServer struct {
	*server
	dir string
}

// NewGitServer starts a Git server without repositories.
func NewGitServer() (*GitServer, error) {
	execPath, err := git("", "--exec-path")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "strata-git-")
	if err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path: filepath.Join(execPath, "git-http-backend"),
		Root: "/",
		Env: append(gitEnv(),
			"GIT_PROJECT_ROOT="+filepath.Join(dir, "served"),
			"GIT_HTTP_EXPORT_ALL=1",
		),
	}
	s, err := newServer(cancelled(backend))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &GitServer{server: s, dir: dir}, nil
}

// Close stops the server and removes all repositories.
func (s *GitServer) Close() error { return s.close(s.dir) }

// cancelled answers no request whose client has gone.
func cancelled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() == nil {
			next.ServeHTTP(w, r)
		}
	})
}

// NewRepo creates an empty repository, served as <URL>/<name>.git.
func (s *GitServer) NewRepo(name string) (*Repo, error) {
	r := &Repo{
		url:  s.URL() + "/" + name + ".git",
		bare: filepath.Join(s.dir, "served", name+".git"),
		work: filepath.Join(s.dir, "work", name),
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=" + Branch, r.bare},
		{"init", "--quiet", "--initial-branch=" + Branch, r.work},
		{"-C", r.work, "remote", "add", "origin", r.bare},
	} {
		if _, err := git("", args...); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Repo is a repository of a GitServer. Its commits are made beside the server
// and also arrive while the server is stopped.
type Repo struct {
	url  string
	bare string
	work string
	mu   sync.Mutex
}

// URL returns the address to clone from.
func (r *Repo) URL() string { return r.url }

// AllowPush lets everybody who reaches the server push. What Edit commits
// afterwards does not know of such pushes and replaces them.
func (r *Repo) AllowPush() error {
	_, err := git("", "-C", r.bare, "config", "http.receivepack", "true")
	return err
}

// Commit writes files, by their slash-separated paths, leaves the others as
// they are, and returns the new commit's SHA.
func (r *Repo) Commit(message string, files map[string]string) (string, error) {
	return r.Edit(message, func(dir string) error { return writeFiles(dir, files) })
}

// Remove deletes files and folders and returns the new commit's SHA.
func (r *Repo) Remove(message string, paths ...string) (string, error) {
	return r.Edit(message, func(dir string) error {
		for _, path := range paths {
			if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
				return err
			}
		}
		return nil
	})
}

// Replace makes the tree of the repository that of a file system, such as
// os.DirFS(dir), and returns the new commit's SHA.
func (r *Repo) Replace(message string, tree fs.FS) (string, error) {
	return r.Edit(message, func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Name() == ".git" {
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
		return os.CopyFS(dir, tree)
	})
}

// Edit lets a function change the working tree, commits and pushes the result
// and returns the commit's SHA. An edit that changes nothing is a commit too.
func (r *Repo) Edit(message string, edit func(dir string) error) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := edit(r.work); err != nil {
		return "", fmt.Errorf("cannot edit %s: %w", r.url, err)
	}
	for _, args := range [][]string{
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--allow-empty", "--message=" + message},
		{"push", "--quiet", "--force", "origin", "HEAD:refs/heads/" + Branch},
	} {
		if _, err := git(r.work, args...); err != nil {
			return "", err
		}
	}
	return git(r.work, "rev-parse", "HEAD")
}

// Sign replaces the last commit by the same one with a signature, which the
// function makes of the commit's text. It returns the new SHA.
func (r *Repo) Sign(sign func(commit string) (string, error)) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := git(r.work, "cat-file", "commit", "HEAD")
	if err != nil {
		return "", err
	}
	text += "\n" // which git's message ends with
	signature, err := sign(text)
	if err != nil {
		return "", fmt.Errorf("cannot sign a commit of %s: %w", r.url, err)
	}
	headers, message, _ := strings.Cut(text, "\n\n")
	headers += "\ngpgsig " + strings.ReplaceAll(strings.TrimSpace(signature), "\n", "\n ")
	signed := filepath.Join(r.work, ".git", "signed-commit")
	if err := os.WriteFile(signed, []byte(headers+"\n\n"+message), 0o600); err != nil {
		return "", err
	}
	sha, err := git(r.work, "hash-object", "-t", "commit", "-w", signed)
	if err != nil {
		return "", err
	}
	if _, err := git(r.work, "reset", "--quiet", "--soft", sha); err != nil {
		return "", err
	}
	_, err = git(r.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+Branch)
	return sha, err
}

// Tag gives the last commit a lightweight tag.
func (r *Repo) Tag(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := git(r.work, "push", "--quiet", "origin", "HEAD:refs/tags/"+name)
	return err
}

// writeFiles writes files below dir by their slash-separated paths.
func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		if !fs.ValidPath(name) {
			return fmt.Errorf("path %q is not inside the repository", name)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// git runs the git program and returns its output without the last newline.
func git(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(gitEnv(), "PATH="+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// gitEnv keeps the developer's own Git configuration out.
func gitEnv() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Strata Tests",
		"GIT_AUTHOR_EMAIL=tests@strata.invalid",
		"GIT_COMMITTER_NAME=Strata Tests",
		"GIT_COMMITTER_EMAIL=tests@strata.invalid",
	}
}
