// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// change is what a watch tells of one object.
type change struct {
	Type   string `json:"type"`
	Object object `json:"object"`
	// At is when it arrived.
	At time.Time `json:"-"`
}

// object is as much of a watched object as any record needs. Decoding little
// leaves the processors to what is measured.
type object struct {
	Metadata struct {
		Name              string `json:"name"`
		ResourceVersion   string `json:"resourceVersion"`
		Generation        int64  `json:"generation"`
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
		Values  struct {
			Mark string `json:"mark"`
		} `json:"values"`
	} `json:"spec"`
	Status json.RawMessage `json:"status"`
}

// watchRetry is how long a watch that ended waits before it begins again.
const watchRetry = 100 * time.Millisecond

// watch lists what a path of the API serves and then tells of every change,
// until the context ends. Objects of a list are told as ADDED; when a watch has
// to begin again, so are those that were told before. It returns when the first
// list has been told; later failures only cost the time of a retry.
func watch(ctx context.Context, client rest.Interface, path string, tell func(change)) error {
	version, err := list(ctx, client, path, tell)
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", path, err)
	}
	go func() {
		for ctx.Err() == nil {
			if version != "" {
				version = follow(ctx, client, path, version, tell)
				continue
			}
			if version, err = list(ctx, client, path, tell); err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(watchRetry):
				}
			}
		}
	}()
	return nil
}

// list tells what there is and returns its version, "" beside an error.
func list(ctx context.Context, client rest.Interface, path string, tell func(change)) (string, error) {
	data, err := client.Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var found struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []object `json:"items"`
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return "", err
	}
	for _, item := range found.Items {
		tell(change{Type: "ADDED", Object: item, At: time.Now()})
	}
	return found.Metadata.ResourceVersion, nil
}

// follow tells of the changes since a version until the watch ends. It returns
// the version to go on from, "" where that has to be listed.
func follow(ctx context.Context, client rest.Interface, path, version string, tell func(change)) string {
	stream, err := client.Get().AbsPath(path).Param("watch", "true").Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = stream.Close() }()
	decoder := json.NewDecoder(bufio.NewReaderSize(stream, 1<<16))
	for {
		var seen change
		if err := decoder.Decode(&seen); err != nil {
			return version
		}
		seen.At = time.Now()
		if seen.Type == "ERROR" {
			return ""
		}
		version = seen.Object.Metadata.ResourceVersion
		tell(seen)
	}
}

// await calls check every interval until it is true. The error says what was
// waited for and, by the function seen, what was there instead.
func await(ctx context.Context, interval time.Duration, what string, seen func() string, check func() bool) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !check() {
		select {
		case <-ctx.Done():
			err := fmt.Errorf("waited for %s, saw %s: %w", what, seen(), context.Cause(ctx))
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%w: %w", errTimeout, err)
			}
			return err
		case <-ticker.C:
		}
	}
	return nil
}

// errTimeout marks what did not happen within --timeout.
var errTimeout = errors.New("timed out")
