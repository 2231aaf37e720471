// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/strata-project/strata/test/bench/meter"
	"github.com/strata-project/strata/test/bench/report"
)

// window is the time of one scenario, over which it is counted what the system
// costs.
type window struct {
	bed       *bed
	system    System
	began     time.Time
	requests  meter.Requests
	remote    meter.Requests
	downloads int
	// used is what the processes had used at the begin, by their ids.
	used map[int]meter.Usage
}

// openWindow begins to count.
func openWindow(b *bed, system System) (*window, error) {
	w := &window{bed: b, system: system, used: map[int]meter.Usage{}}
	for _, pid := range system.PIDs() {
		// Where that is not allowed, the peak is that of all the time it runs.
		_ = meter.ResetPeak(pid)
		usage, err := meter.ReadUsage(pid)
		if err != nil {
			return nil, err
		}
		w.used[pid] = usage
	}
	var err error
	if w.requests, err = b.audit.Requests(); err != nil {
		return nil, err
	}
	if b.remote != nil {
		if w.remote, err = b.remote.audit.Requests(); err != nil {
			return nil, err
		}
	}
	w.downloads, w.began = b.downloads.Total(), time.Now()
	return w, nil
}

// close says in a result what the time since the begin has cost. A process that
// was not there at the begin counts from its own.
func (w *window) close(r *report.Result) error {
	r.WallSeconds = time.Since(w.began).Seconds()
	cost := &report.Cost{}
	for _, pid := range w.system.PIDs() {
		usage, err := meter.ReadUsage(pid)
		if err != nil {
			return err
		}
		of := usage.Since(w.used[pid])
		cost.CPUSeconds += of.CPUSeconds
		cost.PeakRSSBytes += of.PeakRSSBytes
	}
	requests, err := w.bed.audit.Requests()
	if err != nil {
		return err
	}
	downloads := w.bed.downloads.Total() - w.downloads
	r.Cost, r.Requests, r.Downloads = cost, requests.Since(w.requests, w.system.User()), &downloads
	if w.bed.remote == nil {
		return nil
	}
	r.RemoteRequests, err = w.bed.remote.since(w.remote)
	return err
}

// lastRequest returns when the system's last request ended that is no watch and
// comes with work and not with time; zero where there was none.
func (b *bed) lastRequest(system System) (time.Time, error) {
	requests, err := b.audit.Requests()
	if err != nil {
		return time.Time{}, err
	}
	last := requests.Last(system.User())
	if b.remote == nil {
		return last, nil
	}
	if requests, err = b.remote.audit.Requests(); err != nil {
		return time.Time{}, err
	}
	return later(last, requests.Last(accountUser(remoteAccount))), nil
}

// elected is a System whose processes elect a leader.
type elected interface {
	// Lease returns where the API serves the lease of the leader.
	Lease() string
}

// leader returns who leads; empty where nobody does or none is elected.
func (s *session) leader(ctx context.Context) (string, error) {
	system, ok := s.system.(elected)
	if !ok {
		return "", nil
	}
	data, err := s.client.Get().AbsPath(system.Lease()).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot read the lease of %s: %w", s.system.Report().Name, err)
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &lease); err != nil {
		return "", fmt.Errorf("cannot read the lease of %s: %w", s.system.Report().Name, err)
	}
	return lease.Spec.HolderIdentity, nil
}
