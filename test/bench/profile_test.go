// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderOfProfiles(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "one", "two")
	for range 2 { // it may be there
		if err := makeProfiles(folder); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if err := makeProfiles(""); err != nil {
		t.Errorf("no profiles are wanted: %v", err)
	}
}

// A run that cannot keep its profiles ends before it measures.
func TestFolderOfProfilesThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parseFlags([]string{"--pprof-dir", filepath.Join(file, "below")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	made, err := measure(t.Context(), o)
	if err == nil || !strings.HasPrefix(err.Error(), "--pprof-dir: ") || len(made.Results) > 0 {
		t.Errorf("measured %v, error %v", made.Results, err)
	}
}
