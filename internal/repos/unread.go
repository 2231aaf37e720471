// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/konfig"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
)

// Mentions returns which of some names a directory may mean that Directory calls a
// mistake. It reads the files of the artifact anew, and keeps none of them. The error is as
// of Directory, but for a mistake in the directory: that is what the search is for.
func (s *Store) Mentions(ctx context.Context, artifact Artifact, name string, how builds.Build, names []string) (directories.Mentions, error) {
	key := searchKey{parsedKey{artifact: artifact.Digest, path: name, build: how.Key()}, strings.Join(names, "\x00")}
	if found, ok := s.searches.get(key); ok {
		return found, nil
	}
	var found directories.Mentions
	if err := s.unread(ctx, artifact, name, how, func(unread directories.Unread) { found = unread.Find(names) }); err != nil {
		return directories.Mentions{}, err
	}
	s.searches.add(key, found)
	return found, nil
}

// Unread returns what there is of such a directory, with all its texts.
func (s *Store) Unread(ctx context.Context, artifact Artifact, name string, how builds.Build) (found directories.Unread, err error) {
	err = s.unread(ctx, artifact, name, how, func(unread directories.Unread) { found = unread })
	return found, err
}

// unread hands on what there is of a directory. Few are in memory at once.
func (s *Store) unread(ctx context.Context, artifact Artifact, name string, how builds.Build, use func(directories.Unread)) error {
	var err error
	if artifact.Digest, err = cleanDigest(artifact.Digest); err != nil {
		return err
	}
	if err := s.admit(artifact); err != nil {
		return err
	}
	entry, err := s.artifact(ctx, artifact)
	var refusal *directories.ContentError
	if errors.As(err, &refusal) {
		use(directories.Unread{Unknown: refusal.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	defer s.disk.release(entry)
	index, err := s.disk.indexOf(entry)
	if err == nil {
		err = s.disk.read(entry, index, func(files fs.FS) error {
			if err := acquire(ctx, s.parseSlots); err != nil {
				return err
			}
			defer func() { <-s.parseSlots }()
			unread, err := UnreadOf(ctx, files, name, how)
			if err == nil {
				use(unread)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("cannot search artifact %s: %w", artifact.Digest, err)
	}
	return nil
}

// searchKey names a search.
type searchKey struct {
	parsedKey
	names string
}

// maxSearches is how many searches are remembered: a layer that waits asks the same at
// each look.
const maxSearches = 256

// searches remembers what was found. An artifact never changes.
type searches struct {
	mu    sync.Mutex
	found map[searchKey]directories.Mentions
}

func (s *searches) get(key searchKey) (directories.Mentions, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.found[key]
	return found, ok
}

func (s *searches) add(key searchKey, found directories.Mentions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil || len(s.found) >= maxSearches {
		s.found = map[searchKey]directories.Mentions{}
	}
	s.found[key] = found
}

// UnreadOf returns what there is of a directory that cannot be read. The error is for what is no mistake in it.
func UnreadOf(ctx context.Context, files fs.FS, name string, how builds.Build) (directories.Unread, error) {
	var mistake *directories.ContentError
	name, err := cleanPath(name)
	missing := false
	if err == nil {
		missing, err = findDirectory(files, name)
	}
	switch {
	case errors.As(err, &mistake):
		return directories.Unread{Unknown: mistake.Error()}, nil
	case err != nil || missing:
		return directories.Unread{}, err
	}
	kustomization, err := findKustomization(files, name)
	if err != nil && !errors.As(err, &mistake) {
		return directories.Unread{}, err
	}
	if err == nil && kustomization == "" && how.IsZero() {
		return unreadFiles(ctx, files, name)
	}
	b := bases{ctx: ctx, reader: reader{files: files}, texts: map[string][]byte{}}
	if err := b.add(name); err != nil {
		return directories.Unread{}, err
	}
	b.generator(name, how)
	return b.unread(how), nil
}

// unreadFiles returns which names the good files of a plain directory have, and the others.
func unreadFiles(ctx context.Context, files fs.FS, name string) (directories.Unread, error) {
	found := directories.Unread{Listed: map[string]string{}}
	broken := map[string]bool{}
	set := newObjectSet()
	err := walk(ctx, files, name, set, func(file string, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		broken[file] = true
		if errors.As(err, new(*tooMany)) {
			return err
		}
		return nil
	})
	var mistake *directories.ContentError
	switch {
	case errors.As(err, &mistake):
		found.Unknown = mistake.Error()
		return found, nil
	case err != nil:
		return found, err
	}
	for _, manifest := range set.directory().Manifests {
		for _, said := range namesIn(manifest.Object) {
			found.Listed[said] = manifest.File
		}
	}
	texts := &reader{files: files}
	for _, file := range slices.Sorted(maps.Keys(broken)) {
		data, err := texts.read(file)
		if err != nil {
			found.Unknown = err.Error()
			return found, nil //nolint:nilerr // it says why nothing is known
		}
		found.Texts = append(found.Texts, directories.Text{File: file, Data: data})
	}
	return found, nil
}

// namesIn returns what names an object, or the Helm release that it stands for.
func namesIn(obj *unstructured.Unstructured) []string {
	names := []string{obj.GetName()}
	for _, key := range []string{"releaseName", "targetNamespace"} {
		if text, _, _ := unstructured.NestedString(obj.Object, "spec", key); text != "" {
			names = append(names, text)
		}
	}
	return names
}

// bases collects all files that a kustomization is made of, also one that cannot be read.
type bases struct {
	ctx     context.Context //nolint:containedctx // it ends with the function that makes it
	reader  reader
	texts   map[string][]byte
	walked  []string
	unknown string
}

// doubt notes why any object may be meant. The first reason counts.
func (b *bases) doubt(format string, args ...any) {
	if b.unknown == "" {
		b.unknown = fmt.Sprintf(format, args...)
	}
}

// add takes a directory with all that is below it, and what its kustomizations name.
func (b *bases) add(directory string) error {
	for _, walked := range b.walked {
		if walked == "." || directory == walked || strings.HasPrefix(directory, walked+"/") {
			return nil
		}
	}
	b.walked = append(b.walked, directory)
	var kustomizations []string
	err := fs.WalkDir(b.reader.files, directory, func(name string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("cannot read %s: %w", name, err)
		case b.ctx.Err() != nil:
			return b.ctx.Err()
		case item.IsDir():
			return nil
		}
		b.take(name)
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), item.Name()) {
			kustomizations = append(kustomizations, name)
		}
		return nil
	})
	for _, name := range kustomizations {
		if err == nil {
			err = b.follow(name)
		}
	}
	return err
}

// take reads a file.
func (b *bases) take(name string) {
	if _, known := b.texts[name]; known || b.unknown != "" {
		return
	}
	data, err := b.reader.read(name)
	if err != nil {
		b.doubt("%v", err)
		return
	}
	b.texts[name] = data
}

// makesNames are the fields of kustomizations of which names are made, or objects.
var makesNames = []string{
	"namePrefix", "nameSuffix", "configMapGenerator", "secretGenerator", "generators", "transformers", "vars", "replacements",
	"helmCharts", "helmChartInflationGenerator",
}

// follow takes what a kustomization names.
func (b *bases) follow(file string) error {
	data, known := b.texts[file]
	if !known {
		return nil // of which nothing is known
	}
	refs, ok := b.refsIn(file, data)
	if !ok {
		refs = b.guessed(file, data)
	}
	for _, ref := range refs {
		if err := b.refer(file, ref); err != nil {
			return err
		}
	}
	return nil
}

// refer takes a file or a directory that a kustomization names.
func (b *bases) refer(file, ref string) error {
	at := path.Join(path.Dir(file), ref)
	switch {
	case isRemote(ref), path.IsAbs(ref), at == "..", strings.HasPrefix(at, "../"):
		b.doubt("%s names %s, which is not in the artifact", file, named(ref))
		return nil
	}
	info, err := fs.Stat(b.reader.files, at)
	switch {
	case err != nil:
		b.doubt("%s names %s, which is not there", file, named(ref))
		return nil //nolint:nilerr // what cannot be looked at is not there
	case info.IsDir():
		return b.add(at)
	}
	b.take(at)
	return nil
}

// refsIn returns the files and directories that a kustomization names. ok is false where
// it is no YAML.
func (b *bases) refsIn(file string, data []byte) (refs []string, ok bool) {
	documents, err := splitDocuments(file, data)
	if err != nil || len(documents) == 0 {
		return nil, false
	}
	for _, d := range documents {
		if d.parse() != nil {
			return nil, false
		}
		if d.root == nil {
			continue
		}
		for _, key := range makesNames {
			if field(d.root, key) != nil {
				b.doubt("%s has %s", file, key)
			}
		}
		for _, key := range []string{"resources", "bases", "components", "crds", "configurations", "validators", "patchesStrategicMerge"} {
			refs = append(refs, oneLiners(field(d.root, key))...)
		}
		for _, key := range []string{"patches", "patchesJson6902"} {
			if list := field(d.root, key); list != nil {
				for _, patch := range list.Content {
					refs = append(refs, oneLiners(field(patch, "path"))...)
				}
			}
		}
		refs = append(refs, oneLiners(field(d.root, "openapi", "path"))...)
	}
	return refs, true
}

// oneLiners returns the texts of a node that have one line; what has more is a patch itself.
func oneLiners(node *kyaml.Node) []string {
	if node == nil {
		return nil
	}
	nodes := []*kyaml.Node{node}
	if node.Kind == kyaml.SequenceNode {
		nodes = node.Content
	}
	var found []string
	for _, each := range nodes {
		if each.Kind == kyaml.AliasNode {
			each = each.Alias
		}
		if each.Kind == kyaml.ScalarNode && each.Value != "" && !strings.ContainsAny(each.Value, "\n{") {
			found = append(found, each.Value)
		}
	}
	return found
}

var (
	listItem     = regexp.MustCompile(`^\s*-\s+["']?([^\s"':#]+)["']?\s*(?:#.*)?$`)
	manifestName = regexp.MustCompile(`[^\s"',\[\]{}]+\.(?:yaml|yml|json)\b`)
	word         = regexp.MustCompile(`[^\s"',\[\]{}]+`)
)

// guessed returns what a kustomization that is no YAML may name: each item of a list that
// is one word, each file of a manifest, and whatever is there.
func (b *bases) guessed(file string, data []byte) []string {
	var found []string
	for _, key := range makesNames {
		if strings.Contains(string(data), key) {
			b.doubt("%s cannot be read, and has %s", file, key)
		}
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if match := listItem.FindStringSubmatch(strings.TrimRight(line, "\r\n")); match != nil {
			found = append(found, match[1])
		}
		found = append(found, manifestName.FindAllString(line, -1)...)
		for _, text := range word.FindAllString(line, -1) {
			at := path.Join(path.Dir(file), text)
			if !fs.ValidPath(at) {
				continue
			}
			if _, err := fs.Stat(b.reader.files, at); err == nil && text != "." {
				found = append(found, text)
			}
		}
	}
	return found
}

// generator takes what a layer says itself of how its directory is built.
func (b *bases) generator(directory string, how builds.Build) {
	for _, key := range makesNames {
		if value, has := how.Generator[key]; has && value != "" {
			b.doubt("the layer has %s", key)
		}
	}
	components, _ := how.Generator["components"].([]any)
	for _, component := range components {
		name, _ := component.(string)
		if err := b.refer(path.Join(directory, "kustomization.yaml"), name); err != nil {
			b.doubt("%v", err)
		}
	}
	if patches, has := how.Generator["patches"]; has {
		if data, err := json.Marshal(patches); err == nil {
			b.texts["spec.patches"] = data
		}
	}
}

// unread returns what was found.
func (b *bases) unread(how builds.Build) directories.Unread {
	found := directories.Unread{Unknown: b.unknown}
	if found.Unknown != "" {
		return found
	}
	for _, name := range slices.Sorted(maps.Keys(b.texts)) {
		if how.Substitution != nil && strings.Contains(string(b.texts[name]), "$") {
			return directories.Unread{Unknown: name + " has variables"}
		}
		found.Texts = append(found.Texts, directories.Text{File: name, Data: b.texts[name]})
	}
	return found
}
