// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/strata-project/strata/internal/reserved"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

// RevisionKey is the key of the Secrets that keep packed directories.
const RevisionKey = "objects.json.gz"

// RevisionName returns the name of the Secret that keeps what a layer has deployed,
// by the digest of that. No other Secret that Strata, Flux or Helm makes has such a
// name.
func RevisionName(layer, digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return fmt.Sprintf("%s%s.%s", reserved.RevisionPrefix, layer, hex[:min(len(hex), 20)])
}

// MaxRevision is how many bytes a packed directory may have: what the API
// server accepts as one object, with room for what is around it.
const MaxRevision = 512 << 10

// ErrRevisionTooLarge says that a directory does not fit into one object of the
// cluster.
var ErrRevisionTooLarge = errors.New("the objects are too large to be kept in the cluster")

// packedManifest is one object of a packed directory.
type packedManifest struct {
	File  string       `json:"file,omitempty"`
	Line  int          `json:"line,omitempty"`
	Home  bool         `json:"home,omitempty"`
	Needs []objects.ID `json:"needs,omitempty"`
	// Confidential is as of the manifest.
	Confidential bool                       `json:"confidential,omitempty"`
	Decrypted    bool                       `json:"decrypted,omitempty"`
	AsFlux       bool                       `json:"asFlux,omitempty"`
	Object       *unstructured.Unstructured `json:"object"`
}

// PackRevision returns a directory's objects as compressed JSON, the same for
// the same directory. The error is ErrRevisionTooLarge where that has more than
// MaxRevision bytes.
func PackRevision(directory *directories.Directory) ([]byte, error) {
	packed := make([]packedManifest, 0, len(directory.Manifests))
	for _, manifest := range directory.Manifests {
		packed = append(packed, packedManifest{
			File: manifest.File, Line: manifest.Line, Home: manifest.Home, Needs: manifest.Needs, Confidential: manifest.Confidential,
			Decrypted: manifest.Decrypted, AsFlux: manifest.AsFlux, Object: manifest.Object,
		})
	}
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("cannot pack the revision: %w", err)
	}
	if err := errors.Join(json.NewEncoder(writer).Encode(packed), writer.Close()); err != nil {
		return nil, fmt.Errorf("cannot pack the revision: %w", err)
	}
	if buffer.Len() > MaxRevision {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrRevisionTooLarge, buffer.Len(), MaxRevision)
	}
	return buffer.Bytes(), nil
}

// UnpackRevision returns the directory that PackRevision packed, if it is the
// one with that digest: what was kept in a cluster may have been changed there.
// A digest that needs a key fits nothing without the one that it was made with.
func UnpackRevision(data []byte, digest string, key digests.Key) (*directories.Directory, error) {
	directory, err := ReadRevision(data)
	switch {
	case err != nil:
		return nil, err
	case key.Fits(directory.Manifests, digest):
		directory.Digest = digest
		return directory, nil
	case digests.IsKeyed(digest):
		return nil, errors.New("cannot unpack the revision: it is not what was deployed, or the controller's key is another than it was then")
	default:
		return nil, fmt.Errorf("cannot unpack the revision: its digest is %s instead of %s", directory.Digest, digest)
	}
}

// ReadRevision returns the directory that PackRevision packed, or that somebody has
// put in its place, with a plain digest.
func ReadRevision(data []byte) (*directories.Directory, error) {
	if len(data) > MaxRevision {
		return nil, fmt.Errorf("cannot unpack the revision: it has %d bytes, at most %d are read", len(data), MaxRevision)
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the revision: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(reader, maxDirectory+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot unpack the revision: %w", err)
	case len(plain) > maxDirectory:
		return nil, fmt.Errorf("cannot unpack the revision: it has more than %d bytes", maxDirectory)
	}
	var packed []packedManifest
	if err := json.Unmarshal(plain, &packed); err != nil {
		return nil, fmt.Errorf("cannot unpack the revision: %w", err)
	}
	set := newObjectSet()
	for _, manifest := range packed {
		if manifest.Object == nil {
			return nil, errors.New("cannot unpack the revision: it has an entry without an object")
		}
		if err := set.add(
			directories.Manifest{
				File: manifest.File, Line: manifest.Line, Home: manifest.Home, Needs: manifest.Needs, Confidential: manifest.Confidential,
				Decrypted: manifest.Decrypted, AsFlux: manifest.AsFlux, Object: manifest.Object,
			},
		); err != nil {
			return nil, fmt.Errorf("cannot unpack the revision: %w", err)
		}
	}
	return set.directory(), nil
}

// Remember puts a directory into memory, so that ByDigest finds it.
func (s *Store) Remember(directory *directories.Directory) {
	s.parsed.add(parsedKey{artifact: directory.Digest, path: "."}, newParsed(directory, nil, nil))
}

// IsBeside tells whether an artifact that was used once lay where a source has its
// present one: at the same server and in the same folder, for the same directory of
// it. Whoever wrote down the address may be somebody else than the source.
func IsBeside(once *v1alpha1.ArtifactReference, directory string, present *Artifact) bool {
	if once == nil || present == nil || path.Clean(once.Path) != path.Clean(directory) {
		return false
	}
	was, err := url.Parse(once.URL)
	if err != nil {
		return false
	}
	is, err := url.Parse(present.URL)
	if err != nil {
		return false
	}
	for _, u := range []*url.URL{was, is} {
		// An address that a server may read in another way than it looks proves nothing.
		if u.Opaque != "" || u.User != nil || u.RawPath != "" || u.Fragment != "" || u.Path == "" || path.Clean(u.Path) != u.Path {
			return false
		}
	}
	return was.Scheme == is.Scheme && was.Host == is.Host && path.Dir(was.Path) == path.Dir(is.Path)
}
