// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Limits of a document, once its aliases stand for what they name.
const (
	maxDepth         = 200
	maxNodes         = 1_000_000
	maxExpandedBytes = 4 * maxFile
)

// checkNodes refuses what could not be read in one way only, or in the memory
// that there is: a key twice, a number that would change, a bomb of aliases.
func checkNodes(file string, before int, root *kyaml.Node) error {
	c := &nodeCheck{file: file, before: before, sizes: map[*kyaml.Node]nodeSize{}}
	_, err := c.size(root, 0)
	return err
}

type nodeCheck struct {
	file   string
	before int // lines of the file before those that the nodes count
	sizes  map[*kyaml.Node]nodeSize
}

type nodeSize struct {
	open         bool
	depth        int
	nodes, bytes int64
}

func (c *nodeCheck) invalid(node *kyaml.Node, format string, args ...any) error {
	line := 0
	if node.Line > 0 {
		line = c.before + node.Line
	}
	return invalid(c.file, line, "", format, args...)
}

// size returns how large a node is, with every alias counted as often as it is
// used. A node is looked at once.
func (c *nodeCheck) size(node *kyaml.Node, depth int) (nodeSize, error) {
	if node.Kind == kyaml.AliasNode {
		node = node.Alias
	}
	known, ok := c.sizes[node]
	switch {
	case known.open:
		return known, c.invalid(node, "the anchor %q contains itself", node.Anchor)
	case ok && depth+known.depth <= maxDepth:
		return known, nil
	case ok || depth > maxDepth:
		return known, c.invalid(node, "is nested deeper than %d levels", maxDepth)
	}
	if node.Anchor != "" {
		c.sizes[node] = nodeSize{open: true}
	}
	total := nodeSize{nodes: 1, bytes: int64(len(node.Value))}
	if err := c.check(node); err != nil {
		return total, err
	}
	for _, child := range node.Content {
		size, err := c.size(child, depth+1)
		if err != nil {
			return total, err
		}
		total.nodes += size.nodes
		total.bytes += size.bytes
		total.depth = max(total.depth, size.depth+1)
		if total.nodes > maxNodes || total.bytes > maxExpandedBytes {
			return total, c.invalid(node, "has too many values, or too large ones, with its aliases written out")
		}
	}
	if node.Anchor != "" {
		c.sizes[node] = total
	}
	return total, nil
}

func (c *nodeCheck) check(node *kyaml.Node) error {
	switch node.Kind {
	case kyaml.MappingNode:
		return c.checkKeys(node)
	case kyaml.ScalarNode:
		return c.checkNumber(node)
	}
	return nil
}

func (c *nodeCheck) checkKeys(node *kyaml.Node) error {
	seen := make(map[string]*kyaml.Node, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		merge := isMerge(key)
		if key.Kind == kyaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != kyaml.ScalarNode || isNull(key) {
			return c.invalid(key, "has a key that is no text: quote it")
		}
		if !merge && key.Style&kyaml.TaggedStyle != 0 && key.Tag != "!!str" {
			return c.invalid(key, "has the tag %s: write the key without it", short(key.Tag))
		}
		name := nameOf(key).text
		if merge {
			name = "\x00<<" // a merge, and not the text
		}
		if first, ok := seen[name]; ok {
			return c.invalid(node.Content[i], "the key %q is there twice, first in line %d", short(key.Value), c.before+first.Line)
		}
		seen[name] = node.Content[i]
	}
	return nil
}

// isMerge tells the key << that puts in the keys of other mappings.
func isMerge(key *kyaml.Node) bool {
	return key.Kind == kyaml.ScalarNode && key.Value == "<<" && (key.Tag == "!!merge" || key.Style == 0)
}

