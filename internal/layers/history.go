// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
)

// maxHistory is how many deployments a layer remembers, beside the one that it
// would go back to.
const maxHistory = 10

// maxKept is how many deployed contents a layer with spec.rollback keeps in the
// cluster.
const maxKept = 3

// maxHistoryMessage bounds what an entry says of a failure, in bytes.
const maxHistoryMessage = 256

// historyAfter returns a layer's history with what a decision adds to it, the
// newest entry first.
func historyAfter(o Observation, d Decision) []v1alpha1.HistoryEntry {
	last := o.Layer.Status
	history := located(slices.Clone(last.History), last, d)
	if back := d.Rollback; back != nil && !sameRollback(back, last.Rollback) && isContentOf(last.Attempt, back.Version, back.Digest) {
		history = record(history, outcome(o, last.Attempt, v1alpha1.ResultRolledBack, back.Message))
	}
	if !isContentOf(d.Attempt, d.Target.Version, d.Target.Digest) {
		return trimmed(history, d.Rollback)
	}
	switch d.State {
	case v1alpha1.StateDeployed:
		deployed := outcome(o, d.Attempt, v1alpha1.ResultDeployed, "")
		if last.State == v1alpha1.StateDeployed && last.Version == d.Target.Version && last.Digest == d.Target.Digest {
			deployed.Duration.Duration = 0 // it was deployed before anybody wrote its history
		}
		history = record(history, deployed)
	case v1alpha1.StateFailed:
		history = record(history, outcome(o, d.Attempt, v1alpha1.ResultFailed, d.Message))
	}
	return trimmed(history, d.Rollback)
}

// located says where the content that is deployed was last seen, before
// another one is rolled out.
func located(history []v1alpha1.HistoryEntry, last v1alpha1.AddonsLayerStatus, d Decision) []v1alpha1.HistoryEntry {
	if !isContentOf(last.Attempt, last.Version, last.Digest) || d.Attempt == nil || isContentOf(d.Attempt, last.Version, last.Digest) {
		return history
	}
	for i := range history {
		if entry := &history[i]; entry.Version == last.Version && entry.Digest == last.Digest {
			entry.Revision, entry.Artifact = last.Revision, last.Attempt.Artifact
			break
		}
	}
	return history
}

func isContentOf(attempt *v1alpha1.Attempt, version, digest string) bool {
	return attempt != nil && digest != "" && attempt.Version == version && attempt.Digest == digest
}

// outcome returns what became of an attempt.
func outcome(o Observation, attempt *v1alpha1.Attempt, result v1alpha1.DeploymentResult, message string) v1alpha1.HistoryEntry {
	return v1alpha1.HistoryEntry{
		Version: attempt.Version, Revision: attempt.Revision, Digest: attempt.Digest, Artifact: attempt.Artifact,
		Result: result, Message: address.Line(message, maxHistoryMessage), Started: attempt.StartTime,
		Duration: metav1.Duration{Duration: max(0, o.Now.Sub(attempt.StartTime.Time).Truncate(time.Second))},
	}
}

// record adds what became of a deployment. One of the very content of the
// newest entry goes on with that; what was deployed once stays so, however it
// fares later.
func record(history []v1alpha1.HistoryEntry, entry v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	if len(history) == 0 || history[0].Version != entry.Version || history[0].Digest != entry.Digest {
		entry.ID = nextID(history)
		return slices.Insert(history, 0, entry)
	}
	if newest := history[0]; newest.Result != v1alpha1.ResultDeployed && newest.Result != entry.Result {
		entry.ID, entry.Kept = newest.ID, newest.Kept
		history[0] = entry
	}
	return history
}

func nextID(history []v1alpha1.HistoryEntry) string {
	highest := 0
	for _, entry := range history {
		if id, err := strconv.Atoi(entry.ID); err == nil {
			highest = max(highest, id)
		}
	}
	return strconv.Itoa(highest + 1)
}

// trimmed drops the oldest entries, but never the last one that was deployed,
// nor the one that the layer has gone back to.
func trimmed(history []v1alpha1.HistoryEntry, back *v1alpha1.Rollback) []v1alpha1.HistoryEntry {
	deployed := slices.IndexFunc(history, func(e v1alpha1.HistoryEntry) bool { return e.Result == v1alpha1.ResultDeployed })
	for i := len(history) - 1; i >= 0 && len(history) > maxHistory; i-- {
		if i != deployed && (back == nil || history[i].ID != back.To) {
			history = slices.Delete(history, i, i+1)
		}
	}
	return history
}

// findEntry returns an entry of a layer's history by its id.
func findEntry(history []v1alpha1.HistoryEntry, id string) (v1alpha1.HistoryEntry, bool) {
	i := slices.IndexFunc(history, func(e v1alpha1.HistoryEntry) bool { return e.ID == id })
	if i < 0 {
		return v1alpha1.HistoryEntry{}, false
	}
	return history[i], true
}

// KeptDigests returns the contents that a layer with a status has to be able to
// go back to although its source has moved on: that which it has gone back to,
// and with spec.rollback the last ones that were deployed, the newest first.
func KeptDigests(layer *v1alpha1.AddonsLayer, status v1alpha1.AddonsLayerStatus) []string {
	var digests []string
	if layer.Spec.Rollback {
		for _, entry := range status.History {
			if entry.Result == v1alpha1.ResultDeployed && !slices.Contains(digests, entry.Digest) && len(digests) < maxKept {
				digests = append(digests, entry.Digest)
			}
		}
	}
	if back := status.Rollback; back != nil {
		if entry, found := findEntry(status.History, back.To); found && !slices.Contains(digests, entry.Digest) {
			digests = append(digests, entry.Digest)
		}
	}
	return digests
}

func sameRollback(a, b *v1alpha1.Rollback) bool {
	return a != nil && b != nil && a.To == b.To && a.Version == b.Version && a.Digest == b.Digest && a.Generation == b.Generation
}
