// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"slices"
	"strings"
)

// refused stops where a host must not be used.
func (d *decider) refused() *Decision {
	var why []string
	control := false
	for _, host := range d.Hosts {
		control = control || !host.Worker
		if host.Refused != "" {
			why = append(why, host.Name+": "+host.Refused)
		}
	}
	switch why = append(why, d.Stops...); {
	case len(why) > 0:
		return failed(Refused, "%s", strings.Join(why, "; "))
	case !control:
		return failed(Refused, "the manifest has no host for the control plane")
	}
	return nil
}

// foreign stops where hosts belong to different clusters.
func (d *decider) foreign() *Decision {
	first := -1
	for i, host := range d.Hosts {
		if entry := host.Journal; entry.ClusterID != "" && entry.ClusterID != d.ClusterID {
			return failed(Foreign, "%s has the journal of another cluster: take it out of the manifest, or reset it with the manifest of that one", host.Name)
		}
		if host.Authority == "" {
			continue
		}
		if first >= 0 && host.Authority != d.Hosts[first].Authority {
			return failed(Foreign, "%s and %s belong to different clusters: their certificate authorities differ", d.Hosts[first].Name, host.Name)
		}
		if first < 0 {
			first = i
		}
	}
	return nil
}

// restoring stops where a restore has begun: what etcd has there is not whole.
func (d *decider) restoring() *Decision {
	if begun := d.begun(VerbRestore); len(begun) > 0 {
		return failed(Unfinished, "the restore of etcd on %s has not ended: run kubectl strata hosts etcd restore again", d.names(begun))
	}
	return nil
}

// first makes the cluster where nothing speaks for one.
func (d *decider) first() *Decision {
	if d.Cluster.Answers || len(d.each(true, Healthy, Broken)) > 0 || len(d.begun(VerbJoin, VerbJoinWorker, VerbUpgrade, VerbUpgradeContainerd, VerbRenew)) > 0 {
		return nil
	}
	unreachable, dirty, inits, resets := d.each(true, Unreachable), d.each(true, Dirty), d.begun(VerbInit), d.begun(VerbReset)
	switch {
	case len(unreachable) > 0:
		return failed(ReasonUnreachable,
			"%s cannot be reached, and no other host belongs to a cluster: whether there is one is not known. Make them reachable, or take them out of the manifest",
			d.names(unreachable))
	case len(dirty) > 0:
		return d.hasRemains(dirty)
	case len(resets) > 0:
		return failed(Unfinished, "the reset of %s has not ended: end it first", d.names(resets))
	case len(inits) > 1:
		return failed(Unfinished, "the cluster has begun on %s: reset all but one of them", d.names(inits))
	}
	if decision := d.otherVersionBegun(VerbInit); decision != nil {
		return decision
	}
	leader, why := slices.IndexFunc(d.Hosts, func(h Host) bool { return !h.Worker }), "no host belongs to a cluster"
	if len(inits) == 1 {
		leader, why = inits[0], "it has begun there and has not ended"
	}
	if d.Hosts[leader].Worker {
		return failed(Unfinished, "the cluster has begun on %s, which is a worker in the manifest: reset it", d.Hosts[leader].Name)
	}
	d.ring = Ring{}
	next := d.ring.with()
	d.add(Action{Verb: VerbInit, Host: d.Hosts[leader].Name, Version: d.Target, Continues: len(inits) > 0, Reason: why}, &next)
	for i, host := range d.Hosts {
		if !host.Worker && i != leader {
			d.join(i, d.Target, "it is not in the cluster yet")
		}
	}
	for _, host := range d.Hosts {
		if host.Worker {
			d.add(Action{Verb: VerbJoinWorker, Host: host.Name, Version: d.Target, Reason: "it is not in the cluster yet"}, nil)
		}
	}
	return &Decision{Outcome: Init, Message: fmt.Sprintf("makes a cluster of %d hosts: %s", len(d.Hosts), why), Actions: d.actions}
}

