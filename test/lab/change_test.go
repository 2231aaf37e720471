// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// nodes returns the names of the Nodes.
func (u *user) nodes() string {
	u.Helper()
	list, err := u.client().CoreV1().Nodes().List(u.Context(), metav1.ListOptions{})
	if err != nil {
		u.Fatal(err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return strings.Join(names, " ")
}

// A cluster of five hosts becomes one of three, one member after another, though apply is
// killed at every step; workers come and go, also one that is gone for good.
func TestClusterShrinksFromFiveToThree(t *testing.T) {
	t.Parallel()
	u := newUser(t, 5)
	cp := u.lab.Hosts()
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	five := u.read()
	u.write("edge", cp[:3]...)
	three := u.read()
	u.want(hosts.Blocked, hosts.SnapshotFirst, "RemoveMember cp-3, RemoveMember cp-4")
	u.must(2, []string{"plan", "--without-snapshot"}, "RemoveMember cp-3: its host is not in the manifest; etcd 5 of 5 healthy, then 4 of 4", "then 3 of 3",
		"cp-3 leaves, and has the keys of the cluster: reset it with the manifest of before")
	u.eachStep(0, "apply", "--yes", "--without-snapshot")
	if plan := u.plan(); len(plan.Members) != 3 || u.nodes() != "cp-0 cp-1 cp-2" {
		t.Fatalf("%+v, Nodes %s", plan.Members, u.nodes())
	}

	// One that has left gives the keys of the cluster up, with the manifest of before.
	u.save(five)
	u.must(0, []string{"reset", "--host", "cp-3", "--confirm", "fleet/edge"}, "cp-3 has been reset")
	for _, key := range []string{"pki/ca.key", "pki/sa.key", "pki/etcd/ca.key", "admin.conf", "kubelet.conf"} {
		if cp[3].File("/etc/kubernetes/"+key) != "" {
			t.Errorf("cp-3 still has %s", key)
		}
		if cp[4].File("/etc/kubernetes/"+key) == "" {
			t.Errorf("cp-4, which was not reset, has no %s", key)
		}
	}
	u.save(three)
	u.must(0, []string{"plan", "--without-snapshot"}, "Done: ")

	// The machines that left are workers from now on.
	for _, host := range cp[3:] {
		host.Kill()
		host.Start()
		u.forget(host)
	}
	u.add("  workers:\n" + listed(cp[3]) + listed(cp[4]))
	u.must(0, []string{"apply", "--yes"}, "cp-3 has joined", "cp-4 has joined", "Done: ")
	// Whoever runs is taken out before it leaves the manifest, or would come back.
	both := u.read()
	u.write("edge", cp[:3]...)
	u.add("  workers:\n" + listed(cp[4]))
	u.want(hosts.Blocked, hosts.HostsDown, "cp-3 has left the manifest, and runs: switch it off, or, if it is a worker, list it again and take it out with kubectl strata hosts reset --host cp-3")
	one := u.read()
	u.save(both)
	u.must(0, []string{"reset", "--host", "cp-3", "--confirm", "fleet/edge"}, "cp-3 has been reset")
	u.save(one)
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	cp[4].Kill()
	u.want(hosts.Blocked, hosts.HostsDown, "cp-4 cannot be reached")
	u.must(2, []string{"replace", "cp-4", "--yes"}, "RemoveNode cp-4: its host is to be replaced")
	if nodes := u.nodes(); nodes != "cp-0 cp-1 cp-2" {
		t.Errorf("Nodes %s", nodes)
	}
}

// untilUpgraded runs apply until the upgrade of a host begins there, and kills it then, with
// the host.
func (u *user) untilUpgraded(host *lab.Host) {
	u.Helper()
	command, said, ended := u.start("apply", "--yes", "--without-snapshot")
	err := controlplane.WaitFor(u.Context(), 6*time.Minute, func(context.Context) error {
		if !strings.Contains(host.File("/var/lib/strata/journal"), `"Upgrade"`) {
			return fmt.Errorf("%s is not upgraded", host.Name)
		}
		return nil
	})
	host.Kill()
	_ = command.Process.Kill()
	if ending := <-ended; err != nil || ending == nil {
		u.Fatalf("%v, %v: %s", err, ending, said)
	}
}

// In the middle of an upgrade one host goes for good and is replaced, and another one stops
// and boots again: what has begun is gone on with, and all hosts get the version.
func TestHostIsReplacedInTheMiddleOfAnUpgrade(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t, 3)
	cp := u.lab.Hosts()
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.kubectl(networkPlugin, "apply", "-f", "-")
	u.kubectl("", "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
	u.edit("version: "+before, "version: "+after)
	u.untilUpgraded(cp[1])
	cp[1].Start()
	u.forget(cp[1])
	u.must(2, []string{"plan", "--without-snapshot"}, "RemoveMember cp-1: its host is empty; etcd 2 of 3 healthy, then 2 of 2",
		"Join cp-1 at "+after+": it is not in the cluster yet", "Upgrade cp-2 to "+after+": it has "+before)
	u.untilUpgraded(cp[2])
	cp[2].Boot()
	u.must(0, []string{"apply", "--yes", "--without-snapshot"}, "Done: ")
	u.must(0, []string{"plan"}, "cp-0   control-plane   Healthy   "+after, "cp-1   control-plane   Healthy   "+after, "cp-2   control-plane   Healthy   "+after)
	if plan := u.plan(); len(plan.Members) != 3 {
		t.Errorf("%+v", plan.Members)
	}
}

// Workers are upgraded side by side, as many as the manifest says.
func TestWorkersAreUpgradedSideBySide(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t, 3)
	cp := u.lab.Hosts()
	worker := func(host *lab.Host) string {
		return fmt.Sprintf("  - {name: %s, address: %s, taints: [], kubelet: {cgroupV1: true}}\n", host.Name, host.IP())
	}
	for _, host := range cp[1:] {
		u.edit(worker(host), "")
	}
	u.add("  upgrade: {maxUnavailable: 2}\n  workers:\n" + worker(cp[1]) + worker(cp[2]))
	u.must(0, []string{"apply", "--yes"}, "cp-1 has joined", "cp-2 has joined", "Done: ")
	u.kubectl(networkPlugin, "apply", "-f", "-")
	u.kubectl("", "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
	u.edit("version: "+before, "version: "+after)
	out := u.must(0, []string{"apply", "--yes"}, "cp-1 has "+after, "cp-2 has "+after, "Done: ")
	begun := max(strings.Index(out, "cp-1 upgrades to "+after), strings.Index(out, "cp-2 upgrades to "+after))
	ended := min(strings.Index(out, "cp-1 has "+after), strings.Index(out, "cp-2 has "+after))
	if begun > ended || strings.Index(out, "cp-0 has "+after) > begun {
		t.Errorf("not side by side, or before the control plane:\n%s", out)
	}
	nodes, err := u.client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Spec.Unschedulable || node.Status.NodeInfo.KubeletVersion != after {
			t.Errorf("%s: %s, unschedulable: %t", node.Name, node.Status.NodeInfo.KubeletVersion, node.Spec.Unschedulable)
		}
	}
}
