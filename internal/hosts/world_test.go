// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/hosts"
)

// The versions of the tests.
const (
	older, old, current, newer = "v1.34.2", "v1.35.3", "v1.36.3", "v1.36.4"
)

// id is that of the tests' cluster.
const id = "cluster-1"

// kind is what a host may be found to be, with its member of etcd. The names say it: E is
// empty, R has remains or a journal (j) alone, B is broken and U away, with a dead (d) or live (l) member or none (n); G has begun
// an init (i), a join (j), an upgrade (u), a reset (r), a renewal of certificates (c), another containerd (t) or a
// restore (s), with a member (m), a learner (l) or a dead member (d); He and Be have
// certificates that end soon, and Ho an old containerd.
type kind string

// traits are what is seen of a host of a kind.
type traits struct {
	initialised, running, serving bool
	remains                       bool
	away                          bool
	begun, ended                  hosts.Verb
	// expiring has certificates that end soon, or have ended.
	expiring bool
	// old has a containerd that the target does not run on.
	old bool
	// member is "", dead, live or learner.
	member string
}

var traitsOf = map[kind]traits{
	"E":   {},
	"Ed":  {member: "dead"},
	"R":   {remains: true},
	"Rj":  {ended: hosts.VerbJoin},
	"H":   {initialised: true, running: true, serving: true, member: "live"},
	"Bd":  {initialised: true, member: "dead"},
	"Bl":  {initialised: true, serving: true, member: "live"},
	"Bn":  {initialised: true},
	"Ud":  {away: true, initialised: true, member: "dead"},
	"Ul":  {away: true, initialised: true, member: "live"},
	"Un":  {away: true},
	"Gi":  {begun: hosts.VerbInit, remains: true},
	"Gim": {begun: hosts.VerbInit, initialised: true, running: true, serving: true, member: "live"},
	"Gj":  {begun: hosts.VerbJoin, remains: true},
	"Gjl": {begun: hosts.VerbJoin, remains: true, member: "learner"},
	"Gjm": {begun: hosts.VerbJoin, initialised: true, running: true, serving: true, member: "live"},
	"Gjd": {begun: hosts.VerbJoin, initialised: true, member: "dead"},
	"Gu":  {begun: hosts.VerbUpgrade, initialised: true, running: true, serving: true, member: "live"},
	"Gud": {begun: hosts.VerbUpgrade, initialised: true, member: "dead"},
	"Gr":  {begun: hosts.VerbReset, remains: true},
	"Ho":  {initialised: true, running: true, serving: true, member: "live", old: true},
	"Gt":  {begun: hosts.VerbUpgradeContainerd, initialised: true, running: true, serving: true, member: "live", old: true},
	"Gtd": {begun: hosts.VerbUpgradeContainerd, initialised: true, member: "dead", old: true},
	"He":  {initialised: true, running: true, serving: true, member: "live", expiring: true},
	"Be":  {initialised: true, member: "dead", expiring: true},
	"Gc":  {begun: hosts.VerbRenew, initialised: true, running: true, serving: true, member: "live", expiring: true},
	"Gcd": {begun: hosts.VerbRenew, initialised: true, member: "dead", expiring: true},
	"Gs":  {begun: hosts.VerbRestore, initialised: true, member: "dead"},
}

// killed are the kinds in which an action that is killed leaves its host: one that is
// gone on with does not fall behind where it was.
func killed(verb hosts.Verb, was kind) []kind {
	switch verb {
	case hosts.VerbInit:
		if was == "Gim" {
			return []kind{"Gim"}
		}
		return []kind{"Gi", "Gim"}
	case hosts.VerbJoin:
		switch was {
		case "Gjm", "Gjd":
			return []kind{"Gjm", "Gjd"}
		case "Gjl":
			return []kind{"Gjl", "Gjm", "Gjd"}
		}
		return []kind{"Gj", "Gjl", "Gjm", "Gjd"}
	case hosts.VerbUpgrade:
		return []kind{"Gu", "Gud"}
	case hosts.VerbRenew:
		return []kind{"Gc", "Gcd"}
	case hosts.VerbUpgradeContainerd:
		return []kind{"Gt", "Gtd"}
	case hosts.VerbReset:
		return []kind{"Gr"}
	}
	return nil
}

