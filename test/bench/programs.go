// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"fmt"

	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/controlplane"
)

// built is a System that has a program of its own.
type built interface {
	// Program returns the program with its version, once it was started.
	Program() report.Program
}

// modules of the control plane's programs, whose versions are theirs.
var modules = []struct {
	name   controlplane.Component
	module string
}{
	{controlplane.Etcd, "go.etcd.io/etcd/server/v3"},
	{controlplane.APIServer, "k8s.io/kubernetes"},
	{controlplane.SourceController, "github.com/fluxcd/source-controller"},
}

// programs returns what is real in every run.
func programs() ([]report.Program, error) {
	var found []report.Program
	for _, of := range modules {
		path, err := controlplane.Binary(string(of.name))
		if err != nil {
			return nil, err
		}
		version, err := moduleVersion(path, of.module)
		if err != nil {
			return nil, err
		}
		found = append(found, report.Program{Name: string(of.name), Version: version})
	}
	return found, nil
}

// moduleVersion returns the version of a module that a program was built of.
func moduleVersion(path, module string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read what %s was built of: %w", path, err)
	}
	for _, dep := range append(info.Deps, &info.Main) {
		if dep.Path == module {
			return dep.Version, nil
		}
	}
	return "", fmt.Errorf("%s was not built of %s", path, module)
}

// treeVersion returns the commit of the tree that a program was built in, with
// a word where the tree had changed since; unknown where that is not known.
func treeVersion(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	version, changed := "unknown", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			version = setting.Value[:min(len(setting.Value), 12)]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changed = " with changes"
		}
	}
	return version + changed
}
