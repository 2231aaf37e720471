// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/probes"
)

// What a host says of its lock is believed where it is said as the script says it.
func TestLocksAreRead(t *testing.T) {
	for said, want := range map[string]struct{ left, err string }{
		"locked \n":                        {"", ""},
		"locked root@a, since yesterday\n": {"root@a, since yesterday", ""},
		"held root@a, since yesterday\n":   {"", "cp-0 is being worked on: root@a, since yesterday. Wait until that has ended"},
		"held \n":                          {"", "cp-0 is being worked on: somebody who has not said who"},
		"held \x1b[31mred\n":               {"", "cp-0 is being worked on: "},
		"":                                 {"", "cannot lock cp-0: it does not answer as a host does"},
		"sudo: a password is required\n":   {"", "cannot lock cp-0"},
	} {
		left, err := asLocked("cp-0", said)
		if left != want.left || (err == nil) != (want.err == "") || err != nil && (!strings.Contains(err.Error(), want.err) || strings.Contains(err.Error(), "\x1b")) {
			t.Errorf("%q: %q, %v", said, left, err)
		}
	}
}

// Of what a script writes, only lines of ours are passed on, in pieces as they come.
func TestProgressPassesOnOurLines(t *testing.T) {
	var heard []string
	p := &progress{host: "cp-0", report: func(e Event) { heard = append(heard, e.Message) }}
	for _, piece := range []string{"strata: runs ", "kubeadm\ngarbage\nstra", "ta: \x1b[2Jdone\n", strings.Repeat("x", 10000), "\nstrata: failed: no disk\n", "strata: not finished"} {
		if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := strings.Join(heard, "|"); !strings.HasPrefix(got, "runs kubeadm|") || !strings.HasSuffix(got, "done") || strings.Contains(got, "\x1b") || p.failed != "no disk" {
		t.Errorf("%q, failed %q", got, p.failed)
	}
}

// A host is waited for until it stands as its action leaves it; what takes a member out, or
// saves etcd, leaves none.
func TestWhatAnActionLeaves(t *testing.T) {
	plan := &hostplans.Plan{Hosts: []hostplans.Host{{Name: "cp-0", Class: hosts.Empty, Note: "note"}, {Name: "cp-1", Class: hosts.Healthy, Version: "v1.36.3"}}}
	lost := &hostplans.Plan{NotQueried: "no API server is healthy"}
	for name, tc := range map[string]struct {
		plan   *hostplans.Plan
		action hosts.Action
		want   bool
	}{
		"an empty host has not joined":   {plan, hosts.Action{Verb: hosts.VerbJoin, Host: "cp-0"}, false},
		"a healthy one has":              {plan, hosts.Action{Verb: hosts.VerbJoin, Host: "cp-1"}, true},
		"a healthy one is not reset":     {plan, hosts.Action{Verb: hosts.VerbReset, Host: "cp-1"}, false},
		"an empty one is":                {plan, hosts.Action{Verb: hosts.VerbReset, Host: "cp-0"}, true},
		"at another version":             {plan, hosts.Action{Verb: hosts.VerbUpgrade, Host: "cp-1", Version: "v1.36.4"}, false},
		"a member of an empty host":      {plan, hosts.Action{Verb: hosts.VerbRemoveMember, Host: "cp-0"}, true},
		"a Node of no host":              {plan, hosts.Action{Verb: hosts.VerbRemoveNode, Host: "cp-9"}, true},
		"a snapshot":                     {plan, hosts.Action{Verb: hosts.VerbSnapshot}, true},
		"a cluster that does not answer": {lost, hosts.Action{Verb: hosts.VerbRenew, Host: "cp-1"}, false},
		"a reset without a cluster":      {&hostplans.Plan{NotQueried: "x", Hosts: plan.Hosts}, hosts.Action{Verb: hosts.VerbReset, Host: "cp-0"}, true},
	} {
		if _, got := standing(tc.plan, tc.action); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only what was agreed to is done, and the settings of what has come by that.
func TestOnlyWhatWasAgreedToIsDone(t *testing.T) {
	join := hosts.Action{Verb: hosts.VerbJoin, Host: "cp-1", Version: "v1.36.3"}
	w := &worker{agreed: []hosts.Action{join}}
	goesOn, other, remove := join, join, hosts.Action{Verb: hosts.VerbRemoveMember, Host: "cp-1", MemberID: "1"}
	goesOn.Continues, other.Version = true, "v1.35.3"
	for action, want := range map[*hosts.Action]bool{&join: true, &goesOn: true, &other: false, &remove: false, {Verb: hosts.VerbUpdate}: true} {
		if got := w.isAgreed(*action); got != want {
			t.Errorf("%+v: %t", action, got)
		}
	}
}

// A reset takes away what this cluster has left, the first host last; nothing of another
// cluster, nothing unknown that nobody has named, and no member of a cluster that answers.
func TestOnlyOurHostsAreReset(t *testing.T) {
	const id = "fleet/edge/0123456789"
	ours := hosts.Entry{ClusterID: id, Action: hosts.VerbJoin, Ended: true}
	whole := map[string]hosts.Entry{"cp-0": ours, "cp-1": ours, "w-0": ours}
	for name, tc := range map[string]struct {
		change   func(*hostplans.Plan, map[string]hosts.Entry)
		named    []string
		want     string
		mistaken string
	}{
		"all":              {nil, nil, "w-0 cp-1 cp-0", ""},
		"one that is none": {nil, []string{"cp-9"}, "", "there is no host cp-9"},
		"a member":         {nil, []string{"cp-1"}, "", "cp-1 is a member of a cluster that answers"},
		"a worker":         {nil, []string{"w-0"}, "w-0", ""},
		"one is away": {
			func(p *hostplans.Plan, _ map[string]hosts.Entry) {
				p.Hosts[1].Class, p.Hosts[1].Note = hosts.Unreachable, "no route"
			}, nil, "", "cp-1 cannot be reached (no route)",
		},
		"one is empty": {
			func(p *hostplans.Plan, j map[string]hosts.Entry) { p.Hosts[1].Class = hosts.Empty; delete(j, "cp-1") }, nil, "w-0 cp-0", "",
		},
		"of another cluster": {
			func(_ *hostplans.Plan, j map[string]hosts.Entry) {
				j["cp-1"] = hosts.Entry{ClusterID: "fleet/core/0123456789"}
			}, nil, "", "cp-1 has the journal of another cluster",
		},
		"named, and of another cluster": {
			func(p *hostplans.Plan, j map[string]hosts.Entry) {
				p.Members, j["cp-1"] = nil, hosts.Entry{ClusterID: "fleet/core/0123456789"}
			}, []string{"cp-1"}, "", "cp-1 has the journal of another cluster",
		},
		"unknown": {
			func(p *hostplans.Plan, j map[string]hosts.Entry) { p.Hosts[1].Class = hosts.Dirty; delete(j, "cp-1") }, nil, "", "cp-1 has something that no action of this cluster has left",
		},
		"unknown, and named": {
			func(p *hostplans.Plan, j map[string]hosts.Entry) {
				p.Hosts[1].Class, p.Members = hosts.Dirty, nil
				delete(j, "cp-1")
			}, []string{"cp-1"}, "cp-1", "",
		},
	} {
		plan := &hostplans.Plan{ID: id, Hosts: []hostplans.Host{{Name: "cp-0"}, {Name: "cp-1"}, {Name: "w-0"}}, Members: []hostplans.Member{{Name: "cp-0"}, {Name: "cp-1"}}}
		journals := map[string]hosts.Entry{}
		for host, entry := range whole {
			journals[host] = entry
		}
		if tc.change != nil {
			tc.change(plan, journals)
		}
		chosen, err := Resettable(plan, journals, tc.named)
		if got := strings.Join(chosen, " "); err == nil && got != tc.want || (err == nil) != (tc.mistaken == "") || err != nil && !strings.Contains(err.Error(), tc.mistaken) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// What hosts are handed has the form that kubeadm and the journal want, and is never the
// same.
func TestSecretsHaveTheirForm(t *testing.T) {
	for form, make := range map[string]func() string{
		`^[a-z0-9]{6}\.[a-z0-9]{16}$`: newToken,
		`^[0-9a-f]{64}$`:              newCertificateKey,
		`^fleet/edge/[0-9a-f]{10}$`:   func() string { return newID("fleet", "edge") },
	} {
		first, second := make(), make()
		if !regexp.MustCompile(form).MatchString(first) || first == second {
			t.Errorf("%s: %s, %s", form, first, second)
		}
	}
	if _, err := authorityHash([]byte("none")); err == nil {
		t.Error("garbage has a hash")
	}
	if err := error(&LockedError{Where: "cp-0", Holder: "root"}); !errors.As(err, new(*LockedError)) {
		t.Error(err)
	}
}

// A host on which an action has ended a moment ago gets its time to become healthy, by its
// own clock; one on which none has been never does.
func TestHostsThatWereJustWorkedOn(t *testing.T) {
	now := time.Unix(100_000, 0)
	w := &worker{sight: &observe.Sight{Facts: map[string]probes.Facts{
		"just": {Time: now, Worked: now.Add(-10 * time.Second)}, "long": {Time: now, Worked: now.Add(-2 * time.Minute)}, "never": {Time: now},
	}}}
	if found := w.justWorked(); len(found) != 1 || !found["just"] {
		t.Errorf("%v", found)
	}
}
