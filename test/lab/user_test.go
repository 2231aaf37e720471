// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
	"github.com/strata-project/strata/test/strata"
)

// user is somebody who makes a cluster of the hosts of a lab.
type user struct {
	testing.TB
	lab      *lab.Lab
	dir      string
	manifest string
	// packages are where hosts get theirs, where they do.
	packages *repository
}

// newUser makes hosts, and a manifest of all of them.
func newUser(t testing.TB, n int) *user {
	t.Helper()
	return userOf(t, lab.New(t, n))
}

// userOf makes a manifest of the hosts of a lab.
func userOf(t testing.TB, l *lab.Lab) *user {
	t.Helper()
	u := &user{TB: t, lab: l, dir: t.TempDir()}
	u.manifest = filepath.Join(u.dir, "hosts.yaml")
	u.write("edge", u.lab.Hosts()...)
	return u
}

// write writes a manifest with hosts of the control plane. The machine that the lab runs on
// may have the first version of control groups.
func (u *user) write(name string, control ...*lab.Host) {
	u.Helper()
	text := &strings.Builder{}
	fmt.Fprintf(text, "apiVersion: kraan.io/v1alpha1\nkind: HostCluster\nmetadata: {name: %s, namespace: fleet}\nspec:\n  version: v1.36.3\n  controlPlane:\n", name)
	for _, host := range control {
		text.WriteString(listed(host))
	}
	u.save(text.String())
}

// listed is a host in a manifest.
func listed(host *lab.Host) string {
	return fmt.Sprintf("  - {name: %s, address: %s, kubelet: {cgroupV1: true}}\n", host.Name, host.IP())
}

func (u *user) save(manifest string) {
	u.Helper()
	if err := os.WriteFile(u.manifest, []byte(manifest), 0o600); err != nil {
		u.Fatal(err)
	}
}

// read returns the manifest.
func (u *user) read() string {
	u.Helper()
	data, err := os.ReadFile(u.manifest)
	if err != nil {
		u.Fatal(err)
	}
	return string(data)
}

// edit replaces a text in the manifest, which must be there.
func (u *user) edit(from, to string) {
	u.Helper()
	is := u.read()
	if !strings.Contains(is, from) {
		u.Fatalf("no %q in %s", from, is)
	}
	u.save(strings.Replace(is, from, to, 1))
}

// add adds a text to the end of the manifest.
func (u *user) add(text string) {
	u.Helper()
	u.save(u.read() + text)
}

// known is the file of host keys that were seen.
func (u *user) known() string { return filepath.Join(u.dir, "known_hosts") }

// target returns how a host is reached; its key is kept when it is first seen.
func (u *user) target(host *lab.Host) ssh.Target {
	u.Helper()
	pins, err := ssh.OpenPins(u.known())
	if err != nil {
		u.Fatal(err)
	}
	return ssh.Target{Name: host.Name, Address: host.Address, User: "root", Auth: []cryptossh.AuthMethod{u.lab.Auth()}, Pins: pins}
}

// run runs a script on a host, which must succeed.
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

// built has the plug-in, which is built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "strata-lab-")
	if err != nil {
		return "", err
	}
	return strata.BuildPlugin(context.Background(), dir)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// command is the plug-in about the manifest: its own words first.
func (u *user) command(words ...string) *exec.Cmd {
	u.Helper()
	program, err := built()
	if err != nil {
		u.Fatal(err)
	}
	args := append([]string{"hosts"}, words...)
	command := exec.CommandContext(u.Context(), program, append(args, "--ssh-key", u.lab.KeyFile(), "--known-hosts", u.known())...)
	command.Dir = u.dir // with hosts.yaml
	command.Env = append(os.Environ(), "HTTPS_PROXY=http://192.0.2.1:3128", "https_proxy=http://192.0.2.1:3128")
	return command
}

// say runs the plug-in, and returns all that it says, and its exit code.
func (u *user) say(words ...string) (string, int) {
	u.Helper()
	out, err := u.command(words...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.Fatal(err)
	}
	if exit == nil {
		return string(out), 0
	}
	return string(out), exit.ExitCode()
}

// must runs the plug-in, which must end with an exit code and say all of the texts.
func (u *user) must(code int, words []string, texts ...string) string {
	u.Helper()
	out, got := u.say(words...)
	if got != code {
		u.Fatalf("kubectl strata hosts %s: exit code %d, want %d:\n%s%s", strings.Join(words, " "), got, code, out, u.logs())
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			u.Errorf("kubectl strata hosts %s does not say %q:\n%s", strings.Join(words, " "), text, out)
		}
	}
	return out
}

// logs are the ends of what programs have written on the hosts.
func (u *user) logs() string {
	text := &strings.Builder{}
	for _, host := range u.lab.Hosts() {
		for _, file := range []string{"/var/lib/strata/journal", "/var/lib/strata/log", "/var/lib/lab/kubelet.log", "/var/lib/lab/kube-apiserver.log", "/var/lib/lab/etcd.log"} {
			content := host.File(file)
			fmt.Fprintf(text, "\n--- %s %s\n%s", host.Name, file, content[max(0, len(content)-1500):])
		}
		for file, content := range host.Files("/var/log/pods/*/*/*.log") {
			fmt.Fprintf(text, "\n--- %s %s\n%s", host.Name, file, content[max(0, len(content)-1500):])
		}
	}
	return text.String()
}

// awaitFile waits until a file of a host has a text.
func (u *user) awaitFile(host *lab.Host, path, text string) {
	u.Helper()
	err := controlplane.WaitFor(u.Context(), time.Minute, func(context.Context) error {
		if !strings.Contains(host.File(path), text) {
			return fmt.Errorf("%s of %s has no %q", path, host.Name, text)
		}
		return nil
	})
	if err != nil {
		u.Fatalf("%v%s", err, u.logs())
	}
}

// plan returns what would be done.
func (u *user) plan() hostplans.Plan {
	u.Helper()
	command := u.command("plan", "-o", "json")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		u.Fatal(err)
	}
	var plan hostplans.Plan
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		u.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	return plan
}

// want checks what would be done, and what the plan says.
func (u *user) want(exit hosts.Outcome, reason hosts.Reason, message string, actions ...string) {
	u.Helper()
	plan := u.plan()
	var steps []string
	for _, action := range plan.Actions {
		steps = append(steps, strings.TrimSpace(string(action.Verb)+" "+action.Host))
	}
	if plan.Outcome != exit || plan.Reason != reason || !strings.Contains(plan.Message, message) || strings.Join(steps, ", ") != strings.Join(actions, ", ") {
		u.Errorf("%s %s (%s): %v", plan.Outcome, plan.Reason, plan.Message, steps)
	}
}
