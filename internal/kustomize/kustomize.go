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
	"maps"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/sops"
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
	// Substitution of variables in the objects; nil leaves them.
	Substitution *builds.Substitution
	// Labels and Annotations of every object.
	Labels, Annotations map[string]string
	// Generate has the kustomization of the directory written, as Flux's generator does
	// it by these fields, and nothing built. It takes Files for all that there is.
	Generate map[string]any
	// Decrypt has files decrypted, and nothing built; nil where nothing is.
	Decrypt *Encrypted
	// Sorted has the objects in the order that kustomize has by itself, in which they
	// can be applied. Otherwise they are in the order in which they are listed.
	Sorted bool
}

// Encrypted are the texts of a request that are to be decrypted.
type Encrypted struct {
	// Formats of the texts, by the names that Request.Files has them under.
	Formats map[string]sops.Format
	// Keys that open them.
	Keys builds.Keys
}

// Object is one object that kustomize has made.
type Object struct {
	Kind, Name string
	// Text is the object as YAML, with its numbers as they are written, and JSON is
	// what kustomize takes it for.
	Text string
	JSON []byte
	// Unset names the variables of the object that nobody gives, and that are empty.
	Unset []string
	// Confidential is true where the object is made with a variable of a Secret, and Named
	// lists, sorted, those of which its name, namespace or kind is made.
	Confidential bool
	Named        []string
}

// Kustomization is a file that kustomize builds from.
type Kustomization struct {
	// File from the top.
	File string
	Text []byte
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
	return each(built, request, hand)
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

// each finishes what kustomize has made, and hands it on, one by one.
func each(built resmap.ResMap, request *Request, hand func(*Object) error) error {
	for _, made := range built.Resources() {
		object := &Object{Kind: made.GetKind(), Name: made.GetName()}
		var err error
		if err = object.substitute(made, request.Substitution); err != nil {
			return &Refusal{fmt.Sprintf("%s %s: %s", object.Kind, object.Name, err)}
		}
		if err := describe(made, request.Labels, request.Annotations); err != nil {
			return &Refusal{fmt.Sprintf("%s %s: %s", object.Kind, object.Name, err)}
		}
		if request.Substitution != nil {
			object.Kind, object.Name = made.GetKind(), made.GetName()
		}
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

// describe adds labels and annotations.
func describe(made *resource.Resource, labels, annotations map[string]string) error {
	if len(labels) > 0 {
		all := made.GetLabels()
		maps.Copy(all, labels)
		if err := made.SetLabels(all); err != nil {
			return err
		}
	}
	if len(annotations) > 0 {
		all := made.GetAnnotations()
		maps.Copy(all, annotations)
		if err := made.SetAnnotations(all); err != nil {
			return err
		}
	}
	return nil
}

// handed is a request as the process of a build is handed it.
type handed struct {
	Request
	// Folder in which the files to generate from are laid out, below the one in which the
	// process stands.
	Folder string
}

// message is a line of what the process of a build answers. The last one has End or
// Refusal.
type message struct {
	Object        *Object        `json:",omitempty"`
	Kustomization *Kustomization `json:",omitempty"`
	// Decrypted files by their names.
	Decrypted map[string][]byte `json:",omitempty"`
	Refusal   string            `json:",omitempty"`
	End       bool              `json:",omitempty"`
}
