// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
	"github.com/strata-project/strata/internal/sops"
)

// decrypt opens the files of a build that SOPS has encrypted, in their places: they are
// kustomize's in memory alone. A file of several documents may have some that are
// encrypted.
func decrypt(ctx context.Context, files map[string][]byte, how *builds.Decryption, with decrypter) (secretKinds, error) {
	var found secretKinds
	sealed := map[string][]*document{}
	request := &kustomize.Request{Files: map[string][]byte{}, Decrypt: &kustomize.Encrypted{Formats: map[string]sops.Format{}, Keys: how.Keys}}
	for name, data := range files {
		if !bytes.Contains(data, []byte("sops")) {
			continue
		}
		documents, err := splitDocuments(name, data)
		if !isStructured(name) || err != nil {
			if format, is := sops.FormatOf(data); is {
				request.Files[name], request.Decrypt.Formats[name] = data, format
				found.add("ConfigMap") // one may be generated of it
			}
			continue
		}
		for i, d := range documents {
			if d.parse() != nil || d.root == nil || !isEncrypted(d.root) {
				continue
			}
			sealed[name] = documents
			format := sops.YAML
			if path.Ext(name) == ".json" {
				format = sops.JSON
			}
			request.Files[piece(name, i)], request.Decrypt.Formats[piece(name, i)] = d.text, format
		}
	}
	if generatesFrom(files, func(name string) bool { return sealed[name] != nil || request.Files[name] != nil }) {
		found.add("ConfigMap")
	}
	if len(request.Files) == 0 || how.Sealed {
		found.all = how.Sealed // nothing of what is encrypted is told as it is
		return found, nil
	}
	found.all = carriesValues(files, sealed)
	plain, err := with(ctx, request)
	if err != nil {
		return found, notDecrypted(err)
	}
	for name, text := range plain {
		if _, whole := files[name]; whole {
			files[name] = text
			found.addText(text)
		}
	}
	for name, documents := range sealed {
		for i, d := range documents {
			text, is := plain[piece(name, i)]
			if !is {
				continue
			}
			kind, opened := "", &document{file: name, first: d.first, text: text}
			if err := opened.parse(); err == nil && opened.root != nil {
				if node := field(opened.root, "kind"); node != nil {
					kind = node.Value
				}
				found.addValues(opened.root, d.root)
			}
			found.add(kind)
		}
		files[name] = joined(name, documents, plain)
	}
	return found, nil
}

// generatesFrom tells whether a generator of a build reads an encrypted file, or is one. It
// makes a ConfigMap then that holds what was decrypted. What makes a Secret does, too, and
// Secrets are told of no more anyway.
func generatesFrom(files map[string][]byte, isSealed func(string) bool) bool {
	for name, data := range files {
		if !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			continue
		}
		documents, err := splitDocuments(name, data)
		if err != nil || len(documents) != 1 || documents[0].parse() != nil || documents[0].root == nil {
			continue // what carriesValues says of it covers all kinds
		}
		root := documents[0].root
		found := false
		if list := field(root, "configMapGenerator"); list != nil {
			for _, generator := range list.Content {
				found = found || reads(generator, path.Dir(name), isSealed)
			}
		}
		if list := field(root, "generators"); list != nil { // which were written out when they were judged
			for _, text := range list.Content {
				generator := &document{file: name, first: 1, text: []byte(text.Value)}
				if strings.Contains(text.Value, "ENC[") || generator.parse() != nil || generator.root == nil {
					return true
				}
				found = found || reads(generator.root, path.Dir(name), isSealed)
			}
		}
		if found {
			return true
		}
	}
	return false
}

// reads tells whether a generator of a directory takes values from a file that is encrypted.
func reads(generator *kyaml.Node, directory string, isSealed func(string) bool) bool {
	for _, key := range []string{"files", "envs", "env"} {
		listed := field(generator, key)
		if listed == nil {
			continue
		}
		for _, item := range append(listed.Content, listed) {
			file := item.Value
			if _, after, named := strings.Cut(file, "="); named {
				file = after
			}
			if file != "" && isSealed(path.Join(directory, file)) {
				return true
			}
		}
	}
	return false
}

// carriesValues tells whether a build may put what one object or file holds into an object
// of another kind: by replacements and variables, by plug-ins, and by an encrypted patch
// whose target is said beside it.
func carriesValues(files map[string][]byte, sealed map[string][]*document) bool {
	for name, data := range files {
		if !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			continue
		}
		documents, err := splitDocuments(name, data)
		if err != nil || len(documents) != 1 || documents[0].parse() != nil || documents[0].root == nil {
			return true // kustomize may read it otherwise
		}
		root := documents[0].root
		for _, key := range []string{"replacements", "vars", "transformers"} {
			if list := field(root, key); list != nil && len(list.Content) > 0 {
				return true
			}
		}
		if patches := field(root, "patches"); patches != nil {
			for _, patch := range patches.Content {
				file, target := field(patch, "path"), field(patch, "target")
				if file != nil && target != nil && sealed[path.Join(path.Dir(name), file.Value)] != nil {
					return true
				}
			}
		}
	}
	return false
}

// piece names a document of a file.
func piece(name string, i int) string { return name + "\x01" + strconv.Itoa(i) }

// joined returns a file with documents that were decrypted in the places of those that are
// encrypted.
func joined(name string, documents []*document, plain map[string][]byte) []byte {
	if len(documents) == 1 {
		return plain[piece(name, 0)]
	}
	texts := make([][]byte, 0, len(documents))
	for i, d := range documents {
		text, is := plain[piece(name, i)]
		if !is {
			text = d.text
		}
		texts = append(texts, bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n")))
	}
	return append(bytes.Join(texts, []byte("\n---\n")), '\n')
}

// notDecrypted names the file that cannot be decrypted.
func notDecrypted(err error) error {
	var refusal *kustomize.Refusal
	var ended *kustomize.Ended
	switch {
	case errors.As(err, &refusal):
		name, why, _ := strings.Cut(refusal.Message, "\x00")
		name, _, _ = strings.Cut(name, "\x01")
		return &directories.ContentError{Reason: v1alpha1.ReasonEncryptedManifest, File: name, Message: "cannot be decrypted: " + why}
	case errors.As(err, &ended):
		return failed("", "", "decrypting its files %s", ended.Message)
	default:
		return fmt.Errorf("cannot decrypt files: %w", err)
	}
}

// sealedNames returns the files of a build that stay encrypted, in order.
func sealedNames(files map[string][]byte) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		if !bytes.Contains(data, []byte("sops")) {
			continue
		}
		documents, err := splitDocuments(name, data)
		if _, is := sops.FormatOf(data); is && (!isStructured(name) || err != nil) {
			names = append(names, name)
			continue
		}
		if err == nil && checkEncryption(documents) != nil {
			names = append(names, name)
		}
	}
	return names
}
