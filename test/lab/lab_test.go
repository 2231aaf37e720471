// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// user is somebody who looks at the hosts of a lab.
type user struct {
	*testing.T
	lab   *lab.Lab
	known string
}

func newUser(t *testing.T, n int) *user {
	return &user{T: t, lab: lab.New(t, n), known: filepath.Join(t.TempDir(), "known_hosts")}
}

// target returns how a host is reached; its key is kept when it is first seen.
func (u *user) target(host *lab.Host) ssh.Target {
	u.Helper()
	pins, err := ssh.OpenPins(u.known)
	if err != nil {
		u.Fatal(err)
	}
	return ssh.Target{Name: host.Name, Address: host.Address, User: "root", Auth: []cryptossh.AuthMethod{u.lab.Auth()}, Pins: pins}
}

// run runs a script on a host.
func (u *user) run(host *lab.Host, script string) string {
	u.Helper()
	client, err := ssh.Dial(u.Context(), u.target(host))
	if err != nil {
		u.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	result, err := client.Run(u.Context(), ssh.Command{Line: "sh -s", Input: []byte(script)})
	if err != nil || result.Status != 0 {
		u.Fatalf("%s: %v, status %d: %s", host.Name, err, result.Status, result.Errors)
	}
	return string(result.Output)
}

// decide asks all hosts side by side, as root, and returns what is to be done.
func (u *user) decide() hosts.Decision {
	u.Helper()
	all := u.lab.Hosts()
	o := hosts.Observation{ClusterID: "c1", Target: "v1.36.3", Hosts: make([]hosts.Host, len(all))}
	var group errgroup.Group
	for i, host := range all {
		target := u.target(host)
		group.Go(func() error {
			o.Hosts[i] = ask(u.Context(), target)
			return nil
		})
	}
	_ = group.Wait()
	return hosts.Decide(o)
}

// ask asks one host.
func ask(ctx context.Context, target ssh.Target) hosts.Host {
	dialling, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := ssh.Dial(dialling, target)
	var changed *ssh.KeyError
	switch {
	case errors.As(err, &changed):
		return hosts.Host{Name: target.Name, Refused: err.Error()}
	case err != nil:
		return hosts.Host{Name: target.Name, Away: err.Error()}
	}
	defer func() { _ = client.Close() }()
	result, err := client.Run(ctx, ssh.Command{Line: "sh -s", Input: probes.Script, MaxOutput: probes.MaxAnswer})
	if err != nil {
		return hosts.Host{Name: target.Name, Away: err.Error()}
	}
	facts, err := probes.Read(result.Output)
	if err != nil {
		return hosts.Host{Name: target.Name, Refused: err.Error()}
	}
	return facts.Host(target.Name, false)
}

// want checks a decision, and what its message says.
func (u *user) want(exit hosts.Exit, reason hosts.Reason, message string, actions ...string) {
	u.Helper()
	d := u.decide()
	var steps []string
	for _, action := range d.Actions {
		steps = append(steps, string(action.Verb)+" "+action.Host)
	}
	if d.Exit != exit || d.Reason != reason || !strings.Contains(d.Message, message) || strings.Join(steps, ", ") != strings.Join(actions, ", ") {
		u.Errorf("%s %s (%s): %v", d.Exit, d.Reason, d.Message, steps)
	}
}

// Three hosts are asked over real SSH, and what is found decides: when they are empty, when
// one has remains, when one was killed in our own init, when one is cut off, and when one
// was made anew and has another host key.
func TestHostsAreAskedAndDecidedUpon(t *testing.T) {
	t.Parallel()
	u := newUser(t, 3)
	cp := u.lab.Hosts()
	u.want(hosts.Init, "", "makes a cluster of 3 hosts", "Init cp-0", "Join cp-1", "Join cp-2")

	u.run(cp[1], "mkdir -p /etc/kubernetes/pki && echo x > /etc/kubernetes/pki/ca.crt")
	u.want(hosts.Error, hosts.Remains, "cp-1 (/etc/kubernetes/pki)")

	u.run(cp[1], `mkdir -p /var/lib/strata && echo '{"cluster":"c1","action":"Init","version":"v1.36.3"}' > /var/lib/strata/journal`)
	u.want(hosts.Init, "", "it has begun there", "Init cp-1", "Join cp-0", "Join cp-2")
	u.run(cp[1], `echo '{"cluster":"c2","action":"Init","version":"v1.36.3"}' > /var/lib/strata/journal`)
	u.want(hosts.Error, hosts.Foreign, "cp-1 has the journal of another cluster")
	u.run(cp[1], "rm -r /etc/kubernetes/pki /var/lib/strata")

	cp[2].Unplug()
	u.want(hosts.Error, hosts.Unreachable, "cp-2 cannot be reached")
	cp[2].Plug()
	u.want(hosts.Init, "", "", "Init cp-0", "Join cp-1", "Join cp-2")

	cp[0].Kill()
	u.want(hosts.Error, hosts.Unreachable, "cp-0 cannot be reached")
	cp[0].Start()
	u.want(hosts.Error, hosts.Refused, "somebody may be in between")
}

// A host is reached through another one, and what it answers without an end is cut off.
func TestHostThroughAnotherOne(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	bastion, err := ssh.Dial(t.Context(), u.target(cp[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bastion.Close() }()
	client, err := bastion.Through(t.Context(), u.target(cp[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	result, err := client.Run(t.Context(), ssh.Command{Line: "hostname"})
	if err != nil || strings.TrimSpace(string(result.Output)) != "cp-1" {
		t.Errorf("%q, %v", result.Output, err)
	}
	if _, err := client.Run(t.Context(), ssh.Command{Line: "yes"}); !errors.Is(err, ssh.ErrTooMuch) {
		t.Errorf("error %v", err)
	}
	_, err = client.Run(t.Context(), ssh.Command{Line: "sleep 60", Timeout: 500 * time.Millisecond})
	if err == nil || err.Error() != "cp-1: it takes longer than 500ms" {
		t.Errorf("error %v", err)
	}
	// The connection is still good, and nothing is left running.
	err = controlplane.WaitFor(t.Context(), 10*time.Second, func(context.Context) error {
		left := u.run(cp[1], `for p in /proc/[0-9]*; do tr '\0' ' ' <"$p/cmdline" 2>/dev/null; echo; done | grep -cE '^(yes|sleep 60) ' || true`)
		if left = strings.TrimSpace(left); left != "0" {
			return fmt.Errorf("%s commands are left", left)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cp[1].Unplug()
	_, err = client.Run(t.Context(), ssh.Command{Line: "hostname", Timeout: time.Second})
	if err == nil || !strings.HasPrefix(err.Error(), "cp-1: ") {
		t.Errorf("error %v", err)
	}
}