// lost stops where etcd has no majority, or no API server answers, but for what may bring
// it back: to go on with a join, an upgrade or a renewal that has begun on a host. That
// changes no members then; an init would make a second cluster.
func (d *decider) lost() *Decision {
	if d.Cluster.Answers && d.ring.HasQuorum() {
		return nil
	}
	last := VerbUpgrade // where one has begun, joins were at the version before
	if len(d.begun(VerbUpgrade)) == 0 {
		last = VerbJoin
	}
	unfinished, other := d.bringsBack(VerbJoin, VerbUpgrade, VerbUpgradeContainerd, VerbRenew), d.otherVersionBegun(last)
	if len(unfinished) > 0 && other != nil {
		if unfinished = d.bringsBack(VerbUpgradeContainerd, VerbRenew); len(unfinished) == 0 { // which are no matter of versions
			return other
		}
	}
	if len(unfinished) > 0 {
		for _, i := range unfinished {
			if member := d.memberOf(d.Hosts[i].Name); d.Cluster.Answers && (member == nil || member.Learner) {
				continue // which would need a majority
			}
			d.goOnWith(i, nil)
		}
		return &Decision{
			Outcome: Repair, Actions: d.actions,
			Message: "no majority of etcd is healthy, because actions have not ended: goes on with them on " + d.names(unfinished),
		}
	}
	if decision := d.ended(); decision != nil {
		return decision
	}
	if !d.Cluster.Answers {
		return failed(QuorumLost, "no API server is healthy on %s: bring them back, or restore the cluster from a snapshot",
			d.names(d.each(true, Broken, InProgress)))
	}
	return failed(QuorumLost, "%d of %d members of etcd are healthy, which is no majority (%s): bring hosts back, or restore the cluster from a snapshot",
		d.ring.Healthy, d.ring.Members, d.surviving())
}

// bringsBack returns the hosts of the control plane on which actions have not ended that may
// bring a majority back; none where they cannot.
func (d *decider) bringsBack(verbs ...Verb) []int {
	unfinished := slices.DeleteFunc(d.begun(verbs...), func(i int) bool { return d.Hosts[i].Worker })
	if d.mayBeAnother() {
		return nil
	}
	if !d.Cluster.Answers {
		return unfinished
	}
	back := d.ring
	for _, i := range unfinished {
		if member := d.memberOf(d.Hosts[i].Name); member != nil && !member.Learner && !member.Healthy {
			back.Healthy++
		}
	}
	if !back.HasQuorum() {
		return nil
	}
	return unfinished
}

// ended renews certificates where no API server is healthy and those of hosts have ended or
// end soon: that changes no members. Where it is not the cause, it does no harm.
func (d *decider) ended() *Decision {
	if d.Cluster.Answers || d.mayBeAnother() {
		return nil
	}
	for _, i := range d.each(false, Broken) {
		if host := d.Hosts[i]; host.Expiring && host.Version != "" {
			d.add(Action{Verb: VerbRenew, Host: host.Name, Version: host.Version, Reason: "its certificates have ended, or end soon"}, nil)
		}
	}
	if len(d.actions) == 0 {
		return nil
	}
	return &Decision{Outcome: Renew, Actions: d.actions, Message: "no API server is healthy, and certificates have ended or end soon: renews them"}
}

// mayBeAnother tells whether a host of the control plane may be of another cluster: one
// with remains, or with an init that has not come far.
func (d *decider) mayBeAnother() bool {
	return len(d.each(false, Dirty)) > 0 ||
		slices.ContainsFunc(d.begun(VerbInit), func(i int) bool { return !d.Hosts[i].Initialised })
}

