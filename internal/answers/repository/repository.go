// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repository reads what a team has committed, or is about to commit: a
// folder, or a revision of a git repository. It writes nothing but a temporary
// folder of its own.
package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

const (
	// maxFile is how large a file may be that is looked at for manifests.
	maxFile = 8 << 20
	// maxRevision is how many bytes of a revision are unpacked.
	maxRevision int64 = 256 << 20
)

// Repository is files, and what they are called.
type Repository struct {
	// Files of the repository, from its root. Links do not lead out of it.
	Files fs.FS
	// Name as somebody wrote it, and Revision in the way of Flux, such as
	// main@sha1:COMMIT; a folder has none.
	Name, Revision string

	root *os.Root
	temp string
}

// Close gives back what the repository has taken.
func (r *Repository) Close() error {
	err := r.root.Close()
	if r.temp != "" {
		err = errors.Join(err, os.RemoveAll(r.temp))
	}
	return err
}

// OpenFolder opens a folder as it is.
func OpenFolder(name string) (*Repository, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s", name)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is no folder", name)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Repository{Files: root.FS(), Name: name, Revision: "folder", root: root}, nil
}

// OpenGit opens what a git repository has committed: where a folder is named, that
// of its HEAD, and otherwise that of a branch, a tag or a commit of the repository
// around the folder that is worked in.
func OpenGit(ctx context.Context, name string) (*Repository, error) {
	at, revision := ".", name
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		at, revision = name, "HEAD"
	}
	opened, err := openGit(at)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		if at == "." {
			return nil, fmt.Errorf("%s is no folder, and the folder that you are in is in no git repository: name the folder of a repository, or change into it", name)
		}
		return nil, fmt.Errorf("%s is in no git repository; --from-dir reads it as it is", at)
	}
	return unpacked(ctx, opened, err, at, name, revision)
}

// OpenRevision opens what a branch, a tag or a commit of the git repository around a folder
// has. What is named is never a folder.
func OpenRevision(ctx context.Context, folder, revision string) (*Repository, error) {
	opened, err := openGit(folder)
	return unpacked(ctx, opened, err, folder, revision, revision)
}

// unpacked returns a revision of a repository; err is that of opening it.
func unpacked(ctx context.Context, opened *git.Repository, err error, at, name, revision string) (*Repository, error) {
	if err != nil {
		return nil, fmt.Errorf("cannot open the git repository of %s: %w", at, err)
	}
	hash, err := opened.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return nil, fmt.Errorf("the git repository has no %s (%w): name a branch, a tag or a commit of it, or a folder", revision, err)
	}
	commit, err := opened.CommitObject(*hash)
	if err != nil {
		return nil, fmt.Errorf("cannot read the commit %s: %w", hash, err)
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, fmt.Errorf("cannot read the commit %s: %w", hash, err)
	}
	branch := revision
	if head, err := opened.Head(); err == nil && revision == "HEAD" && head.Name().IsBranch() {
		branch = head.Name().Short()
	}
	return unpack(ctx, tree, name, branch+"@sha1:"+hash.String())
}

// unpack writes a tree into a temporary folder.
func unpack(ctx context.Context, tree *object.Tree, name, revision string) (*Repository, error) {
	temp, err := os.MkdirTemp("", "kubectl-strata-")
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %s: %w", name, err)
	}
	root, err := os.OpenRoot(temp)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot unpack %s: %w", name, err), os.RemoveAll(temp))
	}
	r := &Repository{Files: root.FS(), Name: name, Revision: revision, root: root, temp: temp}
	left := maxRevision
	err = tree.Files().ForEach(func(file *object.File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if left -= file.Size; left < 0 {
			return fmt.Errorf("it has more than %d MiB", maxRevision>>20)
		}
		return unpackFile(root, file)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot unpack %s: %w", name, err), r.Close())
	}
	return r, nil
}

func unpackFile(root *os.Root, file *object.File) error {
	if err := root.MkdirAll(path.Dir(file.Name), 0o700); err != nil {
		return err
	}
	from, err := file.Reader()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if file.Mode == filemode.Symlink {
		target, err := io.ReadAll(io.LimitReader(from, 4096))
		if err != nil {
			return err
		}
		return root.Symlink(string(target), file.Name)
	}
	to, err := root.OpenFile(file.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// Manifest is an object in a file.
type Manifest struct {
	File   string
	Object *unstructured.Unstructured
	// Text of its document.
	Text []byte
}

// Manifests returns the objects of Strata's own kinds in the files below some
// paths, in the order of their files; without paths, in all of them. Hidden
// folders, and templates of charts, are left out.
func (r *Repository) Manifests(ctx context.Context, paths ...string) ([]Manifest, error) {
	return r.ManifestsOf(ctx, v1alpha1.GroupVersion.Group, paths...)
}

// ManifestsOf is Manifests for the kinds of an API group.
func (r *Repository) ManifestsOf(ctx context.Context, group string, paths ...string) ([]Manifest, error) {
	var found []Manifest
	err := r.walk(ctx, paths, func(name string) error {
		manifests, err := r.manifestsOf(name, group)
		found = append(found, manifests...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// walk goes through the files below some paths that may hold manifests, each once, in the order
// of their names; without paths, through all files.
func (r *Repository) walk(ctx context.Context, paths []string, do func(name string) error) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	seen := map[string]bool{}
	for _, below := range paths {
		below = path.Clean(filepath.ToSlash(below))
		err := fs.WalkDir(r.Files, below, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case ctx.Err() != nil:
				return ctx.Err()
			case name != "." && strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
				return fs.SkipDir
			case entry.IsDir() || seen[name] || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
				return nil
			}
			seen[name] = true
			return do(name)
		})
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has no %s", r.Name, below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSmall reads a file that may hold manifests; others, and links that lead nowhere, hold
// nothing.
func (r *Repository) readSmall(name string) ([]byte, error) {
	info, err := fs.Stat(r.Files, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, nil //nolint:nilerr // as above
	}
	return fs.ReadFile(r.Files, name)
}

func (r *Repository) manifestsOf(name, group string) ([]Manifest, error) {
	data, err := r.readSmall(name)
	if err != nil || !bytes.Contains(data, []byte(group)) {
		return nil, err
	}
	var found []Manifest
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		manifest := Manifest{File: name, Object: &unstructured.Unstructured{}, Text: text}
		if err == nil {
			err = yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&manifest.Object.Object)
		}
		switch {
		case errors.Is(err, io.EOF): // a document without anything
		case err != nil && bytes.Contains(data, []byte("{{")):
			return nil, nil // the template of a chart
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case manifest.Object.GroupVersionKind().Group == group:
			found = append(found, manifest)
		}
	}
}
