// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"slices"
)

// Merge puts reports together that were made in pieces. It is an error when
// they are not of the same machine and delay, or ran a system with other flags,
// because then they cannot be compared. The date is that of the first, the
// command is all of them.
func Merge(reports ...Report) (Report, error) {
	if len(reports) == 0 {
		return Report{}, errors.New("there is no report")
	}
	run := reports[0].Run
	results := slices.Clone(reports[0].Results)
	for _, r := range reports[1:] {
		both := fmt.Sprintf("the reports of %s and %s", run.Date.UTC().Format("2006-01-02 15:04"), r.Run.Date.UTC().Format("2006-01-02 15:04"))
		if r.Run.Machine != run.Machine {
			return Report{}, fmt.Errorf("%s are of different machines: %+v and %+v", both, run.Machine, r.Run.Machine)
		}
		if r.Run.ReadyDelaySeconds != run.ReadyDelaySeconds {
			return Report{}, fmt.Errorf("%s are of a --ready-delay of %g s and of %g s", both, run.ReadyDelaySeconds, r.Run.ReadyDelaySeconds)
		}
		for _, system := range r.Run.Systems {
			if err := sameFlags(run.Systems, system); err != nil {
				return Report{}, err
			}
		}
		if r.Run.Date.Before(run.Date) {
			run.Date = r.Run.Date
		}
		run.Command = slices.Concat(run.Command, []string{"&&"}, r.Run.Command)
		run.Programs = slices.Concat(run.Programs, r.Run.Programs)
		run.Systems = slices.Concat(run.Systems, r.Run.Systems)
		results = append(results, r.Results...)
	}
	return New(run, results), nil
}

// sameFlags fails where a system ran with other flags elsewhere. Addresses and
// files differ in every run.
func sameFlags(systems []System, system System) error {
	for _, known := range systems {
		if known.Name != system.Name {
			continue
		}
		for _, flag := range system.Flags {
			i := slices.IndexFunc(known.Flags, func(f Flag) bool { return f.Name == flag.Name })
			if i >= 0 && known.Flags[i].Value != flag.Value && !slices.Contains(placeFlags, flag.Name) {
				return fmt.Errorf("%s ran with --%s %s and with %s", system.Name, flag.Name, known.Flags[i].Value, flag.Value)
			}
		}
	}
	return nil
}

// placeFlags are those that say where a system listens and keeps things.
var placeFlags = []string{"metrics-addr", "health-addr", "kubeconfig", "artifact-cache-dir", "artifact-hosts", "pprof-addr"}
