// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/terminal"
)

var classes = map[hosts.Class]terminal.Role{
	hosts.Healthy:     terminal.Good,
	hosts.Empty:       terminal.Busy,
	hosts.InProgress:  terminal.Warning,
	hosts.Dirty:       terminal.Warning,
	hosts.Broken:      terminal.Bad,
	hosts.Unreachable: terminal.Bad,
}

// HostPlan writes for people what the hosts of a cluster are, and what would be done.
func HostPlan(out io.Writer, screen terminal.Screen, p *hostplans.Plan) error {
	if err := HostTable(out, screen, p); err != nil {
		return err
	}
	fmt.Fprintln(out)
	say := func(text, indent string) {
		for _, line := range screen.Wrap(terminal.Safe(text), indent) {
			fmt.Fprintln(out, line)
		}
	}
	for _, warning := range p.Warnings {
		say("Warning: "+warning, "  ")
	}
	for i, action := range p.Actions {
		say(fmt.Sprintf("%2d. %s", i+1, HostAction(action)), "    ")
	}
	for i, step := range p.Steps {
		say(fmt.Sprintf("%2d. %s", len(p.Actions)+i+1, step), "    ")
	}
	if p.Acts() || len(p.Warnings) > 0 {
		fmt.Fprintln(out)
	}
	if p.NotQueried != "" {
		say("The cluster was not asked: "+p.NotQueried, "  ")
	}
	heading := string(p.Outcome)
	if p.Reason != "" {
		heading += " (" + string(p.Reason) + ")"
	}
	say(heading+": "+p.Message, "  ")
	return nil
}

// HostTable writes a line for each host.
func HostTable(out io.Writer, screen terminal.Screen, p *hostplans.Plan) error {
	columns := []terminal.Column{
		{Name: "HOST"},
		{Name: "ROLE", Expendable: 3},
		{Name: "STATE", Role: func(cell string) terminal.Role { return classes[hosts.Class(cell)] }},
		{Name: "VERSION"},
		{Name: "ADDRESS", Expendable: 2},
		{Name: "SYSTEM", Expendable: 4},
		{Name: "CONTAINERD", Expendable: 5},
		{Name: "NOTE"},
	}
	rows := make([][]string, len(p.Hosts))
	for i, host := range p.Hosts {
		rows[i] = []string{
			host.Name, host.Role, string(host.Class), cmp.Or(host.Version, "-"), host.Address, cmp.Or(host.OS, "-"), cmp.Or(host.Containerd, "-"), host.Note,
		}
	}
	return screen.Table(out, columns, rows)
}

// HostAction says in a line what an action does, and why.
func HostAction(action hosts.Action) string {
	parts := []string{string(action.Verb)}
	if action.Host != "" {
		parts = append(parts, action.Host)
	}
	switch {
	case action.Version == "":
	case action.Verb == hosts.VerbUpgrade:
		parts = append(parts, "to", action.Version)
	default:
		parts = append(parts, "at", action.Version)
	}
	if action.Leads {
		parts = append(parts, "with the cluster")
	}
	if action.Continues {
		parts = append(parts, "(goes on)")
	}
	text := strings.Join(parts, " ") + ": " + action.Reason
	if action.Before != nil && action.After != nil {
		text += fmt.Sprintf("; etcd %d of %d healthy, then %d of %d", action.Before.Healthy, action.Before.Members, action.After.Healthy, action.After.Members)
	}
	return text
}

// HostStatus writes for people how the hosts and their cluster are.
func HostStatus(out io.Writer, screen terminal.Screen, p *hostplans.Plan) error {
	if err := HostTable(out, screen, p); err != nil {
		return err
	}
	fmt.Fprintln(out)
	say := func(format string, values ...any) {
		for _, line := range screen.Wrap(terminal.Safe(fmt.Sprintf(format, values...)), "  ") {
			fmt.Fprintln(out, line)
		}
	}
	if len(p.Members) > 0 {
		var members []string
		for _, each := range p.Members {
			state := "healthy"
			switch {
			case each.Learner:
				state = "learner"
			case !each.Healthy:
				state = "down"
			}
			members = append(members, each.Name+" "+state)
		}
		say("etcd: %s", strings.Join(members, ", "))
	}
	for _, warning := range p.Warnings {
		say("Warning: %s", warning)
	}
	if p.NotQueried != "" {
		say("The cluster was not asked: %s", p.NotQueried)
	}
	say("%s: %s", p.Outcome, p.Message)
	return nil
}
