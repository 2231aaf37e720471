// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/hosts"
)

// steps writes actions down, a word each.
func steps(actions []hosts.Action) string {
	words := make([]string, len(actions))
	for i, action := range actions {
		words[i] = fmt.Sprintf("%s(%s)", action.Verb, action.Host)
		if action.Continues {
			words[i] = "continue-" + words[i]
		}
	}
	return strings.Join(words, " ")
}

// of is a situation of hosts at the current version.
func of(kinds ...kind) situation {
	return situation{kinds: kinds, versions: slices.Repeat([]string{current}, len(kinds)), version: current, target: current}
}

func TestDecide(t *testing.T) {
	with := func(s situation, change func(*situation)) situation {
		change(&s)
		return s
	}
	to := func(target string) func(*situation) { return func(s *situation) { s.target = target } }
	for _, test := range []struct {
		reason  string
		seen    situation
		exit    hosts.Outcome
		because hosts.Reason
		steps   string
		message string
	}{
		{"nobody has anything", of("E", "E", "E"), hosts.Init, "", "Init(cp-0) Join(cp-1) Join(cp-2)", "no host belongs to a cluster"},
		{
			"absence of evidence is not evidence of absence",
			of("E", "Un", "E"), hosts.Error, hosts.ReasonUnreachable, "", "cp-1 cannot be reached",
		},
		{"remains that nobody explains", of("E", "R", "E"), hosts.Error, hosts.Remains, "", "cp-1 (/etc/kubernetes/pki)"},
		{"a host belonged to the cluster, and nobody has reset it", of("E", "Rj", "E"), hosts.Error, hosts.Remains, "", "cp-1 (its journal ends with Join)"},
		{"our own init was killed", of("E", "Gi", "E"), hosts.Init, "", "continue-Init(cp-1) Join(cp-0) Join(cp-2)", "it has begun there"},
		{"a join was killed", of("H", "Gjl", "E"), hosts.Repair, "", "continue-Join(cp-1) Join(cp-2)", "what the manifest lists"},
		{"a host was killed in the middle of a join, and etcd with it", of("Gjd", "Bl"), hosts.Repair, "", "continue-Join(cp-0)", "no majority"},
		{"two of three are broken", of("H", "Bd", "Bd"), hosts.Error, hosts.QuorumLost, "", "no API server is healthy"},
		{"one of three is broken", of("H", "Bd", "H"), hosts.Blocked, hosts.HostsDown, "", "cp-1 is broken. Repair them, or replace them one by one in this order: cp-1"},
		{
			"one of three is broken, and may be replaced",
			with(of("H", "Bd", "H"), func(s *situation) { s.replace = true }),
			hosts.Repair, "", "RemoveMember(cp-1) Reset(cp-1) Join(cp-1)", "",
		},
		{
			"the only host whose API server answers stays, whatever is asked",
			with(of("Bl", "Bd"), func(s *situation) { s.replace, s.liveLeft = true, 1 }),
			hosts.Blocked, hosts.HostsDown, "RemoveMember(cp-1)", "nobody could ask the cluster",
		},
		{"a host was made anew under its name", of("H", "H", "Ed"), hosts.Repair, "", "RemoveMember(cp-2) Join(cp-2)", ""},
		{
			"members whose hosts have left the manifest",
			with(of("H", "H", "H"), func(s *situation) { s.deadLeft, s.liveLeft, s.learnersLeft = 1, 1, 1 }),
			hosts.Repair, "", "RemoveMember(dead-0) RemoveMember(learner-0) RemoveMember(live-0)", "",
		},
		{"a host lacks and the version changes", with(of("H", "H", "E"), to(newer)), hosts.Error, hosts.RepairFirst, "", "apply with v1.36.3 first"},
		{"a higher version", with(of("H", "H", "H"), to(newer)), hosts.Upgrade, "", "Upgrade(cp-0) Upgrade(cp-1) Upgrade(cp-2)", "takes the cluster to v1.36.4"},
		{"a lower version", with(of("H", "H", "H"), to(old)), hosts.Error, hosts.Downgrade, "", "cannot go back"},
		{"a minor version is passed over", with(of("H", "H", "H"), to("v1.38.0")), hosts.Error, hosts.Skew, "", "one between first"},
		{"an upgrade was killed", of("H", "Gud", "H"), hosts.Repair, "", "continue-Upgrade(cp-1)", ""},
		{
			"an upgrade has begun and another version is asked for",
			with(of("H", "Gu", "H"), func(s *situation) { s.target = older }), hosts.Error, hosts.Unfinished, "", "Upgrade of cp-1 at v1.36.3 has begun",
		},
		{"a cluster has begun beside the one that answers", of("H", "Gi", "H"), hosts.Error, hosts.Unfinished, "", "reset it"},
		{"all is well", of("H", "H", "H"), hosts.Done, "", "", "there is nothing to do"},
	} {
		decision := hosts.Decide(test.seen.observe())
		if decision.Outcome != test.exit || decision.Reason != test.because || sorted(steps(decision.Actions)) != sorted(test.steps) {
			t.Errorf("%s: %s %s: %s", test.reason, decision.Outcome, decision.Reason, steps(decision.Actions))
		}
		if !strings.Contains(decision.Message, test.message) {
			t.Errorf("%s: it says %q", test.reason, decision.Message)
		}
	}
}

