// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const suite = `package suite

import "testing"

var built = func() string { return "plugin" }

var through = built

type user struct{}

func (user) runs() string { return through() }

func help() { user{}.runs() }

func TestDirectly(*testing.T) { built() }

func TestByAHelper(*testing.T) { help() }

func TestOfAnotherThing(*testing.T) { other() }

func other() {}
`

func TestReaching(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "suite_test.go"), []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := reaching(folder, "built")
	if want := []string{"TestByAHelper", "TestDirectly"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := reaching(folder, "nothing"); err == nil {
		t.Errorf("no declaration of that name is there, and %v reach it", got)
	}
	if got, err := reaching("../../test/e2e", "builtPlugin"); err != nil || len(got) < 30 || slices.Contains(got, "TestMain") {
		t.Errorf("of the end-to-end tests %v, %v need the plug-in", got, err)
	}
}
