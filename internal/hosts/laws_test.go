// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/hosts"
)

// problem returns what is wrong with what is decided in a situation; "" where nothing is.
func problem(s situation) string {
	o := s.observe()
	d := hosts.Decide(o)
	for _, check := range []func(situation, hosts.Observation, hosts.Decision) string{
		endsAsItSays, makesNoSecondCluster, keepsMajority, sparesHosts, climbsOneMinor, oneLeads, savesFirst, restoresWhole, takesAsItIs, ordersNothing,
	} {
		if what := check(s, o, d); what != "" {
			return fmt.Sprintf("%s\n%v\n%+v", what, s, d)
		}
	}
	return ""
}

// endsAsItSays: an Error has no actions, and neither has Done.
func endsAsItSays(_ situation, _ hosts.Observation, d hosts.Decision) string {
	switch {
	case d.Message == "":
		return "it does not say why"
	case (d.Outcome == hosts.Error || d.Outcome == hosts.Done) && len(d.Actions) > 0:
		return "it ends and has actions"
	case d.Outcome != hosts.Error && d.Outcome != hosts.Done && d.Outcome != hosts.Blocked && len(d.Actions) == 0:
		return "it goes on and has no actions"
	case (d.Outcome == hosts.Error || d.Outcome == hosts.Blocked) != (d.Reason != ""):
		return "it has a reason without being stopped, or none"
	}
	return ""
}

// savesFirst: no member of a cluster that is kept comes or goes before etcd is saved, unless
// somebody wants none; and it is saved once, where there is a place.
func savesFirst(s situation, o hosts.Observation, d hosts.Decision) string {
	saved := 0
	for _, action := range d.Actions {
		switch action.Verb {
		case hosts.VerbSnapshot:
			saved++
			if saved > 1 || !s.kept || s.snapshots != hosts.SnapshotDue {
				return "etcd is saved for nothing"
			}
		case hosts.VerbJoin, hosts.VerbRemoveMember:
			changes := action.Verb == hosts.VerbRemoveMember || action.After != nil && action.After.Members != action.Before.Members
			if o.Cluster.Kept && changes && saved == 0 && s.snapshots != hosts.SnapshotTaken && s.snapshots != hosts.SnapshotWaived {
				return "members change before etcd is saved"
			}
		}
	}
	return ""
}

// restoresWhole: a restore begins on one host with the authorities, beside which no etcd of
// before runs on, and never unasked where there is a majority.
func restoresWhole(s situation, o hosts.Observation, _ hosts.Decision) string {
	classes := hosts.Classes(o)
	var away []string
	for i, class := range classes {
		if class == hosts.Unreachable {
			away = append(away, nameOf(i))
		}
	}
	for _, wish := range []hosts.Wish{{}, {Without: away}, {Without: away, AlthoughItAnswers: true}} {
		wish.ClusterID, wish.Version = id, s.version
		made, err := hosts.Restore(o, wish)
		if err != nil {
			if made.Host != "" || made.Reset != nil {
				return "a restore that is refused does something"
			}
			continue
		}
		switch {
		case o.Cluster.Answers && majority(o.Cluster.Members) && !wish.AlthoughItAnswers:
			return "what has a majority is restored"
		case !slices.Equal(made.Gone, wish.Without):
			return "a host that is away is not spoken of"
		}
		for i, host := range o.Hosts {
			isReset := slices.Contains(made.Reset, host.Name)
			switch {
			case host.Name == made.Host && (!host.Initialised || isReset || classes[i] == hosts.Unreachable):
				return "it begins where it cannot"
			case host.Name != made.Host && classes[i] != hosts.Unreachable && (host.Initialised || len(host.Remains) > 0) != isReset:
				return "an etcd runs beside it, or a host is reset for nothing"
			}
		}
	}
	return ""
}

// takesAsItIs: nothing is done to the hosts of a cluster that is taken over.
func takesAsItIs(_ situation, o hosts.Observation, d hosts.Decision) string {
	if !o.TakesOver {
		return ""
	}
	for _, action := range d.Actions {
		if action.Verb != hosts.VerbUpdate {
			return "something is done to a cluster that is taken over"
		}
	}
	if len(d.Actions) > 0 && slices.ContainsFunc(hosts.Classes(o), func(c hosts.Class) bool { return c != hosts.Healthy }) {
		return "a cluster is taken over that is not whole"
	}
	return ""
}

