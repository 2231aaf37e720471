// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reads tells go test what a test reads without Go's knowledge, so that a result
// is used again only while all of that is as it was.
//
// go test keeps the result of a package that passed. It takes the result in place of a run
// where the test's program, its flags, and the files of this module and the variables that
// its tests have read are the same. It does not see what TestMain reads before the tests
// run, and not what programs read that a test starts, such as go build. What is added here
// counts as read by the tests, too. Files count by size and modification time, as all that
// go test notes.
package reads

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// variables are those by which suites decide before their tests run.
var variables = []string{
	"KUBEBUILDER_ASSETS", "KUBE_CACHE_MUTATION_DETECTOR", "STRATA_CACHE", "STRATA_CONTROLPLANE", "STRATA_E2E_EXISTING", "STRATA_E2E_HOST", "STRATA_E2E_KEEP",
	"STRATA_RACE", "STRATA_TEST_ALL",
}

// noted has what was added; other is something that nobody can look up again.
var noted struct {
	sync.Mutex
	paths map[string]bool
	other bool
}

// Root returns the root of the source tree, found by its chart from the working directory
// upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "chart", "Chart.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("this is not inside Strata's source tree")
		}
		dir = parent
	}
}

// Add notes files, and folders with all that is in them. Relative paths begin at the
// working directory. What is not there counts as that.
func Add(paths ...string) {
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			Other()
			continue
		}
		_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			note(name)
			if err == nil && entry.IsDir() && name != path && slices.Contains([]string{".git", "node_modules", "bin"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		})
	}
}

// AddFromRoot is Add of paths that begin at the root of the source tree.
func AddFromRoot(paths ...string) {
	root, err := Root()
	if err != nil {
		Other()
		return
	}
	for _, path := range paths {
		Add(filepath.Join(root, path))
	}
}

// AddPrograms notes what go build reads of this tree for packages, in a folder of it: the
// sources and embedded files of all packages that they need, the folders of these, where a
// file may be added, and the pins of what is needed from elsewhere.
func AddPrograms(folder string, packages ...string) {
	if err := addPrograms(folder, packages); err != nil {
		Other() // go build says why
	}
}

func addPrograms(folder string, packages []string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	const fields = "-json=Dir,Standard,GoFiles,CgoFiles,SFiles,HFiles,EmbedFiles,Module"
	list := exec.Command("go", append([]string{"list", "-e", "-deps", fields}, packages...)...)
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("cannot list what %v need: %w", packages, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var found struct {
			Dir                                           string
			Standard                                      bool
			GoFiles, CgoFiles, SFiles, HFiles, EmbedFiles []string
			Module                                        *struct{ GoMod string }
		}
		if err := decoder.Decode(&found); err != nil {
			return fmt.Errorf("cannot read the list of what %v need: %w", packages, err)
		}
		if within, err := filepath.Rel(root, found.Dir); err != nil || found.Standard || !filepath.IsLocal(within) {
			continue // its version is in go.mod
		}
		note(found.Dir)
		for _, file := range slices.Concat(found.GoFiles, found.CgoFiles, found.SFiles, found.HFiles, found.EmbedFiles) {
			note(filepath.Join(found.Dir, file))
			note(filepath.Dir(filepath.Join(found.Dir, file)))
		}
		if found.Module != nil {
			note(found.Module.GoMod)
			note(strings.TrimSuffix(found.Module.GoMod, ".mod") + ".sum")
		}
	}
	return nil
}

// Other notes something that can't be looked up again, such as a cluster that others
// change, too: the result is not kept.
func Other() {
	noted.Lock()
	defer noted.Unlock()
	noted.other = true
}

// note notes a path. Where tests run, go test sees that it is looked at; before, Run tells.
func note(path string) {
	_, _ = os.Stat(path)
	noted.Lock()
	defer noted.Unlock()
	if noted.paths == nil {
		noted.paths = map[string]bool{}
	}
	noted.paths[path] = true
}

// all returns the paths that were noted, in order.
func all() []string {
	noted.Lock()
	defer noted.Unlock()
	return slices.Sorted(maps.Keys(noted.paths))
}

// Run runs the tests and tells go test of what was noted before them and while they ran. It
// returns the exit code.
//
// go test names the file in which the testing package writes what tests read; it ends with
// the tests. A result whose file has a line that go test does not know is not kept: if the
// form of the file ever changes, tests run more often, and TestResultIsKept fails.
func Run(m *testing.M) int {
	code := m.Run()
	if err := tell(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot tell go test what the tests have read: %v\n", err)
		return max(code, 1)
	}
	return code
}

func tell() error {
	named := flag.Lookup("test.testlogfile")
	if named == nil || named.Value.String() == "" {
		return nil // this is no run of go test, or one that keeps nothing
	}
	var text bytes.Buffer
	for _, name := range variables {
		fmt.Fprintf(&text, "getenv %s\n", name)
	}
	for _, path := range all() {
		fmt.Fprintf(&text, "stat %s\n", path)
	}
	noted.Lock()
	defer noted.Unlock()
	if noted.other {
		text.WriteString("other\n")
	}
	log, err := os.OpenFile(named.Value.String(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = log.Write(text.Bytes())
	return errors.Join(err, log.Close())
}
