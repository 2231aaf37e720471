// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/test/lab"
)

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

	journal := func(cluster string) {
		u.run(cp[1], `mkdir -p /var/lib/strata && echo '{"cluster":"`+cluster+`","action":"Init","version":"v1.36.3"}' > /var/lib/strata/journal`)
	}
	journal("fleet/edge/0123456789")
	u.want(hosts.Init, "", "it has begun there", "Init cp-1", "Join cp-0", "Join cp-2")
	journal("fleet/core/0123456789")
	u.want(hosts.Error, hosts.Foreign, "cp-1 has the journal of another cluster")
	u.run(cp[1], "rm -r /etc/kubernetes/pki /var/lib/strata")

	cp[2].Unplug()
	u.want(hosts.Error, hosts.ReasonUnreachable, "cp-2 cannot be reached")
	cp[2].Plug()
	u.want(hosts.Init, "", "", "Init cp-0", "Join cp-1", "Join cp-2")

	cp[0].Kill()
	u.want(hosts.Error, hosts.ReasonUnreachable, "cp-0 cannot be reached")
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
}

// A user who is not root needs sudo without a password; one without is told, by the host's
// name, and nothing is done anywhere.
func TestUserNeedsSudo(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	u.edit("name: cp-1,", "name: cp-1, sshUser: "+lab.Sudoer+",")
	u.want(hosts.Init, "", "", "Init cp-0", "Join cp-1")
	u.run(u.lab.Hosts()[1], "echo '"+lab.Sudoer+" ALL=(ALL) ALL' >/etc/sudoers")
	u.want(hosts.Error, hosts.Refused, "cp-1: its user needs sudo without a password")
	u.must(2, []string{"apply", "--yes"}, "cp-1: its user needs sudo without a password")
	u.run(u.lab.Hosts()[1], "rm /etc/sudoers")
	u.want(hosts.Error, hosts.Refused, "cp-1: its user needs sudo without a password")
	if journal := u.lab.Hosts()[0].File("/var/lib/strata/journal"); journal != "" {
		t.Errorf("something was begun: %s", journal)
	}
}
