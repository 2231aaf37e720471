// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
)

const (
	// maxFile is how large a file may be.
	maxFile = 8 << 20
	// maxFiles bounds how many files are looked at.
	maxFiles = 200_000
)

// list finds the manifests below the folders. What is hidden, and charts, whose
// templates are no YAML, are left out.
func (l *linter) list() error {
	for _, below := range l.Below {
		err := fs.WalkDir(l.Files, below, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case l.ctx.Err() != nil:
				return l.ctx.Err()
			case err != nil && name == below:
				return err
			case err != nil:
				l.add(ruleUnreadable, place{file: name}, "", "", "cannot be read: %s", cause(err))
				return nil
			case name != below && strings.HasPrefix(entry.Name(), "."):
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case entry.IsDir():
				return l.enter(name)
			}
			return l.listFile(name, entry)
		})
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", below, err)
		}
	}
	slices.Sort(l.names)
	l.names = slices.Compact(l.names)
	return nil
}

// enter skips the folders of charts.
func (l *linter) enter(name string) error {
	if info, err := fs.Stat(l.Files, path.Join(name, "Chart.yaml")); err == nil && info.Mode().IsRegular() {
		return fs.SkipDir
	}
	return nil
}

func (l *linter) listFile(name string, entry fs.DirEntry) error {
	wanted := isManifest(name) || entry.Name() == "Kustomization"
	info, err := fs.Stat(l.Files, name)
	switch {
	case entry.Type()&fs.ModeSymlink != 0 && err != nil:
		level := Warning
		if wanted {
			level = Error
		}
		l.addAs(level, ruleUnreadable, place{file: name}, "", "", "is a link that leads out of the repository, or nowhere: it is not followed")
		return nil
	case !wanted || err == nil && info.IsDir():
		return nil
	case entry.Type()&fs.ModeSymlink != 0:
		l.addAs(
			Warning,
			ruleUnreadable,
			place{file: name},
			"",
			"",
			"is a symbolic link: source-controller leaves those out of artifacts, and nothing of it is deployed from here",
		)
		return nil
	case err != nil:
		l.add(ruleUnreadable, place{file: name}, "", "", "cannot be read: %s", cause(err))
		return nil
	case !info.Mode().IsRegular():
		l.add(ruleUnreadable, place{file: name}, "", "", "is no regular file: it is not read")
		return nil
	case info.Size() > maxFile:
		l.add(ruleUnreadable, place{file: name}, "", "", "is larger than %d MiB: split it", maxFile>>20)
		return nil
	case len(l.names) >= maxFiles:
		return fmt.Errorf("there are more than %d manifests: name folders with fewer", maxFiles)
	}
	l.names = append(l.names, name)
	return nil
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// readFiles reads kustomizations first: they say which files stand for themselves.
func (l *linter) readFiles() error {
	for _, name := range l.names {
		if !slices.Contains(kustomizationNames, path.Base(name)) {
			continue
		}
		data, ok := l.read(name)
		if !ok {
			continue
		}
		documents, _ := repos.Documents(name, data)
		for _, document := range documents {
			if document.Kustomization {
				l.kustomizations[path.Dir(name)] = newKustomization(l.Files, name, document)
			}
		}
	}
	loaded := map[string]bool{}
	for _, each := range l.kustomizations {
		for _, file := range each.files {
			loaded[file] = true
		}
	}
	for _, name := range l.names {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if data, ok := l.read(name); ok {
			l.files++
			l.readFile(name, data, loaded[name])
		}
	}
	return nil
}

// read returns the text of a file; ok is false where it is none.
func (l *linter) read(name string) (data []byte, ok bool) {
	file, err := l.Files.Open(name)
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(file, maxFile+1))
		_ = file.Close()
	}
	switch {
	case err != nil:
		l.add(ruleUnreadable, place{file: name}, "", "", "cannot be read: %s", cause(err))
		return nil, false
	case len(data) > maxFile:
		l.add(ruleUnreadable, place{file: name}, "", "", "is larger than %d MiB: split it", maxFile>>20)
		return nil, false
	}
	return data, bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0
}

// readFile checks what a file says by itself. Of what a kustomization loads it
// remembers only where it is: it may be incomplete.
func (l *linter) readFile(name string, data []byte, loaded bool) {
	documents, mistakes := repos.Documents(name, data)
	template := bytes.Contains(data, []byte("{{"))
	for _, mistake := range mistakes {
		// JSON of other tools has comments, and templates are filled in by others.
		// In the directory of a layer either is found all the same.
		if !template && (path.Ext(name) != ".json" || bytes.Contains(data, []byte(`"apiVersion"`))) {
			before := len(l.findings)
			l.addMistake(Error, mistake, name, "")
			for i := before; i < len(l.findings); i++ {
				l.raws[i] = name
			}
		}
	}
	for _, document := range documents {
		if document.Kustomization {
			continue
		}
		found := object{place{name, document.Line}, &unstructured.Unstructured{Object: document.Value}}
		l.noteNamespace(found)
		key := found.GetKind() + "/" + nameOf(found.Unstructured)
		if loaded {
			if _, known := l.raw[key]; !known {
				l.raw[key] = found.place
			}
			continue
		}
		l.plain[key] = append(l.plain[key], found.place)
		l.take(found)
	}
}

// take checks an object by itself, and keeps it for what refers to it.
func (l *linter) take(found object) {
	gvk := found.GroupVersionKind()
	switch {
	case gvk.Group == v1alpha1.GroupVersion.Group:
		l.addAll(found.place, "", asMistakes(l.schemas.Check(l.ctx, found.Unstructured)))
	case gvk.GroupKind() == kinds.HelmReleaseKind:
		l.releases[found.place] = true
		// Earlier versions are converted in the directories of layers.
		if gvk.Version == "v2" {
			l.addAll(found.place, "", checkRelease(found.Unstructured))
		}
	case gvk.Group == "helm.fluxcd.io":
		l.add(ruleRelease, found.place, "apiVersion", "",
			"is of the Helm Operator, which Flux has replaced: nothing installs it; write it as HelmRelease of helm.toolkit.fluxcd.io/v2")
		return
	case gvk.GroupKind() == kinds.DefinitionKind:
		l.setAside(found)
	case gvk.Group != sources.Group:
		if gvk.Group == "" && (gvk.Kind == "ConfigMap" || gvk.Kind == "Secret") {
			l.giving = append(l.giving, found.Unstructured)
		}
		l.setAside(found)
		return
	}
	if nameOf(found.Unstructured) != "" {
		l.objects = append(l.objects, found)
	}
}

// nameOf returns the name of an object that may be anything.
func nameOf(of *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(of.Object, "metadata", "name")
	return name
}

func (l *linter) addAll(at place, layer string, mistakes []mistake) {
	for _, found := range mistakes {
		l.add(found.rule, at, found.field, layer, "%s", found.message)
	}
}
