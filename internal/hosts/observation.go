// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

// Observation is all that is decided upon. The order of hosts does not matter for what
// is decided about each, only for which of several equal ones comes first.
type Observation struct {
	// ClusterID is that of the manifest's cluster: its namespace, name and the UID that its
	// first action gave it; empty where none has begun.
	ClusterID string
	// Target is the version of Kubernetes that the manifest asks for, such as v1.36.3.
	Target string
	// Hosts of the control plane, and then workers, as the manifest lists them.
	Hosts []Host
	// Cluster is what the cluster itself says; the zero value where no API server is
	// healthy.
	Cluster Cluster
	// Stops are what stops everything and is about no single host, such as a field that
	// cannot change.
	Stops []string
	// TakesOver has a cluster be taken that nobody has applied a manifest to. It has no ID
	// yet.
	TakesOver bool
	// Snapshots says whether etcd is saved before its members change.
	Snapshots Snapshots
	// Drift names what of the manifest is not yet so in a cluster that runs: labels,
	// settings of components, certificates that end soon.
	Drift []string
}

// Snapshots says whether etcd is saved before its members change in a cluster that is kept.
type Snapshots string

// What there is to know of snapshots.
const (
	// SnapshotNowhere has no place to keep one: members do not change then.
	SnapshotNowhere Snapshots = ""
	// SnapshotDue has a place, and none was taken in this run.
	SnapshotDue Snapshots = "Due"
	// SnapshotTaken has one that was taken in this run.
	SnapshotTaken Snapshots = "Taken"
	// SnapshotWaived has somebody say that none is wanted.
	SnapshotWaived Snapshots = "Waived"
)

// Host is one host of the manifest, and what is known of it.
type Host struct {
	// Name in the manifest, which is also that of its Node.
	Name string
	// Worker is false for a host of the control plane.
	Worker bool
	// Replace is the manifest's consent to take the host out of the cluster when it is
	// broken or unreachable.
	Replace bool
	// Unreachable says why the host cannot be reached; empty where it can.
	Unreachable string
	// Refused says why the host must not be used, such as a changed host key; empty where
	// it may. It stops everything.
	Refused string
	// Initialised is true where kubeadm has made the host part of a cluster:
	// /etc/kubernetes/kubelet.conf is there.
	Initialised bool
	// Remains names what of a cluster is on a host that is not initialised: certificates,
	// manifests of static Pods, data of etcd.
	Remains []string
	// Running is true where containerd and the kubelet run and stay so.
	Running bool
	// Serving is true where the host's API server has answered that it is healthy. A
	// worker has none.
	Serving bool
	// Version is that of the host's kubelet; empty where it has none.
	Version string
	// OldContainerd is true where the target does not run on the host's containerd.
	OldContainerd bool
	// Authority is the digest of the certificate authority of the cluster that the host
	// belongs to; empty where it has none.
	Authority string
	// Expiring is true where certificates of the host are to be renewed now.
	Expiring bool
	// Journal is the last action that was begun on the host.
	Journal Entry
}

// Entry is an action in a host's journal. Its zero value is an empty journal.
type Entry struct {
	// ClusterID is that of the cluster for which it was done.
	ClusterID string
	// Action that was begun.
	Action Verb
	// Version that the host was to get.
	Version string
	// Ended is true when it has ended well.
	Ended bool
}

// Cluster is what a cluster says of itself.
type Cluster struct {
	// Answers is true where an API server is healthy and was asked.
	Answers bool
	// Kept is true once a manifest was applied to its end: the cluster has something to lose.
	Kept bool
	// Version is the one that kubeadm-config names, at which hosts join.
	Version string
	// Members of etcd.
	Members []Member
	// Nodes are the names of the Nodes that there are.
	Nodes []string
	// Left are those of them whose hosts were in the manifest that was applied last, and are
	// in this one no more.
	Left []LeftNode
}

// LeftNode is a Node whose host has left the manifest.
type LeftNode struct {
	Name string
	// Runs is true where its kubelet runs, which may make the Node again.
	Runs bool
}

// Member is one of etcd.
type Member struct {
	// Name is that of its host, by the address that its peers know.
	Name string
	// ID is etcd's own, and unique.
	ID string
	// Learner has no vote yet.
	Learner bool
	// Healthy is true where the member has answered.
	Healthy bool
}
