// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/test/lab"
)

// phase is what kubeadm writes at the beginning of a line, of each of its phases.
var phase = regexp.MustCompile(`(?m)^\[([a-z-]+)\]`)

// start runs the plug-in in the background. What it says is in the text when it has ended.
func (u *user) start(words ...string) (command *exec.Cmd, said *strings.Builder, ended chan error) {
	u.Helper()
	command, said, ended = u.command(words...), &strings.Builder{}, make(chan error, 1)
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		u.Fatal(err)
	}
	go func() { ended <- command.Wait() }()
	return command, said, ended
}

// unseenPhase waits for a phase of kubeadm on a host that was not seen there, and returns
// it; empty where apply has ended before, which must have ended well.
func (u *user) unseenPhase(seen map[string]bool, said *strings.Builder, ended chan error) (host *lab.Host, found string) {
	u.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				u.Fatalf("%v: %s%s", err, said.String(), u.logs())
			}
			return nil, ""
		case <-ticker.C:
		}
		for _, host := range u.lab.Hosts() {
			for _, match := range phase.FindAllStringSubmatch(host.File("/var/lib/strata/log"), -1) {
				if at := host.Name + " " + match[1]; !seen[at] {
					seen[at] = true
					return host, match[1]
				}
			}
		}
	}
}

// Two hosts become a cluster though the host at work is cut off from its power in each
// phase of kubeadm, and boots again with what is on its disk. Each time apply goes on.
func TestClusterIsMadeThoughHostsStopInEveryPhase(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	seen := map[string]bool{}
	for cuts := 0; ; cuts++ {
		if cuts > 60 {
			t.Fatalf("it is not finished after %d cuts: %v", cuts, seen)
		}
		command, said, ended := u.start("apply", "--yes")
		host, found := u.unseenPhase(seen, said, ended)
		if host == nil {
			t.Logf("%d cuts", cuts)
			break
		}
		host.Kill()
		// It would notice by itself, after a while: TestNetworkIsCutInTheMiddleOfAJoin waits.
		_ = command.Process.Kill()
		if err := <-ended; err == nil {
			t.Log("it had ended before it was killed")
		}
		t.Logf("cut off in %s of %s", found, host.Name)
		host.Boot()
	}
	for _, want := range []string{"cp-0 certs", "cp-0 etcd", "cp-0 control-plane-check", "cp-0 addons", "cp-1 download-certs", "cp-1 kubelet-start", "cp-1 etcd", "cp-1 mark-control-plane"} {
		if !seen[want] {
			t.Errorf("it was never cut off in %s: %v", want, seen)
		}
	}
	u.must(0, []string{"plan"}, "Done: there is nothing to do", "cp-0   control-plane   Healthy", "cp-1   control-plane   Healthy")
	if plan := u.plan(); len(plan.Members) != 2 {
		t.Errorf("%+v", plan.Members)
	}
	u.noSecretsInLogs()
}
