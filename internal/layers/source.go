// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/sources"
)

// Source is what is known of a layer's source.
type Source struct {
	Generation         int64
	ObservedGeneration int64
	// ArtifactGeneration is the generation that the artifact is known to be
	// of; 0 where the source does not say.
	ArtifactGeneration int64
	// Suspended is true where nothing fetches the source.
	Suspended bool
	// Revision and Digest of the artifact; Digest is empty where there is
	// none.
	Revision string
	Digest   string
	// URL of the artifact; empty where there is none.
	URL string
	// Ready is false where the source's own condition is, and Message is what
	// that says; empty where the source is ready or on its way.
	Ready   bool
	Message string
}

// outdated says why a source's artifact is not what the source asks for now,
// although the source counts its generation as seen: source-controller does
// that for suspended sources, and for those that it cannot make sense of.
func (s Source) outdated() string {
	if s.ArtifactGeneration == 0 || s.ArtifactGeneration == s.Generation {
		return ""
	}
	fetched := fmt.Sprintf("was fetched at generation %d and is at generation %d", s.ArtifactGeneration, s.Generation)
	switch {
	case s.Suspended:
		return "is suspended, " + fetched
	case !s.Ready:
		return fetched + colon(s.Message)
	default:
		return fetched
	}
}

// sourceGate wants a source whose status speaks of its own generation and that
// has an artifact. It does not ask whether the source is Ready: a git server
// that is away undeploys nothing.
func sourceGate(o Observation) *Blocked {
	name := sources.Of(o.Layer, o.Settings.Namespace)
	pending := &Blocked{State: v1alpha1.StatePending, Reason: v1alpha1.ReasonSourceNotReady}
	switch {
	case o.SourceError != nil:
		pending.Message = fmt.Sprintf("waits for %s: the controller lacks rights: %s", name, o.SourceError)
		pending.Retry = o.SourceError
	case o.SourceUnserved:
		pending.Reason = v1alpha1.ReasonSourceNotFound
		pending.Message = fmt.Sprintf("waits for %s: the cluster does not serve the kind %s of Flux", name, name.Kind)
	case o.Source == nil:
		pending.Reason = v1alpha1.ReasonSourceNotFound
		pending.Message = fmt.Sprintf("waits for %s, which does not exist", name)
	case o.Source.Digest == "" && sources.IsOfBundle(o.Layer):
		pending.Message = o.Source.Message
	case o.Source.Digest == "":
		pending.Message = fmt.Sprintf("waits for %s, which has no artifact yet%s", name, colon(o.Source.Message))
	case o.Source.ObservedGeneration != o.Source.Generation:
		pending.Message = fmt.Sprintf("waits for %s: generation %d is not fetched yet, generation %d is",
			name, o.Source.Generation, o.Source.ObservedGeneration)
		if !o.Source.Ready {
			pending.Message += colon(o.Source.Message)
		}
	case o.Source.outdated() != "" && o.isNews():
		pending.Message = fmt.Sprintf("waits for %s, which %s", name, o.Source.outdated())
	default:
		return nil
	}
	pending.Causes = o.sourceCause(pending.Reason, pending.Message)
	return pending
}

// isNews tells whether the artifact would change what the layer has deployed,
// is rolling out, or has gone back from.
func (o Observation) isNews() bool {
	status := o.Layer.Status
	if o.Directory == nil {
		// What cannot be fetched right now is nothing new where it is the very
		// revision that is deployed.
		return o.Source.Revision != status.Revision && (status.Rollback == nil || o.Source.Revision != status.Rollback.Revision)
	}
	is := func(version, digest string) bool {
		return version == o.Layer.Spec.Version && digest == o.Directory.Digest
	}
	return !is(status.Version, status.Digest) && (status.Attempt == nil || !is(status.Attempt.Version, status.Attempt.Digest)) &&
		(status.Rollback == nil || !is(status.Rollback.Version, status.Rollback.Digest))
}

// sourceMessage says why the last artifact of a source is used although it is
// not what the source asks for; empty where it is.
func (o Observation) sourceMessage() string {
	switch {
	case o.Source == nil || o.Source.Digest == "":
		return ""
	case o.Source.outdated() != "":
		return "the source " + o.Source.outdated()
	case !o.Source.Ready:
		return cmp.Or(o.Source.Message, "the source is not ready")
	}
	return ""
}
