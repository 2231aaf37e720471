// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Limits of an archive beside its size.
const (
	maxEntries  = 100_000
	maxNamePart = 255
	maxName     = 1024
)

// blockSize is what a small file takes on disk.
const blockSize = 4 << 10

// tree is what an artifact holds, unpacked.
type tree struct {
	// Digest over the names and contents of all files.
	Digest string `json:"digest"`
	// Size on disk in bytes, in whole blocks.
	Size int64 `json:"size"`
	// index of the names; nil where it is not known.
	index *index
}

// untarFile unpacks a verified archive into a folder that exists. It does what
// Flux's tar package does, and refuses what that drops or lets pass: links,
// devices, entries without end, names that are too long for a file system.
func untarFile(archive, content string, limit int64) (tree, error) {
	file, err := os.Open(archive) // #nosec G304 -- a name below the cache folder
	if err != nil {
		return tree{}, fmt.Errorf("cannot unpack artifact: %w", err)
	}
	defer func() { _ = file.Close() }()
	root, err := os.OpenRoot(content)
	if err != nil {
		return tree{}, fmt.Errorf("cannot unpack artifact: %w", err)
	}
	defer func() { _ = root.Close() }()
	return untar(bufio.NewReader(file), root, limit)
}

func untar(archive io.Reader, root *os.Root, limit int64) (tree, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return tree{}, refuse("", "the artifact is not a tar archive compressed with gzip: %s", err)
	}
	// Headers count too: entries without content can go on for ever.
	stream := &io.LimitedReader{R: unzipped, N: 2*limit + 64<<20}
	reader := tar.NewReader(stream)
	u := &untarrer{root: root, limit: limit, folders: map[string]bool{".": true}, files: map[string]sum{}}
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return u.tree(), nil
		case err != nil && stream.N <= 0:
			return tree{}, u.tooLarge()
		case err != nil:
			return tree{}, refuse("", "the artifact is not a tar archive that can be read: %s", err)
		}
		if err := u.entry(header, reader); err != nil {
			return tree{}, err
		}
	}
}

type untarrer struct {
	root    *os.Root
	limit   int64
	entries int
	bytes   int64
	size    int64
	folders map[string]bool
	files   map[string]sum
}

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
	if err := u.root.MkdirAll(name, 0o700); err != nil {
		return unpackError(name, err)
	}
	u.folders[name] = true
	u.size += blockSize
	return nil
}

func (u *untarrer) file(name string, size int64, content io.Reader) error {
	u.bytes += size
	if size < 0 || u.bytes > u.limit {
		return u.tooLarge()
	}
	if err := u.folder(path.Dir(name)); err != nil {
		return err
	}
	// The mode in the archive is of no use: a manifest is read by us alone.
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unpackError(name, err)
	}
	digest := sha256.New()
	source := &readErrors{Reader: io.LimitReader(content, size)}
	n, err := io.Copy(io.MultiWriter(file, digest), source)
	if closed := file.Close(); err == nil {
		err = closed
	}
	switch {
	case source.err != nil || err == nil && n != size:
		return refuse(shown(name), "the artifact ends, or is damaged, in the middle of this file")
	case err != nil:
		return unpackError(name, err)
	}
	u.size += (size/blockSize + 1) * blockSize
	u.files[name] = sum(digest.Sum(nil))
	return nil
}

func (u *untarrer) tree() tree {
	return tree{Digest: treeDigest(u.files), Size: u.size, index: newIndex(u.files, u.folders)}
}

func (u *untarrer) tooLarge() error {
	return refuse("", "the artifact unpacks to more than the %d bytes that are allowed: leave files out of the source with spec.ignore, or raise --artifact-max-size", u.limit)
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

// shown shortens a hostile name for a message.
func shown(name string) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
	if len(name) <= 80 {
		return name
	}
	return strings.ToValidUTF8(name[:80], "") + "..."
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

// unpackError tells an archive that no file system can hold from a file system
// that fails.
func unpackError(name string, err error) error {
	for _, errno := range []error{fs.ErrExist, fs.ErrInvalid, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP} {
		if errors.Is(err, errno) {
			return refuse(shown(name), "is in the artifact twice, as a file and a directory, or has a name that cannot be stored")
		}
	}
	return fmt.Errorf("cannot unpack artifact: %w", err)
}

func treeDigest(files map[string]sum) string {
	lines := make([]string, 0, len(files))
	for name, sum := range files {
		lines = append(lines, hex.EncodeToString(sum[:])+" "+name)
	}
	slices.Sort(lines)
	digest := sha256.New()
	for _, line := range lines {
		_, _ = fmt.Fprintf(digest, "%q\n", line)
	}
	return hex.EncodeToString(digest.Sum(nil))
}
