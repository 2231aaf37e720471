// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
)

// Session reads many directories of one repository. Their builds are those of one
// kustomize.Session, which says what they share. It must be closed.
type Session struct{ builds *kustomize.Session }

// NewSession returns a session that has started nothing yet.
func NewSession() *Session { return &Session{kustomize.NewSession()} }

// Close ends what the session has started.
func (s *Session) Close() { s.builds.Close() }

func (s *Session) programs() programs {
	return programs{s.builds.Build, s.builds.Generate, s.builds.Decrypt, nil}
}

// ParseAs is the function ParseAs, in the session.
func (s *Session) ParseAs(ctx context.Context, files fs.FS, name string, how builds.Build) (*directories.Directory, error) {
	return parse(ctx, files, name, how, first, s.programs)
}

// Made returns what kustomize makes of a directory in the way of Flux, as it would be
// applied: nothing is judged, and what is encrypted stays so. It is for whoever asks what
// Flux has, and not what a layer may have. A directory that is missing makes nothing. The
// error is a *directories.ContentError where the author can mend it.
func (s *Session) Made(ctx context.Context, files fs.FS, name string, how builds.Build) ([]*unstructured.Unstructured, error) {
	name, err := cleanPath(name)
	if err != nil {
		return nil, err
	}
	if missing, err := findDirectory(files, name); err != nil || missing {
		return nil, err
	}
	with := s.programs()
	files, file, err := makeKustomization(ctx, files, name, how, with.generate)
	if err != nil {
		return nil, err
	}
	directory := path.Dir(file)
	needed, _, err := load(ctx, files, directory, true)
	if err != nil {
		return nil, err
	}
	built, err := with.build(ctx, &kustomize.Request{
		Files: needed, Directory: directory, Substitution: how.Substitution, Labels: how.Labels, Annotations: how.Annotations,
	})
	if err != nil {
		return nil, buildFailed(file, err, needed, how.Confidential())
	}
	objects := make([]*unstructured.Unstructured, 0, len(built))
	for i := range built {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(built[i].JSON, &object.Object); err != nil {
			return nil, failed(file, "", "kustomize: cannot read %s %s: %s", built[i].Kind, built[i].Name, jsonMessage(err))
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Patched returns an object with the patches of a kustomization. The error is a
// *directories.ContentError where the author can mend it.
func (s *Session) Patched(ctx context.Context, object *unstructured.Unstructured, patches any) (*unstructured.Unstructured, error) {
	const name = "object.json"
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", object.GetName(), err)
	}
	file := konfig.DefaultKustomizationFileName()
	with, err := json.Marshal(map[string]any{"resources": []string{name}, "patches": patches})
	if err != nil {
		return nil, fmt.Errorf("cannot write the patches of %s: %w", object.GetName(), err)
	}
	needed := map[string][]byte{name: text, file: with}
	built, err := s.programs().build(ctx, &kustomize.Request{Files: needed, Directory: "."})
	if err != nil {
		return nil, buildFailed(file, err, needed, nil)
	}
	if len(built) != 1 {
		return nil, failed(file, "", "the patches of %s leave %d objects", object.GetName(), len(built))
	}
	patched := &unstructured.Unstructured{}
	if err := json.Unmarshal(built[0].JSON, &patched.Object); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", object.GetName(), err)
	}
	return patched, nil
}
