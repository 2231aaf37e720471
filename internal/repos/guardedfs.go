// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

// mount is where kustomize sees the artifact. What is not below it does not
// exist, so that a name that climbs over the top is not bent back inside.
const mount = "/strata-artifact-root"

var errReadOnly = errors.New("an artifact cannot be written to")

// guardedFS shows an artifact to kustomize. Every file that says what is
// loaded next is checked here, before kustomize knows what it says: this is
// what keeps kustomize from the network. The first violation is remembered,
// since kustomize wraps it, or goes on to try something else.
type guardedFS struct {
	ctx       context.Context //nolint:containedctx // the interface of kustomize has none
	reader    reader
	plugins   map[string]bool // files that say what else is loaded
	violation error
}

var _ filesys.FileSystem = &guardedFS{}

// inside returns the name below the artifact.
func (g *guardedFS) inside(name string) (string, error) {
	if err := g.ctx.Err(); err != nil {
		return "", err
	}
	if g.violation != nil {
		return "", g.violation
	}
	clean := path.Clean(name)
	if clean == mount {
		return ".", nil
	}
	below, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		return "", &fs.PathError{Op: "open", Path: name, Err: errOutside}
	}
	return below, nil
}

var errOutside = errors.New("is outside of the artifact")

// ReadFile returns a file's content unless what it loads is refused.
func (g *guardedFS) ReadFile(name string) ([]byte, error) {
	below, err := g.inside(name)
	if err != nil {
		return nil, err
	}
	if info, err := fs.Stat(g.reader.files, below); err != nil || info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	data, err := g.reader.read(below)
	if err == nil {
		err = g.inspect(below, data)
	}
	var mistake *layers.ContentError
	if errors.As(err, &mistake) {
		g.violation = mistake
	}
	return data, err
}

// inspect checks a kustomization, a file of a plug-in, and whether a file is
// encrypted.
func (g *guardedFS) inspect(name string, data []byte) error {
	guarded := g.plugins[name] || slices.Contains(kustomizationNames, path.Base(name))
	if !guarded && !bytes.Contains(data, []byte("sops")) {
		return nil
	}
	documents, err := splitDocuments(name, data)
	if !guarded {
		return checkEncryption(documents)
	}
	if err != nil {
		return err
	}
	refs := &references{file: name}
	for _, d := range documents {
		if err := refs.document(d); err != nil {
			return err
		}
	}
	if err := refs.check(); err != nil {
		return err
	}
	return g.addPlugins(refs)
}

func checkEncryption(documents []*document) error {
	for _, d := range documents {
		// What is no YAML may be a file that a generator takes as it is.
		if d.parse() == nil && d.root != nil && isEncrypted(d.root) {
			return encrypted(d.file)
		}
	}
	return nil
}

// addPlugins has the files of plug-ins checked when they are read. They must
// be files: a directory could change, by patches, what they load.
func (g *guardedFS) addPlugins(refs *references) error {
	for _, plugin := range refs.plugins {
		name := path.Join(path.Dir(refs.file), plugin.value)
		if info, err := fs.Stat(g.reader.files, name); err == nil && info.IsDir() {
			return failed(refs.file, plugin.field, "%s is a directory: name the files in it", short(plugin.value))
		}
		g.plugins[name] = true
	}
	return nil
}

// CleanedAbs splits a name into a directory and a file of it.
func (g *guardedFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if !path.IsAbs(name) {
		name = path.Join(mount, name)
	}
	below, err := g.inside(name)
	if err != nil {
		g.outside(name, err)
		return "", "", fmt.Errorf("cannot load %s: %w", name, err)
	}
	info, err := fs.Stat(g.reader.files, below)
	if err != nil {
		return "", "", fmt.Errorf("cannot load %s: %w", name, fs.ErrNotExist)
	}
	clean := path.Clean(name)
	if info.IsDir() {
		return filesys.ConfirmedDir(clean), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
}

// outside remembers that kustomize was led out of the artifact.
func (g *guardedFS) outside(name string, err error) {
	if g.violation == nil && errors.Is(err, errOutside) {
		g.violation = &layers.ContentError{
			Reason:  v1alpha1.ReasonPathOutside,
			Message: fmt.Sprintf("the kustomization leads to %s, outside of the artifact", short(name)),
		}
	}
}

// IsDir reports whether a directory is there.
func (g *guardedFS) IsDir(name string) bool {
	below, err := g.inside(name)
	if err != nil {
		return false
	}
	info, err := fs.Stat(g.reader.files, below)
	return err == nil && info.IsDir()
}

// Exists reports whether a file or directory is there.
func (g *guardedFS) Exists(name string) bool {
	below, err := g.inside(name)
	if err != nil {
		return false
	}
	_, err = fs.Stat(g.reader.files, below)
	return err == nil
}

// ReadDir returns the names in a directory.
func (g *guardedFS) ReadDir(name string) ([]string, error) {
	below, err := g.inside(name)
	if err != nil {
		return nil, err
	}
	items, err := fs.ReadDir(g.reader.files, below)
	names := make([]string, 0, len(items))
	for _, item := range items {
		names = append(names, item.Name())
	}
	return names, err
}

// Glob returns the names that match a pattern.
func (g *guardedFS) Glob(pattern string) ([]string, error) {
	below, err := g.inside(pattern)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(g.reader.files, below)
	for i := range names {
		names[i] = path.Join(mount, names[i])
	}
	return names, err
}

// Walk is not used by a build.
func (g *guardedFS) Walk(string, filepath.WalkFunc) error { return errReadOnly }

// Open is not used by a build.
func (g *guardedFS) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Create is refused.
func (g *guardedFS) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (g *guardedFS) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (g *guardedFS) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (g *guardedFS) RemoveAll(string) error { return errReadOnly }

// WriteFile is refused.
func (g *guardedFS) WriteFile(string, []byte) error { return errReadOnly }
