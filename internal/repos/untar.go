// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of an archive beside its size.
const (
	maxEntries  = 100_000
	maxNamePart = 255
	maxName     = 1024
)

// untarFile unpacks a verified archive into one file. It does what Flux's tar
// package does, and refuses what that drops or lets pass: links, devices,
// entries without end, names that are too long for a file system.
func untarFile(archive, content string, limit int64) (_ *index, err error) {
	in, err := os.Open(archive) // #nosec G304 -- a name below the cache folder
	if err != nil {
		return nil, fmt.Errorf("cannot unpack artifact: %w", err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(content, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- a name below the cache folder
	if err != nil {
		return nil, fmt.Errorf("cannot unpack artifact: %w", err)
	}
	buffered := bufio.NewWriterSize(out, 1<<16)
	unpacked, err := untar(bufio.NewReader(in), buffered, limit)
	if stored := errors.Join(buffered.Flush(), out.Close()); err == nil && stored != nil {
		err = fmt.Errorf("cannot unpack artifact: %w", stored)
	}
	return unpacked, err
}

// untar writes the contents of the files in an archive one after the other.
func untar(archive io.Reader, content io.Writer, limit int64) (*index, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, refuse("", "the artifact is not a tar archive compressed with gzip: %s", err)
	}
	// Headers count too: entries without content can go on for ever.
	stream := &io.LimitedReader{R: unzipped, N: 2*limit + 64<<20}
	reader := tar.NewReader(stream)
	u := &untarrer{
		content: content, limit: limit, folders: map[string]bool{".": true}, files: map[string]stored{},
		buffer: make([]byte, copySize), digest: sha256.New(),
	}
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return newIndex(u.files, slices.Collect(maps.Keys(u.folders))), nil
		case err != nil && stream.N <= 0:
			return nil, u.tooLarge()
		case err != nil:
			return nil, refuse("", "the artifact is not a tar archive that can be read: %s", err)
		}
		if err := u.entry(header, reader); err != nil {
			return nil, err
		}
	}
}

type untarrer struct {
	content io.Writer
	limit   int64
	entries int
	// bytes of names and contents, which count alike; offset is where the next
	// content begins.
	bytes, offset int64
	folders       map[string]bool
	files         map[string]stored
	// buffer and digest serve one file after the other; artifacts have many.
	buffer []byte
	digest hash.Hash
}

const copySize = 32 << 10

func (u *untarrer) entry(header *tar.Header, content io.Reader) error {
	u.entries++
	if u.entries > maxEntries {
		return refuse("", "the artifact has more than the %d files that are allowed: leave files out of the source with spec.ignore", maxEntries)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := cleanName(header.Name)
	if err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.folder(name)
	case tar.TypeReg:
		return u.file(name, header.Size, content)
	default:
		return refuse(shown(name), "is a %s: only files and directories are allowed in an artifact", kindOf(header.Typeflag))
	}
}

func (u *untarrer) folder(name string) error {
	if u.folders[name] {
		return nil
	}
	if _, isFile := u.files[name]; isFile {
		return twice(name)
	}
	if err := u.folder(path.Dir(name)); err != nil {
		return err
	}
	if u.bytes += int64(len(name)); u.bytes > u.limit {
		return u.tooLarge()
	}
	u.folders[name] = true
	return nil
}

func (u *untarrer) file(name string, size int64, content io.Reader) error {
	u.bytes += int64(len(name)) + size
	if size < 0 || u.bytes > u.limit {
		return u.tooLarge()
	}
	if _, isFile := u.files[name]; isFile || u.folders[name] {
		return twice(name)
	}
	if err := u.folder(path.Dir(name)); err != nil {
		return err
	}
	u.digest.Reset()
	source := &readErrors{Reader: io.LimitReader(content, size)}
	n, err := io.CopyBuffer(io.MultiWriter(u.content, u.digest), source, u.buffer)
	switch {
	case source.err != nil || err == nil && n != size:
		return refuse(shown(name), "the artifact ends, or is damaged, in the middle of this file")
	case err != nil:
		return fmt.Errorf("cannot unpack artifact: %w", err)
	}
	u.files[name] = stored{offset: u.offset, size: size, sum: sum(u.digest.Sum(nil))}
	u.offset += size
	return nil
}

func twice(name string) error {
	return refuse(shown(name), "is in the artifact twice, or as a file and a directory")
}

func (u *untarrer) tooLarge() error {
	return refuse(
		"",
		"the artifact unpacks to more than the %d bytes that are allowed: leave files out of the source with spec.ignore, or raise --artifact-max-size",
		u.limit,
	)
}

// cleanName returns the name of an entry as io/fs wants it.
func cleanName(name string) (string, error) {
	switch {
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return "", refuse(shown(name), "its name is not text: only UTF-8 names are allowed in an artifact")
	case strings.HasPrefix(name, "/"):
		return "", refuse(shown(name), "its name is absolute: only names inside the artifact are allowed")
	case len(name) > maxName:
		return "", refuse(shown(name), "its name has %d bytes: %d are allowed", len(name), maxName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refuse(shown(name), "its name leaves the artifact: only names without .. are allowed")
		}
		if len(part) > maxNamePart {
			return "", refuse(shown(name), "a part of its name has %d bytes: %d are allowed", len(part), maxNamePart)
		}
	}
	return path.Clean(name), nil
}

func kindOf(flag byte) string {
	switch flag {
	case tar.TypeSymlink:
		return "symbolic link"
	case tar.TypeLink:
		return "hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "pipe"
	default:
		return fmt.Sprintf("tar entry of type %q", flag)
	}
}
