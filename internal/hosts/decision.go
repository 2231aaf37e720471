// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

// Outcome says how a look at the hosts ends.
type Outcome string

// The exits.
const (
	// Done has nothing to do.
	Done Outcome = "Done"
	// Init makes the cluster.
	Init Outcome = "Init"
	// Repair brings hosts that lack into the cluster, or takes out what is left of others.
	Repair Outcome = "Repair"
	// Upgrade takes hosts to another version.
	Upgrade Outcome = "Upgrade"
	// Renew renews certificates.
	Renew Outcome = "Renew"
	// Update changes settings, and no host's membership or version.
	Update Outcome = "Update"
	// Fill brings into a healthy cluster what its first layers need.
	Fill Outcome = "Fill"
	// Blocked needs somebody: hosts are broken or unreachable. What can be done without them is
	// done.
	Blocked Outcome = "Blocked"
	// Error does nothing.
	Error Outcome = "Error"
)

// Reason says why a Decision is an Error or Blocked.
type Reason string

// The reasons of Error, and that of Blocked.
const (
	// Refused is a host that must not be used, or a manifest without hosts.
	Refused Reason = "Refused"
	// Foreign has hosts of two clusters.
	Foreign Reason = "Foreign"
	// ReasonUnreachable cannot be told from a cluster that is there.
	ReasonUnreachable Reason = "Unreachable"
	// Remains are of a cluster that this one did not leave there.
	Remains Reason = "Remains"
	// Unfinished is an action that must end in another way first.
	Unfinished Reason = "Unfinished"
	// QuorumLost has no majority of etcd, or no API server.
	QuorumLost Reason = "QuorumLost"
	// Contradiction is a host that says it is empty, and whose member answers.
	Contradiction Reason = "Contradiction"
	// RepairFirst wants hosts at the cluster's version before another one.
	RepairFirst Reason = "RepairFirst"
	// Downgrade is refused.
	Downgrade Reason = "Downgrade"
	// Skew passes over a minor version.
	Skew Reason = "Skew"
	// SnapshotFirst wants a place for snapshots before members of etcd change.
	SnapshotFirst Reason = "SnapshotFirst"
	// HostsDown are broken or unreachable.
	HostsDown Reason = "HostsDown"
)

// Verb is what an action does to a host.
type Verb string

// The verbs.
const (
	// VerbInit makes the cluster's first host.
	VerbInit Verb = "Init"
	// VerbJoin makes a host of the control plane, whose member of etcd is a learner first.
	VerbJoin Verb = "Join"
	// VerbJoinWorker makes a worker.
	VerbJoinWorker Verb = "JoinWorker"
	// VerbRemoveMember takes a member out of etcd, and with it its Node.
	VerbRemoveMember Verb = "RemoveMember"
	// VerbRemoveNode takes a Node out that has no member of etcd.
	VerbRemoveNode Verb = "RemoveNode"
	// VerbReset takes a host's own remains away.
	VerbReset Verb = "Reset"
	// VerbUpgrade takes a host to the wanted version.
	VerbUpgrade Verb = "Upgrade"
	// VerbUpgradeContainerd takes a host to a containerd that the wanted version runs on.
	VerbUpgradeContainerd Verb = "UpgradeContainerd"
	// VerbSnapshot saves etcd, in a place that is on no host of the cluster.
	VerbSnapshot Verb = "Snapshot"
	// VerbRestore has etcd begin with what was saved. No Decision has it: see Restore.
	VerbRestore Verb = "Restore"
	// VerbRenew renews the certificates of a host of the control plane.
	VerbRenew Verb = "Renew"
	// VerbUpdate changes settings of the cluster.
	VerbUpdate Verb = "Update"
)

// Action is one step. Steps are taken in their order, and all is looked at again after
// each.
type Action struct {
	Verb Verb `json:"verb"`
	// Host by its name in the manifest; of a member that has none, its own name.
	Host string `json:"host,omitempty"`
	// MemberID is etcd's own of the member that is removed.
	MemberID string `json:"memberID,omitempty"`
	// Version of Kubernetes that the host gets.
	Version string `json:"version,omitempty"`
	// Leads is true for the upgrade of the first host of the control plane, which takes what
	// the cluster itself has to that version; the others follow.
	Leads bool `json:"leads,omitempty"`
	// Continues is true where the host's journal says that it began before.
	Continues bool `json:"continues,omitempty"`
	// Reason says why, in a sentence.
	Reason string `json:"reason"`
	// Before and After are the ring of etcd, where the action changes it; nil where it
	// does not.
	Before *Ring `json:"before,omitempty"`
	After  *Ring `json:"after,omitempty"`
}

// IsSameAs tells whether two actions do the same, also where one of them goes on with it.
func (a Action) IsSameAs(other Action) bool {
	return a.Verb == other.Verb && a.Host == other.Host && a.Version == other.Version && a.MemberID == other.MemberID
}

// Decision is what is done, and why not more.
type Decision struct {
	Outcome Outcome `json:"outcome"`
	Reason  Reason  `json:"reason,omitempty"`
	// Message says it in words, with what to do.
	Message string `json:"message"`
	// Actions in their order; an Error has none.
	Actions []Action `json:"actions,omitempty"`
	// Replaceable are the hosts that may be replaced without harm, the one that is to go
	// first before the others.
	Replaceable []string `json:"replaceable,omitempty"`
}
