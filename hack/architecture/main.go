// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command architecture writes what docs/architecture.md says of the rooms from the
// code itself: the drawing of what imports what, and the size of each room.
//
//	go run ./hack/architecture docs/architecture.md
//
// With the name of a room it lists the arrows between files of that room that run back,
// and the names that make them:
//
//	go run ./hack/architecture internal/repos
//
// A room is a package without what is below test and hack. What counts is what people
// write: neither tests nor generated files.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

const module = "github.com/strata-project/strata"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: architecture FILE|ROOM")
		os.Exit(2)
	}
	act := list
	if path.Ext(os.Args[1]) == ".md" {
		act = write
	}
	if err := act(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "architecture: %v\n", err)
		os.Exit(1)
	}
}

// list prints the arrows of a room that run back.
func list(name string) error {
	rooms, err := load()
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.name == name {
			for _, a := range r.back {
				fmt.Printf("%s -> %s: %s\n", a.from, a.to, strings.Join(a.names, ", "))
			}
			fmt.Printf("%d of %d arrows run back\n", len(r.back), r.arrows)
			return nil
		}
	}
	return fmt.Errorf("there is no room %s", name)
}

// write brings the generated parts of a page up to date.
func write(file string) error {
	rooms, err := load()
	if err != nil {
		return err
	}
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for part, text := range map[string]string{"drawing": drawing(rooms), "measures": measures(rooms)} {
		if page, err = replace(page, part, text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, page, 0o644)
}

// replace puts text between the two comments that a page has for a part.
func replace(page []byte, part, text string) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- generated: %s -->\n", part), []byte("<!-- end of what is generated -->\n")
	head, rest, found := bytes.Cut(page, begin)
	_, tail, ends := bytes.Cut(rest, end)
	if !found || !ends {
		return nil, fmt.Errorf("there are no comments around the part %q", part)
	}
	return bytes.Join([][]byte{head, begin, []byte("\n" + text + "\n"), end, tail}, nil), nil
}

// load reads all rooms, in the order of their names.
func load() ([]*room, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	var rooms []*room
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var listed struct {
			ImportPath, Dir  string
			GoFiles, Imports []string
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		name, ours := nameOf(listed.ImportPath)
		if !ours {
			continue
		}
		var files []string
		for _, file := range listed.GoFiles {
			files = append(files, path.Join(listed.Dir, file))
		}
		r, err := measure(name, files)
		if err != nil {
			return nil, err
		}
		for _, imported := range listed.Imports {
			if of, ours := nameOf(imported); ours {
				r.imports = append(r.imports, of)
			}
		}
		rooms = append(rooms, r)
	}
	return rooms, nil
}

// nameOf returns the name of a room by its import path.
func nameOf(importPath string) (name string, ours bool) {
	name, ours = strings.CutPrefix(importPath, module+"/")
	if importPath == module {
		return "main", true
	}
	for _, other := range []string{"test/", "hack/"} {
		ours = ours && !strings.HasPrefix(name, other)
	}
	return name, ours && !strings.HasSuffix(name, "test")
}
