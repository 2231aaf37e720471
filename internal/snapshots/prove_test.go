// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/confined"
)

// What is made of a snapshot takes no more than its share, and is told which share that was.
func TestOpeningIsBounded(t *testing.T) {
	db := filepath.Join(t.TempDir(), "db")
	zeros := make([]byte, 64<<20)
	sum := sha256.Sum256(zeros)
	if err := os.WriteFile(db, append(zeros, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("the caller has gone"))
	whole := confined.Bounds{Memory: openMemory, CPU: openCPU, FileSize: openBeside}
	for name, tc := range map[string]struct {
		ctx    context.Context
		within confined.Bounds
		limit  time.Duration
		want   string
	}{
		"memory": {t.Context(), confined.Bounds{Memory: 1 << 20, CPU: openCPU, FileSize: openBeside}, openTime, "takes more than 1 MiB of memory"},
		"files":  {t.Context(), confined.Bounds{Memory: openMemory, CPU: openCPU}, openTime, "file too large"},
		"time":   {t.Context(), whole, time.Millisecond, "takes longer than 1ms"},
		"caller": {ended, whole, openTime, "the caller has gone"},
	} {
		t.Run(name, func(t *testing.T) {
			task := &task{DB: db, Dir: filepath.Join(t.TempDir(), "data"), Member: &Member{Name: "a", PeerURL: scratchURL, Token: "t"}}
			if _, err := runWithin(tc.ctx, task, tc.within, tc.limit); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// One snapshot is opened at a time, and whoever waits may give up.
func TestOpeningWaits(t *testing.T) {
	opening <- struct{}{}
	defer func() { <-opening }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := run(ctx, &task{}); err == nil || !strings.Contains(err.Error(), "no other snapshot was opened in time") {
		t.Errorf("error %v", err)
	}
}

// The process is started with limits that can be read, or does nothing.
func TestNobodyElseOpensASnapshot(t *testing.T) {
	for _, arguments := range [][]string{{marker}, {marker, "1", "1"}, {marker, "a", "1", "1"}, {marker, "1", "-1", "1"}, {marker, "1", "1", "1", "1"}} {
		if _, err := parseArguments(arguments); err == nil {
			t.Errorf("%v are limits", arguments)
		}
	}
	want := confined.Bounds{Memory: openMemory, CPU: openCPU, FileSize: maxSize + openBeside}
	if got, err := parseArguments(argumentsOf(want)); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}
