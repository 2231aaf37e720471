// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imagestest makes images of programs for tests.
package imagestest

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"path"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one of a layer.
type File struct {
	// Name is its path, without a slash first.
	Name string
	// Content of it, or where it leads to as a link.
	Content, Link string
}

// large is from how many bytes on a layer is not compressed.
const large = 1 << 20

// Layer returns a layer with files.
func Layer(t testing.TB, files ...File) v1.Layer {
	t.Helper()
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, file := range files {
		header := &tar.Header{Name: file.Name, Mode: 0o755, Size: int64(len(file.Content)), Typeflag: tar.TypeReg}
		if file.Link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, file.Link
		}
		must(t, archive.WriteHeader(header))
		_, err := archive.Write([]byte(file.Content))
		must(t, err)
	}
	must(t, archive.Close())
	if packed.Len() > large { // which takes long with -race
		return static.NewLayer(packed.Bytes(), types.OCIUncompressedLayer)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	must(t, err)
	return layer
}

// Entrypoint is the program of an image.
const Entrypoint = "/bin/plugin"

// Image returns an image of layers that runs Entrypoint.
func Image(t testing.TB, layers ...v1.Layer) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layers...)
	must(t, err)
	config, err := image.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Entrypoint = runtime.GOOS, runtime.GOARCH, []string{Entrypoint}
	image, err = mutate.ConfigFile(image, config)
	must(t, err)
	return image
}

// Index returns the images of this platform and of another one as one.
func Index(t testing.TB, image v1.Image) v1.ImageIndex {
	t.Helper()
	other := Image(t, Layer(t, File{Name: path.Base(Entrypoint), Content: "of another platform"}))
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	return mutate.AppendManifests(index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "plan9", Architecture: "mips"}}},
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}}},
	)
}

// Push pushes an image, or an index, to host/repository:tag, and returns its digest.
func Push(t testing.TB, reference string, pushed remote.Taggable) (digest string) {
	t.Helper()
	tag, err := name.NewTag(reference, name.Insecure)
	must(t, err)
	switch of := pushed.(type) {
	case v1.ImageIndex:
		must(t, remote.WriteIndex(tag, of))
	case v1.Image:
		must(t, remote.Write(tag, of))
	default:
		t.Fatalf("%T is no image", pushed)
	}
	found, err := remote.Head(tag)
	must(t, err)
	return found.Digest.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewKey returns a key that signs images, and its public half in PEM.
func NewKey(t testing.TB) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	data, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(t, err)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: data}))
}