// situation is a state of everything, from which an Observation follows.
type situation struct {
	kinds    []kind
	versions []string
	// replace is the consent for hosts that are down.
	replace bool
	// deadLeft, liveLeft and learnersLeft are members whose hosts are not in the manifest.
	deadLeft, liveLeft, learnersLeft int
	// silent has no API server answer, although some could.
	silent bool
	// late has an API server that answered before the majority was lost.
	late bool
	// version that kubeadm-config names, and target of the manifest.
	version, target string
	// kept has the cluster be one that was made before.
	kept      bool
	snapshots hosts.Snapshots
	// takesOver has the cluster be one that nobody has applied a manifest to.
	takesOver bool
	// nodesLeft are Nodes whose hosts are not in the manifest any more.
	nodesLeft int
}

func (s situation) String() string {
	return fmt.Sprintf("%v at %v, replace=%t, left: %d dead, %d alive, %d learners, silent=%t, late=%t, %s -> %s, kept=%t %s, %d nodes left, takesOver=%t",
		s.kinds, s.versions, s.replace, s.deadLeft, s.liveLeft, s.learnersLeft, s.silent, s.late, s.version, s.target, s.kept, s.snapshots, s.nodesLeft, s.takesOver)
}

// nameOf returns the name of a host.
func nameOf(i int) string { return fmt.Sprintf("cp-%d", i) }

// observe returns what is seen of a situation.
func (s situation) observe() hosts.Observation {
	o := hosts.Observation{ClusterID: id, Target: s.target, Snapshots: s.snapshots}
	member := func(name, state string) {
		o.Cluster.Members = append(o.Cluster.Members,
			hosts.Member{Name: name, ID: "id-" + name, Learner: state == "learner", Healthy: state != "dead"})
	}
	serving := false
	for i, k := range s.kinds {
		seen := traitsOf[k]
		host := hosts.Host{Name: nameOf(i), Replace: s.replace}
		if seen.member != "" {
			member(host.Name, seen.member)
		}
		if seen.initialised {
			o.Cluster.Nodes = append(o.Cluster.Nodes, host.Name)
		}
		if seen.away {
			host.Unreachable = "no route to host"
			o.Hosts = append(o.Hosts, host)
			continue
		}
		host.Initialised, host.Running, host.Serving = seen.initialised, seen.running, seen.serving
		if seen.initialised {
			host.Version, host.Authority = s.versions[i], "authority"
		}
		host.Expiring, host.OldContainerd = seen.expiring, seen.old
		if seen.remains {
			host.Remains = []string{"/etc/kubernetes/pki"}
		}
		if seen.begun != "" {
			host.Journal = hosts.Entry{ClusterID: id, Action: seen.begun, Version: s.version}
			if seen.begun == hosts.VerbUpgrade {
				host.Journal.Version = s.next()
			} else if seen.initialised {
				host.Version = s.version // at which hosts join
			}
		}
		if seen.ended != "" {
			host.Journal = hosts.Entry{ClusterID: id, Action: seen.ended, Version: s.version, Ended: true}
		}
		serving = serving || seen.serving
		o.Hosts = append(o.Hosts, host)
	}
	for i := range s.nodesLeft {
		name := fmt.Sprintf("left-%d", i)
		o.Cluster.Nodes, o.Cluster.Left = append(o.Cluster.Nodes, name), append(o.Cluster.Left, hosts.LeftNode{Name: name})
	}
	for state, n := range map[string]int{"dead": s.deadLeft, "live": s.liveLeft, "learner": s.learnersLeft} {
		for i := range n {
			member(fmt.Sprintf("%s-%d", state, i), state)
		}
	}
	o.Cluster.Answers, o.Cluster.Version = serving && !s.silent && (s.late || majority(o.Cluster.Members)), s.version
	o.Cluster.Kept = s.kept
	if o.TakesOver = s.takesOver && o.Cluster.Answers; o.TakesOver {
		o.ClusterID = ""
	}
	if !o.Cluster.Answers {
		o.Cluster = hosts.Cluster{}
		for i := range o.Hosts {
			o.Hosts[i].Serving = false
		}
	}
	return o
}

