// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/repos"
)

var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization is what a file for kustomize loads.
type kustomization struct {
	name string
	// files and folders of the repository that it loads.
	files, folders []string
	// component tells one that cannot be built by itself.
	component bool
}

// newKustomization finds what a kustomization loads: every text in it that names a
// file or a folder. Generators may write key=file.
func newKustomization(files fs.FS, name string, document repos.Document) *kustomization {
	k := &kustomization{name: name, component: document.Value["kind"] == "Component"}
	var look func(value any)
	look = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				look(value[key])
			}
		case []any:
			for _, item := range value {
				look(item)
			}
		case string:
			if _, file, found := strings.Cut(value, "="); found {
				look(file)
			}
			k.load(files, value)
		}
	}
	look(document.Value)
	return k
}

func (k *kustomization) load(files fs.FS, value string) {
	if value == "" || len(value) > 4096 || strings.ContainsAny(value, "\n\x00") || path.IsAbs(value) {
		return
	}
	at := path.Join(path.Dir(k.name), value)
	if at == "." || !fs.ValidPath(at) || at == path.Dir(k.name) {
		return
	}
	switch info, err := fs.Stat(files, at); {
	case err != nil:
	case info.IsDir():
		k.folders = append(k.folders, at)
	default:
		k.files = append(k.files, at)
	}
}

// buildKustomizations builds those that no other one loads, and takes what they
// make. One that cannot be built is judged when it is known whether a layer has it.
func (l *linter) buildKustomizations() error {
	loaded := map[string]bool{}
	for _, each := range l.kustomizations {
		for _, folder := range each.folders {
			loaded[folder] = true
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(l.kustomizations)) {
		if loaded[folder] || l.kustomizations[folder].component {
			continue
		}
		built, err := l.directory(folder, builds.Build{})
		if err != nil {
			return err
		}
		for _, manifest := range built.content.Manifests {
			// Where there was a file that is no kustomization the objects were read.
			if manifest.Line == 0 {
				l.take(object{l.origin(manifest.File, 0, manifest.Object), manifest.Object})
			}
		}
	}
	return nil
}

// directory is a folder as the controller reads it.
type directory struct {
	content  *directories.Directory
	mistakes []*directories.ContentError
	// plain is true where no kustomization makes its objects.
	plain bool
}

// built is a folder, and the key of the way in which it becomes objects.
type built struct{ folder, way string }

// directory returns the content of a folder in the way that a layer becomes objects. It is
// read once for each way.
func (l *linter) directory(name string, how builds.Build) (*directory, error) {
	clean := path.Clean(name)
	key := built{clean, how.Key()}
	if known := l.directories[key]; known != nil {
		return known, nil
	}
	content, mistakes, err := l.session.ParseAll(l.ctx, l.Artifact, name, how)
	if err != nil {
		if l.ctx.Err() != nil {
			return nil, l.ctx.Err()
		}
		var of *directories.ContentError
		if !errors.As(err, &of) {
			of = &directories.ContentError{File: clean, Message: "cannot be read: " + cause(err)}
		}
		mistakes = append(mistakes, of)
	}
	if content == nil {
		content = &directories.Directory{}
	}
	found := &directory{content, mistakes, how.IsZero() && l.kustomizations[clean] == nil}
	l.directories[key] = found
	return found, nil
}

// covers returns the files that make up a folder: those below it, and those that
// its kustomization loads, directly or not.
func (l *linter) covers(folder string, file func(string)) {
	seen := map[string]bool{}
	for queue := []string{folder}; len(queue) > 0; queue = queue[1:] {
		k := l.kustomizations[queue[0]]
		if seen[queue[0]] || k == nil {
			continue
		}
		seen[queue[0]] = true
		for _, name := range k.files {
			file(name)
		}
		queue = append(queue, k.folders...)
	}
}

// cause says why something cannot be read, without the name of it.
func cause(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
