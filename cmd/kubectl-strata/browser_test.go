// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const secretAddress = "http://127.0.0.1:4321/?token=SECRET#act=OTHER"

// fakeOpener puts a program in the place of the one that opens files. It notes its arguments
// and its environment.
func fakeOpener(t *testing.T) (notes string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("other systems open files with a program of a fixed place")
	}
	folder := t.TempDir()
	notes = filepath.Join(folder, "notes")
	script := "#!/bin/sh\n{ echo \"$@\"; env; } > " + notes + ".new && mv " + notes + ".new " + notes + "\n"
	if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", folder)
	return notes
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// Neither token nor the secret for acts is in the arguments or the environment of a program
// that other users see: they are in a file that its user alone may read, and that goes once the
// page was opened.
func TestNoSecretIsInACommandLine(t *testing.T) {
	notes := fakeOpener(t)
	opened := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &bytes.Buffer{}
	shown := newTool(out, out)
	shown.browse(ctx, secretAddress, opened)
	eventually(t, "the browser is started", func() bool { _, err := os.Stat(notes); return err == nil })
	text, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "OTHER") {
		t.Errorf("the program is given a secret:\n%s", text)
	}
	args, _, _ := strings.Cut(string(text), "\n")
	page, err := os.ReadFile(args)
	if err != nil || !strings.Contains(string(page), `url=http://127.0.0.1:4321/?token=SECRET#act=OTHER"`) {
		t.Fatalf("the file is %s (%v)", page, err)
	}
	for path, want := range map[string]os.FileMode{args: 0o600, filepath.Dir(args): os.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has the mode %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
	close(opened)
	eventually(t, "the file goes", func() bool { _, err := os.Stat(filepath.Dir(args)); return os.IsNotExist(err) })
}

// The file goes with the command, too, where nobody has opened the page.
func TestTheFileGoesWithTheCommand(t *testing.T) {
	notes := fakeOpener(t)
	ctx, cancel := context.WithCancel(t.Context())
	shown := newTool(&bytes.Buffer{}, &bytes.Buffer{})
	shown.browse(ctx, secretAddress, make(chan struct{}))
	eventually(t, "the browser is started", func() bool { _, err := os.Stat(notes); return err == nil })
	cancel()
	eventually(t, "the file goes", func() bool {
		left, err := filepath.Glob(filepath.Join(filepath.Dir(notes), "strata-ui-*"))
		return err == nil && len(left) == 0
	})
}

func TestConfinedBrowsers(t *testing.T) {
	snaps, flatpaks := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(snaps, "firefox_firefox.desktop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for desktop, want := range map[string]bool{"firefox_firefox.desktop": true, "firefox.desktop": false, "": false, ".": false} {
		if got := isConfined(desktop, []string{snaps, flatpaks}); got != want {
			t.Errorf("%q: %t, want %t", desktop, got, want)
		}
	}
}
