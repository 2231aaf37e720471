// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
)

// askDesktop bounds how long the desktop is asked for its browser.
const askDesktop = 5 * time.Second

// browse opens the user's browser. The address is a secret, and every user of the machine may
// read the arguments of a program: so the browser is given a file that only its user may read,
// and that leads on. The file goes once the page was opened, or when ctx ends. Where there is
// no browser, or none that may read the file, the address is there to be copied.
func (t *tool) browse(ctx context.Context, address string, opened <-chan struct{}) {
	program, args := opener(runtime.GOOS)
	if _, err := exec.LookPath(program); err != nil {
		return
	}
	if runtime.GOOS == "linux" && isConfined(defaultBrowser(ctx), desktopFolders()) {
		console.Say(t.Out, "Your browser is a snap or a flatpak, which reads no files that others may not: open the address in it yourself.")
		return
	}
	file, remove, err := leadOn(address)
	if err != nil {
		console.Say(t.Out, "The browser is not opened: %v", err)
		return
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), program, append(args, file)...) //nolint:gosec // It is one of three programs.
	if command.Start() != nil {
		remove()
		return
	}
	go func() { _ = command.Wait() }()
	go func() {
		select {
		case <-opened:
		case <-ctx.Done():
		}
		remove()
	}()
}

// opener returns the program that opens a file, and its first arguments.
func opener(system string) (program string, args []string) {
	switch system {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	return "xdg-open", nil
}

// leadOn writes a file that forwards to an address. Only its user may read it. remove deletes
// the file.
func leadOn(address string) (file string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "strata-ui-") // of mode 0700
	if err != nil {
		return "", nil, fmt.Errorf("cannot make a folder for the file that leads to the page: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) } // The token in it was used, or nobody answers it any more.
	file = filepath.Join(folder, "page.html")
	text := fmt.Sprintf(`<!doctype html><html lang=en><meta charset=utf-8><meta name=referrer content=no-referrer><title>Strata</title>`+
		`<meta http-equiv=refresh content="0;url=%[1]s"><a href="%[1]s">Strata</a></html>`, html.EscapeString(address))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot write the file that leads to the page: %w", err)
	}
	return file, remove, nil
}

// defaultBrowser returns the name of the desktop file of the user's browser; empty if it is
// unknown.
func defaultBrowser(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askDesktop)
	defer cancel()
	out, err := exec.CommandContext(ctx, "xdg-settings", "get", "default-web-browser").Output()
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSpace(string(out)))
}

// desktopFolders returns where snaps and flatpaks put their desktop files.
func desktopFolders() []string {
	folders := []string{"/var/lib/snapd/desktop/applications", "/var/lib/flatpak/exports/share/applications"}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".local", "share", "flatpak", "exports", "share", "applications"))
	}
	return folders
}

// isConfined tells whether a desktop file is that of a snap or a flatpak: such a browser does
// not see the temporary files of its user.
func isConfined(desktop string, folders []string) bool {
	if desktop == "" || desktop == "." {
		return false
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, desktop)); err == nil {
			return true
		}
	}
	return false
}
