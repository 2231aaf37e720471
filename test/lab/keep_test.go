// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/strata-project/strata/internal/hosts"
)

// config says how the cluster is asked by its administrator.
func (u *user) config() *rest.Config {
	u.Helper()
	text, err := u.command("kubeconfig").Output()
	if err != nil {
		u.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		u.Fatal(err)
	}
	return config
}

// client returns a client of the cluster, by the kubeconfig that the plug-in prints.
func (u *user) client() kubernetes.Interface {
	u.Helper()
	config := u.config()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		u.Fatal(err)
	}
	return client
}

// Three empty hosts and a worker become a cluster by a plan that somebody has looked at,
// and are kept as the manifest says: nothing to do, then labels, then another manager, and
// at last all of it is taken away.
func TestThreeHostsBecomeAClusterAndAreKept(t *testing.T) {
	t.Parallel()
	u := newUser(t, 4)
	all := u.lab.Hosts()
	u.write("edge", all[:3]...)
	plan := filepath.Join(u.dir, "plan.json")
	keep := func() {
		out, err := u.command("plan", "-o", "json").Output()
		if err == nil {
			t.Error("a plan with something to do ends with 0")
		}
		if err := os.WriteFile(plan, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	u.must(1, []string{"apply"}, "nothing was done, for there is no terminal to ask at: give --yes")
	u.add("  workers:\n" + listed(all[3]))
	u.must(1, []string{"apply", "--yes", "--plan", plan}, "the plan is not that of --plan any more")
	keep()
	begin := time.Now()
	out := u.must(0, []string{"apply", "--yes", "--plan", plan}, "Done: there is nothing to do", "cp-3 has joined")
	t.Logf("made in %s\n%s", time.Since(begin).Round(time.Second), out)
	if got := u.plan(); got.Outcome != hosts.Done || len(got.Members) != 3 {
		t.Errorf("%+v", got)
	}
	begin = time.Now()
	u.must(0, []string{"apply", "--yes"}, "Done: there is nothing to do")
	t.Logf("nothing to do in %s", time.Since(begin).Round(10*time.Millisecond))
	u.must(0, []string{"status"}, "etcd: ", "cp-0 healthy", "cp-1 healthy", "cp-2 healthy", "Done: ")
	u.must(0, []string{"logs", "cp-1"}, "kubeadm join")
	for _, host := range all {
		const files = `find /etc/kubernetes /var/lib/kubelet/config.yaml -type f ! -path '*/tmp/*' \( -path '*/manifests/*' -o -name '*.conf' -o -name '*.key' -o -name config.yaml \)`
		if open := u.run(host, files+" -perm /077"); open != "" || !strings.Contains(u.run(host, files), "/var/lib/kubelet/config.yaml") {
			t.Errorf("others than root may read on %s: %s", host.Name, open)
		}
	}
	u.noSecretsInLogs()

	client := u.client()
	u.settingsChange(client)

	// Another manager's cluster is left alone.
	patch := `{"data":{"manager":"somebody else"}}`
	if _, err := client.CoreV1().ConfigMaps("kube-system").Patch(t.Context(), "strata-hostcluster", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	u.edit("rack: r1", "rack: r2")
	u.must(2, []string{"apply", "--yes"}, "Error (Refused): the cluster is managed by somebody else: --take-over takes it from there")
	u.must(0, []string{"apply", "--yes", "--take-over"}, "cp-3 label example.com/rack: r1 -> r2", "Done: ")
	u.must(0, []string{"plan"}, "Done: ")

	u.must(1, []string{"reset", "--confirm", "fleet/edge", "--host", "cp-1"}, "cp-1 is a member of a cluster that answers")
	u.must(1, []string{"reset"}, "give --confirm fleet/edge")
	u.must(1, []string{"reset", "--confirm", "fleet/other"}, "nothing was done")
	u.must(0, []string{"reset", "--confirm", "fleet/edge"}, "cp-3, cp-2, cp-1, cp-0: reset")
	u.want(hosts.Init, "", "makes a cluster of 4 hosts", "Init cp-0", "Join cp-1", "Join cp-2", "JoinWorker cp-3")
	u.must(0, []string{"reset", "--confirm", "fleet/edge"}, "There is nothing to take away.")
}

// settingsChange changes what a manifest may change, and what it may not.
func (u *user) settingsChange(client kubernetes.Interface) {
	u.Helper()
	u.edit("cp-3, address: "+u.lab.Hosts()[3].IP()+", kubelet: {cgroupV1: true}",
		"cp-3, address: "+u.lab.Hosts()[3].IP()+", labels: {example.com/rack: r1}, taints: [{key: gpu, effect: NoSchedule}], kubelet: {cgroupV1: true, maxPods: 50}")
	u.add("  containerd: {mirrors: [{registry: docker.io, endpoints: ['https://mirror.example.com']}]}\n")
	u.must(2, []string{"plan"}, "cp-3 label example.com/rack: - -> r1", "cp-3 taint gpu:NoSchedule: - ->", `cp-3 kubelet: {"cgroupV1":true} ->`, "containerd: {} ->")
	u.must(0, []string{"apply", "--yes"}, "cp-3 changes settings", "cp-0 changes settings", "Done: ")
	node, err := client.CoreV1().Nodes().Get(u.Context(), "cp-3", metav1.GetOptions{})
	if err != nil {
		u.Fatal(err)
	}
	if node.Labels["example.com/rack"] != "r1" || !strings.Contains(fmt.Sprint(node.Spec.Taints), "gpu") {
		u.Errorf("labels %v, taints %v", node.Labels, node.Spec.Taints)
	}
	if config := u.lab.Hosts()[3].File("/var/lib/kubelet/config.yaml"); !strings.Contains(config, "maxPods: 50") {
		u.Errorf("the kubelet has other settings:\n%s", config)
	}
	for _, host := range u.lab.Hosts() {
		if mirror := host.File("/etc/containerd/certs.d/docker.io/hosts.toml"); !strings.Contains(mirror, "https://mirror.example.com") {
			u.Errorf("%s has no mirror: %s", host.Name, mirror)
		}
	}
	u.must(0, []string{"plan"}, "Done: ")
	u.edit("spec:\n", "spec:\n  network: {pods: [10.1.0.0/16]}\n")
	u.must(2, []string{"apply", "--yes"}, "Error (Refused): spec.network is ")
	u.edit("  network: {pods: [10.1.0.0/16]}\n", "")
}

// Whoever comes second is told who is at work, and since when, and nothing is done.
func TestTwoActorsAtOnce(t *testing.T) {
	t.Parallel()
	u := newUser(t, 1)
	command, said, ended := u.start("apply", "--yes")
	u.awaitFile(u.lab.Hosts()[0], "/var/lib/strata/journal", "Init")
	// It is stopped for a while, in which it holds its locks, and kubeadm goes on.
	if err := command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	told := u.must(1, []string{"apply", "--yes"}, "cp-0 waits for what somebody has begun before", "cp-0 is being worked on: ", fmt.Sprintf("(process %d), since ", command.Process.Pid))
	t.Log(told)
	if err := command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	u.must(0, []string{"plan"}, "Done: ")
	if journal := u.lab.Hosts()[0].File("/var/lib/strata/journal"); strings.Count(journal, `"Init"`) != 2 {
		t.Errorf("the cluster was begun more than once: %s", journal)
	}
}

// Two clusters that are there are never taken for one.
func TestTwoClustersInOneManifest(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	for i, name := range []string{"edge", "core"} {
		u.write(name, cp[i])
		u.must(0, []string{"apply", "--yes"}, "Done: ")
	}
	u.write("edge", cp...)
	u.must(2, []string{"apply", "--yes"}, "Error (Foreign): cp-1 has the journal of another cluster")
	u.must(1, []string{"reset", "--confirm", "fleet/edge"}, "cp-1 has the journal of another cluster")
	// Without journals, too: they have other authorities.
	for _, host := range cp {
		u.run(host, "rm /var/lib/strata/journal")
	}
	u.must(2, []string{"apply", "--yes"}, "Error (Foreign): cp-0 and cp-1 belong to different clusters")
	u.write("edge", cp[0])
	u.must(0, []string{"plan"}, "Done: ") // the cluster itself says whose it is
	u.write("other", cp[0])
	u.must(2, []string{"plan"}, "Strata has not made the cluster on these hosts, under this namespace and name, and takes none over")
}

// A host whose network is cut in the middle of its join: the command says so after a while,
// and goes on when the network is back.
func TestNetworkIsCutInTheMiddleOfAJoin(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	u.write("edge", cp[0])
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.write("edge", cp...)
	_, said, ended := u.start("apply", "--yes")
	u.awaitFile(cp[1], "/var/lib/strata/log", "[etcd]")
	cp[1].Unplug()
	if err := <-ended; err == nil || !strings.Contains(said.String(), "cp-1") || !strings.Contains(said.String(), "run it again") {
		t.Errorf("%v: %s", err, said)
	}
	t.Log(said)
	u.must(2, []string{"plan"}, "cp-1   control-plane   Unreachable")
	cp[1].Plug()
	u.must(0, []string{"apply", "--yes"}, "Done: ", "cp-1   control-plane   Healthy")
	if plan := u.plan(); len(plan.Members) != 2 {
		t.Errorf("%+v", plan.Members)
	}
}

// An endpoint that leads nowhere is named when the cluster is there, before a host tries to
// join at it.
func TestEndpointThatLeadsNowhereIsNamed(t *testing.T) {
	t.Parallel()
	u := newUser(t, 2)
	cp := u.lab.Hosts()
	u.write("edge", cp[0])
	u.edit("spec:\n", "spec:\n  endpoint: {host: "+cp[1].IP()+"}\n") // where a load balancer would be
	u.run(cp[0], "ip addr add "+cp[1].IP()+"/32 dev lo")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.run(cp[0], "ip addr del "+cp[1].IP()+"/32 dev lo")
	u.must(0, []string{"plan"}, "Warning: spec.endpoint: "+cp[1].IP()+":6443 does not lead from cp-0 to an API server that is ready", "Done: ")
}
