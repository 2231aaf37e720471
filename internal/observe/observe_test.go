// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/ssh/sshtest"
)

// says is a host that answers to every script with a text, and a status.
func says(text string, status int) func(string, cryptossh.Channel) int {
	return func(_ string, channel cryptossh.Channel) int {
		_, _ = io.Copy(io.Discard, channel)
		_, _ = io.WriteString(channel, text)
		return status
	}
}

// empty is what an empty host says, whose clock is ahead by a time.
func empty(ahead time.Duration) string {
	return fmt.Sprintf("user=0\nhostname=a\nkernel=6.1.0\nmachine=x86_64\ntime=%d\nos=debian 12\ncgroup=cgroup2fs\nswap=0\nmemory=8000000\nfree=80000000\nend=1\n",
		time.Now().Add(ahead).Unix())
}

// fleet is a cluster of machines that play hosts.
func fleet(t testing.TB, play ...func(string, cryptossh.Channel) int) (*v1alpha1.HostCluster, *machines.Machines) {
	t.Helper()
	user := sshtest.NewKey(t)
	text := &strings.Builder{}
	text.WriteString("apiVersion: kraan.io/v1alpha1\nkind: HostCluster\nmetadata: {name: edge, namespace: fleet}\nspec:\n  version: v1.36.3\n  controlPlane:\n")
	for i, run := range play {
		machine := sshtest.New(t, run)
		machine.User = user
		host, port, err := net.SplitHostPort(machine.Address)
		if err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			text.WriteString("  workers:\n")
		}
		fmt.Fprintf(text, "  - {name: h-%d, address: 10.0.%d.%d, sshAddress: %s, sshPort: %s}\n", i, i/200, 10+i%200, host, port)
	}
	cluster, err := hostclusters.Read(t.Context(), "hosts.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	pins, err := ssh.OpenPins(filepath.Join(t.TempDir(), "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	all := machines.Open(cluster, machines.Access{Auth: []cryptossh.AuthMethod{cryptossh.PublicKeys(user)}, Pins: pins})
	t.Cleanup(all.Close)
	return cluster, all
}

// plan looks at hosts, and returns what would be done.
func plan(t testing.TB, cluster *v1alpha1.HostCluster, all *machines.Machines, limit time.Duration) *hostplans.Plan {
	t.Helper()
	sight, err := observe.Look(t.Context(), observe.Options{Cluster: cluster, Machines: all, HostTime: limit, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return hostplans.New(cluster, sight)
}

// Whatever one host answers, it is named, nothing of it is repeated, nothing is done, and
// the others are seen. A host that has answered wrongly is refused; one that has not
// answered is away.
func TestHostThatMisbehavesIsNamed(t *testing.T) {
	const evil = "\x1b[31mSECRET"
	for name, tc := range map[string]struct {
		run    func(string, cryptossh.Channel) int
		reason hosts.Reason
		want   string
	}{
		"garbage":          {says(evil+strings.Repeat("x", 1000), 0), hosts.Refused, "h-1: it does not answer as a host does: its answer is cut off"},
		"an error":         {says(evil, 3), hosts.Refused, "h-1: it does not answer as a host does: the script that looks at the host ended with 3"},
		"no root":          {says("user=1000\nend=1\n", 0), hosts.Refused, "the script did not run as root"},
		"nothing":          {says("", 0), hosts.Refused, "its answer is cut off"},
		"the half":         {says("user=0\nhostname=a\n", 0), hosts.Refused, "its answer is cut off"},
		"a clock":          {says(empty(time.Hour), 0), hosts.Refused, " apart from those of the other hosts: set it"},
		"a full disk":      {says(strings.Replace(empty(0), "free=80000000", "free=1000", 1), 0), hosts.Refused, "0 MiB are free below /var/lib"},
		"values of others": {says(strings.Replace(empty(0), "debian 12", evil, 1), 0), "", "makes a cluster of 3 hosts"},
		"without an end": {func(_ string, channel cryptossh.Channel) int {
			for {
				if _, err := io.WriteString(channel, strings.Repeat(evil, 1000)); err != nil {
					return -1
				}
			}
		}, hosts.Refused, "h-1: it writes more than it may"},
		"slowly": {func(_ string, channel cryptossh.Channel) int {
			_, _ = io.Copy(io.Discard, channel)
			<-t.Context().Done() // it never answers
			return 0
		}, hosts.ReasonUnreachable, "h-1 cannot be reached"},
		"it hangs up": {func(string, cryptossh.Channel) int { return -1 }, hosts.ReasonUnreachable, "h-1 cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, all := fleet(t, says(empty(0), 0), tc.run, says(empty(time.Second), 0))
			found := plan(t, cluster, all, 2*time.Second)
			if found.Reason != tc.reason || !strings.Contains(found.Message, tc.want) {
				t.Errorf("%s %s: %s", found.Outcome, found.Reason, found.Message)
			}
			if (tc.reason != "") != (len(found.Actions) == 0) {
				t.Errorf("actions %v", found.Actions)
			}
			if said := fmt.Sprintf("%+v", found); strings.Contains(said, "SECRET") || strings.ContainsRune(said, 0x1b) {
				t.Errorf("a host is repeated: %q", said)
			}
			if found.Hosts[0].OS != "debian 12" || found.Hosts[2].OS != "debian 12" {
				t.Errorf("others were not seen: %+v", found.Hosts)
			}
		})
	}
}

// Hosts are asked side by side: none of fifty answers before all have been asked.
func TestManyHostsAreAskedSideBySide(t *testing.T) {
	var asked sync.WaitGroup
	asked.Add(50)
	together := func(line string, channel cryptossh.Channel) int {
		asked.Done()
		asked.Wait()
		return says(empty(0), 0)(line, channel)
	}
	play := make([]func(string, cryptossh.Channel) int, 50)
	for i := range play {
		play[i] = together
	}
	cluster, all := fleet(t, play...)
	if found := plan(t, cluster, all, time.Minute); len(found.Actions) != 50 || found.Outcome != hosts.Init {
		t.Errorf("%s: %s, %d actions", found.Outcome, found.Message, len(found.Actions))
	}
}

func BenchmarkFiftyHosts(b *testing.B) {
	play := make([]func(string, cryptossh.Channel) int, 50)
	for i := range play {
		play[i] = says(empty(0), 0)
	}
	cluster, all := fleet(b, play...)
	for b.Loop() {
		if found := plan(b, cluster, all, time.Minute); len(found.Hosts) != 50 {
			b.Fatal(strconv.Itoa(len(found.Hosts)))
		}
		all.Close() // so that each time they are dialled
	}
}
