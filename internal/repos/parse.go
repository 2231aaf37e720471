// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
)

// Limits of a layer's directory. They keep the memory bounded that a mistake,
// or somebody who means harm, can make Strata use.
const (
	maxFile      = 4 << 20
	maxDirectory = 32 << 20
	maxFiles     = 20_000
	maxObjects   = 10_000
)

// Parse returns the objects of a directory, without a revision. Where its top
// has a kustomization they are what kustomize builds; otherwise they are those
// of every *.yaml, *.yml and *.json file below it, but for files and folders
// whose names begin with a dot: those configure tools (.github,
// .pre-commit-config.yaml), and no cluster. A directory that does not exist is
// Missing. The error is a *layers.ContentError where the author can mend it.
// A file system that follows links must keep them inside, as os.Root does.
func Parse(ctx context.Context, files fs.FS, name string) (*directories.Directory, error) {
	return parse(ctx, files, name, builds.Build{}, first, standard)
}

// ParseAs is Parse of a directory that becomes objects in a way that its layer names.
func ParseAs(ctx context.Context, files fs.FS, name string, how builds.Build) (*directories.Directory, error) {
	return parse(ctx, files, name, how, first, standard)
}

// builder builds what is to be built: kustomize.Build, but for tests.
type builder func(context.Context, *kustomize.Request) ([]kustomize.Object, error)

// generator writes kustomizations.
type generator func(context.Context, *kustomize.Request) (*kustomize.Kustomization, error)

// decrypter opens encrypted texts.
type decrypter func(context.Context, *kustomize.Request) (map[string][]byte, error)

// programs are what one directory is built with.
type programs struct {
	build    builder
	generate generator
	decrypt  decrypter
	// end ends what they have started; nil where that is somebody else's.
	end func()
}

// starting returns what the next directory is built with.
type starting func() programs

// standard gives each directory a process of its own.
func standard() programs {
	d := kustomize.NewDirectory()
	return programs{d.Build, d.Generate, d.Decrypt, d.Close}
}

// first keeps no mistake.
func first(_ string, err error) error { return err }

// parse is Parse, with what builds kustomizations. keep is told of every mistake that
// other files and documents do not depend on; where it returns nil, the rest is read.
func parse(ctx context.Context, files fs.FS, name string, how builds.Build, keep keepMistake, start starting) (*directories.Directory, error) {
	name, err := cleanPath(name)
	if err != nil {
		return nil, err
	}
	missing, err := findDirectory(files, name)
	if err != nil || missing {
		return &directories.Directory{Digest: EmptyDigest, Missing: true}, err
	}
	with := start()
	if with.end != nil {
		defer with.end()
	}
	var kustomization string
	if how.IsZero() {
		kustomization, err = findKustomization(files, name)
	} else {
		files, kustomization, err = makeKustomization(ctx, files, name, how, with.generate)
	}
	if err != nil {
		return nil, err
	}
	set := newObjectSet()
	if kustomization != "" {
		err = build(ctx, files, kustomization, how, set, with)
	} else {
		err = walk(ctx, files, name, set, keep)
	}
	if err != nil {
		return nil, err
	}
	return set.directory(), nil
}

// keepMistake takes a mistake in a file. It returns the error that ends the
// reading, or nil where it goes on.
type keepMistake func(file string, err error) error

// findDirectory says whether a directory is missing. A file in its way is a
// mistake, and not the same as nothing.
func findDirectory(files fs.FS, name string) (missing bool, _ error) {
	parts := strings.Split(name, "/")
	for i := range parts {
		part := path.Join(parts[:i+1]...)
		info, err := fs.Stat(files, part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("cannot read %s: %w", part, err)
		case !info.IsDir():
			return false, &directories.ContentError{
				Reason: v1alpha1.ReasonPathNotFound, File: part, Field: "spec.source.path",
				Message: "is a file: name the directory that holds the layer's manifests",
			}
		}
	}
	return false, nil
}

// walk reads every manifest below a directory, in the order of their names.
func walk(ctx context.Context, files fs.FS, top string, set *objectSet, keep keepMistake) error {
	reader := &reader{files: files}
	return fs.WalkDir(files, top, func(name string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("cannot read %s: %w", name, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case name != top && strings.HasPrefix(item.Name(), "."):
			if item.IsDir() {
				return fs.SkipDir
			}
			return nil
		case item.IsDir() || !isManifest(name) && !slices.Contains(kustomizationNames, item.Name()):
			return nil
		}
		data, err := reader.read(name)
		if err != nil {
			return keep(name, err)
		}
		return decodeFile(name, data, set, keep)
	})
}

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// reader reads the files of one directory within its limits.
type reader struct {
	files fs.FS
	count int
	bytes int64
}

func (r *reader) read(name string) ([]byte, error) {
	file, err := r.files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, invalid(name, 0, "", "is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	r.count++
	r.bytes += int64(len(data))
	switch {
	case len(data) > maxFile:
		return nil, invalid(name, 0, "", "is larger than %d bytes: split it, or move it out of the layer's directory", maxFile)
	case r.count > maxFiles:
		return nil, invalid(name, 0, "", "is one file more than the %d that a layer may have: split the layer", maxFiles)
	case r.bytes > maxDirectory:
		return nil, invalid(name, 0, "", "makes the layer larger than %d bytes: split the layer", maxDirectory)
	}
	return data, nil
}

// invalid says what is wrong with a manifest.
func invalid(file string, line int, field, format string, args ...any) *directories.ContentError {
	return &directories.ContentError{
		Reason: v1alpha1.ReasonInvalidManifest, File: file, Line: line, Field: field, Message: fmt.Sprintf(format, args...),
	}
}
