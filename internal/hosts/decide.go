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
	// down are hosts that stay broken or unreachable, and undone what else is not done, each in
	// words.
	down   []int
	undone []string
	// unsaved are changes of members that want a snapshot, where there is no place for one.
	unsaved []string
}

// Decide returns what is to be done. The first rule that applies decides, in the order
// in which they stand here.
func Decide(o Observation) Decision {
	d := &decider{Observation: o, classes: Classes(o), ring: ringOf(o.Cluster.Members)}
	for _, rule := range []func() *Decision{d.refused, d.foreign, d.restoring, d.first, d.lost, d.contradiction, d.remains, d.takesOver, d.versions} {
		if decision := rule(); decision != nil {
			return *decision
		}
	}
	d.goOn()
	d.removeDead()
	d.joinMissing()
	d.removeLeft()
	repairs := len(d.actions)
	d.down = d.each(true, Broken, Unreachable)
	upgrades, renewals := 0, 0
	if len(d.down) == 0 {
		d.upgrade()
		upgrades = len(d.actions) - repairs
		d.renew()
		renewals = len(d.actions) - repairs - upgrades
	}
	before := len(d.actions)
	d.joinWorkers()
	d.removeNodes()
	return d.conclude(repairs+len(d.actions)-before, upgrades, renewals)
}

// failed is an Error.
func failed(reason Reason, format string, values ...any) *Decision {
	return &Decision{Outcome: Error, Reason: reason, Message: fmt.Sprintf(format, values...)}
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
	return slices.DeleteFunc(d.each(true, InProgress), func(i int) bool { return !slices.Contains(verbs, d.Hosts[i].Journal.Action) })
}

// names lists hosts.
func (d *decider) names(hosts []int) string {
	names := make([]string, len(hosts))
	for i, host := range hosts {
		names[i] = d.Hosts[host].Name
	}
	return strings.Join(names, ", ")
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

// conclude says how it ends.
func (d *decider) conclude(repairs, upgrades, renewals int) Decision {
	decision := Decision{Actions: d.actions}
	switch {
	case len(d.down) > 0 || len(d.undone) > 0 || len(d.unsaved) > 0:
		decision.Outcome, decision.Reason = Blocked, HostsDown
		if len(d.down) == 0 && len(d.undone) == 0 {
			decision.Reason = SnapshotFirst
		}
		decision.Replaceable = d.replaceable()
		decision.Message = d.blocked(decision.Replaceable)
	case repairs > 0:
		decision.Outcome, decision.Message = Repair, "brings the cluster to what the manifest lists"
		if upgrades > 0 {
			decision.Message += ", and takes it to " + d.Target
		}
	case upgrades > 0:
		decision.Outcome, decision.Message = Upgrade, "takes the cluster to "+d.Target
		if !slices.ContainsFunc(d.actions, func(a Action) bool { return a.Verb == VerbUpgrade }) {
			decision.Message = "takes hosts to a containerd that " + d.Target + " runs on"
		}
	case renewals > 0:
		decision.Outcome, decision.Message = Renew, "renews certificates"
	case len(d.Drift) > 0:
		decision.Outcome, decision.Message = Update, "changes settings: "+strings.Join(d.Drift, ", ")
		decision.Actions = []Action{{Verb: VerbUpdate, Reason: strings.Join(d.Drift, ", ")}}
	default:
		decision.Outcome, decision.Message = Done, "there is nothing to do"
	}
	return decision
}

// blocked says what stands in the way.
func (d *decider) blocked(replaceable []string) string {
	var parts []string
	for _, i := range d.down {
		host := d.Hosts[i]
		if why := host.Unreachable; why != "" {
			parts = append(parts, fmt.Sprintf("%s cannot be reached: %s", host.Name, strings.TrimPrefix(why, "cannot be reached: ")))
		} else {
			parts = append(parts, host.Name+" is broken")
		}
	}
	parts = append(parts, d.undone...)
	if len(d.unsaved) > 0 {
		parts = append(parts, fmt.Sprintf("members of etcd do not change (%s) before it is saved: name a place in spec.snapshots, or give --without-snapshot",
			strings.Join(d.unsaved, ", ")))
	}
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
