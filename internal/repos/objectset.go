// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
)

// EmptyDigest is the digest of every directory without objects, missing ones
// too.
var EmptyDigest = digestOf(nil)

// identity is what makes two objects the same one, whatever their version.
type identity struct {
	group, kind, namespace, name string
}

func identityOf(object *unstructured.Unstructured) identity {
	kind := object.GroupVersionKind()
	return identity{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}
}

func (i identity) compare(other identity) int {
	return cmp.Or(
		cmp.Compare(i.group, other.group), cmp.Compare(i.kind, other.kind),
		cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.name, other.name),
	)
}

// String reads as people write it: HelmRelease addons/podinfo.
func (i identity) String() string {
	if i.namespace == "" {
		return i.kind + " " + i.name
	}
	return i.kind + " " + i.namespace + "/" + i.name
}

// secretKinds are the kinds of objects, beside Secrets, that hold what was decrypted.
type secretKinds struct {
	kinds map[string]bool
	// all is true where it is not known which.
	all bool
	// values of fields that were decrypted.
	values []string
}

// addValues adds those of a document that its encrypted form does not have.
func (k *secretKinds) addValues(plain, sealed *kyaml.Node) {
	known := map[string]bool{}
	scalars(sealed, func(value string) { known[value] = true })
	scalars(plain, func(value string) {
		if !known[value] {
			k.values = append(k.values, value)
		}
	})
}

// addText adds what a file holds that was decrypted as a whole: each line of it, or what
// follows the first = of the line, and all of it.
func (k *secretKinds) addText(text []byte) {
	k.values = append(k.values, strings.TrimSpace(string(text)))
	for line := range strings.SplitSeq(string(text), "\n") {
		if _, value, isVariable := strings.Cut(line, "="); isVariable {
			line = value
		}
		k.values = append(k.values, strings.Trim(strings.TrimSpace(line), `"'`))
	}
}

// leastTold is the length from which on a decrypted value is looked for in objects: shorter
// ones, such as true or 8080, are in many that have nothing to do with it.
const leastTold = 5

// carries tells whether a text of an object is a decrypted value, holds one, or holds it in
// base64. Where build and objects cannot be followed, this finds what was decrypted.
func (k *secretKinds) carries(in any) bool {
	switch in := in.(type) {
	case string:
		if k.tells(in) {
			return true
		}
		plain, err := base64.StdEncoding.DecodeString(in)
		return err == nil && len(plain) >= leastTold && k.tells(string(plain))
	case []any:
		return slices.ContainsFunc(in, k.carries)
	case map[string]any:
		for key, value := range in {
			if k.tells(key) || k.carries(value) {
				return true
			}
		}
	}
	return false
}

// tells tells whether a text is a decrypted value or holds one. A short one has to be all of
// it: admin is a word of many names.
func (k *secretKinds) tells(text string) bool {
	const leastWithin = 8
	for _, value := range k.values {
		if len(value) >= leastTold && (text == value || len(value) >= leastWithin && strings.Contains(text, value)) {
			return true
		}
	}
	return false
}

// scalars goes through the values of a document.
func scalars(node *kyaml.Node, each func(string)) {
	if node.Kind == kyaml.ScalarNode {
		each(node.Value)
	}
	for _, child := range node.Content {
		scalars(child, each)
	}
}

func (k *secretKinds) add(kind string) {
	if k.kinds == nil {
		k.kinds = map[string]bool{}
	}
	k.kinds[kind] = true
	k.all = k.all || kind == ""
}

func (k *secretKinds) covers(kind string) bool { return k.all || k.kinds[kind] }

// objectSet collects the objects of one directory, each once.
type objectSet struct {
	manifests map[identity]directories.Manifest
	// sealed are the files that stay encrypted.
	sealed []string
	// ignored are kustomizations of which a part is not read.
	ignored []string
}

func newObjectSet() *objectSet {
	return &objectSet{manifests: map[identity]directories.Manifest{}}
}

func (s *objectSet) add(manifest directories.Manifest) error {
	id := identityOf(manifest.Object)
	if first, ok := s.manifests[id]; ok {
		return &directories.ContentError{
			Reason: v1alpha1.ReasonDuplicateObject, File: manifest.File, Line: manifest.Line,
			Message: fmt.Sprintf("%s is there twice, first in %s: remove one", id, placeOf(first)),
		}
	}
	if len(s.manifests) >= maxObjects {
		return &tooMany{invalid(manifest.File, manifest.Line, "", "%s is one object more than the %d that a layer may have: split the layer", id, maxObjects)}
	}
	s.manifests[id] = manifest
	return nil
}

func placeOf(manifest directories.Manifest) string {
	if manifest.Line == 0 {
		return manifest.File
	}
	return fmt.Sprintf("%s:%d", manifest.File, manifest.Line)
}

// directory returns the objects in the order of their identity.
func (s *objectSet) directory() *directories.Directory {
	ids := make([]identity, 0, len(s.manifests))
	for id := range s.manifests {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, identity.compare)
	directory := &directories.Directory{Sealed: s.sealed, Ignored: s.ignored}
	for _, id := range ids {
		directory.Manifests = append(directory.Manifests, s.manifests[id])
	}
	directory.Digest = digestOf(directory.Manifests)
	return directory
}

// digestOf returns the plain digest of objects, in the order of their identity.
func digestOf(manifests []directories.Manifest) string {
	return digests.Key{}.OfDirectory(manifests)
}

// canonical returns JSON with sorted keys. Values that come from YAML or JSON
// cannot fail to be written as JSON.
func canonical(object *unstructured.Unstructured) []byte {
	data, err := json.Marshal(object.Object)
	if err != nil {
		panic(fmt.Sprintf("cannot write an object as JSON: %v", err))
	}
	return data
}

// tooMany ends the reading of a directory: each object from here on would be one more.
type tooMany struct{ *directories.ContentError }

// Unwrap returns the mistake.
func (e *tooMany) Unwrap() error { return e.ContentError }
