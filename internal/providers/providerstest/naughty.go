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
	"sync"
	"testing"

	"github.com/strata-project/strata/internal/providers"
)

// naughty is built once in a process.
var naughty = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "strata-naughty-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "naughty")
	//nolint:gosec // the path is of the folder made above
	out, err := exec.Command("go", "build", "-o", path, "github.com/strata-project/strata/internal/providers/testdata/naughty").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path) //nolint:gosec // it was built above
})

// Naughty puts the plug-in into a folder, as a host reads it, and returns its digest.
func Naughty(t testing.TB, folder string) (digest string) {
	t.Helper()
	program, err := naughty()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(folder, providers.FileOf(digest)), program, 0o500); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return digest
}
