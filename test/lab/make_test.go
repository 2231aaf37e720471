// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/lab"
)

// step is what apply says of a host: the time, and then what is done.
var step = regexp.MustCompile(`^[0-9:]{8} (.*)$`)

// moment is what is another text each time: until when, how much, and when.
var moment = regexp.MustCompile(` \(until .*| with [0-9]+ keys .*|[0-9]{8}T[0-9]{6}Z.*|[0-9]{4}-[0-9]{2}-[0-9]{2}T.*`)

// applyUntil runs apply and kills it, by SIGKILL, as soon as it says something that was not
// seen before. It tells whether it was killed; otherwise it must have ended well.
func (u *user) applyUntil(seen map[string]bool, words ...string) (killed bool) {
	u.Helper()
	return u.until(seen, 0, append([]string{"apply", "--yes"}, words...)...)
}

// until runs a command as applyUntil does, which otherwise ends with an exit code.
func (u *user) until(seen map[string]bool, code int, words ...string) (killed bool) {
	u.Helper()
	command := u.command(words...)
	out, in := io.Pipe()
	command.Stdout, command.Stderr = in, in
	if err := command.Start(); err != nil {
		u.Fatal(err)
	}
	var said strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			found := step.FindStringSubmatch(lines.Text())
			if killed || found == nil || strings.Contains(found[1], "waits") {
				continue
			}
			said := moment.ReplaceAllString(found[1], "")
			if seen[said] {
				continue
			}
			seen[said], killed = true, true
			_ = command.Process.Kill()
		}
	}()
	err := command.Wait()
	_ = in.Close()
	<-done
	u.Logf("killed: %v\n%s", killed, said.String())
	if !killed && command.ProcessState.ExitCode() != code {
		u.Fatalf("%v: %s%s", err, said.String(), u.logs())
	}
	return killed
}

// Two empty hosts become a cluster, with the real kubeadm, while apply is killed at every
// step that it reports: it goes on each time where it was, and nothing is begun anew. After
// that there is nothing to do.
func TestClusterIsMadeThoughApplyIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	u.edit("name: cp-1,", "name: cp-1, sshUser: "+lab.Sudoer+",")
	seen := map[string]bool{}
	kills := 0
	for u.applyUntil(seen) {
		kills++
		if kills > 40 {
			t.Fatalf("it is not finished after %d kills: %v", kills, seen)
		}
	}
	// In the init, in the join, and at the end. What is said just before a kill may have been begun
	// on the host all the same, and is then waited for and not said again.
	if kills < 3 {
		t.Errorf("it was killed %d times: %v", kills, seen)
	}
	u.must(0, []string{"plan"}, "Done: there is nothing to do", "cp-0   control-plane   Healthy", "cp-1   control-plane   Healthy")
	u.must(0, []string{"apply", "--yes"}, "Done: there is nothing to do")
	for _, host := range u.lab.Hosts() {
		journal := host.File("/var/lib/strata/journal")
		if ids := regexp.MustCompile(`"cluster":"([^"]*)"`).FindAllStringSubmatch(journal, -1); len(ids) == 0 || strings.Count(journal, ids[0][0]) != len(ids) {
			t.Errorf("%s has been of several clusters: %s", host.Name, journal)
		}
	}
	u.noSecretsInLogs()
	if plan := u.plan(); len(plan.Members) != 2 || plan.Outcome != hosts.Done {
		t.Errorf("%+v", plan)
	}
}

// secret is what kubeadm calls a token, or a key for its certificates.
var secret = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\b[0-9a-f]{64}\b|BEGIN [A-Z ]*PRIVATE KEY`)

// noSecretsInLogs checks what is left on the hosts of what programs have written.
func (u *user) noSecretsInLogs() {
	u.Helper()
	for _, host := range u.lab.Hosts() {
		for _, file := range []string{"/var/lib/strata/log", "/var/lib/strata/log.1", "/var/lib/strata/journal"} {
			if found := secret.FindString(host.File(file)); found != "" {
				u.Errorf("%s of %s has a secret: %s", file, host.Name, found)
			}
		}
	}
}
