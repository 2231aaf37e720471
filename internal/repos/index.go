// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// sum identifies a content.
type sum [sha256.Size]byte

// MarshalText writes a sum as hexadecimal digits.
func (s sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (s *sum) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(s) {
		return fmt.Errorf("%d digits are no sum", len(text))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// index says what an unpacked artifact holds under each name, without reading
// a file. The top is the folder ".".
type index struct {
	files   map[string]stored
	folders map[string]*folder
	// weight is about how many bytes of memory it takes.
	weight int
}

// stored is a file in the content of an artifact.
type stored struct {
	offset, size int64
	sum          sum
}

// folder holds the names of files and folders, in order, and the sum of them.
type folder struct {
	children []child
	sum      sum
}

type child struct {
	name   string
	folder bool
}

// nameWeight is about what a name takes in memory beside its letters.
const nameWeight = 200

// newIndex returns the index of files and folders, named as io/fs does. Folders
// of files, and those above a folder, need not be among them.
func newIndex(files map[string]stored, folders []string) *index {
	x := &index{files: files, folders: map[string]*folder{".": {}}}
	for _, name := range folders {
		x.addFolder(name)
	}
	for name := range files {
		x.weight += nameWeight + len(name)
		parent := x.addFolder(path.Dir(name))
		parent.children = append(parent.children, child{name: path.Base(name)})
	}
	for name, f := range x.folders {
		x.weight += nameWeight + len(name)
		slices.SortFunc(f.children, func(a, b child) int { return cmp.Compare(a.name, b.name) })
		f.sum = f.digest()
	}
	return x
}

// digest is over the names in a folder, and which of them are folders.
func (f *folder) digest() sum {
	var names []byte
	for _, child := range f.children {
		names = fmt.Appendf(names, "%q %t\n", child.name, child.folder)
	}
	return sha256.Sum256(names)
}

// addFolder returns a folder, which it adds with those above it.
func (x *index) addFolder(name string) *folder {
	found := x.folders[name]
	if found == nil {
		found = &folder{}
		x.folders[name] = found
		parent := x.addFolder(path.Dir(name))
		parent.children = append(parent.children, child{name: path.Base(name), folder: true})
	}
	return found
}

// digest is over the names and contents of all files.
func (x *index) digest() string {
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(x.files)) {
		_, _ = fmt.Fprintf(digest, "%x %q\n", x.files[name].sum, name)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// verify compares the content of an artifact with its index.
func (x *index) verify(content io.Reader) error {
	for _, name := range x.inOrder() {
		digest := sha256.New()
		if _, err := io.CopyN(digest, content, x.files[name].size); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if sum(digest.Sum(nil)) != x.files[name].sum {
			return fmt.Errorf("%s has changed", name)
		}
	}
	if rest, err := io.Copy(io.Discard, content); rest > 0 || err != nil {
		return errors.Join(err, errors.New("there is more than its files"))
	}
	return nil
}

// tree is an index as it is written down.
type tree struct {
	// Digest over the names and contents of all files.
	Digest string `json:"digest"`
	// Files in the order of their content, and all folders.
	Files   []treeFile `json:"files"`
	Folders []string   `json:"folders"`
}

type treeFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  sum    `json:"sum"`
}

// marshal writes the index down.
func (x *index) marshal() ([]byte, error) {
	t := tree{Digest: x.digest(), Folders: slices.Sorted(maps.Keys(x.folders))}
	for _, name := range x.inOrder() {
		file := x.files[name]
		t.Files = append(t.Files, treeFile{Name: name, Size: file.size, Sum: file.sum})
	}
	return json.Marshal(t)
}

// inOrder returns the files in the order of their content. Those without any
// have the offset of the next one.
func (x *index) inOrder() []string {
	return slices.SortedFunc(maps.Keys(x.files), func(a, b string) int {
		from, to := x.files[a], x.files[b]
		return cmp.Or(cmp.Compare(from.offset, to.offset), cmp.Compare(from.size, to.size), cmp.Compare(a, b))
	})
}

// parseIndex reads what marshal writes, and refuses what it would not.
func parseIndex(data []byte) (*index, error) {
	var t tree
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	files, offset := make(map[string]stored, len(t.Files)), int64(0)
	for _, file := range t.Files {
		if _, twice := files[file.Name]; twice || !fs.ValidPath(file.Name) || file.Size < 0 || offset+file.Size < offset {
			return nil, fmt.Errorf("it cannot hold %q", shown(file.Name))
		}
		files[file.Name] = stored{offset: offset, size: file.Size, sum: file.Sum}
		offset += file.Size
	}
	for _, name := range t.Folders {
		if !fs.ValidPath(name) {
			return nil, fmt.Errorf("it cannot hold folder %q", shown(name))
		}
	}
	x := newIndex(files, t.Folders)
	for name := range files {
		if x.folders[name] != nil {
			return nil, fmt.Errorf("%q is a file and a folder", shown(name))
		}
	}
	if x.digest() != t.Digest {
		return nil, errors.New("its names have changed")
	}
	return x, nil
}

// shown shortens a hostile name for a message.
func shown(name string) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
	if len(name) <= 80 {
		return name
	}
	return strings.ToValidUTF8(name[:80], "") + "..."
}
