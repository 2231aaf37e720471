// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// mostHappened is how many events and deployments are shown, the newest.
const mostHappened = 60

// happening is a deployment of a layer, an approval, or an event.
type happening struct {
	// At is when it was seen last, as RFC 3339; Took is how long a deployment took.
	At   string `json:"at"`
	Took string `json:"took,omitempty"`
	// ID of a deployment, with its version, revision and result; empty for others.
	ID       string `json:"id,omitempty"`
	Version  string `json:"version,omitempty"`
	Revision string `json:"revision,omitempty"`
	Result   string `json:"result,omitempty"`
	// Layer that was deployed, where several are shown.
	Layer string `json:"layer,omitempty"`
	// Approval is what was approved, as STAGE@VERSION, and By who says to have done so.
	Approval string `json:"approval,omitempty"`
	By       string `json:"by,omitempty"`
	// Object and Reason of an event, whether it warns, and how often it was seen.
	Object  string `json:"object,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	Count   int64  `json:"count,omitempty"`
	Message string `json:"message,omitempty"`
}

// happened is what happened to something, the newest first.
type happened struct {
	Items []happening `json:"items"`
	// Unseen says what is not among it.
	Unseen []string `json:"unseen,omitempty"`
}

// happenedTo returns what happened to objects: events, deployments of layers as their
// history has them, and approvals. Where names is true, deployments name their layers.
func happenedTo(o Options, subjects *events.Subjects, layers []*v1alpha1.AddonsLayer, approvals []v1alpha1.StageApproval, names bool) happened {
	all := deployments(layers, names)
	for _, approval := range approvals {
		all = append(all, happening{At: snapshot.Stamp(approval.Seen.Time), Approval: approval.Approval, By: clip(approval.By), Message: clip(approval.Reason)})
	}
	found, unseen := o.Cluster.Events(subjects)
	for _, event := range found {
		all = append(all, happening{
			At: event.Last, Object: event.Object(), Reason: event.Reason, Warning: event.Type == "Warning", Count: event.Count, Message: clip(event.Message),
		})
	}
	slices.SortStableFunc(all, func(a, b happening) int {
		newest := snapshot.Moment(b.At).Compare(snapshot.Moment(a.At))
		return cmp.Or(newest, strings.Compare(a.Layer, b.Layer), strings.Compare(b.ID, a.ID), strings.Compare(a.Object, b.Object))
	})
	return happened{append([]happening{}, all[:min(len(all), mostHappened)]...), unseen}
}

// deployments returns the newest deployments of layers, however many there are.
func deployments(layers []*v1alpha1.AddonsLayer, names bool) []happening {
	type one struct {
		layer *v1alpha1.AddonsLayer
		entry *v1alpha1.HistoryEntry
	}
	var entries []one
	for _, layer := range layers {
		for i := range layer.Status.History {
			entries = append(entries, one{layer, &layer.Status.History[i]})
		}
	}
	slices.SortStableFunc(entries, func(a, b one) int { return b.entry.Started.Compare(a.entry.Started.Time) })
	var all []happening
	for _, each := range entries[:min(len(entries), mostHappened)] {
		entry := each.entry
		is := happening{
			At: snapshot.Stamp(entry.Started.Time), ID: entry.ID, Version: entry.Version, Revision: entry.Revision,
			Result: string(entry.Result), Message: clip(entry.Message),
		}
		if entry.Duration.Duration > 0 {
			is.Took = entry.Duration.Duration.String()
		}
		if names {
			is.Layer = each.layer.Name
		}
		all = append(all, is)
	}
	return all
}
