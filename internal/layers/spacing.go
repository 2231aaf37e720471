// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// progressSpacing is how far apart statuses are written that differ in how a layer
// gets on, or in what it repeats of others, and in nothing else.
const progressSpacing = 2 * time.Second

// RevisionLag is how long, at the least, the status of a deployed layer waits
// that differs in the name of the revision only. A commit changes that of all
// layers of a source, and what it is about of one of them, which goes first.
const RevisionLag = 500 * time.Millisecond

// OnlyRevision tells whether a layer is deployed as it was, and only the
// revision that holds its content has another name.
func OnlyRevision(last, next v1alpha1.AddonsLayerStatus) bool {
	return last.Revision != next.Revision && last.State == v1alpha1.StateDeployed &&
		equality.Semantic.DeepEqual(unnamed(last), unnamed(next))
}

// unnamed returns a status without the name of the revision and where that is.
func unnamed(s v1alpha1.AddonsLayerStatus) v1alpha1.AddonsLayerStatus {
	s.Revision = ""
	if s.Attempt != nil {
		attempt := *s.Attempt
		attempt.Revision, attempt.Artifact = "", nil
		s.Attempt = &attempt
	}
	s.History = slices.Clone(s.History)
	for i := range s.History {
		s.History[i].Revision, s.History[i].Artifact = "", nil
	}
	return wordless(s)
}

// wordless returns a status without the words of its conditions.
func wordless(s v1alpha1.AddonsLayerStatus) v1alpha1.AddonsLayerStatus {
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	return s
}

// Spacing returns how long after the last one a status may be written: 0 where
// it must be written at once, because it is final or because something depends
// on its being known. Where wrote is true it also says what was just written,
// after the last one had said what would be; a layer that is deployed within that
// time tells both at once.
func Spacing(last, next v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
	if wrote && last.State == v1alpha1.StateApplying && next.State == v1alpha1.StateApplying {
		return progressSpacing
	}
	if wrote || next.State == v1alpha1.StateDeployed || !equality.Semantic.DeepEqual(settled(last), settled(next)) {
		return 0
	}
	return progressSpacing
}

// settled returns of a status what is no matter of progress: everything but
// what stands in the way, the words of conditions, and whether objects are
// ready.
func settled(s v1alpha1.AddonsLayerStatus) v1alpha1.AddonsLayerStatus {
	s.BlockedBy = nil
	s = wordless(s)
	s.Resources = slices.Clone(s.Resources)
	for i := range s.Resources {
		if isReadiness(s.Resources[i].Status) {
			s.Resources[i].Status, s.Resources[i].LastTransitionTime = "", metav1.Time{}
		}
	}
	return s
}

// isReadiness tells whether an object's status is for people to read, and not
// what the next look goes by.
func isReadiness(status string) bool {
	return stays(v1alpha1.Resource{Status: status}) && status != objects.StatusNotServed
}
