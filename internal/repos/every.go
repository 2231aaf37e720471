// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
)

// maxMistakes is how many mistakes of one directory are collected.
const maxMistakes = 10_000

// ParseAll returns what ParseAs returns, with every mistake instead of the first:
// what is broken is left out of the directory. Where a kustomization makes the
// objects there is one mistake at most, since kustomize stops at its first. The
// error is for what the author cannot mend.
func (s *Session) ParseAll(ctx context.Context, files fs.FS, name string, how builds.Build) (*directories.Directory, []*directories.ContentError, error) {
	var mistakes []*directories.ContentError
	keep := func(file string, err error) error {
		var mistake *directories.ContentError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &mistake):
			mistake = invalid(file, 0, "", "%s", reasonOf(err))
		}
		if errors.As(err, new(*tooMany)) {
			return err
		}
		if mistakes = append(mistakes, mistake); len(mistakes) >= maxMistakes {
			return mistake
		}
		return nil
	}
	directory, err := parse(ctx, files, name, how, keep, s.programs)
	var last *directories.ContentError
	if errors.As(err, &last) {
		if !slices.Contains(mistakes, last) {
			mistakes = append(mistakes, last)
		}
		return &directories.Directory{Digest: EmptyDigest}, mistakes, nil
	}
	return directory, mistakes, err
}

// reasonOf says why a file cannot be read, without its name.
func reasonOf(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return "cannot be read: " + err.Error()
}

// Document is an object as a file has it, whoever it is for.
type Document struct {
	// File and Line, counted from 1, at which the object begins.
	File string
	Line int
	// Value is what the object says.
	Value map[string]any
	// Kustomization tells a file for kustomize.
	Kustomization bool

	node   *kyaml.Node
	before int
}

// Documents returns the objects of a file, those of lists one by one, and every
// mistake in it, one for each document at most. What has no version and kind, or is
// encrypted, is left out, and so is what a cluster would have to say.
func Documents(file string, data []byte) ([]Document, []*directories.ContentError) {
	parts, err := splitDocuments(file, data)
	if err != nil {
		return nil, mistakesOf(err)
	}
	var found []Document
	var mistakes []*directories.ContentError
	for _, part := range parts {
		if err := part.parse(); err != nil {
			mistakes = append(mistakes, mistakesOf(err)...)
			continue
		}
		if part.root == nil || part.root.Kind != kyaml.MappingNode || isEncrypted(part.root) {
			continue
		}
		kustomization := isKustomization(part)
		if !kustomization && (field(part.root, "apiVersion") == nil || field(part.root, "kind") == nil) {
			continue
		}
		value, err := part.value()
		if err != nil {
			mistakes = append(mistakes, mistakesOf(err)...)
			continue
		}
		whole := Document{File: file, Line: part.line(part.root), Value: value, Kustomization: kustomization, node: part.root, before: part.first - 1}
		found = whole.expand(found, 0)
	}
	return found, mistakes
}

func mistakesOf(err error) []*directories.ContentError {
	var mistake *directories.ContentError
	if errors.As(err, &mistake) {
		return []*directories.ContentError{mistake}
	}
	return nil
}

// expand adds the document, or those of the list that it is.
func (d Document) expand(found []Document, depth int) []Document {
	items, isList := listItems(d.Value)
	if !isList || depth >= maxLists {
		return append(found, d)
	}
	nodes := field(d.node, "items")
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			continue
		}
		inheritKind(d.Value, object)
		child := d
		child.Value, child.node = object, element(nodes, i)
		if child.node != nil && child.node.Line > 0 {
			child.Line = d.before + child.node.Line
		}
		found = child.expand(found, depth+1)
	}
	return found
}

// Position returns the line and the column, counted from 1, of a field such as
// spec.prereqs.dependsOn[0], metadata.labels[app.kubernetes.io/name] or
// spec.layers[base].objects, by the name of an item of a list; where the document has no such field, those of the deepest one around it. JSON has no
// columns: they are 0.
func (d Document) Position(of string) (line, column int) {
	node, at := d.node, d.node
	for _, step := range steps(of) {
		if node != nil && node.Kind == kyaml.AliasNode {
			node = node.Alias
		}
		if node == nil {
			break
		}
		key, next := below(node, step)
		if next == nil {
			break
		}
		at, node = key, next
	}
	if at == nil || at.Line == 0 {
		return d.Line, 0
	}
	return d.before + at.Line, at.Column
}

// below returns what a step leads to, and where that begins.
func below(node *kyaml.Node, step string) (at, value *kyaml.Node) {
	if node.Kind == kyaml.SequenceNode {
		i, err := strconv.Atoi(step)
		if err != nil {
			i = slices.IndexFunc(node.Content, func(item *kyaml.Node) bool {
				name := field(item, "name")
				return name != nil && name.Value == step
			})
		}
		if i < 0 {
			return nil, nil
		}
		found := element(node, i)
		return found, found
	}
	if node.Kind != kyaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == step {
			at, value = node.Content[i], node.Content[i+1]
		}
	}
	return at, value
}

// steps splits the path of a field. What is in brackets is one step.
func steps(of string) []string {
	var found []string
	for of != "" {
		if rest, ok := strings.CutPrefix(of, "["); ok {
			inside, after, _ := strings.Cut(rest, "]")
			found, of = append(found, strings.Trim(inside, `"'`)), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(of, ".[")
		if end < 0 {
			return append(found, of)
		}
		found, of = append(found, of[:end]), strings.TrimPrefix(of[end:], ".")
	}
	return found
}