// sorted puts the removals of several members, which come as etcd lists them, in order.
func sorted(text string) string {
	words := strings.Fields(text)
	if len(words) > 0 && strings.HasPrefix(words[0], "RemoveMember") && strings.Count(text, "RemoveMember") == len(words) {
		slices.Sort(words)
	}
	return strings.Join(words, " ")
}

// What stops everything is told with the name of the host, all of it at once.
func TestHostsThatMustNotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*hosts.Observation)
		because hosts.Reason
		message string
	}{
		"changed keys": {
			func(o *hosts.Observation) { o.Hosts[0].Refused, o.Hosts[2].Refused = "another host key", "no sudo" },
			hosts.Refused, "cp-0: another host key; cp-2: no sudo",
		},
		"a field that cannot change, and a key": {
			func(o *hosts.Observation) {
				o.Hosts[1].Refused, o.Stops = "another host key", []string{"spec.network cannot change"}
			},
			hosts.Refused, "cp-1: another host key; spec.network cannot change",
		},
		"two clusters": {
			func(o *hosts.Observation) { o.Hosts[1].Authority = "another one" },
			hosts.Foreign, "cp-0 and cp-1 belong to different clusters",
		},
		"the journal of another cluster": {
			func(o *hosts.Observation) {
				o.Hosts[2].Journal = hosts.Entry{ClusterID: "other", Action: hosts.VerbJoin, Ended: true}
			},
			hosts.Foreign, "cp-2 has the journal of another cluster",
		},
		"a worker of a cluster whose control plane is empty": {
			func(o *hosts.Observation) {
				o.Cluster = hosts.Cluster{}
				for i := range o.Hosts {
					o.Hosts[i] = hosts.Host{Name: o.Hosts[i].Name}
				}
				o.Hosts = append(o.Hosts, hosts.Host{Name: "worker", Worker: true, Initialised: true, Running: true, Version: current})
			},
			hosts.QuorumLost, "no API server is healthy on worker",
		},
		"no control plane": {
			func(o *hosts.Observation) {
				for i := range o.Hosts {
					o.Hosts[i].Worker = true
				}
			},
			hosts.Refused, "no host for the control plane",
		},
		"an empty host whose member answers": {
			func(o *hosts.Observation) { o.Hosts[1] = hosts.Host{Name: "cp-1"} },
			hosts.Contradiction, "cp-1 is empty, and a member of etcd of that name answers",
		},
	} {
		o := of("H", "H", "H").observe()
		test.change(&o)
		d := hosts.Decide(o)
		if d.Outcome != hosts.Error || d.Reason != test.because || !strings.Contains(d.Message, test.message) || len(d.Actions) > 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Of a host whose version nobody knows, nothing is assumed.
func TestHostOfAnUnknownVersion(t *testing.T) {
	o := of("H", "H", "H").observe()
	o.Hosts[1].Version = ""
	if d := hosts.Decide(o); d.Outcome != hosts.Blocked || len(d.Actions) > 0 || !strings.Contains(d.Message, "cp-1 is broken") {
		t.Errorf("%+v", d)
	}
}

func TestWorkers(t *testing.T) {
	worker := func(k kind) hosts.Host {
		seen := traitsOf[k]
		return hosts.Host{Name: "worker", Worker: true, Initialised: seen.initialised, Running: seen.running, Version: current}
	}
	for _, test := range []struct {
		reason string
		worker hosts.Host
		node   bool
		exit   hosts.Outcome
		steps  string
	}{
		{"it lacks", worker("E"), false, hosts.Repair, "JoinWorker(worker)"},
		{"it is there", worker("H"), true, hosts.Done, ""},
		{"its Node is gone", worker("H"), false, hosts.Blocked, ""},
		{"it has remains", hosts.Host{Name: "worker", Worker: true, Remains: []string{"/var/lib/kubelet"}}, false, hosts.Blocked, ""},
		{
			"its join was killed",
			hosts.Host{Name: "worker", Worker: true, Journal: hosts.Entry{ClusterID: id, Action: hosts.VerbJoinWorker, Version: current}},
			false, hosts.Repair, "continue-JoinWorker(worker)",
		},
	} {
		o := of("H").observe()
		o.Hosts = append(o.Hosts, test.worker)
		if test.node {
			o.Cluster.Nodes = append(o.Cluster.Nodes, test.worker.Name)
		}
		if d := hosts.Decide(o); d.Outcome != test.exit || steps(d.Actions) != test.steps {
			t.Errorf("%s: %s %s", test.reason, d.Outcome, steps(d.Actions))
		}
		// Whatever a worker is, it speaks for a cluster that is there.
		o = of("E").observe()
		if o.Hosts = append(o.Hosts, test.worker); test.reason != "it lacks" {
			if d := hosts.Decide(o); d.Outcome != hosts.Error {
				t.Errorf("%s, and the control plane is empty: %s %s", test.reason, d.Outcome, steps(d.Actions))
			}
		}
	}
	o := of("H").observe()
	if o.Drift = []string{"labels of cp-0"}; hosts.Decide(o).Outcome != hosts.Update {
		t.Errorf("drift: %+v", hosts.Decide(o))
	}
}