// oneLeads: the first host of the control plane at a version takes the cluster there, and no
// other one does.
func oneLeads(s situation, o hosts.Observation, d hosts.Decision) string {
	classes := hosts.Classes(o)
	there := map[string]bool{} // versions that the cluster is at, or will be
	for i, host := range o.Hosts {
		there[host.Version] = there[host.Version] || classes[i] == hosts.Healthy
	}
	for _, action := range d.Actions {
		if action.Verb != hosts.VerbUpgrade {
			if action.Leads {
				return "what is no upgrade leads"
			}
			continue
		}
		if i := s.hostIn(action); o.Hosts[i].Worker {
			if action.Leads {
				return "a worker leads"
			}
			continue
		}
		if action.Leads == there[action.Version] {
			return fmt.Sprintf("leads: %t, and the cluster is at %s: %t", action.Leads, action.Version, there[action.Version])
		}
		there[action.Version] = true
	}
	return ""
}

// makesNoSecondCluster: init never with evidence of a cluster that is not our own
// unfinished one.
func makesNoSecondCluster(s situation, o hosts.Observation, d hosts.Decision) string {
	for _, action := range d.Actions {
		if action.Verb != hosts.VerbInit {
			continue
		}
		if own := traitsOf[s.kinds[s.hostIn(action)]].begun == hosts.VerbInit; own != action.Continues {
			return "an init is continued that has not begun, or begun anew"
		}
		if o.Cluster.Answers {
			if k := s.kinds[s.hostIn(action)]; traitsOf[k].member != "live" {
				return "a cluster is made beside the one that answers"
			}
			continue // the cluster is there, and the init of this host has made it
		}
		others := 0
		for _, k := range s.kinds {
			if k != "E" && k != "Ed" {
				others++
			}
		}
		if action.Continues {
			others--
		}
		if others > 0 {
			return "a cluster is made where there is evidence of one"
		}
	}
	return ""
}

// keepsMajority: every change of the members is agreed by a majority that is there, and
// leaves one.
func keepsMajority(s situation, o hosts.Observation, d hosts.Decision) string {
	members := slices.Clone(o.Cluster.Members)
	find := func(id string) int { return slices.IndexFunc(members, func(m hosts.Member) bool { return m.ID == id }) }
	for _, action := range d.Actions {
		was := slices.Clone(members)
		at := find("id-" + action.Host)
		switch action.Verb {
		case hosts.VerbRemoveMember:
			if at = find(action.MemberID); at < 0 {
				return "a member is removed that is not there"
			}
			members = slices.Delete(members, at, at+1)
		case hosts.VerbInit, hosts.VerbJoin:
			switch {
			case at < 0:
				members = append(members, hosts.Member{Name: action.Host, ID: "id-" + action.Host, Healthy: true})
			default:
				members[at].Learner, members[at].Healthy = false, true
			}
		case hosts.VerbUpgrade, hosts.VerbUpgradeContainerd, hosts.VerbRenew:
			if at >= 0 {
				members[at].Healthy = true
			}
		case hosts.VerbReset:
			if at >= 0 && members[at].Healthy && !members[at].Learner {
				return "a host is reset whose member is healthy"
			}
		}
		if d.Outcome == hosts.Init && action.Verb == hosts.VerbInit || !o.Cluster.Answers && action.Continues {
			continue // it makes the first member, or changes none
		}
		changes := !slices.EqualFunc(was, members, func(a, b hosts.Member) bool { return a.ID == b.ID && a.Learner == b.Learner })
		if changes && (!majority(was) && !action.Continues || !majority(members)) {
			return fmt.Sprintf("%s %s costs the majority", action.Verb, action.Host)
		}
	}
	return ""
}

// sparesHosts: what is broken or away is not touched without consent, and nothing that is
// healthy is.
func sparesHosts(s situation, o hosts.Observation, d hosts.Decision) string {
	for _, action := range d.Actions {
		i := s.hostIn(action)
		if i < 0 {
			if action.Verb == hosts.VerbUpdate {
				continue
			}
			if isLeft := action.Verb == hosts.VerbRemoveNode && slices.Contains(o.Cluster.Left, hosts.LeftNode{Name: action.Host}); action.Verb != hosts.VerbRemoveMember &&
				action.Verb != hosts.VerbSnapshot && !isLeft {
				return "something is done to a host that is not in the manifest"
			}
			continue
		}
		k := s.kinds[i]
		mayGo := s.replace && (strings.HasPrefix(string(k), "B") || strings.HasPrefix(string(k), "U"))
		switch action.Verb {
		case hosts.VerbRemoveMember:
			if !mayGo && k != "Ed" {
				return "a member is removed without consent"
			}
		case hosts.VerbReset:
			if !mayGo && k != "Gr" {
				return "a host is reset without consent"
			}
		case hosts.VerbJoin:
			if k != "E" && k != "Ed" && k != "Gr" && traitsOf[k].begun != hosts.VerbJoin && !mayGo {
				return "a host joins that is in a cluster"
			}
		case hosts.VerbUpgrade:
			if k != "H" && k != "He" && k != "Ho" && traitsOf[k].begun != hosts.VerbUpgrade {
				return "a host is upgraded that is not healthy"
			}
		case hosts.VerbRenew:
			if !traitsOf[k].expiring {
				return "certificates are renewed for nothing"
			}
		case hosts.VerbUpgradeContainerd:
			if !traitsOf[k].old {
				return "a host gets another containerd for nothing"
			}
		}
		if traitsOf[k].away && action.Verb != hosts.VerbRemoveMember {
			return "something is done to a host that is away"
		}
	}
	return ""
}

