// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxkustomize "github.com/fluxcd/pkg/apis/kustomize"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kusttypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/kustomize"
	"github.com/strata-project/strata/internal/objects"
)

// originLabels are what Flux adds to everything that is of a release.
func originLabels(release *helmv2.HelmRelease) map[string]string {
	group := helmv2.GroupVersion.Group
	return map[string]string{group + "/name": release.Name, group + "/namespace": release.Namespace}
}

// postRender does to what Helm has rendered what the post-renderers of a release
// say. The strategy says what of it is given to them, and whether together.
func (p *plan) postRender(ctx context.Context, files map[string]string) (map[string]string, error) {
	if len(p.release.Spec.PostRenderers) == 0 {
		return files, nil
	}
	if p.release.Spec.PostRenderStrategy == "" || p.release.Spec.PostRenderStrategy == helmv2.PostRenderStrategyCombined {
		text, err := p.postRenderStream(ctx, stream(files))
		return map[string]string{"objects.yaml": text}, err
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var hookTexts, texts []string
	for _, hook := range hooks {
		hookTexts = append(hookTexts, hook.Manifest)
	}
	for _, manifest := range manifests {
		texts = append(texts, manifest.Content)
	}
	rendered := map[string]string{"hooks.yaml": strings.Join(hookTexts, separator)}
	if p.release.Spec.PostRenderStrategy == helmv2.PostRenderStrategySeparate {
		if rendered["hooks.yaml"], err = p.postRenderStream(ctx, rendered["hooks.yaml"]); err != nil {
			return nil, err
		}
	}
	rendered["objects.yaml"], err = p.postRenderStream(ctx, strings.Join(texts, separator))
	return rendered, err
}

const separator = "\n---\n"

// stream returns files as one text, in the order of their names.
func stream(files map[string]string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		documents := releaseutil.SplitManifests(files[name])
		keys := slices.Collect(maps.Keys(documents))
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		for _, key := range keys {
			texts = append(texts, documents[key])
		}
	}
	return strings.Join(texts, separator)
}

func (p *plan) postRenderStream(ctx context.Context, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	var err error
	for i, each := range p.release.Spec.PostRenderers {
		if each.Kustomize == nil {
			continue
		}
		if text, err = kustomizeText(ctx, text, each.Kustomize); err != nil {
			return "", fmt.Errorf("spec.postRenderers[%d]: %w", i, err)
		}
	}
	return text, nil
}

// kustomizeText patches objects, and replaces images.
func kustomizeText(ctx context.Context, text string, with *helmv2.Kustomize) (string, error) {
	const input = "objects.yaml"
	config := kusttypes.Kustomization{Resources: []string{input}}
	config.APIVersion, config.Kind = kusttypes.KustomizationVersion, kusttypes.KustomizationKind
	for _, image := range with.Images {
		config.Images = append(config.Images, kusttypes.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	for _, patch := range with.Patches {
		config.Patches = append(config.Patches, kusttypes.Patch{Patch: patch.Patch, Target: selector(patch.Target)})
	}
	kustomization, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	built, err := kustomize.Build(ctx, &kustomize.Request{
		Files: map[string][]byte{input: []byte(text), "kustomization.yaml": kustomization}, Directory: ".", Sorted: true,
	})
	var ended *kustomize.Ended
	if errors.As(err, &ended) {
		return "", fmt.Errorf("what they do %w: look for patches that copy the same things again and again", ended)
	}
	if err != nil {
		return "", err
	}
	var made strings.Builder
	for i, object := range built {
		if i > 0 {
			made.WriteString("---\n")
		}
		text, err := yaml.JSONToYAML(object.JSON)
		if err != nil {
			return "", err
		}
		made.Write(text)
	}
	return made.String(), nil
}

func selector(of *fluxkustomize.Selector) *kusttypes.Selector {
	if of == nil {
		return nil
	}
	to := &kusttypes.Selector{LabelSelector: of.LabelSelector, AnnotationSelector: of.AnnotationSelector}
	to.Group, to.Version, to.Kind, to.Name, to.Namespace = of.Group, of.Version, of.Kind, of.Name, of.Namespace
	return to
}

// label adds what Flux adds to every object: the common labels and annotations of
// the release, and the labels of its origin. An object that is there twice is an
// error, as it is to Flux.
func (p *plan) label(objs []*unstructured.Unstructured) error {
	seen := map[objects.ID]bool{}
	for _, object := range objs {
		id := objects.IDOf(object)
		if seen[id] && id.Name != "" {
			return fmt.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if common := p.release.Spec.CommonMetadata; common != nil {
			addLabels(object, common.Labels)
			if len(common.Annotations) > 0 {
				annotations := object.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				maps.Copy(annotations, common.Annotations)
				object.SetAnnotations(annotations)
			}
		}
		addLabels(object, originLabels(p.release))
	}
	return nil
}