// checkNumber refuses integers that no int64 holds, and what JSON has no words
// for: the cluster would be told another number.
func (c *nodeCheck) checkNumber(node *kyaml.Node) error {
	if node.Style&(kyaml.DoubleQuotedStyle|kyaml.SingleQuotedStyle|kyaml.LiteralStyle|kyaml.FoldedStyle) != 0 {
		return nil
	}
	base := 0
	if node.Tag == "!!str" {
		if node.Style&kyaml.TaggedStyle != 0 {
			return nil
		}
		// Digits that not even a float64 holds are read as text.
		base = 10
	}
	text := strings.ReplaceAll(node.Value, "_", "")
	if _, err := strconv.ParseInt(text, base, 64); errors.Is(err, strconv.ErrRange) {
		return c.invalid(node, "has a number that does not fit into 64 bits: quote it")
	}
	if node.Tag == "!!float" {
		switch strings.ToLower(strings.TrimLeft(text, "+-.")) {
		case "inf", "nan":
			return c.invalid(node, "%s is not a number that Kubernetes knows: quote it", short(node.Value))
		}
	}
	return nil
}

// short shortens a text for a message.
func short(text string) string {
	if len(text) <= 60 {
		return text
	}
	return strings.ToValidUTF8(text[:60], "") + "..."
}

// jsonError is a mistake in JSON at an offset.
type jsonError struct {
	offset int
	error
}

// Unwrap returns the mistake.
func (e jsonError) Unwrap() error { return e.error }

func jsonOffset(err error, length int) int {
	var at jsonError
	if errors.As(err, &at) {
		return max(0, min(at.offset, length))
	}
	return 0
}

// jsonMessage leaves out what only says how Strata is written.
func jsonMessage(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "it ends too early"
	}
	return strings.NewReplacer("json: ", "", "cannot unmarshal ", "cannot read ", "Go value of type ", "").Replace(err.Error())
}

// jsonNodes reads JSON into the nodes of YAML, which know their lines. One
// document has one value.
func jsonNodes(text []byte) (*kyaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	builder := &jsonBuilder{text: text, decoder: decoder, line: 1}
	root, err := builder.value(0)
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is something after the first value: write one value in one file")
		}
	}
	if err != nil {
		return nil, jsonError{int(decoder.InputOffset()), err}
	}
	if isNull(root) {
		return nil, nil
	}
	return root, nil
}

type jsonBuilder struct {
	text    []byte
	decoder *json.Decoder
	counted int
	line    int
}

func (b *jsonBuilder) node(kind kyaml.Kind, tag, value string) *kyaml.Node {
	offset := int(b.decoder.InputOffset())
	b.line += bytes.Count(b.text[b.counted:offset], []byte("\n"))
	b.counted = offset
	node := &kyaml.Node{Kind: kind, Tag: tag, Value: value, Line: b.line}
	if tag == "!!str" {
		node.Style = kyaml.DoubleQuotedStyle
	}
	return node
}

func (b *jsonBuilder) value(depth int) (*kyaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	token, err := b.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case string:
		return b.node(kyaml.ScalarNode, "!!str", token), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(token.String(), ".eE") {
			tag = "!!float"
		}
		return b.node(kyaml.ScalarNode, tag, token.String()), nil
	case bool:
		return b.node(kyaml.ScalarNode, "!!bool", strconv.FormatBool(token)), nil
	case json.Delim:
		return b.collection(token, depth)
	default:
		return b.node(kyaml.ScalarNode, "!!null", "null"), nil
	}
}

func (b *jsonBuilder) collection(open json.Delim, depth int) (*kyaml.Node, error) {
	kind, tag := kyaml.SequenceNode, "!!seq"
	if open == '{' {
		kind, tag = kyaml.MappingNode, "!!map"
	}
	node := b.node(kind, tag, "")
	for b.decoder.More() {
		child, err := b.value(depth + 1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	_, err := b.decoder.Token()
	return node, err
}

func isNull(node *kyaml.Node) bool {
	return node == nil || node.Kind == kyaml.ScalarNode && node.Tag == "!!null"
}
