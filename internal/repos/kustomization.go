// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
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

// isRemote reports whether kustomize could fetch something over the network: a
// URL of any scheme, a name as git and ssh have them, or a repository of
// GitHub, which kustomize knows without a scheme.
func isRemote(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	host, _, _ := strings.Cut(value, "/")
	return strings.Contains(host, ":") || strings.Contains(value, "://") || strings.Contains(host, "@") && host != value ||
		host == "github.com" && host != value
}

func remote(file, field, value string) *directories.ContentError {
	value, _, _ = strings.Cut(value, "\n")
	return failed(file, field, "%s is not in the artifact: remote bases are not allowed, so copy it into the source or add a source of its own", named(value))
}

func failed(file, field, format string, args ...any) *directories.ContentError {
	return &directories.ContentError{
		Reason: v1alpha1.ReasonKustomizeFailed, File: file, Field: field, Message: fmt.Sprintf(format, args...),
	}
}

// field returns the value below a mapping that names lead to, or nil.
func field(node *kyaml.Node, names ...string) *kyaml.Node {
	value := node
	for _, name := range names {
		if value != nil && value.Kind == kyaml.AliasNode {
			value = value.Alias
		}
		if value == nil || value.Kind != kyaml.MappingNode {
			return nil
		}
		at := -1
		for i := 0; i+1 < len(value.Content); i += 2 {
			if value.Content[i].Value == name {
				at = i
			}
		}
		if at < 0 {
			return nil
		}
		value = value.Content[at+1]
	}
	if value != nil && value.Kind == kyaml.AliasNode {
		value = value.Alias
	}
	return value
}
