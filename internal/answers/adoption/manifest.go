// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
)

// Repository is where a chart comes from.
type Repository struct {
	// Namespace and Name of the HelmRepository.
	Namespace, Name string
	URL             string
	// Lives is true where the cluster has it already; it is written otherwise.
	Lives bool
}

// secretSuffix ends the name of the Secret with a release's secret values.
const secretSuffix = "-secret-values"

// valuesKey is the key of a Secret that Flux reads by itself.
const valuesKey = "values.yaml"

// maxHistory is how many revisions Helm keeps by itself; Flux would keep five, and
// drop those before.
const maxHistory = 10

// HelmRelease returns the manifest that stands for a release: the one that is
// installed, with the very same chart and values. A repository of nil leaves a
// sourceRef to be completed.
func HelmRelease(r Release, repository *Repository) *unstructured.Unstructured {
	from := map[string]any{"kind": "HelmRepository", "name": Unknown, "namespace": r.Namespace}
	if repository != nil {
		from["name"], from["namespace"] = repository.Name, repository.Namespace
	}
	spec := map[string]any{
		"interval":    "1h",
		"releaseName": r.Name, "targetNamespace": r.Namespace, "storageNamespace": r.Namespace,
		"maxHistory": int64(maxHistory),
		"chart":      map[string]any{"spec": map[string]any{"chart": r.Chart.Name, "version": r.Chart.Version, "sourceRef": from}},
	}
	if len(r.Values) > 0 {
		spec["values"] = runtime.DeepCopyJSON(r.Values)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
		"metadata": map[string]any{"name": r.Name, "namespace": r.Namespace}, "spec": spec,
	}}
}

// Unknown stands where somebody has to name something. No object can have it as
// its name.
const Unknown = "TO-BE-NAMED"

// HelmRepository returns the manifest of a repository.
func HelmRepository(r Repository) *unstructured.Unstructured {
	spec := map[string]any{"interval": "1h", "url": r.URL}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
		"metadata": map[string]any{"name": r.Name, "namespace": r.Namespace}, "spec": spec,
	}}
}

// HideSecrets moves what looks secret in the values of a HelmRelease into a Secret
// that it refers to, and returns that, with the paths of what was moved; nil where
// there is nothing. Flux merges both to the same values, so nothing is upgraded.
func HideSecrets(release *unstructured.Unstructured) (secret *unstructured.Unstructured, paths []string, err error) {
	values, _, _ := unstructured.NestedMap(release.Object, "spec", "values")
	plain, hidden, paths := TakeSecrets(values)
	if len(paths) == 0 {
		return nil, nil, nil
	}
	text, err := yaml.Marshal(hidden)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write the secret values: %w", err)
	}
	name := release.GetName() + secretSuffix
	spec, _ := release.Object["spec"].(map[string]any)
	if len(plain) == 0 {
		delete(spec, "values")
	} else {
		spec["values"] = plain
	}
	references, _ := spec["valuesFrom"].([]any)
	spec["valuesFrom"] = append(slices.Clip(references), map[string]any{"kind": "Secret", "name": name})
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name": name, "namespace": release.GetNamespace(),
			// With this label helm-controller looks again at once.
			"labels": map[string]any{kinds.WatchLabel: kinds.WatchEnabled},
		},
		"stringData": map[string]any{valuesKey: string(text)},
	}}, paths, nil
}

// transient are labels and annotations that say how an object came to be where it
// is, or what is done to it at the moment.
var transient = []string{
	"kubectl.kubernetes.io/last-applied-configuration", "kustomize.toolkit.fluxcd.io/",
	v1alpha1.LayerLabel, v1alpha1.OrphanedLabel, v1alpha1.SuspendedByHoldAnnotation, v1alpha1.SuspendedByLossAnnotation,
	v1alpha1.SupersededByAnnotation, v1alpha1.CreatedForAnnotation, "reconcile.fluxcd.io/",
}

// Clean returns a live object as a manifest would say it: without what the API
// server and controllers have added.
func Clean(live *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{"name": live.GetName()}
	if namespace := live.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	for field, marks := range map[string]map[string]string{"labels": live.GetLabels(), "annotations": live.GetAnnotations()} {
		kept := map[string]any{}
		for key, value := range marks {
			if !slices.ContainsFunc(transient, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			metadata[field] = kept
		}
	}
	obj := map[string]any{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "metadata": metadata}
	for field, value := range live.Object {
		if _, written := obj[field]; !written && field != "status" {
			obj[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	return &unstructured.Unstructured{Object: obj}
}

// Layer says what an AddonsLayer that is written refers to.
type Layer struct {
	Name, Version string
	// SourceNamespace and Source name the source; the namespace may be empty.
	SourceNamespace, Source string
	// Path of its directory in the source, beginning with ./.
	Path string
}

// Manifest returns the AddonsLayer.
func (l Layer) Manifest() *unstructured.Unstructured {
	source := map[string]any{"name": l.Source, "path": l.Path}
	if l.SourceNamespace != "" {
		source["namespace"] = l.SourceNamespace
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.AddonsLayerKind,
		"metadata": map[string]any{"name": l.Name},
		"spec":     map[string]any{"version": l.Version, "source": source},
	}}
}

// inComment replaces what ends a comment in YAML, or does something to a terminal.
func inComment(r rune) rune {
	if r != '\n' && !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// Text writes objects as the documents of a file, below a comment.
func Text(comment string, objects ...*unstructured.Unstructured) ([]byte, error) {
	var text strings.Builder
	for line := range strings.Lines(strings.Map(inComment, comment)) {
		text.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
	for i, obj := range objects {
		if i > 0 {
			text.WriteString("---\n")
		}
		data, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot write %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		text.Write(data)
	}
	return []byte(text.String()), nil
}
