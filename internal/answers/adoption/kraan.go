// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/sources"
)

// Translation is a layer of Kraan's as Strata wants it.
type Translation struct {
	Manifest *unstructured.Unstructured
	// Layer is what Manifest says, with the status of the live object.
	Layer *v1alpha1.AddonsLayer
	// Notes say what means something else than it did, and Problems what has to
	// be mended before Strata takes the layer.
	Notes, Problems []string
}

// Translate returns a layer that Kraan has run as Strata wants it. What Strata
// does not know is left out, and noted. The error is for objects that are no layers.
func Translate(live *unstructured.Unstructured) (Translation, error) {
	manifest := Clean(live)
	spec, _, _ := unstructured.NestedMap(manifest.Object, "spec")
	t := Translation{Manifest: manifest}
	if kind, _, _ := unstructured.NestedString(spec, "source", "kind"); strings.EqualFold(kind, "gitrepositories.source.toolkit.fluxcd.io") {
		unstructured.RemoveNestedField(spec, "source", "kind")
	}
	t.dropUnknown(spec)
	dropEmpty(spec)
	manifest.Object["spec"] = spec
	for field := range manifest.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec"}, field) {
			delete(manifest.Object, field)
		}
	}
	if held, _, _ := unstructured.NestedBool(spec, "hold"); held {
		annotations := manifest.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.HoldReleasesAnnotation] = "true"
		manifest.SetAnnotations(annotations)
		t.note("it is held, and keeps its releases suspended as Kraan did, by the annotation %s", v1alpha1.HoldReleasesAnnotation)
	}
	t.Layer = &v1alpha1.AddonsLayer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, t.Layer); err != nil {
		return Translation{}, fmt.Errorf("cannot understand layer %s: %w", live.GetName(), err)
	}
	written := &v1alpha1.AddonsLayer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, written); err != nil {
		return Translation{}, fmt.Errorf("cannot understand layer %s: %w", live.GetName(), err)
	}
	t.Layer.Spec, t.Layer.Annotations = written.Spec, written.Annotations
	t.compare()
	t.check()
	return t, nil
}

func (t *Translation) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Translation) problem(format string, args ...any) {
	t.Problems = append(t.Problems, fmt.Sprintf(format, args...))
}

// dropUnknown takes out fields that Strata's API does not have.
func (t *Translation) dropUnknown(spec map[string]any) {
	for range 100 { // each turn takes out what the last one has named
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"spec": spec}, &v1alpha1.AddonsLayer{}, true)
		strict, is := runtime.AsStrictDecodingError(err)
		if !is {
			return
		}
		for _, each := range strict.Errors() {
			_, quoted, _ := strings.Cut(each.Error(), `"`)
			field, _, _ := strings.Cut(quoted, `"`)
			parts := strings.Split(field, ".")
			if len(parts) < 2 || parts[0] != "spec" {
				t.problem("%v", each)
				return
			}
			unstructured.RemoveNestedField(spec, parts[1:]...)
			t.note("%s was left out: Strata has no such field", field)
		}
	}
}

// dropEmpty takes out what says nothing. Kraan writes every field.
func dropEmpty(fields map[string]any) {
	for key, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			dropEmpty(value)
			if len(value) == 0 {
				delete(fields, key)
			}
		case []any:
			if len(value) == 0 {
				delete(fields, key)
			}
		case string:
			if value == "" {
				delete(fields, key)
			}
		case bool:
			if !value {
				delete(fields, key)
			}
		case nil:
			delete(fields, key)
		}
	}
}

// compare notes what Strata takes otherwise than Kraan did.
func (t *Translation) compare() {
	spec := t.Layer.Spec
	if wanted := spec.Prereqs.K8sVersion; wanted != "" && strings.Trim(wanted, "0123456789.") == "" {
		t.note("prereqs.k8sVersion %s: Kraan let every cluster pass without a v before it, and now it is a minimum", wanted)
	}
	for _, on := range spec.Prereqs.DependsOn {
		_, version, found := strings.Cut(on, "@")
		switch {
		case !found:
			t.note("dependsOn %s: Kraan waited for it for ever, and now any version will do", on)
		case strings.ContainsAny(version, "<>=!~^*| ,") || strings.HasSuffix(version, ".x"):
			t.note("dependsOn %s: Kraan waited for a version of just that name, and now it is a range", on)
		}
	}
	switch spec.Source.Kind {
	case "", sources.GitRepository:
	default:
		t.note("source.kind %s: Kraan took a GitRepository whatever it says, and Strata takes what it says", spec.Source.Kind)
	}
}

// check finds what Strata's API refuses.
func (t *Translation) check() {
	spec := t.Layer.Spec
	if spec.Version == "" {
		t.problem("version is empty")
	}
	if !strings.HasPrefix(spec.Source.Path, "./") || slices.Contains(strings.Split(spec.Source.Path, "/"), "..") {
		t.problem("source.path %q must begin with ./ and stay inside of the source", spec.Source.Path)
	}
	if len(t.Layer.Name) > validation.LabelValueMaxLength {
		t.problem("its name has more than %d characters", validation.LabelValueMaxLength)
	}
	if spec.Interval != nil && spec.Interval.Duration < time.Second {
		t.problem("interval is %s and must be at least 1s", spec.Interval.Duration)
	}
	if spec.Timeout != nil && spec.Timeout.Duration < time.Second {
		t.problem("timeout is %s and must be at least 1s", spec.Timeout.Duration)
	}
}
