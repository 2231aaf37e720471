// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/scripts"
)

// Resettable says which hosts of a plan can be reset, in which order, and why others
// cannot: workers first, and the first host of the control plane last. named are the hosts
// that somebody has named; without any, it is the whole cluster.
func Resettable(plan *hostplans.Plan, journals map[string]hosts.Entry, named []string) ([]string, error) {
	var chosen []string
	for i := range plan.Hosts {
		host := plan.Hosts[len(plan.Hosts)-1-i]
		isNamed := slices.Contains(named, host.Name)
		journal := journals[host.Name]
		isOurs := plan.ID != "" && journal.ClusterID == plan.ID
		isMember := slices.ContainsFunc(plan.Members, func(m hostplans.Member) bool { return m.Name == host.Name })
		switch {
		case len(named) > 0 && !isNamed:
			continue
		case host.Class == hosts.Empty && journal.ClusterID == "":
			continue // there is nothing to take away
		case host.Class == hosts.Unreachable && len(named) == 0:
			return nil, fmt.Errorf("%s cannot be reached (%s): reset it later, and the others now by --host", host.Name, host.Note)
		case host.Class == hosts.Unreachable:
			return nil, fmt.Errorf("%s cannot be reached: %s", host.Name, host.Note)
		case journal.ClusterID != "" && !isOurs:
			return nil, fmt.Errorf("%s has the journal of another cluster: reset it with the manifest of that one", host.Name)
		case isNamed && isMember:
			return nil, fmt.Errorf("%s is a member of a cluster that answers: take it out of the manifest, or have it replaced", host.Name)
		case !isNamed && !isOurs:
			return nil, fmt.Errorf("%s has something that no action of this cluster has left: name it with --host if it may be taken away", host.Name)
		}
		chosen = append(chosen, host.Name)
	}
	for _, name := range named {
		if !slices.ContainsFunc(plan.Hosts, func(h hostplans.Host) bool { return h.Name == name }) {
			return nil, errors.New("there is no host " + name + " in the manifest")
		}
	}
	return chosen, nil
}

// Reset takes away what a cluster has left on hosts, in their order. confirm is asked once
// with the hosts, before the first one.
func Reset(ctx context.Context, o Options, named []string, confirm func(hosts []string) error) ([]string, error) {
	w := newWorker(o)
	plan, err := w.lookAtRest(ctx)
	if err != nil {
		return nil, err
	}
	if o.ID != "" && w.id != "" && w.id != o.ID {
		return nil, fmt.Errorf("the cluster on the hosts is %s, and not %s", w.id, o.ID)
	}
	journals := map[string]hosts.Entry{}
	for _, host := range w.sight.Observation.Hosts {
		journals[host.Name] = host.Journal
		if host.Refused != "" && (len(named) == 0 || slices.Contains(named, host.Name)) {
			return nil, fmt.Errorf("%s: %s", host.Name, host.Refused)
		}
	}
	chosen, err := Resettable(plan, journals, named)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	if err := confirm(chosen); err != nil {
		return nil, err
	}
	ctx, cancel, release, err := w.hold(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := w.holdLease(ctx, cancel); err != nil {
		return nil, err
	}
	if len(named) > 0 {
		return chosen, w.takeOut(ctx, chosen)
	}
	// The API server goes with its hosts, and the Lease with it.
	w.lease.release()
	w.lease = nil
	return chosen, w.resetHosts(ctx, chosen)
}

// takeOut takes hosts out of a cluster that goes on: their Pods leave them first, and their
// Nodes go.
func (w *worker) takeOut(ctx context.Context, chosen []string) error {
	for _, name := range chosen {
		isNode := w.sight.Cluster != nil && slices.Contains(w.sight.Observation.Cluster.Nodes, name)
		if isNode {
			if err := w.empty(ctx, name); err != nil {
				return err
			}
		}
		if err := w.resetHosts(ctx, []string{name}); err != nil {
			return err
		}
		if isNode {
			if err := w.deleteNode(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// resetHosts takes away what a cluster has left on hosts.
func (w *worker) resetHosts(ctx context.Context, chosen []string) error {
	for _, name := range chosen {
		action := hosts.Action{Verb: hosts.VerbReset, Host: name}
		if err := w.runToEnd(ctx, scripts.Job{ID: w.idOr("none/none/00000000"), Forget: true, Action: action}); err != nil {
			return err
		}
	}
	return nil
}

// idOr returns the ID of the cluster, or another text where there is none.
func (w *worker) idOr(other string) string {
	if w.id == "" {
		return other
	}
	return w.id
}
