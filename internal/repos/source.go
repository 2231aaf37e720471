// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/sources"
)

// withoutObserved are the kinds of sources whose status names no generation:
// whoever makes an ExternalArtifact writes its artifact and nothing else, and
// its specification only says what it was made from.
var withoutObserved = map[string]bool{sources.ExternalArtifact: true}

// artifactStored is the condition by which source-controller says that the
// artifact is that of the source: its generation moves only when the source has
// been fetched, unlike status.observedGeneration.
const artifactStored = "ArtifactInStorage"

// FluxSource is what all kinds of Flux sources have in common, at all versions of
// their API.
type FluxSource struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Artifact           *fluxmeta.Artifact `json:"artifact"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// ParseSource reads a source.
func ParseSource(obj *unstructured.Unstructured) (*FluxSource, error) {
	parsed := &FluxSource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, parsed); err != nil {
		return nil, fmt.Errorf("cannot understand %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	if withoutObserved[obj.GetKind()] {
		parsed.Status.ObservedGeneration = parsed.Generation
	}
	return parsed, nil
}

// ready returns whether the source says that all is well, and otherwise what it
// says instead.
func (s *FluxSource) ready() (bool, string) {
	condition := meta.FindStatusCondition(s.Status.Conditions, "Ready")
	if condition == nil {
		return s.Status.Artifact != nil, ""
	}
	if condition.Status == metav1.ConditionFalse {
		return false, condition.Message
	}
	// While it fetches a source is neither ready nor not; that is no news, and
	// what it says of its steps need not be said again by each of its layers.
	return true, ""
}

// fetched returns the generation that the artifact is known to be of, or 0.
func (s *FluxSource) fetched() int64 {
	condition := meta.FindStatusCondition(s.Status.Conditions, artifactStored)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return 0
	}
	return condition.ObservedGeneration
}

// Observed returns what the rules decide from, and the artifact where that
// speaks of the source as it is specified now.
func (s *FluxSource) Observed() (*layers.Source, *Artifact) {
	source := &layers.Source{
		Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration,
		ArtifactGeneration: s.fetched(), Suspended: s.Spec.Suspend,
	}
	source.Ready, source.Message = s.ready()
	stored := s.Status.Artifact
	if stored == nil {
		return source, nil
	}
	source.Revision, source.Digest, source.URL = stored.Revision, stored.Digest, stored.URL
	if source.ObservedGeneration != source.Generation || stored.Digest == "" {
		return source, nil
	}
	artifact := &Artifact{URL: stored.URL, Revision: stored.Revision, Digest: stored.Digest}
	if stored.Size != nil {
		artifact.Size = *stored.Size
	}
	return source, artifact
}
