// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/internal/layers"
)

// condensed is the objects of a directory as JSON, one after the other: about a
// seventh of what they take as maps.
type condensed struct {
	data  []byte
	items []condensedItem
}

// condensedItem is a manifest, and where its object ends in the data.
type condensedItem struct {
	file string
	line int
	end  int
}

// What values take in memory: about what the runtime allocates for them.
const (
	manifestBytes = 48 // with the struct around the object
	mapBytes      = 48
	slotBytes     = 36 // of a map, which has 8 of them at least
	listBytes     = 24
	elementBytes  = 24 // of a list, which has grown
	numberBytes   = 8
	stringBytes   = 16 // beside the letters of a value
)

// condense returns manifests as JSON, and about how many bytes they take as they
// are. It is nil where JSON would not give back the very same.
func condense(manifests []layers.Manifest) (*condensed, int64) {
	w := &exactWriter{}
	c := &condensed{items: make([]condensedItem, 0, len(manifests))}
	for _, manifest := range manifests {
		w.weight += manifestBytes
		w.value(manifest.Object.Object)
		c.items = append(c.items, condensedItem{file: manifest.File, line: manifest.Line, end: len(w.data)})
	}
	if w.inexact {
		return nil, w.weight
	}
	c.data = bytes.Clone(w.data) // without the room that it has grown
	return c, w.weight
}

// weight is about how many bytes it takes.
func (c *condensed) weight() int64 {
	const item = 32
	weight := int64(cap(c.data))
	for _, i := range c.items {
		weight += item + int64(len(i.file))
	}
	return weight
}

// expand returns the manifests anew, equal to those that were condensed.
func (c *condensed) expand() ([]layers.Manifest, error) {
	var manifests []layers.Manifest
	if len(c.items) > 0 {
		manifests = make([]layers.Manifest, 0, len(c.items))
	}
	begin := 0
	for _, item := range c.items {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(c.data[begin:item.end], &object.Object); err != nil {
			return nil, fmt.Errorf("cannot read an object of %s from memory: %w", item.file, err)
		}
		manifests = append(manifests, layers.Manifest{File: item.file, Line: item.line, Object: object})
		begin = item.end
	}
	return manifests, nil
}

// exactWriter writes values as JSON that is read as the very same values:
// floats are written so that they are not read as integers.
type exactWriter struct {
	data []byte
	// weight is about how many bytes the values take.
	weight int64
	// inexact is true once there was a value that JSON has no words for.
	inexact bool
}

func (w *exactWriter) value(value any) {
	switch value := value.(type) {
	case nil:
		w.data = append(w.data, "null"...)
	case bool:
		w.data = strconv.AppendBool(w.data, value)
	case int64:
		w.weight += numberBytes
		w.data = strconv.AppendInt(w.data, value, 10)
	case float64:
		w.weight += numberBytes
		w.inexact = w.inexact || math.IsNaN(value) || math.IsInf(value, 0)
		w.data = strconv.AppendFloat(w.data, value, 'e', -1, 64)
	case string:
		w.weight += stringBytes
		w.text(value)
	case []any:
		w.list(value)
	case map[string]any:
		w.mapping(value)
	default:
		w.inexact = true
	}
}

func (w *exactWriter) list(list []any) {
	w.weight += listBytes + elementBytes*int64(len(list))
	w.inexact = w.inexact || list == nil // null is read as no list
	w.data = append(w.data, '[')
	for i, element := range list {
		if i > 0 {
			w.data = append(w.data, ',')
		}
		w.value(element)
	}
	w.data = append(w.data, ']')
}

// mapping does not sort the keys: nobody compares what is written.
func (w *exactWriter) mapping(mapping map[string]any) {
	w.weight += mapBytes
	switch slots := int64(len(mapping)); {
	case slots > 8:
		w.weight += 2 * slots * slotBytes
	case slots > 0:
		w.weight += 8 * slotBytes
	}
	w.inexact = w.inexact || mapping == nil
	w.data = append(w.data, '{')
	first := true
	for key, value := range mapping {
		if !first {
			w.data = append(w.data, ',')
		}
		first = false
		w.text(key)
		w.data = append(w.data, ':')
		w.value(value)
	}
	w.data = append(w.data, '}')
}

// text escapes what JSON demands, and no more.
func (w *exactWriter) text(text string) {
	w.weight += int64(len(text)+7) &^ 7
	w.inexact = w.inexact || !utf8.ValidString(text)
	w.data = append(w.data, '"')
	start := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.data = append(w.data, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			w.data = append(w.data, '\\', c)
		case '\n':
			w.data = append(w.data, '\\', 'n')
		default:
			w.data = fmt.Appendf(w.data, "\\u%04x", c)
		}
	}
	w.data = append(w.data, text[start:]...)
	w.data = append(w.data, '"')
}
