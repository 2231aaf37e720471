// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// document is one document of a file: the text, and what it says twice over.
// The nodes know lines; the value is read as kubectl reads it (YAML 1.1, where
// a plain yes is true), so that a layer means what it means to kubectl.
type document struct {
	file  string
	first int // line of the file that the text begins at, counted from 1
	text  []byte
	root  *kyaml.Node // nil where the document is empty
}

// splitDocuments cuts a file at its document markers. YAML allows no marker
// inside of any value, so lines are enough to find them.
func splitDocuments(file string, data []byte) ([]*document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, invalid(file, 0, "", "is not UTF-8 text")
	}
	var documents []*document
	current := &document{file: file, first: 1}
	start, line := 0, 0
	end := func(at int) {
		current.text = data[start:at]
		if !isDirective(current.text) {
			documents = append(documents, current)
		}
	}
	for at := 0; at < len(data); {
		line++
		next := len(data)
		if newline := bytes.IndexByte(data[at:], '\n'); newline >= 0 {
			next = at + newline + 1
		}
		switch text := data[at:next]; {
		case isMarker(text, "---"):
			end(at)
			current, start = &document{file: file, first: line}, at
		case isMarker(text, "..."):
			end(at)
			current, start = &document{file: file, first: line + 1}, next
		}
		at = next
	}
	end(len(data))
	return documents, nil
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// isDirective reports whether a text is nothing but YAML directives, which
// stand before a marker.
func isDirective(text []byte) bool {
	found := false
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
		case line[0] == '%':
			found = true
		default:
			return false
		}
	}
	return found
}

// parse finds the nodes of the document, within limits.
func (d *document) parse() error {
	if err := d.checkDensity(); err != nil {
		return err
	}
	return d.parseNodes()
}

// parseNodes is parse for a text that is known to have no more values than it may.
func (d *document) parseNodes() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = invalid(d.file, d.first, "", "cannot be read as YAML: %v", r)
		}
	}()
	if d.isJSON() {
		d.root, err = jsonNodes(d.text)
		if err != nil {
			return invalid(d.file, d.first+bytes.Count(d.text[:jsonOffset(err, len(d.text))], []byte("\n")), "", "cannot be read as JSON: %s", jsonMessage(err))
		}
	} else {
		var node kyaml.Node
		if err := kyaml.Unmarshal(d.text, &node); err != nil {
			return d.yamlError(err)
		}
		linesOf(d.text).correct(&node)
		if node.Kind == kyaml.DocumentNode && len(node.Content) > 0 {
			d.root = node.Content[0]
		}
		if isNull(d.root) {
			d.root = nil
		}
	}
	if d.root == nil {
		return nil
	}
	return checkNodes(d.file, d.first-1, d.root)
}

// isJSON reports whether the document is to be read as JSON. YAML in braces is
// YAML, except in a file that says that it is JSON.
func (d *document) isJSON() bool {
	text := bytes.TrimSpace(d.text)
	if len(text) == 0 {
		return false
	}
	return strings.HasSuffix(d.file, ".json") || text[0] == '{' && json.Unmarshal(text, new(any)) == nil
}

// maxDensity is how many characters that structure YAML a document may have.
// Each may become a node of some 200 bytes.
const maxDensity = 600_000

func (d *document) checkDensity() error {
	count := 0
	for _, c := range d.text {
		switch c {
		case ',', ':', '[', '{', '-', '?', '&', '*':
			count++
		}
	}
	if count > maxDensity {
		return invalid(d.file, d.first, "", "has too many values in one document: split it")
	}
	return nil
}

// value returns what the document says, with exact integers.
func (d *document) value() (map[string]any, error) {
	text := d.text
	if !d.isJSON() {
		if err := d.checkMerges(d.root); err != nil {
			return nil, err
		}
		var err error
		// Not the strict way, which takes a merged key for one that is there twice. checkNodes has
		// found those.
		if text, err = yaml.YAMLToJSON(d.text); err != nil {
			return nil, d.yamlError(err)
		}
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, invalid(d.file, d.first, "", "cannot be read: %s", jsonMessage(err))
	}
	return value, nil
}

// line of the file that a node is at.
func (d *document) line(node *kyaml.Node) int {
	if node == nil || node.Line == 0 {
		return d.first
	}
	return d.first - 1 + node.Line
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+): `)
	yamlNoise = regexp.MustCompile(`(error converting YAML to JSON: |yaml: |unmarshal errors:\s*)`)
)

// breaks are the lines of a text that the YAML parser takes for line 1 and on: it also
// breaks lines at carriage returns and, as YAML 1.1 does, at NEL, LS and PS, which
// editors and git do not. It is nil where both count the same.
type breaks []int32

func linesOf(text []byte) breaks {
	if bytes.Count(text, []byte("\r")) == bytes.Count(text, []byte("\r\n")) && !bytes.ContainsAny(text, "\u0085\u2028\u2029") {
		return nil
	}
	lines, line := breaks{1}, int32(1)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if bytes.HasPrefix(text, []byte("\r\n")) {
			r, size = '\n', 2
		}
		text = text[size:]
		switch r {
		case '\n':
			line++
			lines = append(lines, line)
		case '\r', '\u0085', '\u2028', '\u2029':
			lines = append(lines, line)
		}
	}
	return lines
}

// of returns the line of the text that the parser takes for line n.
func (b breaks) of(n int) int {
	if b == nil || n < 1 {
		return n
	}
	return int(b[min(n, len(b))-1])
}

// correct puts the lines of the text into a node and those in it.
func (b breaks) correct(node *kyaml.Node) {
	if b == nil {
		return
	}
	node.Line = b.of(node.Line)
	for _, child := range node.Content {
		b.correct(child)
	}
}

// yamlError moves the line that the parser counted to the file, and leaves out
// what only says how Strata is written.
func (d *document) yamlError(err error) error {
	message := yamlNoise.ReplaceAllString(err.Error(), "")
	line := d.first
	if found := yamlLine.FindStringSubmatchIndex(message); found != nil {
		n, _ := strconv.Atoi(message[found[2]:found[3]])
		line = d.first - 1 + linesOf(d.text).of(max(n, 1))
		message = message[:found[0]] + message[found[1]:]
	}
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	message = confidentialOf(map[string][]byte{d.file: d.text}).hideQuoted(message)
	return invalid(d.file, line, "", "%s", fmt.Sprintf("cannot be read as YAML: %s", message))
}
