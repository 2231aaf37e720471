// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

const kustomizeGroup = "kustomize.config.k8s.io"

// findKustomization returns the kustomization at the top of a directory, or
// nothing. A file of that name that holds something else, such as Flux's own
// Kustomization, is a manifest like others.
func findKustomization(files fs.FS, directory string) (string, error) {
	reader := &reader{files: files}
	for _, base := range kustomizationNames {
		name := path.Join(directory, base)
		data, err := reader.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		documents, err := splitDocuments(name, data)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(documents, func(d *document) bool { return d.parse() == nil && d.root != nil && !isKustomization(d) }) {
			continue
		}
		return name, nil
	}
	return "", nil
}

// isKustomization reports whether a document is for kustomize, which lets its
// files go without version and kind.
func isKustomization(d *document) bool {
	version := field(d.root, "apiVersion")
	kind := field(d.root, "kind")
	if version != nil {
		return strings.HasPrefix(version.Value, kustomizeGroup+"/")
	}
	return kind == nil && slices.Contains(kustomizationNames, path.Base(d.file)) || kind != nil && kind.Value == "Kustomization"
}

// loading are the fields, in small letters since kustomize does not mind, that
// name what kustomize loads.
var loading = map[string]bool{
	"resources": true, "bases": true, "components": true, "crds": true, "configurations": true,
	"generators": true, "transformers": true, "validators": true, "patchesstrategicmerge": true,
	"path": true, "paths": true, "files": true, "file": true, "env": true, "envs": true,
}

// notLoading are the fields whose paths lead into objects, not to files.
var notLoading = map[string]bool{"fieldspecs": true, "fields": true, "fieldpaths": true}

// plugins are the fields whose files may load more, and may hold it inline.
var plugins = map[string]bool{"generators": true, "transformers": true, "validators": true}

// references are what a kustomization, or a file of its plug-ins, loads.
type references struct {
	file    string
	all     []reference
	plugins []reference
}

type reference struct {
	field, value string
	line         int
}

// scan finds every reference in a document, wherever it is.
func (r *references) scan(node *kyaml.Node, name string, depth int) error {
	if depth > maxDepth {
		return nil
	}
	switch node.Kind {
	case kyaml.AliasNode:
		return r.scan(node.Alias, name, depth+1)
	case kyaml.ScalarNode:
		return r.scalar(node, name)
	case kyaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := strings.ToLower(node.Content[i].Value)
			if key == "helmcharts" || key == "helmchartinflationgenerator" {
				return failed(r.file, node.Content[i].Value, "Helm charts in a kustomization are not allowed: write a HelmRelease")
			}
			if notLoading[key] {
				continue
			}
			if err := r.scan(node.Content[i+1], key, depth+1); err != nil {
				return err
			}
		}
		return nil
	default:
		for _, child := range node.Content {
			if err := r.scan(child, name, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
}

func (r *references) scalar(node *kyaml.Node, name string) error {
	if !loading[name] {
		return nil
	}
	inline := strings.Contains(node.Value, "\n") || strings.HasPrefix(strings.TrimSpace(node.Value), "{")
	if inline && (plugins[name] || name == "patchesstrategicmerge") {
		return r.inline(node, name)
	}
	value := node.Value
	// The files of a generator may be key=file.
	if _, after, ok := strings.Cut(value, "="); ok && name == "files" {
		value = after
	}
	found := reference{field: name, value: value, line: node.Line}
	r.all = append(r.all, found)
	if plugins[name] {
		r.plugins = append(r.plugins, found)
	}
	return nil
}

// inlineRemote is what kustomize would clone even though lines follow it.
var inlineRemote = regexp.MustCompile(`(?i)^\s*(git::)*((ssh|https?|file)://|[a-z][a-z0-9-]*@|github\.com[/:])`)

// inline reads a plug-in or a patch that is written out where a file could be
// named.
func (r *references) inline(node *kyaml.Node, name string) error {
	if inlineRemote.MatchString(node.Value) {
		return remote(r.file, name, node.Value)
	}
	if !plugins[name] {
		return nil
	}
	return r.document(&document{file: r.file, first: node.Line, text: []byte(node.Value)})
}

func (r *references) document(d *document) error {
	documents, err := splitDocuments(d.file, d.text)
	if err != nil {
		return err
	}
	for _, part := range documents {
		part.first += max(d.first-1, 0)
		if err := part.parse(); err != nil {
			return err
		}
		if part.root == nil {
			continue
		}
		if err := r.scan(part.root, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// check refuses what is not a file or a directory of the artifact.
func (r *references) check() error {
	for _, found := range r.all {
		switch {
		case isRemote(found.value):
			return remote(r.file, found.field, found.value)
		case path.IsAbs(found.value) || strings.HasPrefix(path.Join(path.Dir(r.file), found.value)+"/", "../"):
			return &layers.ContentError{
				Reason: v1alpha1.ReasonPathOutside, File: r.file, Field: found.field,
				Message: fmt.Sprintf("%s is outside of the artifact: only files and directories below the root of the source are allowed", short(found.value)),
			}
		}
	}
	return nil
}

// isRemote reports whether kustomize could fetch something over the network: a
// URL of any scheme, a name as git and ssh have them, or a repository of
// GitHub, which kustomize knows without a scheme.
func isRemote(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	host, _, _ := strings.Cut(value, "/")
	return strings.Contains(host, ":") || strings.Contains(value, "://") || strings.Contains(host, "@") && host != value ||
		host == "github.com" && host != value
}

func remote(file, field, value string) *layers.ContentError {
	value, _, _ = strings.Cut(value, "\n")
	return failed(file, field, "%s is not in the artifact: remote bases are not allowed, so copy it into the source or add a source of its own", short(value))
}

func failed(file, field, format string, args ...any) *layers.ContentError {
	return &layers.ContentError{
		Reason: v1alpha1.ReasonKustomizeFailed, File: file, Field: field, Message: fmt.Sprintf(format, args...),
	}
}