// next returns the version of an upgrade that may have begun.
func (s situation) next() string {
	switch {
	case s.target < s.version:
		return s.version
	case s.version == older && s.target == current:
		return old
	}
	return s.target
}

// majority counts by itself whether more than half of the members that vote are healthy.
func majority(members []hosts.Member) bool {
	votes, healthy := 0, 0
	for _, m := range members {
		if !m.Learner {
			votes++
			if m.Healthy {
				healthy++
			}
		}
	}
	return 2*healthy > votes
}

// hostIn returns the host that an action is for; -1 for a member that has none.
func (s situation) hostIn(action hosts.Action) int {
	return slices.IndexFunc(slices.Collect(func(yield func(string) bool) {
		for i := range s.kinds {
			if !yield(nameOf(i)) {
				return
			}
		}
	}), func(name string) bool { return name == action.Host })
}

// after returns the situation when an action has ended.
func (s situation) after(action hosts.Action) situation {
	s.kinds, s.versions = slices.Clone(s.kinds), slices.Clone(s.versions)
	i := s.hostIn(action)
	switch action.Verb {
	case hosts.VerbInit, hosts.VerbJoin, hosts.VerbUpgrade:
		s.kinds[i], s.versions[i] = "H", action.Version
		if action.Verb != hosts.VerbJoin {
			s.version = action.Version
		}
	case hosts.VerbRenew, hosts.VerbUpgradeContainerd:
		s.kinds[i], s.versions[i] = "H", action.Version
	case hosts.VerbReset:
		s.kinds[i] = "E"
	case hosts.VerbRemoveNode:
		s.nodesLeft--
	case hosts.VerbUpdate:
		s.takesOver = false
	case hosts.VerbSnapshot:
		s.snapshots = hosts.SnapshotTaken
	case hosts.VerbRemoveMember:
		switch {
		case i >= 0 && traitsOf[s.kinds[i]].away:
			s.kinds[i] = "Un"
		case i >= 0 && s.kinds[i] == "Ed":
			s.kinds[i] = "E"
		case i >= 0:
			s.kinds[i] = "Bn"
		case strings.HasPrefix(action.Host, "dead"):
			s.deadLeft--
		case strings.HasPrefix(action.Host, "live"):
			s.liveLeft--
		default:
			s.learnersLeft--
		}
	}
	return s
}

// killedIn returns the situations that an action leaves which is killed.
func (s situation) killedIn(action hosts.Action) []situation {
	var left []situation
	i := s.hostIn(action)
	if i < 0 {
		return nil // the removal of a member is done or not
	}
	for _, k := range killed(action.Verb, s.kinds[i]) {
		next := s
		next.kinds, next.versions = slices.Clone(s.kinds), slices.Clone(s.versions)
		next.kinds[i] = k
		if next.snapshots != hosts.SnapshotWaived {
			next.snapshots = hosts.SnapshotDue // in another run, which has a place
		}
		if action.Verb != hosts.VerbUpgrade {
			next.versions[i] = action.Version
		}
		if action.Verb == hosts.VerbInit {
			next.version = action.Version
		}
		left = append(left, next)
	}
	return left
}

// mended returns a manifest that leads to the end: without hosts that are away or have
// remains, with the consent for those that are broken, one more host, a place for snapshots, and
// the version that the cluster is at or on its way to.
func (s situation) mended() situation {
	next := s
	next.kinds, next.versions, next.replace = nil, nil, true
	for i, k := range s.kinds {
		switch k {
		case "Ud":
			next.deadLeft++
		case "Ul":
			next.liveLeft++
		case "Un", "R", "Rj", "Gi":
		default:
			next.kinds, next.versions = append(next.kinds, k), append(next.versions, s.versions[i])
		}
	}
	next.kinds, next.versions = append(next.kinds, "E"), append(next.versions, "")
	next.target = s.version
	next.takesOver = false
	if next.snapshots == hosts.SnapshotNowhere {
		next.snapshots = hosts.SnapshotDue
	}
	if slices.ContainsFunc(next.kinds, func(k kind) bool { return traitsOf[k].begun == hosts.VerbUpgrade }) {
		next.target = s.next()
	}
	return next
}
