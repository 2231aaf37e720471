// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// mostHappened is how many events and deployments of a layer are shown, the newest.
const mostHappened = 60

// happening is a deployment of a layer, or an event.
type happening struct {
	// At is when it was seen last, as RFC 3339; Took is how long a deployment took.
	At   string `json:"at"`
	Took string `json:"took,omitempty"`
	// ID of a deployment, with its version, revision and result; empty for events.
	ID       string `json:"id,omitempty"`
	Version  string `json:"version,omitempty"`
	Revision string `json:"revision,omitempty"`
	Result   string `json:"result,omitempty"`
	// Object and Reason of an event, whether it warns, and how often it was seen.
	Object  string `json:"object,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	Count   int64  `json:"count,omitempty"`
	Message string `json:"message,omitempty"`
}

// happenedTo returns what happened to a layer, the newest first: its deployments, as its
// history has them, and events.
func happenedTo(o Options, s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) ([]happening, []string) {
	var all []happening
	for _, entry := range layer.Status.History {
		took := ""
		if entry.Duration.Duration > 0 {
			took = entry.Duration.Duration.String()
		}
		all = append(all, happening{
			At: snapshot.Stamp(entry.Started.Time), Took: took, ID: entry.ID, Version: entry.Version, Revision: entry.Revision,
			Result: string(entry.Result), Message: clip(entry.Message),
		})
	}
	found, unseen := o.Cluster.Events(s, layer)
	for _, event := range found {
		all = append(all, happening{
			At: event.Last, Object: event.Object(), Reason: event.Reason, Warning: event.Type == "Warning", Count: event.Count, Message: clip(event.Message),
		})
	}
	slices.SortStableFunc(all, func(a, b happening) int {
		return cmp.Or(snapshot.Moment(b.At).Compare(snapshot.Moment(a.At)), strings.Compare(b.ID, a.ID), strings.Compare(a.Object, b.Object))
	})
	return all[:min(len(all), mostHappened)], unseen
}
