// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/ssh/sshtest"
)

// open returns the machines of a cluster of one host, which a server plays.
func open(t *testing.T, user string, bastion, host *sshtest.Machine) *machines.Machines {
	t.Helper()
	at := func(m *sshtest.Machine) (string, int32) {
		address, port, err := net.SplitHostPort(m.Address)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return address, int32(number)
	}
	cluster := &v1alpha1.HostCluster{}
	address, port := at(host)
	cluster.Spec.ControlPlane = []v1alpha1.ClusterHost{{Name: "cp-0", Address: "10.0.0.10", SSHAddress: address, SSHPort: port, SSHUser: user}}
	access := machines.Access{Auth: []cryptossh.AuthMethod{cryptossh.PublicKeys(host.User)}}
	if bastion != nil {
		address, port := at(bastion)
		cluster.Spec.SSH.Bastion = &v1alpha1.HostBastion{Address: address, Port: port, User: "jump"}
		access.BastionAuth = []cryptossh.AuthMethod{cryptossh.PublicKeys(bastion.User)}
	}
	hostclusters.Default(cluster)
	var err error
	if access.Pins, err = ssh.OpenPins(filepath.Join(t.TempDir(), "known_hosts")); err != nil {
		t.Fatal(err)
	}
	all := machines.Open(cluster, access)
	t.Cleanup(all.Close)
	return all
}

// plays is a machine whose commands say what they are, and end with a status.
func plays(t *testing.T, status int, errs string) *sshtest.Machine {
	t.Helper()
	return sshtest.New(t, func(line string, channel cryptossh.Channel) int {
		_, _ = io.Copy(io.Discard, channel)
		if errs != "" {
			_, _ = io.WriteString(channel.Stderr(), errs)
		} else {
			_, _ = io.WriteString(channel, line)
		}
		return status
	})
}

// A host is logged in to once, through the bastion with its own key, and again when its
// connection was forgotten.
func TestHostIsReachedThroughTheBastion(t *testing.T) {
	bastion, host := plays(t, 0, ""), plays(t, 0, "")
	all := open(t, "root", bastion, host)
	for range 3 {
		result, err := all.Run(t.Context(), "cp-0", ssh.Command{})
		if err != nil || string(result.Output) != "sh -s" {
			t.Fatalf("%q, %v", result.Output, err)
		}
	}
	all.Forget("cp-0")
	if _, err := all.Run(t.Context(), "cp-0", ssh.Command{}); err != nil {
		t.Fatal(err)
	}
	if jumps, logins := bastion.Logins.Load(), host.Logins.Load(); jumps != 1 || logins != 2 {
		t.Errorf("%d logins to the bastion, %d to the host", jumps, logins)
	}
	if _, err := all.Run(t.Context(), "cp-9", ssh.Command{}); err == nil || !strings.Contains(err.Error(), "there is no host cp-9") {
		t.Errorf("error %v", err)
	}
}

// A bastion that is away is named, and so is one that lets nobody in.
func TestBastionThatLetsNobodyIn(t *testing.T) {
	bastion, host := plays(t, 0, ""), plays(t, 0, "")
	bastion.User = sshtest.NewKey(t)
	all := open(t, "root", bastion, host)
	bastion.User = sshtest.NewKey(t)
	if _, err := all.Run(t.Context(), "cp-0", ssh.Command{}); err == nil || !strings.Contains(err.Error(), "the bastion does not let jump in") {
		t.Errorf("error %v", err)
	}
	if host.Logins.Load() != 0 {
		t.Error("the host was reached")
	}
}

// sudo that refuses is told from a script that fails.
func TestSudoThatRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		errs   string
		sudo   bool
	}{
		"a password":         {1, "sudo: a password is required\n", true},
		"no sudo":            {127, "sh: 1: sudo: not found\n", true},
		"the script fails":   {1, "cat: no such file\n", false},
		"it fails otherwise": {3, "sudo: of the script's own\n", false},
	} {
		_, err := open(t, "core", nil, plays(t, tc.status, tc.errs)).Run(t.Context(), "cp-0", ssh.Command{})
		if got := errors.Is(err, machines.ErrSudo); got != tc.sudo {
			t.Errorf("%s: %v", name, err)
		}
		// root needs none.
		if _, err := open(t, "root", nil, plays(t, tc.status, tc.errs)).Run(t.Context(), "cp-0", ssh.Command{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
