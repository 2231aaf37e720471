// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/test/bench/report"
)

// System is something that brings the releases of layers about. It is used by
// one scenario at a time.
type System interface {
	// Report returns what it is and its flags, which are known once it runs.
	Report() report.System
	// Start installs it on a bed and runs it. It returns when it is ready.
	Start(ctx context.Context, b *bed) error
	// Kill ends it as a crash would, and Restart runs it again as it was.
	Kill() error
	Restart(ctx context.Context) error
	// Stop ends it for good and gives back what it had reserved.
	Stop() error
	// PIDs are the processes that it consists of; none while it does not run.
	PIDs() []int
	// User is its name at the API server.
	User() string
}

// Controller is a System that is given an object for each layer and watches
// those.
type Controller interface {
	System
	// Path is where the API serves the objects, for a list or a watch.
	Path() string
	// Object returns the object of a layer, as it is created.
	Object(l layer) any
	// Settled returns the revision at which a layer's object says that all of
	// the layer is deployed; empty where it says so of none.
	Settled(o object) string
}

// FleetController is a Controller whose layers may belong on other clusters.
type FleetController interface {
	Controller
	// ClusterPath is where the API serves the objects of those clusters.
	ClusterPath() string
	// Cluster returns the object of a cluster, which is reached by the kubeconfig
	// in the Secret of its name.
	Cluster(name string) any
	// Joined tells whether the object of a cluster says that it is reached.
	Joined(o object) bool
	// Deployed returns how many layers the object of a cluster says are deployed
	// there.
	Deployed(o object) int
}

// Pusher is a System without a controller, which writes when it is told to.
type Pusher interface {
	System
	// Push writes manifests and returns when all of them are written.
	Push(ctx context.Context, manifests []string) error
	// Changes tells whether it can write objects that exist already.
	Changes() bool
}

// choice is a System that can be chosen by its name.
type choice struct {
	name string
	make func(o *options) System
}

// systems are all that can be measured, in the order in which they are.
var systems = []choice{
	{report.Plain, func(o *options) System { return newPlain(report.Plain, methodApply) }},
	{report.PlainCreate, func(o *options) System { return newPlain(report.PlainCreate, methodCreate) }},
	{report.IdleManager, newIdleManager},
	{report.Strata, newStrata},
	{report.KustomizeTuned, newKustomizeTuned},
	{report.Kustomize, newKustomize},
}

// chooseSystems finds systems by their names. A name also stands for all that
// begin with it and a dash.
func chooseSystems(names []string) ([]choice, error) {
	var chosen []choice
	for _, s := range systems {
		if slices.ContainsFunc(names, func(name string) bool { return stands(name, s.name) }) {
			chosen = append(chosen, s)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(systems, func(s choice) bool { return stands(name, s.name) }) {
			known := make([]string, 0, len(systems))
			for _, s := range systems {
				known = append(known, s.name)
			}
			return nil, fmt.Errorf("there is no system %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// stands tells whether a name that was given stands for a full one.
func stands(given, full string) bool {
	return given == full || strings.HasPrefix(full, given+"-")
}
