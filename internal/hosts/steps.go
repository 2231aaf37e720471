// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"slices"
)

// goOn continues what has begun: upgrades last, since the others have the version before,
// and then what follows on a reset.
func (d *decider) goOn() {
	upgrades, resets := d.begun(VerbUpgrade), d.begun(VerbReset)
	others := slices.DeleteFunc(d.each(true, InProgress), func(i int) bool { return slices.Contains(upgrades, i) })
	for _, i := range slices.Concat(others, upgrades) {
		d.goOnWith(i, d.ringAfter(i))
	}
	for _, i := range resets {
		d.joinAgain(i)
	}
}

// ringAfter returns the ring to which an action leads that is gone on with: a host that
// joins gets its vote, and a member that is down comes back; nil where it stays.
func (d *decider) ringAfter(i int) *Ring {
	next := d.ring
	switch member := d.memberOf(d.Hosts[i].Name); {
	case d.Hosts[i].Worker:
		return nil
	case member == nil || member.Learner:
		if d.Hosts[i].Journal.Action != VerbJoin {
			return nil
		}
		next = next.with()
	case !member.Healthy && d.Hosts[i].Journal.Action != VerbReset:
		next.Healthy++
	default:
		return nil
	}
	return &next
}

// goOnWith continues what has begun on one host.
func (d *decider) goOnWith(i int, after *Ring) {
	host := d.Hosts[i]
	d.add(Action{
		Verb: host.Journal.Action, Host: host.Name, Version: host.Journal.Version, Continues: true,
		Leads: host.Journal.Action == VerbUpgrade && d.leads(i, host.Journal.Version), Reason: "it has begun there and has not ended",
	}, after)
}

// leads tells whether the upgrade of a host is the first one to a version: no other host
// of the control plane has it, nor gets it before. One that has begun and not ended may have
// led and not come to its end.
func (d *decider) leads(i int, version string) bool {
	if d.Hosts[i].Worker {
		return false
	}
	for j, host := range d.Hosts {
		if j != i && !host.Worker && d.classes[j] == Healthy && host.Version == version {
			return false
		}
	}
	return !slices.ContainsFunc(d.actions, func(a Action) bool { return a.Leads })
}

// joinAgain joins a host that was reset.
func (d *decider) joinAgain(i int) {
	if d.Hosts[i].Worker {
		d.add(Action{Verb: VerbJoinWorker, Host: d.Hosts[i].Name, Version: d.joinVersion(), Reason: "it was taken out, and is in the manifest"}, nil)
		return
	}
	d.join(i, d.joinVersion(), "it was taken out, and is in the manifest")
}

// removeDead takes members out that do not answer and whose hosts are not in the
// manifest, or are empty; those of hosts that are to be replaced; and learners that
// nobody goes on with.
func (d *decider) removeDead() {
	for _, member := range d.Cluster.Members {
		i := d.hostOf(member.Name)
		switch {
		case i < 0 && (member.Learner || !member.Healthy):
			d.remove(member, "its host is not in the manifest")
		case i >= 0 && d.classes[i] == Empty:
			d.remove(member, "its host is empty")
		case i >= 0 && d.isReplaced(i) && !member.Healthy:
			d.remove(member, replaced)
		}
	}
	// Those without a member first: when they have joined, the others are less needed.
	for _, hasMember := range []bool{false, true} {
		for i, host := range d.Hosts {
			if d.isReplaced(i) && (d.memberOf(host.Name) != nil) == hasMember {
				d.replace(i)
			}
		}
	}
}

// replace takes a host out of the cluster and, where it can be reached, in again.
func (d *decider) replace(i int) {
	host := d.Hosts[i]
	if len(d.each(false, Healthy)) == 0 {
		d.undone = append(d.undone, host.Name+" stays until another host of the manifest is healthy: without it, nobody could ask the cluster")
		return
	}
	if member := d.memberOf(host.Name); member != nil && !host.Worker && !d.remove(*member, replaced) {
		return // the ring cannot do without it
	}
	if d.classes[i] != Broken {
		if host.Worker && slices.Contains(d.Cluster.Nodes, host.Name) {
			d.add(Action{Verb: VerbRemoveNode, Host: host.Name, Reason: replaced}, nil)
		}
		return
	}
	d.add(Action{Verb: VerbReset, Host: host.Name, Reason: replaced}, nil)
	d.joinAgain(i)
	d.classes[i] = InProgress // it is taken care of
}

// replaced is why a host is taken out.
const replaced = "its host is to be replaced"

// isReplaced tells whether a host is down, and the manifest lets it go.
func (d *decider) isReplaced(i int) bool {
	return d.Hosts[i].Replace && (d.classes[i] == Unreachable || d.classes[i] == Broken)
}

// joinMissing brings empty hosts into the control plane.
func (d *decider) joinMissing() {
	for _, i := range d.each(false, Empty) {
		d.join(i, d.joinVersion(), "it is not in the cluster yet")
	}
}

// join adds a host to the control plane, where the ring may grow.
func (d *decider) join(i int, version, why string) {
	next := d.ring.with()
	d.add(Action{Verb: VerbJoin, Host: d.Hosts[i].Name, Version: version, Reason: why}, &next)
}

