// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/strata-project/strata/test/bench/report"
)

// runCommit changes one value of one release at a time, each time of another
// layer.
func runCommit(ctx context.Context, s *session, r *report.Result) error {
	var took []float64
	others := 0
	touched := map[string]int{}
	before := s.layers.changes()
	for i := range r.Sizes.Commits {
		l := s.work.layers[i%len(s.work.layers)]
		release := l.Releases[i/len(s.work.layers)%len(l.Releases)]
		writes := s.otherWrites(release)
		atLayer := s.layers.changes()[l.Name]
		start, end, err := s.change(ctx, l, release, fmt.Sprintf("commit-%d", i))
		if err != nil {
			return fmt.Errorf("commit %d of %d: %w", i+1, r.Sizes.Commits, err)
		}
		took = append(took, end.Sub(start).Seconds())
		others += s.otherWrites(release) - writes
		touched[l.Name] += s.layers.changes()[l.Name] - atLayer
	}
	r.Figures = append(r.Figures, report.Percentiles(took, report.CommitP50, report.CommitP95, report.CommitMax)...)
	r.Figures = append(r.Figures, report.Figure{Name: report.OtherReleases, Value: float64(others)})
	if n := len(s.work.layers) - 1; n > 0 && s.controlled() {
		writes := sum(s.layers.changes()) - sum(before) - sum(touched)
		r.Figures = append(r.Figures, report.Figure{Name: report.OtherLayerWrites, Value: float64(writes) / float64(n*r.Sizes.Commits)})
	}
	return nil
}

// change commits one release with another mark and waits until all is deployed.
// It returns when the artifact of the layer's source arrived and when the release
// was changed.
func (s *session) change(ctx context.Context, l layer, release, mark string) (start, end time.Time, err error) {
	s.work.marks[release] = mark
	if err := s.commit(map[string]string{l.file(release): s.work.manifest(l, release)}); err != nil {
		return start, end, err
	}
	if start, err = s.fetch(ctx, l.Source); err != nil {
		return start, end, err
	}
	if pusher, ok := s.system.(Pusher); ok {
		if err := pusher.Push(ctx, []string{s.work.manifest(l, release)}); err != nil {
			return start, end, err
		}
	}
	if _, err := s.deployed(ctx); err != nil {
		return start, end, err
	}
	return start, s.releases.get(release).MarkAt, nil
}

// otherWrites returns how often all releases but one were written.
func (s *session) otherWrites(but string) int {
	writes := 0
	for name, times := range s.releases.all() {
		if name != but {
			writes += times.Writes
		}
	}
	return writes
}

// sum adds up counts.
func sum(counts map[string]int) int {
	total := 0
	for n := range maps.Values(counts) {
		total += n
	}
	return total
}
