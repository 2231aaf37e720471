// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/lab"
)

// forget takes the key of a host out of those that are known: it is another machine now.
func (u *user) forget(host *lab.Host) {
	u.Helper()
	data, err := os.ReadFile(u.known())
	if err != nil {
		u.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, host.IP()+" ") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(u.known(), []byte(strings.Join(kept, "")), 0o600); err != nil {
		u.Fatal(err)
	}
}

// mark writes a ConfigMap into the cluster.
func (u *user) mark(name string) {
	u.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"is": "here"}}
	if _, err := u.client().CoreV1().ConfigMaps("default").Create(u.Context(), object, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
}

// marked checks whether a ConfigMap is in the cluster.
func (u *user) marked(name string, want bool) {
	u.Helper()
	_, err := u.client().CoreV1().ConfigMaps("default").Get(u.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) || (err == nil) != want {
		u.Errorf("ConfigMap %s: %v, and it is to be there: %t", name, err, want)
	}
}

// snapshots returns how many files of snapshots there are.
func (u *user) snapshots() int {
	u.Helper()
	files, err := filepath.Glob(filepath.Join(u.dir, "snapshots", "*.db.age"))
	if err != nil {
		u.Fatal(err)
	}
	return len(files)
}

// eachStep runs a command that is killed, by SIGKILL, at every step that it reports, until it
// ends with an exit code.
func (u *user) eachStep(code int, words ...string) {
	u.Helper()
	seen, kills := map[string]bool{}, 0
	for u.until(seen, code, words...) {
		kills++
		if kills > 60 {
			u.Fatalf("it is not finished after %d kills: %v", kills, seen)
		}
	}
	u.Logf("%s: %d kills", strings.Join(words, " "), kills)
}

