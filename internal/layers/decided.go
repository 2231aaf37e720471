// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
)

// ruled is what was decided for a layer and neither its specification nor its
// source says. The status reports it; the layer's annotation is what counts, because
// whoever may write that may change the layer itself.
type ruled struct {
	// Rollback that the layer is in, and Content that it goes back to.
	Rollback *v1alpha1.Rollback `json:"rollback,omitempty"`
	Content  *content           `json:"content,omitempty"`
	// Attempt of which a guard was opened, or an object refused.
	Attempt *judged `json:"attempt,omitempty"`
	// Deleting is true once the deletion of its objects has begun, and nothing stops it half
	// way any more.
	Deleting bool `json:"deleting,omitempty"`
}

// content is an entry of a history, as far as it says what is deployed.
type content struct {
	ID       string `json:"id"`
	Version  string `json:"version,omitempty"`
	Revision string `json:"revision,omitempty"`
	Digest   string `json:"digest,omitempty"`
	// Started is when it was deployed.
	Started metav1.Time `json:"started"`
}

// judged is what was found out about one roll-out.
type judged struct {
	Version string   `json:"version,omitempty"`
	Digest  string   `json:"digest,omitempty"`
	Allowed []string `json:"allowed,omitempty"`
	Refused bool     `json:"refused,omitempty"`
}

// Decided returns the value of DecidedAnnotation that goes with the status of a
// layer; empty where it needs none.
func Decided(layer *v1alpha1.AddonsLayer, seal decisions.Seal) string {
	var d ruled
	if back := layer.Status.Rollback; back != nil {
		if entry, found := findEntry(layer.Status.History, back.To); found {
			d.Rollback = back
			d.Content = &content{ID: entry.ID, Version: entry.Version, Revision: entry.Revision, Digest: entry.Digest, Started: entry.Started}
		}
	}
	if attempt := layer.Status.Attempt; attempt != nil && (attempt.Refused || len(attempt.Allowed) > 0) {
		d.Attempt = &judged{Version: attempt.Version, Digest: attempt.Digest, Allowed: attempt.Allowed, Refused: attempt.Refused}
	}
	d.Deleting = hasBegun(layer)
	return decisions.Text(d, layer, v1alpha1.AddonsLayerKind, seal)
}

// Trusted returns a layer whose status says of roll-backs, opened guards, refused objects
// and a deletion that has begun what was decided, whatever somebody else has written there: the layer
// itself where it does. One that was restored from a backup stays where it had gone back to,
// and no guard of it is open.
func Trusted(layer *v1alpha1.AddonsLayer, seal decisions.Seal) *v1alpha1.AddonsLayer {
	d, standing := decisions.Read[ruled](layer, v1alpha1.AddonsLayerKind, seal)
	if standing != decisions.Whole && d.Attempt != nil {
		d.Attempt.Allowed = nil
	}
	trusted := layer.DeepCopy()
	trusted.Status.Rollback = nil
	if d.Rollback != nil && d.Content != nil && d.Content.ID == d.Rollback.To {
		trusted.Status.Rollback = d.Rollback
		trusted.Status.History = d.Content.in(trusted.Status.History)
	}
	if attempt := trusted.Status.Attempt; attempt != nil {
		attempt.Allowed, attempt.Refused = nil, false
		if d.Attempt != nil && isContentOf(attempt, d.Attempt.Version, d.Attempt.Digest) {
			attempt.Allowed, attempt.Refused = d.Attempt.Allowed, d.Attempt.Refused
		}
	}
	switch decided := d.Deleting && standing == decisions.Whole; {
	case hasBegun(trusted) && !decided:
		meta.RemoveStatusCondition(&trusted.Status.Conditions, v1alpha1.DeletingCondition)
	case decided && v1alpha1.IsForeign(layer.Status.Conditions):
		trusted.Status.Conditions = append(trusted.Status.Conditions, metav1.Condition{
			Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeleting,
		})
	}
	if equality.Semantic.DeepEqual(trusted.Status, layer.Status) {
		return layer
	}
	return trusted
}

// in returns a history that has the content as what was deployed once.
func (c *content) in(history []v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	i := slices.IndexFunc(history, func(e v1alpha1.HistoryEntry) bool { return e.ID == c.ID })
	if i < 0 {
		i = len(history)
		history = append(history, v1alpha1.HistoryEntry{ID: c.ID, Started: c.Started})
	}
	entry := &history[i]
	entry.Version, entry.Revision, entry.Digest, entry.Result = c.Version, c.Revision, c.Digest, v1alpha1.ResultDeployed
	return history
}
