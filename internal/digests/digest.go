// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package digests identifies objects and directories. A digest of what holds Secrets
// tells nothing of them.
package digests

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/directories"
)

// keyLength is how many bytes a Key has.
const keyLength = 32

// How digests of directories begin: what holds Secrets has one that nobody can
// compute without the controller's key.
const (
	plain = "sha256:"
	keyed = "hmac-sha256:"
)

// Key keys the digests of Secrets, and of directories that hold some. A status
// can be read by those who may not read Secrets: with a plain digest they could try
// values until one fits. The zero value is no key, and all digests are plain; it is
// for whoever writes no status.
type Key struct{ key string }

// NewKey returns the key of some bytes. Its error says what is wrong with them.
func NewKey(data []byte) (Key, error) {
	if len(data) != keyLength {
		return Key{}, fmt.Errorf("a key has %d bytes, and this has %d", keyLength, len(data))
	}
	// Not random is what somebody has written by hand.
	if distinct := slices.Compact(slices.Sorted(slices.Values(data))); len(distinct) < keyLength/3 {
		return Key{}, fmt.Errorf("a key is random, and this has %d different bytes", len(distinct))
	}
	return Key{key: string(data)}, nil
}

// String does not tell the key.
func (k Key) String() string {
	if k.key == "" {
		return "no key"
	}
	return "a key"
}

// GoString is as String.
func (k Key) GoString() string { return k.String() }

// MarshalText is as String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Equal tells whether two keys are the same.
func (k Key) Equal(other Key) bool { return hmac.Equal([]byte(k.key), []byte(other.key)) }

// hash returns a keyed hash for a purpose, so that no digest of one purpose is that of
// another.
func (k Key) hash(purpose string) hash.Hash {
	sum := hmac.New(sha256.New, []byte(k.key))
	_, _ = sum.Write([]byte(purpose + "\x00"))
	return sum
}

// MAC authenticates parts for a purpose: without the key nobody can make it. It is
// empty where there is no key.
func (k Key) MAC(purpose string, parts ...string) string {
	if k.key == "" {
		return ""
	}
	sum := k.hash(purpose)
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // so that no part goes over into the next
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// IsMAC tells whether a MAC is that of parts for a purpose.
func (k Key) IsMAC(mac, purpose string, parts ...string) bool {
	return k.key != "" && hmac.Equal([]byte(mac), []byte(k.MAC(purpose, parts...)))
}

// OfObject identifies an object, short enough to be kept for every object of a layer. One
// that is confidential has a digest as a Secret has it.
func (k Key) OfObject(obj *unstructured.Unstructured, confidential bool) string {
	data, err := json.Marshal(obj.Object) // which writes the keys of a mapping in order
	if err != nil {
		// Objects come out of a decoder, which yields nothing that JSON lacks.
		return ""
	}
	sum := sha256.New()
	if k.key != "" && (confidential || IsSecret(obj)) {
		sum = k.hash("object")
	}
	_, _ = sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil)[:10])
}

// OfDirectory identifies objects in the order of their identity: which files they are
// in does not matter.
func (k Key) OfDirectory(manifests []directories.Manifest) string {
	if k.key == "" || !holdSecrets(manifests) {
		return plain + sumOf(sha256.New(), manifests)
	}
	return keyed + sumOf(k.hash("directory"), manifests)
}

// Fits tells whether a digest is that of a directory with these objects. A plain one
// of what was deployed before there was a key counts, too.
func (k Key) Fits(manifests []directories.Manifest, digest string) bool {
	if !IsKeyed(digest) {
		return digest == Key{}.OfDirectory(manifests)
	}
	return k.key != "" && hmac.Equal([]byte(digest), []byte(keyed+sumOf(k.hash("directory"), manifests)))
}

func sumOf(sum hash.Hash, manifests []directories.Manifest) string {
	for _, manifest := range manifests {
		data, err := json.Marshal(manifest.Object.Object)
		if err != nil {
			// Values that come from YAML or JSON cannot fail to be written as JSON.
			panic(fmt.Sprintf("cannot write an object as JSON: %v", err))
		}
		_, _ = sum.Write(append(data, '\n'))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// IsKeyed tells whether a directory's digest is one that nobody can compute without
// the key.
func IsKeyed(digest string) bool { return strings.HasPrefix(digest, keyed) }

// IsSecret tells objects whose content not everybody may read who may read statuses.
func IsSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

func holdSecrets(manifests []directories.Manifest) bool {
	return slices.ContainsFunc(manifests, func(m directories.Manifest) bool { return m.Confidential || IsSecret(m.Object) })
}
