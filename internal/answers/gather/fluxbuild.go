// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// filesOfSource are those that a source has, and how they are named; empty for the
// repository itself.
type filesOfSource struct {
	fs.FS
	name string
}

type builtDirectory struct {
	objects []*unstructured.Unstructured
	// files that the objects stand in; empty where that is not known.
	files []string
	err   error
}

// filesOf returns the files of a source; nil where it is another repository. artifacts are
// those that the cluster makes of the repository.
func (f *FluxRepository) filesOf(artifacts map[types.NamespacedName]*filesOfSource, kind, namespace, name string) *filesOfSource {
	for _, given := range []string{kind + "/" + namespace + "/" + name, kind + "/" + name, namespace + "/" + name, name} {
		if files := f.others[given]; files != nil {
			return files
		}
	}
	if slices.Contains(f.own, kustomizations.Source{Kind: cmp.Or(kind, sources.GitRepository), Name: name}) {
		return f.artifact
	}
	if kind == sources.ExternalArtifact {
		return artifacts[types.NamespacedName{Namespace: namespace, Name: name}]
	}
	return nil
}

// originAnnotation is where kustomize notes the file that an object stands in.
const originAnnotation = "config.kubernetes.io/origin"

// build builds the directory of a layer as Flux does it, with the variables that are known.
// The error is none of the repository: it says that the build itself could not be made.
func (f *FluxRepository) build(ctx context.Context, files *filesOfSource, layer *v1alpha1.AddonsLayer, namespace string,
	known map[objects.ID]builds.Variables,
) (*builtDirectory, error) {
	var given []builds.Variables
	isKnown := true
	if after := layer.Spec.PostBuild; after != nil {
		for _, from := range after.SubstituteFrom {
			variables, is := known[objects.ID{Kind: from.Kind, Namespace: namespace, Name: from.Name}]
			isKnown = isKnown && is
			given = append(given, variables)
		}
	}
	how, err := builds.Of(&layer.Spec, given...)
	if err != nil {
		return nil, err
	}
	if !isKnown {
		how = how.WithVariablesUnknown()
	}
	notes, _ := how.Generator["buildMetadata"].([]any)
	how.Generator["buildMetadata"] = append(slices.Clone(notes), "originAnnotations")
	key := strings.Join([]string{files.name, layer.Spec.Source.Path, how.Key()}, "\n")
	if done := f.built[key]; done != nil {
		return done, nil
	}
	done := &builtDirectory{}
	done.objects, done.err = f.session.Made(ctx, files, layer.Spec.Source.Path, how)
	if done.err != nil && !errors.As(done.err, new(*directories.ContentError)) {
		return nil, done.err
	}
	for _, object := range done.objects {
		done.files = append(done.files, takeOrigin(object, path.Clean(layer.Spec.Source.Path)))
	}
	f.built[key] = done
	return done, nil
}

// takeOrigin takes the note of kustomize off an object, and returns the file that it names.
func takeOrigin(object *unstructured.Unstructured, folder string) string {
	metadata, _ := object.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[originAnnotation].(string)
	delete(annotations, originAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	var origin struct {
		Path string `json:"path"`
		Repo string `json:"repo"`
	}
	if yaml.Unmarshal([]byte(text), &origin) != nil || origin.Path == "" || origin.Repo != "" {
		return ""
	}
	return path.Join(folder, origin.Path)
}

// documentOf returns the index of the document that a Kustomization is made of, or -1: that
// of its name in its file, or the only one there.
func (f *FluxRepository) documentOf(files *filesOfSource, file string, object *unstructured.Unstructured) int {
	if file == "" || files != f.artifact {
		return -1
	}
	only, several := -1, false
	for at, w := range f.written {
		if w.File != file || !kustomizations.IsKustomization(w.Object) {
			continue
		}
		if w.Object.GetName() == object.GetName() {
			return at
		}
		only, several = at, only >= 0
	}
	if several {
		return -1
	}
	return only
}
