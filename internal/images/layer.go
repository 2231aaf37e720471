// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// whiteout begins the name of a file that says that a layer below has one no more.
const whiteout = ".wh."

// fromLayer looks for a file in a layer, writes it into the store, and returns its digest. All of
// the layer is read, since only then is it known to be the one that the image has.
func (s *Store) fromLayer(ctx context.Context, repository *remote.Repository, layer ocispec.Descriptor, wanted string) (digest string, found bool, err error) {
	if layer.Size > maxLayer {
		return "", false, fmt.Errorf("it has %d bytes, more than %d", layer.Size, maxLayer)
	}
	body, err := repository.Fetch(ctx, layer)
	if err != nil {
		return "", false, fmt.Errorf("it cannot be fetched: %w", err)
	}
	defer func() { _ = body.Close() }()
	checked := content.NewVerifyReader(body, layer)
	written, digest, err := s.search(checked, layer.MediaType, wanted)
	if written != "" {
		defer func() { _ = os.Remove(written) }()
	}
	if err != nil {
		return "", false, err
	}
	if _, err := io.Copy(io.Discard, checked); err != nil {
		return "", false, fmt.Errorf("it cannot be fetched: %w", err)
	}
	if err := checked.Verify(); err != nil {
		return "", false, fmt.Errorf("it is another one than its digest says: %w", err)
	}
	if written == "" {
		return "", false, nil
	}
	if err := os.Rename(written, s.path(digest)); err != nil {
		return "", false, fmt.Errorf("a program cannot be kept: %w", err)
	}
	return digest, true, nil
}

// search looks for a file in the content of a layer. Where it is there, it is written to a new
// file, whose path is returned, with the digest.
func (s *Store) search(layer io.Reader, mediaType, wanted string) (written, digest string, err error) {
	switch {
	case strings.HasSuffix(mediaType, "gzip"):
		unzipped, err := gzip.NewReader(layer)
		if err != nil {
			return "", "", fmt.Errorf("it cannot be unpacked: %w", err)
		}
		layer = unzipped
	case !strings.HasSuffix(mediaType, "tar"):
		return "", "", fmt.Errorf("it is of the type %q: layers must be gzip or tar", mediaType)
	}
	limited := &io.LimitedReader{R: layer, N: maxUnpacked}
	files := tar.NewReader(limited)
	for {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return written, digest, nil
		case err != nil && limited.N <= 0:
			return written, "", fmt.Errorf("it has more than %d bytes unpacked", maxUnpacked)
		case err != nil:
			return written, "", fmt.Errorf("it cannot be unpacked: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if removes(name, wanted) {
			return written, "", fmt.Errorf("it removes %s, which is the image's entrypoint", wanted)
		}
		if name != wanted {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return written, "", fmt.Errorf("%s is no file of its own: it may be no link", wanted)
		}
		if header.Size > maxProgram {
			return written, "", fmt.Errorf("%s has %d bytes, more than %d", wanted, header.Size, maxProgram)
		}
		if written != "" {
			return written, "", fmt.Errorf("%s is in it twice", wanted)
		}
		if written, digest, err = s.write(files); err != nil {
			return written, "", err
		}
	}
}

// removes tells whether a file of a layer says that another one is no more.
func removes(name, wanted string) bool {
	folder, base := path.Split(name)
	gone, is := strings.CutPrefix(base, whiteout)
	if !is {
		return false
	}
	if base == whiteout+whiteout+".opq" { // all that its folder has below
		return strings.HasPrefix(wanted, folder)
	}
	return wanted == folder+gone || strings.HasPrefix(wanted, folder+gone+"/")
}

// write writes a program to a new file of the store.
func (s *Store) write(from io.Reader) (written, digest string, err error) {
	file, err := os.CreateTemp(s.folder, "fetched-")
	if err != nil {
		return "", "", fmt.Errorf("a program cannot be written: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), from)
	err = errors.Join(err, file.Chmod(0o500), file.Close())
	if err != nil {
		return file.Name(), "", fmt.Errorf("a program cannot be written: %w", err)
	}
	return file.Name(), "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
