// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providerstest has a plug-in for tests, which does what the parameters of a claim say.
package providerstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/strata-project/strata/internal/images/imagestest"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/test/reads"
)

// built are the programs of a process, each built once.
var built sync.Map

// Build builds a plug-in, of a folder of the source tree as seen from folder, and returns its
// program, which needs no files of this machine.
func Build(t testing.TB, folder, source string) []byte {
	t.Helper()
	once, _ := built.LoadOrStore(source, sync.OnceValues(func() ([]byte, error) { return build(folder, source) }))
	program, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func build(in, source string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "strata-build-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "plugin")
	reads.AddPrograms(in, source)
	command := exec.Command("go", "build", "-C", in, "-trimpath", "-ldflags=-s -w", "-o", path, source) //nolint:gosec // a test's own
	command.Env = append(command.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path) //nolint:gosec // it was built above
}

func naughty(t testing.TB) []byte {
	t.Helper()
	return Build(t, ".", "github.com/strata-project/strata/internal/providers/testdata/naughty")
}

// Image pushes an image of the plug-in to host/repository, with further files, and returns its
// digest.
func Image(t testing.TB, reference string, more ...imagestest.File) (digest string) {
	t.Helper()
	return ImageOf(t, reference, naughty(t), more...)
}

// ImageOf is as Image, for a program.
func ImageOf(t testing.TB, reference string, program []byte, more ...imagestest.File) (digest string) {
	t.Helper()
	layers := []v1.Layer{imagestest.Layer(t, imagestest.File{Name: strings.TrimPrefix(imagestest.Entrypoint, "/"), Content: string(program)})}
	if len(more) > 0 {
		layers = append(layers, imagestest.Layer(t, more...))
	}
	return imagestest.Push(t, reference+":latest", imagestest.Index(t, imagestest.Image(t, layers...)))
}

// Unhealthy is a file that has the plug-in say that it cannot work.
var Unhealthy = imagestest.File{Name: "etc/unhealthy", Content: "yes"}

// Naughty puts the plug-in into a folder, as a host reads it, and returns its digest.
func Naughty(t testing.TB, folder string) (digest string) {
	t.Helper()
	return Put(t, folder, naughty(t))
}

// Put puts a program into a folder, as a host reads it, and returns its digest.
func Put(t testing.TB, folder string, program []byte) (digest string) {
	t.Helper()
	sum := sha256.Sum256(program)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(folder, providers.FileOf(digest)), program, 0o500); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return digest
}
