// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/test/bench/report"
)

// editors is how many edits of somebody else are under way at a time.
const editors = 16

// runStorm gives all layers a new artifact that changes every release, and then
// has somebody else edit every release.
func runStorm(ctx context.Context, s *session, r *report.Result) error {
	s.work.mark("storm")
	if err := s.commit(s.work.files()); err != nil {
		return err
	}
	start, end, err := s.rollOut(ctx)
	if err != nil {
		return err
	}
	changed := time.Time{}
	for _, times := range s.releases.all() {
		changed = later(changed, times.MarkAt)
	}
	r.Figures = append(r.Figures, seconds(report.StormArtifacts, changed.Sub(start)))
	s.logf("storm: new artifacts deployed after %s", end.Sub(start).Round(time.Millisecond))

	edits := &edits{generations: map[string]int64{}}
	start = time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.editAll(groupCtx, edits) })
	if pusher, ok := s.system.(Pusher); ok {
		group.Go(func() error { return s.pushEdited(groupCtx, pusher, edits) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	err = await(ctx, lookEvery, "all edits to be taken back", func() string { return s.seenEdits(edits) }, func() bool {
		return s.takenBack(edits) == s.work.releases()
	})
	if err != nil {
		return err
	}
	end = time.Time{}
	for _, times := range s.releases.all() {
		end = later(end, times.MarkAt)
	}
	r.Figures = append(r.Figures, seconds(report.StormEdits, end.Sub(start)))
	_, err = s.deployed(ctx)
	return err
}

// edits are what somebody else has done to releases.
type edits struct {
	mu sync.Mutex
	// generations that the releases had after they were edited.
	generations map[string]int64
	// fresh are the releases that were edited and not taken yet.
	fresh []layer
	done  bool
}

// add notes that a release was edited.
func (e *edits) add(l layer, release string, generation int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.generations[release] = generation
	l.Releases = []string{release}
	e.fresh = append(e.fresh, l)
}

// take returns the releases that were edited since it was called last, and
// whether there will be more.
func (e *edits) take() (fresh []layer, done bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh, e.fresh = e.fresh, nil
	return fresh, e.done
}

// editAll edits all releases.
func (s *session) editAll(ctx context.Context, e *edits) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(editors)
	for _, l := range s.work.layers {
		for _, release := range l.Releases {
			group.Go(func() error {
				generation, err := s.edit(ctx, release)
				if err == nil {
					e.add(l, release, generation)
				}
				return err
			})
		}
	}
	err := group.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = true
	return err
}

// edit changes a release as somebody else would, and returns the generation it
// has then.
func (s *session) edit(ctx context.Context, release string) (int64, error) {
	data, err := s.client.Patch(types.MergePatchType).AbsPath(releasesPath, release).Param("fieldManager", "somebody").
		Body([]byte(`{"spec":{"values":{"mark":"edited"}}}`)).DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot edit release %s: %w", release, err)
	}
	var edited object
	if err := json.Unmarshal(data, &edited); err != nil {
		return 0, fmt.Errorf("cannot read release %s: %w", release, err)
	}
	return edited.Metadata.Generation, nil
}

// pushEdited has a system without a controller write every release again that
// was edited, as soon as it was.
func (s *session) pushEdited(ctx context.Context, pusher Pusher, e *edits) error {
	for {
		fresh, done := e.take()
		if len(fresh) == 0 && done {
			return nil
		}
		if len(fresh) == 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
			continue
		}
		if err := pusher.Push(ctx, s.work.manifestsOf(fresh)); err != nil {
			return err
		}
	}
}

// takenBack counts the releases that were edited and then written as they
// should be.
func (s *session) takenBack(e *edits) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.releases.count(func(name string, r *releaseTimes) bool {
		edited := e.generations[name]
		return edited > 0 && r.Generation > edited && r.Mark == s.work.marks[name]
	})
}

func (s *session) seenEdits(e *edits) string {
	return fmt.Sprintf("%d of %d", s.takenBack(e), s.work.releases())
}
