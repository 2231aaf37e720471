// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strata-project/strata/test/bench/report"
)

// profiled is a System that serves Go's profiles.
type profiled interface {
	// Profiles returns the URL of the profiles, without a slash at the end.
	Profiles() string
}

// makeProfiles makes the folder of the profiles, where there are to be any, and
// makes sure that files can be written there.
func makeProfiles(folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("--pprof-dir: %w", err)
	}
	probe, err := os.CreateTemp(folder, "probe-")
	if err != nil {
		return fmt.Errorf("--pprof-dir: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// profile begins to take a CPU profile of a scenario, where profiles are wanted
// and served, and one of the API server. The function that it returns waits for
// their end and takes those of the memory.
func (s *session) profile(ctx context.Context, r *report.Result) (finish func() error) {
	system, ok := s.system.(profiled)
	// A process that is killed meanwhile gives none.
	if s.o.profiles == "" || r.Scenario == report.Restart {
		return func() error { return nil }
	}
	base := filepath.Join(s.o.profiles, fmt.Sprintf("%s-%s-%dx%d", r.System, r.Scenario, r.Sizes.Layers, r.Sizes.Releases))
	r.Notes = append(r.Notes, "profiles were taken meanwhile")
	group, ctx := errgroup.WithContext(ctx)
	seconds := max(int(s.o.profileTime/time.Second), 1)
	group.Go(func() error { return s.profileServer(ctx, seconds, base+"-apiserver-cpu.pprof") })
	if !ok {
		return group.Wait
	}
	group.Go(func() error {
		return download(ctx, fmt.Sprintf("%s/profile?seconds=%d", system.Profiles(), seconds), base+"-cpu.pprof")
	})
	return func() error {
		if err := group.Wait(); err != nil {
			return err
		}
		// Only what a garbage collection leaves is in use.
		for _, kind := range []string{"heap?gc=1", "allocs", "mutex", "block", "goroutine"} {
			name, _, _ := strings.Cut(kind, "?")
			if err := download(context.WithoutCancel(ctx), system.Profiles()+"/"+kind, base+"-"+name+".pprof"); err != nil {
				return err
			}
		}
		return nil
	}
}

// profileServer writes a CPU profile of the API server into a file: a system also
// costs what it has the API server do.
func (s *session) profileServer(ctx context.Context, seconds int, path string) error {
	data, err := s.client.Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(seconds)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("cannot take a profile of the API server: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("cannot keep a profile: %w", err)
	}
	return nil
}

// download writes what a URL answers into a file.
func download(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot take a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot take a profile: %s: %s", url, response.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot keep a profile: %w", err)
	}
	if _, err := io.Copy(file, response.Body); err != nil {
		return fmt.Errorf("cannot keep a profile: %w", err)
	}
	return file.Close()
}
