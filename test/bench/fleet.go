// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strata-project/strata/test/bench/meter"
	"github.com/strata-project/strata/test/bench/report"
)

// fleetSystems are those that a fleet is measured with. What kustomize-controller
// would do there, it would do on the other clusters, which is something else.
var fleetSystems = []string{report.Plain, report.Strata}

// fleetScenarios are what happens to a fleet.
var fleetScenarios = []scenario{
	{name: report.FleetJoin, run: runFleetJoin, standing: true},
	{name: report.Fleet, run: runFleet},
	{name: report.FleetIdle, run: runFleetIdle, standing: true},
}

// present and joined are what the records of objects on the clusters and of
// RemoteClusters hold of those that are as they should be.
const (
	present = "present"
	joined  = "joined"
)

// declarers is how many objects are created at a time.
const declarers = 16

// runFleetJoin gives a system its clusters and waits until all of them are
// reached.
func runFleetJoin(ctx context.Context, s *session, r *report.Result) error {
	system, ok := s.system.(FleetController)
	if !ok {
		return fmt.Errorf("%s knows of no other clusters", s.system.Report().Name)
	}
	if err := s.makeKubeconfigs(ctx); err != nil {
		return err
	}
	err := watch(s.lasting, s.client, system.ClusterPath(), func(seen change) {
		state := ""
		if system.Joined(seen.Object) {
			state = joined
		}
		s.clusters.tell(seen, state)
		state = ""
		if system.Deployed(seen.Object) == len(s.work.layers)/len(s.work.clusters) {
			state = present
		}
		s.counted.tell(seen, state)
	})
	if err != nil {
		return err
	}
	if s.rssBefore, err = s.rss(); err != nil {
		return err
	}
	start := time.Now()
	err = each(ctx, s.work.clusters, func(ctx context.Context, name string) error {
		return createObject(ctx, s.client, system.ClusterPath(), system.Cluster(name))
	})
	if err != nil {
		return fmt.Errorf("cannot create the object of a cluster: %w", err)
	}
	end, err := awaitAll(ctx, "all clusters to be reached", s.clusters, joined, len(s.work.clusters))
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, seconds(report.AllJoined, end.Sub(start)))
	if err := s.calm(ctx); err != nil {
		return err
	}
	r.Figures = append(r.Figures, s.clusterWrites(nil))
	return s.rssPerCluster(r)
}

// runFleet deploys the layers of all clusters.
func runFleet(ctx context.Context, s *session, r *report.Result) error {
	if _, err := s.fetch(ctx, ""); err != nil {
		return err
	}
	before := s.clusters.changes()
	start := time.Now()
	switch system := s.system.(type) {
	case Controller:
		err := each(ctx, s.work.layers, func(ctx context.Context, l layer) error {
			return createObject(ctx, s.client, system.Path(), system.Object(l))
		})
		if err != nil {
			return fmt.Errorf("cannot create the object of a layer: %w", err)
		}
	case Pusher:
		if err := system.Push(ctx, s.work.manifestsOf(s.work.layers)); err != nil {
			return err
		}
	}
	end, err := s.deployed(ctx)
	if err != nil {
		return err
	}
	put, err := awaitAll(ctx, "the objects on the clusters", s.put, present, len(s.work.layers))
	if err != nil {
		return err
	}
	created := lastCreated(s.releases.all())
	r.Figures = append(r.Figures, seconds(report.AllCreated, created.Sub(start)),
		seconds(report.AllPut, put.Sub(start)), seconds(report.AllDeployed, end.Sub(start)))
	if !s.controlled() {
		return nil
	}
	// How many layers there are is told a while after they are deployed.
	if _, err := awaitAll(ctx, "all clusters to count their layers", s.counted, present, len(s.work.clusters)); err != nil {
		return err
	}
	if err := s.calm(ctx); err != nil {
		return err
	}
	r.Figures = append(r.Figures, s.clusterWrites(before))
	return nil
}

// runFleetIdle waits while nothing happens, and says what the clusters are asked
// and how much memory they take then.
func runFleetIdle(ctx context.Context, s *session, r *report.Result) error {
	before, err := s.remote.audit.Requests()
	if err != nil {
		return err
	}
	if err := runIdle(ctx, s, r); err != nil {
		return err
	}
	asked, err := s.remote.since(before)
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, report.Figure{
		Name: report.Probes, Value: float64(asked.Version) / float64(len(s.work.clusters)),
	})
	return s.rssPerCluster(r)
}

// awaitAll waits until so many objects of a record are in a state, and returns
// when the last of them was.
func awaitAll(ctx context.Context, what string, record *layerRecord, state string, want int) (last time.Time, err error) {
	count := 0
	seen := func() string { return fmt.Sprintf("%d of %d", count, want) }
	err = await(ctx, lookEvery, what, seen, func() bool {
		count, last = record.settled(state)
		return count == want
	})
	return last, err
}

// makeKubeconfigs makes the Secrets with the kubeconfigs of all clusters.
func (s *session) makeKubeconfigs(ctx context.Context) error {
	return each(ctx, s.work.clusters, func(ctx context.Context, name string) error {
		data, err := s.remote.kubeconfig(name)
		if err != nil {
			return err
		}
		secret := map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": data},
		}
		if err := createObject(ctx, s.client, "/api/v1/namespaces/"+namespace+"/secrets", secret); err != nil {
			return fmt.Errorf("cannot create the kubeconfig of %s: %w", name, err)
		}
		return nil
	})
}

// clusterWrites returns how often each RemoteCluster was written since an earlier
// count, on average.
func (s *session) clusterWrites(before map[string]int) report.Figure {
	writes := sum(s.clusters.changes()) - sum(before)
	return report.Figure{Name: report.ClusterWrites, Value: float64(writes) / float64(len(s.work.clusters))}
}

// rss returns how much memory of the system is resident now, in bytes.
func (s *session) rss() (int64, error) {
	var total int64
	for _, pid := range s.system.PIDs() {
		usage, err := meter.ReadUsage(pid)
		if err != nil {
			return 0, err
		}
		total += usage.RSS
	}
	if total == 0 {
		return 0, errors.New("the system does not run")
	}
	return total, nil
}

// rssPerCluster says how much more memory is resident than before there was a
// cluster, for each of them.
func (s *session) rssPerCluster(r *report.Result) error {
	now, err := s.rss()
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, report.Figure{
		Name: report.RSSPerCluster, Unit: report.Bytes, Value: float64(now-s.rssBefore) / float64(len(s.work.clusters)),
	})
	return nil
}

// each does something with all of a list, as many side by side as there are
// declarers.
func each[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(declarers)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}