// climbsOneMinor: no host gets a lower version, or passes over a minor one.
func climbsOneMinor(s situation, o hosts.Observation, d hosts.Decision) string {
	minor := func(version string) (n int) {
		_, _ = fmt.Sscanf(version, "v1.%d.", &n)
		return n
	}
	upgraded := ""
	isOld := map[string]bool{}
	for i, host := range o.Hosts {
		isOld[host.Name] = traitsOf[s.kinds[i]].old
	}
	for _, action := range d.Actions {
		if action.Verb == hosts.VerbUpgradeContainerd {
			isOld[action.Host] = false
		}
		if action.Verb == hosts.VerbUpgrade && isOld[action.Host] {
			return "a host gets a version that does not run on its containerd"
		}
		if !slices.Contains([]hosts.Verb{hosts.VerbInit, hosts.VerbJoin, hosts.VerbUpgrade}, action.Verb) {
			continue
		}
		if action.Version == "" {
			return "an action has no version"
		}
		had := o.Hosts[s.hostIn(action)].Version
		if action.Verb == hosts.VerbUpgrade && (action.Version < had || minor(action.Version)-minor(had) > 1) {
			return fmt.Sprintf("%s goes from %s to %s", action.Host, had, action.Version)
		}
		if action.Verb == hosts.VerbUpgrade && action.Continues {
			upgraded = action.Version
		}
		joins := action.Verb == hosts.VerbJoin && !action.Continues
		if joins && o.Cluster.Answers && action.Version != cmp.Or(upgraded, o.Cluster.Version) {
			return "a host joins at another version than the cluster has"
		}
	}
	return ""
}

// ordersNothing: the same hosts in another order end in the same way, with as many
// actions of each sort.
func ordersNothing(_ situation, o hosts.Observation, d hosts.Decision) string {
	verbs := func(d hosts.Decision) []hosts.Verb {
		var found []hosts.Verb
		for _, action := range d.Actions {
			found = append(found, action.Verb)
		}
		slices.Sort(found)
		return found
	}
	turned := o
	turned.Hosts = slices.Clone(o.Hosts)
	slices.Reverse(turned.Hosts)
	turned.Cluster.Members = slices.Clone(o.Cluster.Members)
	slices.Reverse(turned.Cluster.Members)
	other := hosts.Decide(turned)
	if other.Outcome != d.Outcome || other.Reason != d.Reason || !slices.Equal(verbs(other), verbs(d)) {
		return fmt.Sprintf("in another order it is %+v", other)
	}
	return ""
}

// stuck returns why a situation, in which the cluster answers, does not come to an end by
// the manifest that leads there; "" where it does.
func stuck(s situation) string {
	if o := s.observe(); !o.Cluster.Answers || !majority(o.Cluster.Members) {
		return ""
	}
	if slices.Contains(s.kinds, "Gs") {
		return "" // the snapshot leads there
	}
	began := s
	s = s.mended()
	for range 30 {
		d := hosts.Decide(s.observe())
		switch {
		case d.Outcome == hosts.Done:
			return ""
		case len(d.Actions) == 0:
			return fmt.Sprintf("it does not go on\n%v\nat\n%v\n%+v", began, s, d)
		}
		s = s.after(d.Actions[0])
	}
	return fmt.Sprintf("it goes on for ever\n%v", began)
}

// forgotten returns what is begun, killed, and not gone on with; "" where all is.
func forgotten(s situation) string {
	if s.late || s.takesOver {
		return "" // without a majority there is an end to what can be gone on with
	}
	d := hosts.Decide(s.observe())
	for _, action := range d.Actions {
		for _, left := range s.killedIn(action) {
			next := hosts.Decide(left.observe())
			i := slices.IndexFunc(next.Actions, func(a hosts.Action) bool { return a.Host == action.Host && a.Verb == action.Verb })
			if i < 0 || !next.Actions[i].Continues {
				return fmt.Sprintf("%s %s is not gone on with\n%v\nkilled:\n%v\n%+v", action.Verb, action.Host, s, left, next)
			}
		}
		s = s.after(action)
	}
	return ""
}
