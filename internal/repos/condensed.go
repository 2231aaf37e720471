// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

// condensed is the objects of a directory as CBOR, one after the other: about a
// seventh of what they take as maps. JSON would not tell 1.0 from 1.
type condensed struct {
	data  []byte
	items []condensedItem
}

// condensedItem is a manifest, and where its object ends in the data.
type condensedItem struct {
	file string
	line int
	home bool
	// confidential is as of the manifest.
	confidential bool
	decrypted    bool
	asFlux       bool
	unset, named []string
	needs        []objects.ID
	end          int
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

// condense returns manifests as CBOR, and about how many bytes they take as they
// are. It is nil where CBOR would not give back the very same.
func condense(manifests []directories.Manifest) (*condensed, int64) {
	w := &weigher{}
	c := &condensed{items: make([]condensedItem, 0, len(manifests))}
	var data []byte
	for _, manifest := range manifests {
		w.bytes += manifestBytes
		w.value(manifest.Object.Object)
		object, err := direct.Marshal(manifest.Object.Object)
		if err != nil {
			w.inexact = true
		}
		data = append(data, object...)
		c.items = append(c.items, condensedItem{
			file: manifest.File, line: manifest.Line, home: manifest.Home, confidential: manifest.Confidential,
			decrypted: manifest.Decrypted, asFlux: manifest.AsFlux, unset: manifest.Unset, named: manifest.Named, needs: manifest.Needs, end: len(data),
		})
	}
	if w.inexact {
		return nil, w.bytes
	}
	c.data = bytes.Clone(data) // without the room that it has grown
	return c, w.bytes
}

// weight is about how many bytes it takes.
func (c *condensed) weight() int64 {
	const item, need = 64, 80
	weight := int64(cap(c.data))
	for _, i := range c.items {
		weight += item + int64(len(i.file)) + need*int64(len(i.needs))
	}
	return weight
}

// expand returns the manifests anew, equal to those that were condensed.
func (c *condensed) expand() ([]directories.Manifest, error) {
	var manifests []directories.Manifest
	if len(c.items) > 0 {
		manifests = make([]directories.Manifest, 0, len(c.items))
	}
	begin := 0
	for _, item := range c.items {
		object := &unstructured.Unstructured{}
		if err := direct.Unmarshal(c.data[begin:item.end], &object.Object); err != nil {
			return nil, fmt.Errorf("cannot read an object of %s from memory: %w", item.file, err)
		}
		manifests = append(manifests, directories.Manifest{
			File: item.file, Line: item.line, Home: item.home, Confidential: item.confidential,
			Decrypted: item.decrypted, AsFlux: item.asFlux, Unset: item.unset, Named: item.named, Needs: item.needs, Object: object,
		})
		begin = item.end
	}
	return manifests, nil
}

// weigher adds up about how many bytes values take.
type weigher struct {
	bytes int64
	// inexact is true once there was a value that CBOR does not give back.
	inexact bool
}

func (w *weigher) value(value any) {
	switch value := value.(type) {
	case nil, bool:
	case int64, float64:
		w.bytes += numberBytes
	case string:
		w.bytes += stringBytes + lettersOf(value)
	case []any:
		w.inexact = w.inexact || value == nil // it would be read as no list
		w.bytes += listBytes + elementBytes*int64(len(value))
		for _, element := range value {
			w.value(element)
		}
	case map[string]any:
		w.inexact = w.inexact || value == nil
		w.bytes += mapBytes
		switch slots := int64(len(value)); {
		case slots > 8:
			w.bytes += 2 * slots * slotBytes
		case slots > 0:
			w.bytes += 8 * slotBytes
		}
		for key, element := range value {
			w.bytes += lettersOf(key)
			w.value(element)
		}
	default:
		w.inexact = true
	}
}

// lettersOf returns what the letters of a string take.
func lettersOf(text string) int64 { return int64(len(text)+7) &^ 7 }
