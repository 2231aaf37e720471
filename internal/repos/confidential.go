// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/kustomize/api/konfig"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// hidden stands in a message where a value was.
const hidden = "***"

// least is how long a word must be for its begin, or a longer word around it, to give
// it away.
const least = 4

// longest is how long a word of a message may be that is looked into: whoever writes the
// files says how long the words are.
const longest = 128

// confidential are the words of a message's origin that may be those of a Secret. The
// libraries that read files quote what they cannot use, and messages go where people
// may read who may not read Secrets.
type confidential struct {
	words map[string]bool
	// sorted are the words in order, in which the begin of one is found.
	sorted []string
	// names are words of files' names, which messages need and files do not hide.
	names map[string]bool
}

// confidentialOf returns what files may keep secret: what Secrets hold, what they are
// generated and patched from, and values of whatever cannot be read.
func confidentialOf(files map[string][]byte) confidential {
	c := confidential{words: map[string]bool{}, names: map[string]bool{}}
	for name, data := range files {
		for _, word := range wordsOf(name) {
			c.names[word] = true
		}
		if !isStructured(name) {
			c.add(string(data))
			continue
		}
		documents, err := splitDocuments(name, data)
		if err != nil {
			c.add(string(data))
		}
		for _, document := range documents {
			c.addDocument(document.text)
		}
	}
	c.sorted = slices.Sorted(maps.Keys(c.words))
	return c
}

// isStructured tells whether a file is to be read as YAML: others are what Secrets are
// generated from.
func isStructured(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

func (c confidential) add(text string) {
	for _, word := range wordsOf(text) {
		c.words[word] = true
	}
}

// addDocument adds what a document may keep secret: of what is no object or list all
// that stands behind a key.
func (c confidential) addDocument(text []byte) {
	var node kyaml.Node
	err := kyaml.Unmarshal(text, &node)
	if err == nil && len(node.Content) == 1 && node.Content[0].Kind != kyaml.ScalarNode {
		c.addNode(node.Content[0], false)
		return
	}
	for line := range strings.Lines(string(text)) {
		key, value, found := strings.Cut(line, ":")
		switch {
		case !found:
			c.add(line)
		case !slices.Contains(openKeys, strings.Trim(key, " -")):
			c.add(value)
		}
	}
}

// secretKeys are those whose values may be a Secret's, whatever object they are in: in
// Secrets, in what generates them, and in patches, which may be for one.
var secretKeys = []string{"stringData", "literals", "patch", "patchesStrategicMerge", "jsonOp", "value"}

// openKeys say which object a message is about, also where nothing else can be read.
var openKeys = []string{"apiVersion", "kind", "name", "namespace"}

// pluginKeys list plug-ins of kustomize: files, or texts that tell them what to do.
var pluginKeys = []string{"generators", "transformers", "validators"}

// addNode adds what a node may keep secret: all of it where all is.
func (c confidential) addNode(node *kyaml.Node, all bool) {
	if node.Kind == kyaml.ScalarNode && all {
		c.add(node.Value)
	}
	if node.Kind != kyaml.MappingNode {
		for _, child := range node.Content {
			c.addNode(child, all)
		}
		return
	}
	kind := ""
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "kind" {
			kind = node.Content[i+1].Value
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		isSecret := slices.Contains(secretKeys, key) ||
			key == "data" && (kind == "" || kind == "Secret") || // a patch may say no kind
			key == "patches" && value.Kind == kyaml.ScalarNode // of a plug-in
		c.addNode(value, all || isSecret)
		if slices.Contains(pluginKeys, key) {
			for _, text := range value.Content {
				c.addDocument([]byte(text.Value))
			}
		}
	}
}

// named shows what is to be the name of a file. A patch that cannot be read is taken for
// one, and has what no name needs.
func named(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("{}[]\"'", r) }) {
		return "a text that is neither a name nor a patch"
	}
	return short(text)
}

// wordsOf returns the words of a text: runs of letters and digits.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// has tells whether a word of a message is a confidential one, the begin of one, as
// where a library cuts it, or has one in it, as where an escape stands before it.
func (c confidential) has(word string) bool {
	switch {
	case c.names[word]:
		return false
	case c.words[word], len(word) > longest:
		return true
	}
	if at, _ := slices.BinarySearch(c.sorted, word); len(word) >= least && at < len(c.sorted) && strings.HasPrefix(c.sorted[at], word) {
		return true
	}
	for begin := range len(word) {
		for end := begin + least; end <= len(word); end++ {
			if c.words[word[begin:end]] {
				return true
			}
		}
	}
	return false
}

var (
	messageWord = regexp.MustCompile(`[\p{L}\p{Nd}]+`)
	hiddenRun   = regexp.MustCompile(`\*\*\*(?:[^\p{L}\p{Nd}]*\*\*\*)+`)
	quoted      = regexp.MustCompile("(?s)[`'\"].*[`'\"]")
)

// hide returns a message without confidential words.
func (c confidential) hide(message string) string {
	message = messageWord.ReplaceAllStringFunc(message, func(word string) string {
		if c.has(word) {
			return hidden
		}
		return word
	})
	return hiddenRun.ReplaceAllString(message, hidden)
}

// hideQuoted is hide for a message that quotes what it does not say itself.
func (c confidential) hideQuoted(message string) string {
	return quoted.ReplaceAllStringFunc(message, c.hide)
}
