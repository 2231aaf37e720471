// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Note is what a cache keeps of an object's managedFields. The zero value says that there
// were none of Strata's.
type Note struct {
	// Own identifies the fields that Strata has, but spec.replicas; empty where it has none.
	// A field that another manager changes is no longer Strata's.
	Own string
	// Replicas is true where Strata has spec.replicas.
	Replicas bool
	// Hands is true where people have written fields that Strata takes back.
	Hands bool
}

// noted is the operation of an entry that is a note. The API server takes no such entry,
// so that nobody can write one.
const noted metav1.ManagedFieldsOperationType = "Noted"

const (
	notedReplicas = "replicas"
	notedHands    = "hands"
)

// entry returns the note as the one entry of managedFields that a cache keeps.
func (n Note) entry() metav1.ManagedFieldsEntry {
	var words []string
	if n.Replicas {
		words = append(words, notedReplicas)
	}
	if n.Hands {
		words = append(words, notedHands)
	}
	return metav1.ManagedFieldsEntry{Manager: n.Own, Operation: noted, Subresource: strings.Join(words, ",")}
}

func noteFrom(entry metav1.ManagedFieldsEntry) Note {
	return Note{
		Own: entry.Manager, Replicas: strings.Contains(entry.Subresource, notedReplicas), Hands: strings.Contains(entry.Subresource, notedHands),
	}
}

// NoteOf returns the note of an object, from a cache or as the API server has returned it.
func NoteOf(obj metav1.Object) Note {
	entries := obj.GetManagedFields()
	if len(entries) == 1 && entries[0].Operation == noted {
		return noteFrom(entries[0])
	}
	return noteOf(entries)
}

func noteOf(entries []metav1.ManagedFieldsEntry) Note {
	n := counted{}
	for _, entry := range entries {
		if entry.Subresource != "" || entry.FieldsV1 == nil || entry.Manager != Manager && !isHand(entry.Manager) {
			continue
		}
		owned := map[string]any{}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) == nil { // what is no object has no fields
			n.add(entry.Manager, owned)
		}
	}
	return n.note()
}

// Trim leaves a note in the place of the managedFields of an object without a Go type, and
// nothing where Strata has no field of it. What was trimmed before stays as it is: nothing
// is written then.
func Trim(u *unstructured.Unstructured) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	if len(entries) == 0 {
		return
	}
	n := counted{}
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		if entry["operation"] == string(noted) {
			return
		}
		manager, _ := entry["manager"].(string)
		owned, _ := entry["fieldsV1"].(map[string]any)
		if subresource, _ := entry["subresource"].(string); subresource == "" && (manager == Manager || isHand(manager)) {
			n.add(manager, owned)
		}
	}
	note := n.note()
	if note.Own == "" {
		delete(metadata, "managedFields")
		return
	}
	kept := note.entry()
	left := map[string]any{"manager": kept.Manager, "operation": string(kept.Operation)}
	if kept.Subresource != "" {
		left["subresource"] = kept.Subresource
	}
	metadata["managedFields"] = []any{left}
}

// Trimmed returns the note of typed managedFields, as the entries that a cache keeps; nil
// where Strata has no field.
func Trimmed(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if len(entries) == 1 && entries[0].Operation == noted {
		return entries
	}
	if note := noteOf(entries); note.Own != "" {
		return []metav1.ManagedFieldsEntry{note.entry()}
	}
	return nil
}

// counted goes through entries as they are decoded.
type counted struct {
	own   map[uint64]struct{}
	sum   uint64
	hands bool
	// replicas is true where Strata has spec.replicas.
	replicas bool
}

func (c *counted) add(manager string, owned map[string]any) {
	if manager != Manager {
		c.hands = c.hands || isHeld(owned)
		return
	}
	if spec, _ := owned["f:spec"].(map[string]any); spec["f:replicas"] != nil {
		c.replicas = true
	}
	if c.own == nil {
		c.own = map[uint64]struct{}{}
	}
	c.walk(offset, 0, owned)
}

// The parameters of FNV-1a, by which paths are told apart.
const (
	offset uint64 = 14695981039346656037
	prime  uint64 = 1099511628211
)

func mix(sum uint64, text string) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * prime
	}
	return (sum ^ 0xff) * prime // no byte of a text in UTF-8
}

// walk adds the paths below a place. Their order does not matter: a map has none.
func (c *counted) walk(at uint64, depth int, owned map[string]any) {
	for key, below := range owned {
		path := at
		if key != "." {
			path = mix(at, key)
		}
		inner, _ := below.(map[string]any)
		if depth == 1 && key == "f:replicas" && at == mix(offset, "f:spec") {
			continue
		}
		if len(inner) > 0 {
			c.walk(path, depth+1, inner)
			continue
		}
		if _, known := c.own[path]; !known {
			c.own[path] = struct{}{}
			c.sum += path * prime
		}
	}
}

func (c *counted) note() Note {
	if len(c.own) == 0 && !c.replicas {
		return Note{}
	}
	const half = 32
	short := (c.sum ^ c.sum>>half) & (1<<half - 1)
	return Note{Own: fmt.Sprintf("%08x", short), Replicas: c.replicas, Hands: c.hands}
}

// isHeld tells whether decoded fields of people's hold one that Strata takes back whatever
// git says. It says the same as Rule.takes.
func isHeld(owned map[string]any) bool {
	for key, below := range owned {
		inner, _ := below.(map[string]any)
		switch key {
		case "f:metadata", "f:status", "f:apiVersion", "f:kind", ".":
			continue
		case "f:spec":
			if len(inner) == 0 || isHeldInSpec(inner) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

func isHeldInSpec(spec map[string]any) bool {
	for key, below := range spec {
		inner, _ := below.(map[string]any)
		switch key {
		case ".", "f:replicas":
			continue
		case "f:template":
			if len(inner) == 0 || isHeldBeside(inner, "f:metadata", "f:annotations", "f:"+restartedAt) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// isHeldBeside tells whether there is more than one path of fields, and what leads to it.
func isHeldBeside(owned map[string]any, path ...string) bool {
	for key, below := range owned {
		inner, _ := below.(map[string]any)
		switch {
		case key == ".":
		case key != path[0], len(path) == 3 && len(inner) == 0, len(path) == 1 && len(inner) > 0:
			return true
		case len(path) > 1 && isHeldBeside(inner, path[1:]...):
			return true
		}
	}
	return false
}
