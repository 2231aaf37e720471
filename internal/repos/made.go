// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/kustomize"
)

// makeKustomization writes the kustomization of a directory as Flux does it, and returns
// the files with it in its place. It is judged with them, as one that is in the artifact.
func makeKustomization(ctx context.Context, files fs.FS, directory string, how builds.Build, with generator) (fs.FS, string, error) {
	needed, err := filesOfGenerator(ctx, files, directory, how)
	if err != nil {
		return nil, "", err
	}
	made, err := with(ctx, &kustomize.Request{Files: needed, Directory: directory, Generate: how.Generator})
	var refusal *kustomize.Refusal
	var ended *kustomize.Ended
	switch {
	case errors.As(err, &refusal):
		return nil, "", failed(directory, "", "cannot make its kustomization: %s", buildMessage(err, needed))
	case errors.As(err, &ended):
		return nil, "", failed(directory, "", "making its kustomization %s, and is not tried again before a file of it changes", ended.Message)
	case err != nil:
		return nil, "", fmt.Errorf("cannot make the kustomization of %s: %w", directory, err)
	}
	if made.File != path.Clean(made.File) || path.Dir(made.File) != directory {
		return nil, "", fmt.Errorf("cannot make the kustomization of %s: it would be %s", directory, made.File)
	}
	return overlaid{FS: files, name: made.File, data: made.Text}, made.File, nil
}

// filesOfGenerator returns what Flux's generator looks at: the kustomization of the
// directory, or all manifests below it, and which components there are.
func filesOfGenerator(ctx context.Context, files fs.FS, directory string, how builds.Build) (map[string][]byte, error) {
	reader := &reader{files: files}
	needed := map[string][]byte{}
	components, _ := how.Generator["components"].([]any)
	for _, component := range components {
		name, _ := component.(string)
		name = path.Join(directory, name)
		if !fs.ValidPath(name) {
			continue // the generator refuses it
		}
		if _, err := fs.Stat(files, name); err == nil {
			needed[path.Join(name, ".there")] = nil
		}
	}
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(directory, base)
		if info, err := fs.Stat(files, name); err != nil || info.IsDir() {
			continue
		}
		data, err := reader.read(name)
		if err != nil {
			return nil, err
		}
		if err := checkPlain(name, data); err != nil {
			return nil, err
		}
		needed[name] = data
		return needed, nil
	}
	return needed, fs.WalkDir(files, directory, func(name string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("cannot read %s: %w", name, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case item.IsDir():
			needed[path.Join(name, ".there")] = nil
			return nil
		case !slices.Contains(konfig.RecognizedKustomizationFileNames(), item.Name()) && path.Ext(name) != ".yaml" && path.Ext(name) != ".yml":
			return nil
		}
		needed[name], err = reader.read(name)
		return err
	})
}

// overlaid are files with one in the place of another, or beside them.
type overlaid struct {
	fs.FS
	name string
	data []byte
}

// Open opens a file.
func (o overlaid) Open(name string) (fs.File, error) {
	if name == o.name {
		return &madeFile{Reader: bytes.NewReader(o.data), name: path.Base(name)}, nil
	}
	return o.FS.Open(name)
}

// Stat says what a name is.
func (o overlaid) Stat(name string) (fs.FileInfo, error) {
	if name == o.name {
		return (&madeFile{Reader: bytes.NewReader(o.data), name: path.Base(name)}).Stat()
	}
	return fs.Stat(o.FS, name)
}

// madeFile is a file that lies nowhere.
type madeFile struct {
	*bytes.Reader
	name string
}

// Close does nothing.
func (f *madeFile) Close() error { return nil }

// Stat describes the file.
func (f *madeFile) Stat() (fs.FileInfo, error) { return f, nil }

// Name of the file.
func (f *madeFile) Name() string { return f.name }

// Mode of the file, which can be read.
func (f *madeFile) Mode() fs.FileMode { return 0o444 }

// ModTime is not known.
func (f *madeFile) ModTime() time.Time { return time.Time{} }

// IsDir is false.
func (f *madeFile) IsDir() bool { return false }

// Sys is nil.
func (f *madeFile) Sys() any { return nil }