// surviving names the healthy members.
func (d *decider) surviving() string {
	var names []string
	for _, member := range d.Cluster.Members {
		if member.Healthy && !member.Learner {
			names = append(names, member.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// contradiction stops where a host is empty and its member answers, for the manifest may
// name the wrong machine; and where one has begun a cluster beside the one that answers.
func (d *decider) contradiction() *Decision {
	for _, i := range d.begun(VerbInit) {
		if member := d.memberOf(d.Hosts[i].Name); member == nil || member.Learner {
			return failed(Unfinished, "a cluster has begun on %s beside the one that answers: reset it", d.Hosts[i].Name)
		}
	}
	for _, i := range d.each(false, Empty) {
		if member := d.memberOf(d.Hosts[i].Name); member != nil && member.Healthy {
			return failed(Contradiction, "%s is empty, and a member of etcd of that name answers: look whether its address is right", d.Hosts[i].Name)
		}
	}
	return nil
}

// remains stops where a host of the control plane has what this cluster did not leave.
func (d *decider) remains() *Decision {
	if dirty := d.each(false, Dirty); len(dirty) > 0 {
		return d.hasRemains(dirty)
	}
	return nil
}

func (d *decider) hasRemains(dirty []int) *Decision {
	what := make([]string, len(dirty))
	for i, host := range dirty {
		what[i] = fmt.Sprintf("%s (%s)", d.Hosts[host].Name, d.Hosts[host].left())
	}
	return failed(Remains, "there are remains of a cluster on %s, which no action of this one explains that has begun: reset them, or restore the cluster",
		strings.Join(what, "; "))
}

// left says what is left of a cluster on a host.
func (h Host) left() string {
	if len(h.Remains) == 0 {
		return "its journal ends with " + string(h.Journal.Action)
	}
	return strings.Join(h.Remains, ", ")
}

// takesOver takes a cluster as it is: what the manifest says is saved in it, and nothing else
// is done, whatever the manifest says.
func (d *decider) takesOver() *Decision {
	if !d.TakesOver {
		return nil
	}
	if others := d.each(true, Empty, Dirty, InProgress, Broken, Unreachable); len(others) > 0 {
		return failed(Refused, "a cluster is taken over as it is, and these hosts are no healthy ones of it: %s. Repair them, or take them out of the manifest",
			d.names(others))
	}
	for _, member := range d.Cluster.Members {
		if d.hostOf(member.Name) < 0 {
			return failed(Refused, "etcd has the member %s, which is no host of the control plane in the manifest: list it", member.Name)
		}
	}
	for _, host := range d.Hosts {
		if host.Version != d.Target || d.Cluster.Version != d.Target {
			return failed(Refused, "a cluster is taken over as it is: it has %s, %s has %s, and the manifest says %s",
				d.Cluster.Version, host.Name, host.Version, d.Target)
		}
	}
	return &Decision{
		Outcome: Update, Message: "takes the cluster over",
		Actions: []Action{{Verb: VerbUpdate, Reason: "what the manifest says is saved in the cluster, and nothing else is done"}},
	}
}

// versions stops at what no version may do, and at another version where hosts lack. A
// renewal or another containerd that has begun is no matter of versions, and ends first.
func (d *decider) versions() *Decision {
	stop := d.stopOfVersions()
	apart := d.begun(VerbUpgradeContainerd, VerbRenew)
	if stop == nil || len(apart) == 0 {
		return stop
	}
	for _, i := range apart {
		d.goOnWith(i, d.ringAfter(i))
	}
	if len(d.actions) == 0 {
		return stop
	}
	return &Decision{Outcome: Repair, Actions: d.actions, Message: "goes on with what has begun on " + d.names(apart) + "; then: " + stop.Message}
}

func (d *decider) stopOfVersions() *Decision {
	if decision := d.otherVersionBegun(VerbUpgrade); decision != nil {
		return decision
	}
	lowest, highest := d.Cluster.Version, d.Cluster.Version
	for i, host := range d.Hosts {
		if d.classes[i] == Empty || d.classes[i] == Dirty {
			continue // it may have a kubelet, which runs nothing
		}
		if isHigher(lowest, host.Version) {
			lowest = host.Version
		}
		if isHigher(host.Version, highest) {
			highest = host.Version
		}
	}
	changes := d.Target != d.Cluster.Version && len(d.begun(VerbUpgrade)) == 0
	switch {
	case changes && d.lacks() && lowest == highest:
		return failed(RepairFirst, "hosts lack, and the version changes: apply with %s first", d.Cluster.Version)
	case changes && d.lacks():
		return failed(Unfinished, "the upgrade to %s has not ended: apply with that version first", d.Cluster.Version)
	case isHigher(highest, d.Target):
		return failed(Downgrade, "%s is lower than %s, which the cluster has: it cannot go back", d.Target, highest)
	case minorsAbove(d.Target, lowest) > 1:
		return failed(Skew, "%s is more than one minor version above %s: go to the one between first", d.Target, lowest)
	}
	return nil
}

// lacks tells whether a host of the control plane will join.
func (d *decider) lacks() bool {
	for i, host := range d.Hosts {
		verb := host.Journal.Action
		switch {
		case host.Worker:
		case d.classes[i] == Empty, d.classes[i] == Broken && host.Replace:
			return true
		case d.classes[i] == InProgress && (verb == VerbInit || verb == VerbJoin || verb == VerbReset):
			return true
		}
	}
	return false
}

// joinVersion returns the version at which hosts join: that of the cluster, once an
// upgrade that has begun has ended.
func (d *decider) joinVersion() string {
	if len(d.begun(VerbUpgrade)) > 0 {
		return d.Target
	}
	return d.Cluster.Version
}

// otherVersionBegun stops where an action has begun at another version than the wanted one.
func (d *decider) otherVersionBegun(verbs ...Verb) *Decision {
	for _, i := range d.begun(verbs...) {
		if entry := d.Hosts[i].Journal; entry.Version != d.Target {
			return failed(Unfinished, "%s of %s at %s has begun and has not ended: apply with that version first", entry.Action, d.Hosts[i].Name, entry.Version)
		}
	}
	return nil
}
