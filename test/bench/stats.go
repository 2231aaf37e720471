// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// hops returns, for each layer that depends on others, how long after the last
// release of those was Ready its own first release was created. A layer without
// releases that were seen is left out.
func hops(layers []layer, seen map[string]releaseTimes) []time.Duration {
	byName := map[string]layer{}
	for _, l := range layers {
		byName[l.Name] = l
	}
	var found []time.Duration
	for _, l := range layers {
		var ready time.Time
		for _, name := range l.DependsOn {
			for _, release := range byName[name].Releases {
				if at := seen[release].FirstReady; at.After(ready) {
					ready = at
				}
			}
		}
		var created time.Time
		for _, release := range l.Releases {
			if at := seen[release].Created; !at.IsZero() && (created.IsZero() || at.Before(created)) {
				created = at
			}
		}
		if !ready.IsZero() && !created.IsZero() {
			found = append(found, created.Sub(ready))
		}
	}
	return found
}

// lastReady returns when the last of the releases was Ready.
func lastReady(seen map[string]releaseTimes) time.Time {
	var last time.Time
	for _, times := range seen {
		last = later(last, times.ReadyAt)
	}
	return last
}

// lastCreated returns when the last of the releases was created.
func lastCreated(seen map[string]releaseTimes) time.Time {
	var last time.Time
	for _, times := range seen {
		last = later(last, times.Created)
	}
	return last
}