// Hosts that are gone are replaced, etcd is saved before its members change, and comes back
// from what was saved when its majority is lost. Every command is killed at every step.
func TestHostsAreReplacedAndEtcdIsRestored(t *testing.T) {
	t.Parallel()
	u := newUser(t, 4)
	cp := u.lab.Hosts()
	u.write("edge", cp[0], cp[1], cp[2])
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(u.dir, "edge.agekey")
	if err := os.WriteFile(identity, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.mark("first")

	// One is gone, and another one is in its place.
	cp[2].Kill()
	u.want(hosts.Blocked, hosts.HostsDown, "replace them one by one in this order: cp-2")
	u.must(1, []string{"replace", "cp-0", "--yes"}, "cp-0 is healthy, and is not replaced")
	u.write("edge", cp[0], cp[1], cp[3])
	u.want(hosts.Blocked, hosts.SnapshotFirst, "members of etcd do not change (RemoveMember cp-2, Join cp-3) before it is saved")
	const place = "  snapshots: {directory: snapshots}\n"
	u.add(place)
	u.must(2, []string{"plan"}, "Warning: spec.snapshots has no encryption: every Secret of the cluster is in clear in snapshots")
	u.edit(place, "  snapshots: {directory: snapshots, keep: 3, encryption: {age: ["+key.Recipient().String()+"]}}\n")
	u.want(hosts.Repair, "", "brings the cluster to what the manifest lists", "Snapshot", "RemoveMember cp-2", "Join cp-3")
	u.eachStep(0, "apply", "--yes")
	if plan := u.plan(); plan.Outcome != hosts.Done || len(plan.Members) != 3 || u.snapshots() == 0 {
		t.Fatalf("%+v, %d snapshots", plan, u.snapshots())
	}

	// One is made anew, and has nothing of the cluster any more.
	cp[1].Kill()
	cp[1].Start()
	u.must(2, []string{"plan"}, "Error (Refused): cp-1: "+cp[1].Address+" has the host key ")
	u.forget(cp[1])
	u.want(hosts.Repair, "", "", "Snapshot", "RemoveMember cp-1", "Join cp-1")
	u.must(0, []string{"apply", "--yes"}, "has saved etcd with ", "cp-1 leaves etcd and the cluster", "Done: ")

	// One is broken, and can be reached.
	u.run(cp[3], "systemctl stop kubelet")
	u.must(2, []string{"plan"}, "cp-3 is broken. Repair them, or replace them one by one in this order: cp-3")
	u.must(0, []string{"replace", "cp-3", "--yes"}, "RemoveMember cp-3", "Reset cp-3", "cp-3 has joined", "Done: ")
	u.must(0, []string{"plan"}, "Done: ")
	if n := u.snapshots(); n != 3 {
		t.Errorf("%d snapshots, and 3 are kept", n)
	}
	u.loseMajority(identity)
	u.goBack(identity)
	u.noSecretsInLogs()
}

// loseMajority has two of three hosts go, and the cluster come back on the third.
func (u *user) loseMajority(identity string) {
	u.Helper()
	cp := u.lab.Hosts()
	u.mark("second")
	u.must(0, []string{"etcd", "snapshot"}, " keys at revision ")
	list := u.command("etcd", "list")
	list.Args = list.Args[:len(list.Args)-4] // it asks no host
	if out, err := list.CombinedOutput(); err != nil || strings.Count(string(out), ".db.age") != 3 || !strings.HasPrefix(string(out), "TAKEN ") {
		u.Errorf("%v: %s", err, out)
	}
	u.must(1, []string{"etcd", "restore", "--confirm", "fleet/edge"}, "the cluster answers: kubectl strata hosts apply repairs it")
	u.mark("third")
	cp[1].Kill()
	cp[3].Kill()
	u.must(2, []string{"apply", "--yes"}, "Error (QuorumLost): no API server is healthy on cp-0: bring them back, or restore the cluster from a snapshot")
	restore := []string{"etcd", "restore", "--confirm", "fleet/edge"}
	u.must(1, restore, "cp-1 cannot be reached: with what it has of etcd it must not come back beside the restored cluster")
	restore = append(restore, "--without", "cp-1,cp-3")
	u.must(1, restore, "the snapshot is encrypted: name the file with your key of age with --identity")
	u.must(1, append(restore, "--identity", identity, "--host", "cp-1"), "the cluster cannot begin on cp-1: it can on cp-0")
	u.must(1, []string{"etcd", "restore", "--without", "cp-1,cp-3", "--identity", identity}, "give --confirm fleet/edge")
	u.saysWhatIsLost(restore, identity)
	u.marked("first", true)
	u.marked("second", true)
	u.marked("third", false)
	// Other machines are in their places, and the cluster is whole again.
	for _, host := range []*lab.Host{cp[1], cp[3]} {
		host.Start()
		u.forget(host)
	}
	u.must(0, []string{"apply", "--yes"}, "cp-1 has no Node of before any more", "cp-1 has joined", "cp-3 has joined", "Done: ")
	if plan := u.plan(); len(plan.Members) != 3 {
		u.Errorf("%+v", plan.Members)
	}
}

// saysWhatIsLost restores, killed at every step, and checks what is said to be lost.
func (u *user) saysWhatIsLost(restore []string, identity string) {
	u.Helper()
	out := u.must(1, append(restore, "--identity", identity, "--confirm", "fleet/other"), "and begins on cp-0.", "cp-1, cp-3: must not come back as it was.")
	if newer := regexp.MustCompile(`Etcd on cp-0 is at revision [0-9]+\. Newer there, and lost: .*\b1 configmaps\b`); !newer.MatchString(strings.Join(strings.Fields(out), " ")) {
		u.Errorf("it does not say what is lost:\n%s", out)
	}
	u.Log(out)
	// One that is killed at its end has a cluster that answers.
	u.eachStep(2, append(restore, "--identity", identity, "--although-it-answers")...)
	u.must(2, []string{"plan"}, "cp-1 cannot be reached: ")
}

// goBack has a cluster of three hosts that answers go back.
func (u *user) goBack(identity string) {
	u.Helper()
	u.mark("fourth")
	u.must(0, []string{"etcd", "restore", "--confirm", "fleet/edge", "--identity", identity, "--although-it-answers"}, "cp-1, cp-3: reset, and joined again.", "Done: ")
	u.marked("second", true)
	u.marked("fourth", false)
	u.must(0, []string{"plan"}, "Done: ")
	if plan := u.plan(); len(plan.Members) != 3 {
		u.Errorf("%+v", plan.Members)
	}
	for _, host := range []*lab.Host{u.lab.Hosts()[1], u.lab.Hosts()[3]} {
		if kept := host.Files("/var/lib/strata/etcd-*/snap/db"); len(kept) == 0 {
			u.Errorf("%s has not kept what its etcd had", host.Name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(u.dir, "snapshots", ".*")); err != nil || len(left) > 0 {
		u.Errorf("runs that were killed have left what was saved in clear: %v (%v)", left, err)
	}
}
