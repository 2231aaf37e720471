// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"slices"
	"strings"
)

// decider is one decision while it is made.
type decider struct {
	Observation
	classes []Class
	ring    Ring
	actions []Action
	// removed are the IDs of members that are taken out.
	removed []string
	// down are hosts that stay broken or away, and undone what else is not done, each in
	// words.
	down   []int
	undone []string
}

// Decide returns what is to be done. The first rule that applies decides, in the order
// in which they stand here.
func Decide(o Observation) Decision {
	d := &decider{Observation: o, classes: Classes(o), ring: ringOf(o.Cluster.Members)}
	for _, rule := range []func() *Decision{d.refused, d.foreign, d.first, d.lost, d.contradiction, d.remains, d.versions} {
		if decision := rule(); decision != nil {
			return *decision
		}
	}
	d.goOn()
	d.removeDead()
	d.joinMissing()
	d.removeLeft()
	repairs := len(d.actions)
	d.down = d.each(true, Broken, Away)
	upgrades := 0
	if len(d.down) == 0 {
		d.upgrade()
		upgrades = len(d.actions) - repairs
	}
	joined := d.joinWorkers()
	return d.conclude(repairs+joined, upgrades)
}

// failed is an Error.
func failed(reason Reason, format string, values ...any) *Decision {
	return &Decision{Exit: Error, Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// each returns the hosts of some classes: those of the control plane, or workers too.
func (d *decider) each(workers bool, classes ...Class) []int {
	var found []int
	for i, host := range d.Hosts {
		if (workers || !host.Worker) && slices.Contains(classes, d.classes[i]) {
			found = append(found, i)
		}
	}
	return found
}

// begun returns the hosts on which one of the actions has not ended.
func (d *decider) begun(verbs ...Verb) []int {
	return slices.DeleteFunc(d.each(true, Begun), func(i int) bool { return !slices.Contains(verbs, d.Hosts[i].Journal.Action) })
}

// names lists hosts.
func (d *decider) names(hosts []int) string {
	names := make([]string, len(hosts))
	for i, host := range hosts {
		names[i] = d.Hosts[host].Name
	}
	return strings.Join(names, ", ")
}

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
	switch {
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

// first makes the cluster where nothing speaks for one.
func (d *decider) first() *Decision {
	if d.Cluster.Answers || len(d.each(true, Healthy, Broken)) > 0 || len(d.begun(VerbJoin, VerbJoinWorker, VerbUpgrade)) > 0 {
		return nil
	}
	away, residue, inits, resets := d.each(true, Away), d.each(true, Residue), d.begun(VerbInit), d.begun(VerbReset)
	switch {
	case len(away) > 0:
		return failed(Unreachable,
			"%s cannot be reached, and no other host belongs to a cluster: whether there is one is not known. Make them reachable, or take them out of the manifest",
			d.names(away))
	case len(residue) > 0:
		return d.hasRemains(residue)
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
	return &Decision{Exit: Init, Message: fmt.Sprintf("makes a cluster of %d hosts: %s", len(d.Hosts), why), Actions: d.actions}
}

// lost stops where etcd has no majority, or no API server answers, but for what may bring
// it back: to go on with a join or an upgrade that has begun on a host. That changes no
// members then; an init would make a second cluster.
func (d *decider) lost() *Decision {
	if d.Cluster.Answers && d.ring.HasQuorum() {
		return nil
	}
	unfinished := slices.DeleteFunc(d.begun(VerbJoin, VerbUpgrade), func(i int) bool { return d.Hosts[i].Worker })
	comesBack := true
	if d.Cluster.Answers {
		back := d.ring
		for _, i := range unfinished {
			if member := d.memberOf(d.Hosts[i].Name); member != nil && !member.Learner && !member.Healthy {
				back.Healthy++
			}
		}
		comesBack = back.HasQuorum()
	}
	if len(unfinished) > 0 && comesBack && !d.mayBeAnother() {
		last := VerbUpgrade // where one has begun, joins were at the version before
		if len(d.begun(VerbUpgrade)) == 0 {
			last = VerbJoin
		}
		if decision := d.otherVersionBegun(last); decision != nil {
			return decision
		}
		for _, i := range unfinished {
			if member := d.memberOf(d.Hosts[i].Name); d.Cluster.Answers && (member == nil || member.Learner) {
				continue // which would need a majority
			}
			d.goOnWith(i, nil)
		}
		return &Decision{
			Exit: Repair, Actions: d.actions,
			Message: "no majority of etcd is healthy, because actions have not ended: goes on with them on " + d.names(unfinished),
		}
	}
	if !d.Cluster.Answers {
		return failed(QuorumLost, "no API server is healthy on %s: bring them back, or restore the cluster from a snapshot",
			d.names(d.each(false, Broken, Begun)))
	}
	return failed(QuorumLost, "%d of %d members of etcd are healthy, which is no majority (%s): bring hosts back, or restore the cluster from a snapshot",
		d.ring.Healthy, d.ring.Members, d.surviving())
}

// mayBeAnother tells whether a host of the control plane may be of another cluster: one
// with remains, or with an init that has not come far.
func (d *decider) mayBeAnother() bool {
	return len(d.each(false, Residue)) > 0 ||
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
	if residue := d.each(false, Residue); len(residue) > 0 {
		return d.hasRemains(residue)
	}
	return nil
}

func (d *decider) hasRemains(residue []int) *Decision {
	what := make([]string, len(residue))
	for i, host := range residue {
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

// versions stops at what no version may do, and at another version where hosts lack.
func (d *decider) versions() *Decision {
	if decision := d.otherVersionBegun(VerbUpgrade); decision != nil {
		return decision
	}
	lowest, highest := d.Cluster.Version, d.Cluster.Version
	for i, host := range d.Hosts {
		if d.classes[i] == Empty || d.classes[i] == Residue {
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
		case d.classes[i] == Begun && (verb == VerbInit || verb == VerbJoin || verb == VerbReset):
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

// goOn continues what has begun: upgrades last, since the others have the version before,
// and then what follows on a reset.
func (d *decider) goOn() {
	upgrades, resets := d.begun(VerbUpgrade), d.begun(VerbReset)
	others := slices.DeleteFunc(d.each(true, Begun), func(i int) bool { return slices.Contains(upgrades, i) })
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
		Reason: "it has begun there and has not ended",
	}, after)
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
		return
	}
	d.add(Action{Verb: VerbReset, Host: host.Name, Reason: replaced}, nil)
	d.joinAgain(i)
	d.classes[i] = Begun // it is taken care of
}

// replaced is why a host is taken out.
const replaced = "its host is to be replaced"

// isReplaced tells whether a host is down, and the manifest lets it go.
func (d *decider) isReplaced(i int) bool {
	return d.Hosts[i].Replace && (d.classes[i] == Away || d.classes[i] == Broken)
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
// stay while a host is broken or away: they may be needed.
func (d *decider) removeLeft() {
	for _, member := range d.Cluster.Members {
		if d.hostOf(member.Name) >= 0 || member.Learner || !member.Healthy {
			continue
		}
		if len(d.each(false, Broken, Away)) > 0 {
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

// upgrade takes hosts to the wanted version: the first one, the others of the control
// plane, and workers.
func (d *decider) upgrade() {
	for _, workers := range []bool{false, true} {
		for i, host := range d.Hosts {
			if host.Worker != workers || d.classes[i] != Healthy || host.Version == d.Target {
				continue
			}
			d.add(Action{Verb: VerbUpgrade, Host: host.Name, Version: d.Target, Reason: "it has " + host.Version}, nil)
		}
	}
}

// joinWorkers brings empty workers into the cluster, and returns how many those are.
func (d *decider) joinWorkers() int {
	joined := 0
	for i, host := range d.Hosts {
		if !host.Worker {
			continue
		}
		switch d.classes[i] {
		case Empty:
			d.add(Action{Verb: VerbJoinWorker, Host: host.Name, Version: d.Target, Reason: "it is not in the cluster yet"}, nil)
			joined++
		case Residue:
			d.undone = append(d.undone, fmt.Sprintf("%s has remains of a cluster (%s): reset it", host.Name, host.left()))
		}
	}
	return joined
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
	action.Before, action.After = &before, after
	d.ring = *after
	d.actions = append(d.actions, action)
	return true
}

// conclude says how it ends.
func (d *decider) conclude(repairs, upgrades int) Decision {
	decision := Decision{Actions: d.actions}
	switch {
	case len(d.down) > 0 || len(d.undone) > 0:
		decision.Exit, decision.Reason = Blocked, HostsDown
		decision.Replaceable = d.replaceable()
		decision.Message = d.blocked(decision.Replaceable)
	case repairs > 0:
		decision.Exit, decision.Message = Repair, "brings the cluster to what the manifest lists"
		if upgrades > 0 {
			decision.Message += ", and takes it to " + d.Target
		}
	case upgrades > 0:
		decision.Exit, decision.Message = Upgrade, "takes the cluster to "+d.Target
	case len(d.Drift) > 0:
		decision.Exit, decision.Message = Update, "changes settings: "+strings.Join(d.Drift, ", ")
		decision.Actions = []Action{{Verb: VerbUpdate, Reason: strings.Join(d.Drift, ", ")}}
	default:
		decision.Exit, decision.Message = Done, "there is nothing to do"
	}
	return decision
}

// blocked says what stands in the way.
func (d *decider) blocked(replaceable []string) string {
	var parts []string
	for _, i := range d.down {
		host := d.Hosts[i]
		if why := host.Away; why != "" {
			parts = append(parts, fmt.Sprintf("%s cannot be reached: %s", host.Name, why))
		} else {
			parts = append(parts, host.Name+" is broken")
		}
	}
	parts = append(parts, d.undone...)
	message := strings.Join(parts, "; ")
	if len(replaceable) > 0 {
		message += ". Repair them, or replace them one by one in this order: " + strings.Join(replaceable, ", ")
	}
	return message
}

// replaceable returns the hosts that are down and that the majority can do without: those
// without a healthy member first, then the others as long as the ring allows it.
func (d *decider) replaceable() []string {
	var dead, alive []string
	ring := d.ring
	for _, i := range d.down {
		name := d.Hosts[i].Name
		member := d.memberOf(name)
		if member == nil || !member.Healthy || member.Learner {
			dead = append(dead, name)
			if member != nil && !member.Learner {
				ring = ring.without(false)
			}
		}
	}
	for _, i := range d.down {
		name := d.Hosts[i].Name
		member := d.memberOf(name)
		if member == nil || !member.Healthy || member.Learner {
			continue
		}
		if next := ring.without(true); ring.Allows(next) {
			alive, ring = append(alive, name), next
		}
	}
	return append(dead, alive...)
}

// memberOf returns the member of a host; nil where it has none, or will have none.
func (d *decider) memberOf(host string) *Member {
	i := slices.IndexFunc(d.Cluster.Members, func(m Member) bool { return m.Name == host && !slices.Contains(d.removed, m.ID) })
	if i < 0 {
		return nil
	}
	return &d.Cluster.Members[i]
}

// hostOf returns the host of the control plane that a member belongs to; -1 for none.
func (d *decider) hostOf(member string) int {
	return slices.IndexFunc(d.Hosts, func(h Host) bool { return !h.Worker && h.Name == member })
}
