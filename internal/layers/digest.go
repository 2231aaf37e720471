// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

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

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
)

// digestKeyLength is how many bytes a DigestKey has.
const digestKeyLength = 32

// How digests of directories begin: what holds Secrets has one that nobody can
// compute without the controller's key.
const (
	plainDigest = "sha256:"
	keyedDigest = "hmac-sha256:"
)

// DigestKey keys the digests of Secrets, and of directories that hold some. A status
// can be read by those who may not read Secrets: with a plain digest they could try
// values until one fits. The zero value is no key, and all digests are plain; it is
// for whoever writes no status.
type DigestKey struct{ key string }

// NewDigestKey returns the key of some bytes. Its error says what is wrong with them.
func NewDigestKey(data []byte) (DigestKey, error) {
	if len(data) != digestKeyLength {
		return DigestKey{}, fmt.Errorf("a key has %d bytes, and this has %d", digestKeyLength, len(data))
	}
	// Not random is what somebody has written by hand.
	if distinct := slices.Compact(slices.Sorted(slices.Values(data))); len(distinct) < digestKeyLength/3 {
		return DigestKey{}, fmt.Errorf("a key is random, and this has %d different bytes", len(distinct))
	}
	return DigestKey{key: string(data)}, nil
}

// String does not tell the key.
func (k DigestKey) String() string {
	if k.key == "" {
		return "no key"
	}
	return "a key"
}

// GoString is as String.
func (k DigestKey) GoString() string { return k.String() }

// MarshalText is as String.
func (k DigestKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Equal tells whether two keys are the same.
func (k DigestKey) Equal(other DigestKey) bool { return hmac.Equal([]byte(k.key), []byte(other.key)) }

// hash returns a keyed hash for a purpose, so that no digest of one purpose is that of
// another.
func (k DigestKey) hash(purpose string) hash.Hash {
	sum := hmac.New(sha256.New, []byte(k.key))
	_, _ = sum.Write([]byte(purpose + "\x00"))
	return sum
}

// MAC authenticates parts for a purpose: without the key nobody can make it. It is
// empty where there is no key.
func (k DigestKey) MAC(purpose string, parts ...string) string {
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
func (k DigestKey) IsMAC(mac, purpose string, parts ...string) bool {
	return k.key != "" && hmac.Equal([]byte(mac), []byte(k.MAC(purpose, parts...)))
}

// OfObject identifies an object, short enough to be kept for every object of a layer.
func (k DigestKey) OfObject(obj *unstructured.Unstructured) string {
	data, err := json.Marshal(obj.Object) // which writes the keys of a mapping in order
	if err != nil {
		// Objects come out of a decoder, which yields nothing that JSON lacks.
		return ""
	}
	sum := sha256.New()
	if k.key != "" && IsSecret(obj) {
		sum = k.hash("object")
	}
	_, _ = sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil)[:10])
}

// OfDirectory identifies objects in the order of their identity: which files they are
// in does not matter.
func (k DigestKey) OfDirectory(manifests []directories.Manifest) string {
	if k.key == "" || !holdSecrets(manifests) {
		return plainDigest + sumOf(sha256.New(), manifests)
	}
	return keyedDigest + sumOf(k.hash("directory"), manifests)
}

// Fits tells whether a digest is that of a directory with these objects. A plain one
// of what was deployed before there was a key counts, too.
func (k DigestKey) Fits(manifests []directories.Manifest, digest string) bool {
	if !IsKeyed(digest) {
		return digest == DigestKey{}.OfDirectory(manifests)
	}
	return k.key != "" && hmac.Equal([]byte(digest), []byte(keyedDigest+sumOf(k.hash("directory"), manifests)))
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
func IsKeyed(digest string) bool { return strings.HasPrefix(digest, keyedDigest) }

// IsSecret tells objects whose content not everybody may read who may read statuses.
func IsSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

func holdSecrets(manifests []directories.Manifest) bool {
	return slices.ContainsFunc(manifests, func(m directories.Manifest) bool { return IsSecret(m.Object) })
}

// content is Content with the digests that a status may have.
func (o Observation) content(dir *directories.Directory, version string) ([]dependents.Dependent, error) {
	wanted, err := Content(dir, o.Layer.Name, version, o.Scopes)
	for i := range wanted {
		if obj := wanted[i].Object; obj != nil && wanted[i].Digest != "" && IsSecret(obj) {
			wanted[i].Digest = o.Settings.DigestKey.OfObject(obj)
		}
	}
	return wanted, err
}

// DigestIn returns the digest by which a status knows what a directory of an artifact
// holds; empty where it does not know.
func DigestIn(status v1alpha1.AddonsLayerStatus, artifact, path string) string {
	is := func(ref *v1alpha1.ArtifactReference) bool {
		return ref != nil && artifact != "" && ref.Digest == artifact && ref.Path == path
	}
	if status.Attempt != nil && is(status.Attempt.Artifact) {
		return status.Attempt.Digest
	}
	for _, entry := range status.History {
		if is(entry.Artifact) {
			return entry.Digest
		}
	}
	return ""
}

// Recognised returns a layer whose status knows its source's directory by the digest
// that this has now: with another key, or with the first one, the digest of the very
// same content is another, and nothing else has changed. Other contents stay as they
// are known. What it goes by is a status, which others may write: it opens no guard,
// and holds no content back that was not gone back from.
func Recognised(layer *v1alpha1.AddonsLayer, source *Source, dir *directories.Directory) *v1alpha1.AddonsLayer {
	if source == nil || dir == nil {
		return layer
	}
	was := DigestIn(layer.Status, source.Digest, layer.Spec.Source.Path)
	if was == "" || was == dir.Digest || !IsKeyed(was) && !IsKeyed(dir.Digest) {
		return layer
	}
	known := layer.DeepCopy()
	status := &known.Status
	renew := func(digest *string) {
		if *digest == was {
			*digest = dir.Digest
		}
	}
	renew(&status.Digest)
	if attempt := status.Attempt; attempt != nil && attempt.Digest == was {
		attempt.Digest, attempt.Allowed, attempt.Refused = dir.Digest, nil, false
	}
	if back := status.Rollback; back != nil && back.Revision == dir.Revision {
		renew(&back.Digest)
	}
	for i := range status.History {
		if entry := &status.History[i]; entry.Digest == was {
			// What is kept of it has a name of the digest that it had.
			entry.Digest, entry.Kept = dir.Digest, false
		}
	}
	return known
}
