// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/terminal"
)

// A plan says of each host what it is, of each action why, and what that does to etcd; on a
// narrow screen, too, and without what a host might have a terminal do.
func TestHostPlanIsShown(t *testing.T) {
	plan := &hostplans.Plan{
		Hosts: []hostplans.Host{
			{Name: "cp-0", Role: hostplans.ControlPlane, Address: "10.0.0.10", Class: hosts.Healthy, Version: "v1.36.3", OS: "debian 12"},
			{Name: "cp-1", Role: hostplans.ControlPlane, Address: "10.0.0.11", Class: hosts.Unreachable, Note: "no route \x1b[31m"},
		},
		Members: []hostplans.Member{{Name: "cp-0", Healthy: true}, {Name: "cp-1"}, {Name: "cp-2", Learner: true}},
		Decision: hosts.Decision{Outcome: hosts.Blocked, Reason: hosts.HostsDown, Message: "cp-1 cannot be reached", Actions: []hosts.Action{{
			Verb: hosts.VerbJoin, Host: "cp-2", Version: "v1.36.3", Continues: true, Reason: "it has begun there",
			Before: &hosts.Ring{Members: 2, Healthy: 1}, After: &hosts.Ring{Members: 3, Healthy: 2},
		}, {Verb: hosts.VerbUpgrade, Host: "cp-0", Version: "v1.37.0", Leads: true, Reason: "it has v1.36.3"}}},
		Warnings: []string{"spec.controlPlane has 2 hosts"}, NotQueried: "nobody answers",
	}
	for _, width := range []int{40, 160} {
		text := &strings.Builder{}
		screen := terminal.Screen{Width: width}
		if err := printing.HostPlan(text, screen, plan); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(strings.Fields(text.String()), " ")
		for _, want := range []string{
			"cp-0", "Healthy", "cp-1", "Unreachable", "Warning: spec.controlPlane has 2 hosts",
			"1. Join cp-2 at v1.36.3 (goes on): it has begun there; etcd 1 of 2 healthy, then 2 of 3",
			"2. Upgrade cp-0 to v1.37.0 with the cluster: it has v1.36.3",
			"Blocked (HostsDown): cp-1 cannot be reached", "The cluster was not asked: nobody answers",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, text)
			}
		}
		if strings.Contains(text.String(), "\x1b") {
			t.Errorf("width %d: a host reaches the terminal: %q", width, text)
		}
		for line := range strings.Lines(text.String()) {
			if len(strings.TrimRight(line, "\n")) > width {
				t.Errorf("width %d: %q is longer", width, line)
			}
		}
		text.Reset()
		if err := printing.HostStatus(text, screen, plan); err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(said, "etcd: cp-0 healthy, cp-1 down, cp-2 learner") {
			t.Errorf("width %d:\n%s", width, text)
		}
	}
}
