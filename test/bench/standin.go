// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// releasesPath is where the API serves the releases of a run.
const releasesPath = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/" + namespace + "/helmreleases"

// standInWriters is how many statuses the stand-in writes side by side, so that
// it is not what a system waits for.
const standInWriters = 16

// standInRetry is how long it waits after a write that failed.
const standInRetry = 100 * time.Millisecond

// standIn takes the place of helm-controller: it installs nothing, and says a
// set delay after a release was created or changed that it is Ready. It leaves
// suspended releases alone and has no finalizer, so that those that are deleted
// are gone at once.
type standIn struct {
	client rest.Interface
	delay  time.Duration
	record *releaseRecord
	due    chan dueRelease
	logf   func(format string, args ...any)
}

// dueRelease is a release that becomes Ready at a generation.
type dueRelease struct {
	name       string
	generation int64
}

// startStandIn runs a stand-in until the context ends. It returns when it has
// seen all releases that there are.
func startStandIn(ctx context.Context, client rest.Interface, delay time.Duration, record *releaseRecord, logf func(string, ...any)) error {
	s := &standIn{client: client, delay: delay, record: record, due: make(chan dueRelease), logf: logf}
	for range standInWriters {
		go s.write(ctx)
	}
	return watch(ctx, client, releasesPath, func(seen change) { s.look(ctx, seen) })
}

// look takes in a change of a release and has it Ready when it is due.
func (s *standIn) look(ctx context.Context, seen change) {
	ready := readyGeneration(seen.Object.Status)
	before := s.record.get(seen.Object.Metadata.Name)
	s.record.tell(seen, ready)
	meta := &seen.Object.Metadata
	if seen.Type == "DELETED" || meta.DeletionTimestamp != "" || seen.Object.Spec.Suspend {
		return
	}
	if ready == meta.Generation || (before.Generation == meta.Generation && !before.Suspended) {
		return // it is, or its time runs already
	}
	s.after(ctx, s.delay, dueRelease{name: meta.Name, generation: meta.Generation})
}

// after has a release written when some time has passed.
func (s *standIn) after(ctx context.Context, delay time.Duration, due dueRelease) {
	time.AfterFunc(delay, func() {
		select {
		case s.due <- due:
		case <-ctx.Done():
		}
	})
}

// write writes the statuses of releases that are due.
func (s *standIn) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-s.due:
			if times := s.record.get(due.name); times.Generation != due.generation || times.Suspended {
				continue // it was changed meanwhile, which has its own time
			}
			err := s.client.Patch(types.MergePatchType).AbsPath(releasesPath, due.name, "status").
				Body(readyStatus(due.name, due.generation, time.Now())).Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				s.logf("the stand-in cannot write the status of %s: %v", due.name, err)
				s.after(ctx, standInRetry, due)
			}
		}
	}
}

// readyGeneration returns the generation at which a status calls its release
// Ready, 0 for none.
func readyGeneration(status json.RawMessage) int64 {
	var known struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Conditions         []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	}
	if len(status) == 0 || json.Unmarshal(status, &known) != nil {
		return 0
	}
	for _, condition := range known.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return max(known.ObservedGeneration, 0)
		}
	}
	return 0
}

// readyStatus returns the patch that makes a release Ready at a generation, in
// the words of helm-controller.
func readyStatus(name string, generation int64, now time.Time) []byte {
	at := now.UTC().Format(time.RFC3339)
	message := fmt.Sprintf("Helm install succeeded for release %s/%s.v%d with chart podinfo@6.0.0", namespace, name, generation)
	condition := func(kind string) map[string]any {
		return map[string]any{
			"type": kind, "status": "True", "reason": "InstallSucceeded", "message": message,
			"observedGeneration": generation, "lastTransitionTime": at,
		}
	}
	patch := map[string]any{"status": map[string]any{
		"observedGeneration":      generation,
		"lastAttemptedGeneration": generation,
		"lastAttemptedRevision":   "6.0.0",
		"helmChart":               namespace + "/" + namespace + "-" + name,
		"storageNamespace":        namespace,
		"conditions":              []any{condition("Ready"), condition("Released")},
	}}
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err) // it holds nothing that JSON cannot say
	}
	return data
}

// jsonType is what objects are sent as.
const jsonType = "application/json"

// createObject creates an object below a path; one that exists is fine.
func createObject(ctx context.Context, client rest.Interface, path string, obj any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	err = client.Post().AbsPath(path).SetHeader("Content-Type", jsonType).Body(data).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
