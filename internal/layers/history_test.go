// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// historyText writes a history as a table shows it, the newest entry first.
func historyText(history []v1alpha1.HistoryEntry) string {
	var words []string
	for _, e := range history {
		words = append(words, fmt.Sprintf("%s:%s:%s", e.ID, e.Version, e.Result))
	}
	return strings.Join(words, " ")
}

func TestHistory(t *testing.T) {
	attempt := func(dir *directories.Directory) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.Attempt = &v1alpha1.Attempt{Version: l.Spec.Version, Revision: dir.Revision, Digest: dir.Digest, StartTime: longAgo}
		}
	}
	first := entry("1", "1.0.0", firstDir, v1alpha1.ResultDeployed)
	failed := entry("2", "2.0.0", secondDir, v1alpha1.ResultFailed)
	running := lives(live("a"), live("b"), live("c"))
	for name, tc := range map[string]struct {
		reason string
		in     Observation
		want   string
	}{
		"first deployment": {
			"it is written when it is deployed", observation(layer(rollsOut(firstDir, soon)), firstDir, lives(live("a"), live("b"))), "1:1.0.0:Deployed",
		},
		"under way": {
			"it has no result yet", observation(layer(rollsOut(firstDir, soon)), firstDir, lives(live("a"))), "",
		},
		"next deployment": {
			"the newest stands first",
			observation(layer(isDeployed(firstDir), withHistory(first), atVersion("2.0.0"), rollsOut(secondDir, soon)), secondDir, running),
			"2:2.0.0:Deployed 1:1.0.0:Deployed",
		},
		"failure": {
			"it has a result, though it may heal",
			observation(layer(isDeployed(firstDir), withHistory(first), atVersion("2.0.0"), rollsOut(secondDir, soon)), secondDir, lives(live("a"), live("b"), live("c", gaveUp))),
			"2:2.0.0:Failed 1:1.0.0:Deployed",
		},
		"failure that heals": {
			"it is the same deployment",
			observation(layer(isDeployed(firstDir), withHistory(failed, first), atVersion("2.0.0"), rollsOut(secondDir, soon)), secondDir, running),
			"2:2.0.0:Deployed 1:1.0.0:Deployed",
		},
		"failure of what is deployed": {
			"the deployment had succeeded",
			observation(layer(isDeployed(firstDir), withHistory(first)), firstDir, lives(live("a"), live("b", gaveUp))), "1:1.0.0:Deployed",
		},
		"nothing new": {
			"nor is what heals a new one",
			observation(layer(isDeployed(firstDir), withHistory(first), inState(v1alpha1.StateApplying, "Unknown")), firstDir, lives(live("a"), live("b"))), "1:1.0.0:Deployed",
		},
		"deployed before there was a history": {
			"it is written down at the next look", observation(layer(isDeployed(firstDir)), firstDir, lives(live("a"), live("b"))), "1:1.0.0:Deployed",
		},
		"mistake in the directory": {
			"nothing was rolled out",
			observation(layer(isDeployed(firstDir), withHistory(first), attempt(firstDir)), nil, func(o *Observation) {
				o.DirectoryError = &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, Message: "no"}
			}), "1:1.0.0:Deployed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, _ := Report(tc.in, Decide(tc.in), nil)
			if got := historyText(report.History); got != tc.want {
				t.Errorf("history %q, want %q: %s", got, tc.want, tc.reason)
			}
			next := tc.in
			next.Layer = withStatus(tc.in.Layer, report)
			next.Now = next.Now.Add(time.Hour)
			again, _ := Report(next, Decide(next), nil)
			if report.State == v1alpha1.StateDeployed {
				if diff := cmp.Diff(report.History, again.History); diff != "" {
					t.Errorf("an hour later the history is another (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// The history says where a content was seen last, because the source forgets
// older artifacts first.
func TestHistoryFollowsTheArtifact(t *testing.T) {
	first := entry("1", "1.0.0", firstDir, v1alpha1.ResultDeployed)
	l := layer(isDeployed(firstDir), withHistory(first), atVersion("2.0.0"))
	l.Status.Revision = "main@sha1:between"
	l.Status.Attempt.Artifact = &v1alpha1.ArtifactReference{URL: "http://source/between.tar.gz", Digest: "sha256:between", Path: "./base"}
	o := observation(l, secondDir, lives(live("a"), live("b")), source(func(s *Source) { s.URL = "http://source/new.tar.gz" }))
	report, _ := Report(o, Decide(o), nil)
	if got := report.History[0]; got.Revision != "main@sha1:between" || got.Artifact == nil || got.Artifact.Digest != "sha256:between" {
		t.Errorf("the entry of what is deployed says %+v", got)
	}
	want := &v1alpha1.ArtifactReference{URL: "http://source/new.tar.gz", Digest: "sha256:x", Path: "./base"}
	if diff := cmp.Diff(want, report.Attempt.Artifact); diff != "" {
		t.Errorf("the artifact of the roll-out (-want +got):\n%s", diff)
	}
}

// However a layer fares, its history is short, its ids grow, what is deployed is
// in it, and an entry that was Deployed stays so.
func TestHistoryOfRandomDeployments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var history []v1alpha1.HistoryEntry
		var lastDeployed string
		for i := range rapid.IntRange(1, 60).Draw(t, "deployments") {
			content := fmt.Sprintf("sha256:%d", rapid.IntRange(0, 5).Draw(t, "content"))
			result := rapid.SampledFrom([]v1alpha1.DeploymentResult{v1alpha1.ResultDeployed, v1alpha1.ResultFailed, v1alpha1.ResultFailed, v1alpha1.ResultRolledBack}).Draw(t, "result")
			before := slices.Clone(history)
			history = record(slices.Clone(history), v1alpha1.HistoryEntry{Version: "1", Digest: content, Result: result, Started: metav1.NewTime(testNow.Add(time.Duration(i)))})
			if result == v1alpha1.ResultDeployed {
				lastDeployed = content
			}
			history = trimmed(history, nil)
			if len(history) > maxHistory {
				t.Fatalf("%d entries", len(history))
			}
			for k, e := range history {
				id, err := strconv.Atoi(e.ID)
				if err != nil || k > 0 && id >= mustAtoi(t, history[k-1].ID) {
					t.Fatalf("ids do not grow: %s", historyText(history))
				}
				if was, found := findEntry(before, e.ID); found && was.Result == v1alpha1.ResultDeployed && e.Result != v1alpha1.ResultDeployed {
					t.Fatalf("deployment %s was Deployed and is %s", e.ID, e.Result)
				}
			}
			if lastDeployed != "" && !slices.ContainsFunc(history, func(e v1alpha1.HistoryEntry) bool {
				return e.Result == v1alpha1.ResultDeployed && e.Digest == lastDeployed
			}) {
				t.Fatalf("what is deployed, %s, has left the history: %+v", lastDeployed, history)
			}
		}
	})
}

// What a layer has gone back to stays in its history, however long ago that was.
func TestHistoryKeepsWhatWasGoneBackTo(t *testing.T) {
	var history []v1alpha1.HistoryEntry
	for i := range 25 {
		history = trimmed(record(history, v1alpha1.HistoryEntry{Version: "1", Digest: fmt.Sprint(i), Result: v1alpha1.ResultDeployed}), &v1alpha1.Rollback{To: "2"})
	}
	if got := historyText(history); len(history) != maxHistory || !strings.HasSuffix(got, " 2:1:Deployed") || !strings.HasPrefix(got, "25:") {
		t.Errorf("%d entries: %s", len(history), got)
	}
	status := v1alpha1.AddonsLayerStatus{History: history, Rollback: &v1alpha1.Rollback{To: "2"}}
	if diff := cmp.Diff([]string{"1"}, KeptDigests(layer(), status)); diff != "" {
		t.Errorf("the cluster keeps what the layer went back to, also without spec.rollback (-want +got):\n%s", diff)
	}
}

func mustAtoi(t *rapid.T, text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestKeptDigests(t *testing.T) {
	var entries []v1alpha1.HistoryEntry
	for i := 9; i > 0; i-- {
		result := v1alpha1.ResultDeployed
		if i%3 == 0 {
			result = v1alpha1.ResultFailed
		}
		entries = append(entries, v1alpha1.HistoryEntry{ID: strconv.Itoa(i), Digest: fmt.Sprint("sha256:", i/2), Result: result})
	}
	status := v1alpha1.AddonsLayerStatus{History: entries}
	if diff := cmp.Diff([]string{"sha256:4", "sha256:3", "sha256:2"}, KeptDigests(layer(withRollback), status)); diff != "" {
		t.Errorf("the last contents that were deployed, each once (-want +got):\n%s", diff)
	}
	if got := KeptDigests(layer(), status); got != nil {
		t.Errorf("a layer without spec.rollback keeps %v", got)
	}
}

// An address that holds more than may be shown is not kept, and what identifies the
// artifact is.
func TestHistoryKeepsNoSignedAddress(t *testing.T) {
	for url, want := range map[string]string{
		"http://source/new.tar.gz":                                 "http://source/new.tar.gz",
		"https://bucket.example/new.tar.gz?X-Amz-Signature=secret": "",
		"https://robot:secret@bucket.example/new.tar.gz":           "",
		"https://bucket.example/new.tar.gz#secret":                 "",
	} {
		o := observation(layer(), firstDir, lives(live("a"), live("b")), source(func(s *Source) { s.URL = url }))
		report, _ := Report(o, Decide(o), nil)
		if got := report.Attempt.Artifact; got == nil || got.URL != want || got.Digest != "sha256:x" {
			t.Errorf("of %s is kept %+v, want the address %q", url, got, want)
		}
	}
}

// Whoever says something in a message, what it says of addresses is what may be shown.
func TestMessagesShowNoSignedAddress(t *testing.T) {
	const signed = `Get "https://robot:s3cr3t@bucket.example/a?X-Amz-Signature=s3cr3t": connection refused`
	o := observation(layer(), nil, func(o *Observation) { o.DirectoryError = errors.New(signed) })
	report, _ := Report(o, Decide(o), nil)
	text := fmt.Sprintf("%+v", report)
	if strings.Contains(text, "s3cr3t") || !strings.Contains(text, "bucket.example/a") {
		t.Errorf("the status says %s", text)
	}
}