// removeLeft takes members out that answer, and whose hosts have left the manifest. They
// stay while a host is broken or unreachable: they may be needed.
func (d *decider) removeLeft() {
	for _, member := range d.Cluster.Members {
		if d.hostOf(member.Name) >= 0 || member.Learner || !member.Healthy {
			continue
		}
		if len(d.each(false, Broken, Unreachable)) > 0 {
			d.undone = append(d.undone, fmt.Sprintf("%s stays a member while hosts are down", member.Name))
			continue
		}
		d.remove(member, "its host is not in the manifest")
	}
}

// remove takes a member out and tells whether it may.
func (d *decider) remove(member Member, why string) bool {
	next := d.ring
	if !member.Learner {
		next = d.ring.without(member.Healthy)
	}
	if !d.add(Action{Verb: VerbRemoveMember, Host: member.Name, MemberID: member.ID, Reason: why}, &next) {
		return false
	}
	d.removed = append(d.removed, member.ID)
	return true
}

// upgradeContainerd takes hosts to a containerd that the wanted version runs on, before any
// host gets that version: the versions of Kubernetes that hosts have run on it, too.
func (d *decider) upgradeContainerd() {
	for _, i := range d.each(true, Healthy) {
		host := d.Hosts[i]
		if !host.OldContainerd {
			continue
		}
		if d.Snapshots == SnapshotDue {
			_ = d.saveFirst(Action{Verb: VerbUpgradeContainerd, Host: host.Name})
		}
		d.add(Action{Verb: VerbUpgradeContainerd, Host: host.Name, Version: host.Version, Reason: d.Target + " does not run on the one that it has"}, nil)
	}
}

// upgrade takes hosts to the wanted version: the first one, the others of the control
// plane, and workers.
func (d *decider) upgrade() {
	d.upgradeContainerd()
	for _, workers := range []bool{false, true} {
		for i, host := range d.Hosts {
			if host.Worker != workers || d.classes[i] != Healthy || host.Version == d.Target {
				continue
			}
			if d.Snapshots == SnapshotDue {
				_ = d.saveFirst(Action{Verb: VerbUpgrade, Host: host.Name})
			}
			d.add(Action{Verb: VerbUpgrade, Host: host.Name, Version: d.Target, Leads: d.leads(i, d.Target), Reason: "it has " + host.Version}, nil)
		}
	}
}

// renew renews certificates that end soon, where an upgrade does not do so. Each host's etcd
// and API server start again, one after another.
func (d *decider) renew() {
	for _, i := range d.each(false, Healthy) {
		if host := d.Hosts[i]; host.Expiring && host.Version == d.Target {
			d.add(Action{Verb: VerbRenew, Host: host.Name, Version: host.Version, Reason: "its certificates end soon"}, nil)
		}
	}
}

// joinWorkers brings empty workers into the cluster.
func (d *decider) joinWorkers() {
	for i, host := range d.Hosts {
		if !host.Worker {
			continue
		}
		switch d.classes[i] {
		case Empty:
			d.add(Action{Verb: VerbJoinWorker, Host: host.Name, Version: d.Target, Reason: "it is not in the cluster yet"}, nil)
		case Dirty:
			d.undone = append(d.undone, fmt.Sprintf("%s has remains of a cluster (%s): reset it", host.Name, host.left()))
		}
	}
}

// removeNodes takes Nodes out whose hosts have left the manifest. That of a member of etcd
// goes with the member.
func (d *decider) removeNodes() {
	for _, node := range d.Cluster.Left {
		isMember := slices.ContainsFunc(d.Cluster.Members, func(m Member) bool { return m.Name == node.Name })
		isListed := slices.ContainsFunc(d.Hosts, func(h Host) bool { return h.Name == node.Name })
		switch {
		case isMember || isListed:
		case node.Runs:
			d.undone = append(d.undone, fmt.Sprintf("%s has left the manifest, and runs: switch it off, or, if it is a worker, list it again and take it out with kubectl strata hosts reset --host %s",
				node.Name, node.Name))
		default:
			d.add(Action{Verb: VerbRemoveNode, Host: node.Name, Reason: "its host is not in the manifest"}, nil)
		}
	}
}

// add adds an action. after is the ring that it leads to; nil for one that stays. An
// action that would cost the majority is none, and is told.
func (d *decider) add(action Action, after *Ring) bool {
	if after == nil {
		d.actions = append(d.actions, action)
		return true
	}
	before, isFirst := d.ring, d.ring == Ring{} && action.Verb == VerbInit
	if !isFirst && !before.Allows(*after) {
		d.undone = append(d.undone, fmt.Sprintf("%s %s would leave %d of %d members of etcd healthy", action.Verb, action.Host, after.Healthy, after.Members))
		return false
	}
	if changes := action.Verb == VerbRemoveMember || after.Members != before.Members; changes && !d.saveFirst(action) {
		return false
	}
	action.Before, action.After = &before, after
	d.ring = *after
	d.actions = append(d.actions, action)
	return true
}

// saveFirst has etcd saved before an action that may need it: once, and not while the
// cluster is made. It tells whether the action may be taken then.
func (d *decider) saveFirst(action Action) bool {
	if !d.Cluster.Kept || slices.ContainsFunc(d.actions, func(a Action) bool { return a.Verb == VerbSnapshot }) {
		return true
	}
	before := fmt.Sprintf("%s %s", action.Verb, action.Host)
	switch d.Snapshots {
	case SnapshotTaken, SnapshotWaived:
	case SnapshotDue:
		d.actions = append(d.actions, Action{Verb: VerbSnapshot, Reason: "before " + before})
	default:
		d.unsaved = append(d.unsaved, before)
		return false
	}
	return true
}
