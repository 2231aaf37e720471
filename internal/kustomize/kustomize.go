// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kustomize runs kustomize in a process of its own that has nothing but the
// files it is handed: no network, no program, no file of the machine, no environment,
// and a share of memory and time. What the files say does not matter for that.
//
// The process is the program itself, started again: whatever links this package can
// build, and no main function has to provide for it.
package kustomize

import (
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Mount is where kustomize sees the files. What is not below it does not exist, so
// that a name that climbs over the top is not bent back inside.
const Mount = "/strata-artifact-root"

// Request is what is to be built.
type Request struct {
	// Files by their names from the top, with slashes: all that the build can read.
	Files map[string][]byte
	// Directory of the kustomization, from the top.
	Directory string
	// Sorted has the objects in the order that kustomize has by itself, in which they
	// can be applied. Otherwise they are in the order in which they are listed.
	Sorted bool
}

// Object is one object that kustomize has made.
type Object struct {
	Kind, Name string
	// Text is the object as YAML, with its numbers as they are written, and JSON is
	// what kustomize takes it for.
	Text string
	JSON []byte
}

// Refusal is what kustomize says of files that it cannot build.
type Refusal struct{ Message string }

// Error returns what kustomize says.
func (r *Refusal) Error() string { return r.Message }

// Observed builds in this process, with no limit, of the files that a file system shows
// below Mount, and hands on what comes of it. It serves the process of a build, and tests
// that watch what kustomize looks at. The error is a *Refusal, or that of hand.
func Observed(files filesys.FileSystem, request *Request, hand func(*Object) error) error {
	built, err := run(files, request.Directory, request.Sorted)
	if err != nil {
		return &Refusal{err.Error()}
	}
	return each(built, hand)
}

// run builds in this process.
func run(files filesys.FileSystem, directory string, sorted bool) (_ resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %v", r)
		}
	}()
	options := krusty.MakeDefaultOptions()
	// The file system holds what may be loaded. kustomize's own restriction would also
	// forbid a file of a directory beside the kustomization's.
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	options.Reorder = krusty.ReorderOptionNone
	if sorted {
		options.Reorder = krusty.ReorderOptionLegacy
	}
	return krusty.MakeKustomizer(options).Run(files, path.Join(Mount, directory))
}

// each hands on what kustomize has made, one by one.
func each(built resmap.ResMap, hand func(*Object) error) error {
	for _, made := range built.Resources() {
		object := &Object{Kind: made.GetKind(), Name: made.GetName()}
		var err error
		if object.Text, err = made.RNode.String(); err != nil {
			return &Refusal{fmt.Sprintf("cannot read %s %s: %s", object.Kind, object.Name, err)}
		}
		if object.JSON, err = made.MarshalJSON(); err != nil {
			return &Refusal{fmt.Sprintf("cannot read %s %s: %s", object.Kind, object.Name, err)}
		}
		if err := hand(object); err != nil {
			return err
		}
	}
	return nil
}

// message is a line of what the process of a build answers. The last one has End or
// Refusal.
type message struct {
	Object  *Object `json:",omitempty"`
	Refusal string  `json:",omitempty"`
	End     bool    `json:",omitempty"`
}
