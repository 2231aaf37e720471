// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import "slices"

// Class says what a host is to its cluster.
type Class string

// The classes of hosts.
const (
	// Empty has nothing of a cluster.
	Empty Class = "Empty"
	// Dirty has something of a cluster that no action of this one has left there: also a
	// journal that says that the host belongs to this one, of which nothing else is left.
	Dirty Class = "Dirty"
	// InProgress has an action of this cluster that has not ended.
	InProgress Class = "InProgress"
	// Healthy is a host that runs, and whose API server and member of etcd are healthy.
	Healthy Class = "Healthy"
	// Broken belongs to the cluster and is not healthy, or nobody knows its version.
	Broken Class = "Broken"
	// Unreachable cannot be reached.
	Unreachable Class = "Unreachable"
)

// Classes returns what each host is, in the order of the observation.
func Classes(o Observation) []Class {
	classes := make([]Class, len(o.Hosts))
	for i, host := range o.Hosts {
		classes[i] = classOf(o, host)
	}
	return classes
}

func classOf(o Observation, host Host) Class {
	switch {
	case host.Unreachable != "":
		return Unreachable
	case o.ClusterID != "" && host.Journal.ClusterID == o.ClusterID && host.Journal.Action != "" && !host.Journal.Ended:
		return InProgress
	case !host.Initialised && (len(host.Remains) > 0 || host.wasIn()):
		return Dirty
	case !host.Initialised:
		return Empty
	case !host.Running || host.Version == "" || !slices.Contains(o.Cluster.Nodes, host.Name):
		return Broken
	case host.Worker:
		return Healthy
	case !host.Serving || !isHealthyMember(o.Cluster.Members, host.Name):
		return Broken
	}
	return Healthy
}

// wasIn tells whether the journal says that the host was made part of the cluster, and
// was not reset.
func (h Host) wasIn() bool {
	return h.Journal.Action != "" && h.Journal.Ended && h.Journal.Action != VerbReset
}

// isHealthyMember tells whether a host has a healthy member of etcd with a vote.
func isHealthyMember(members []Member, host string) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.Name == host && !m.Learner && m.Healthy })
}
