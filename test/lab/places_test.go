// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// A host that reaches no repository gets its packages from a folder of its own, with what
// they need, and becomes a cluster.
func TestPackagesOfAFolderAreInstalled(t *testing.T) {
	t.Parallel()
	l := lab.NewBare(t, 1)
	u, host := userOf(t, l), l.Hosts()[0]
	r := newRepository(t, l)
	u.add("  packages: {directory: /var/lib/packages}\n")
	u.must(1, []string{"apply", "--yes"}, "cp-0: /var/lib/packages has no kubeadm_1.36.3*.deb")
	var files strings.Builder
	for file, programs := range map[string][]string{
		"kubeadm_1.36.3-1.1": {"kubeadm", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"},
		"kubeadm_1.36.2-1.1": {}, "kubelet_1.36.3-1.1": {"kubelet"}, "containerd.io_1.7.29-1": {}, "containerd.io_2.2.0-1": {"containerd"}, "kubernetes-cni_1.8.0-1": {},
	} {
		name, version, _ := strings.Cut(file, "_")
		r.build(file, name, version, programs...)
		fmt.Fprintf(&files, "cp %s /var/lib/packages/%s_amd64.deb\n", filepath.Join(r.root, file, name+".deb"), file)
	}
	u.run(host, "mkdir -p /var/lib/packages\n"+files.String())
	u.must(0, []string{"apply", "--yes"}, "cp-0 installs the packages of v1.36.3", "Done: ")
	const want = "containerd.io 2.2.0-1\nkubeadm 1.36.3-1.1\nkubelet 1.36.3-1.1\nkubernetes-cni 1.8.0-1\n"
	if out := u.run(host, `dpkg-query -W -f '${Package} ${Version}\n' containerd.io kubeadm kubelet kubernetes-cni`); out != want {
		t.Errorf("these are installed:\n%s", out)
	}
	if held := u.run(host, "apt-mark showhold"); !strings.Contains(held, "kubeadm\n") || !strings.Contains(held, "containerd.io\n") {
		t.Errorf("packages are not held: %s", held)
	}
}

// becomeFlatcar has a host say that it is one of Flatcar's, with /usr as it is there.
const becomeFlatcar = `rm -f /etc/os-release
printf 'ID=flatcar\nID_LIKE=coreos\nVERSION_ID=4152.2.0\n' >/etc/os-release
%smount --rbind /usr /usr
mount -o remount,bind,ro /usr
mount -t tmpfs lab /opt
`

// On a system without packages programs are fetched, each with its digest, into a place that
// can be written; one that is not what its digest says is not kept.
func TestProgramsAreFetchedWherePackagesAreNot(t *testing.T) {
	t.Parallel()
	l := lab.NewBare(t, 1)
	u, host := userOf(t, l), l.Hosts()[0]
	served := t.TempDir()
	var own strings.Builder
	for _, name := range []string{"containerd", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "kubelet"} {
		program, err := lab.Program(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "kubea") && name != "kubelet" || name == "kube-apiserver" {
			fmt.Fprintf(&own, "cp %s /usr/bin/%s\n", program, name)
			continue
		}
		to := filepath.Join(served, "v1.36.3", "amd64", name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		copyProgram(t, program, to)
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+".sha256", fmt.Appendf(nil, "%x", sha256.Sum256(data)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", l.IP()+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(served)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	u.run(host, fmt.Sprintf(becomeFlatcar, own.String()))
	u.add("  packages: {binaries: {url: 'http://" + listener.Addr().String() + "/{version}/{arch}'}}\n")

	digest := filepath.Join(served, "v1.36.3", "amd64", "kubelet.sha256")
	right, err := os.ReadFile(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(digest, []byte(strings.Repeat("0", 64)), 0o644); err != nil {
		t.Fatal(err)
	}
	u.must(1, []string{"apply", "--yes"}, "cp-0 fetches the programs of v1.36.3", "/v1.36.3/amd64/kubelet is not what its digest says")
	if out := u.run(host, "ls /opt/bin"); out != "kubeadm\n" {
		t.Errorf("/opt/bin has %s", out)
	}
	if err := os.WriteFile(digest, right, 0o644); err != nil {
		t.Fatal(err)
	}
	u.must(0, []string{"apply", "--yes"}, "cp-0 fetches the programs of v1.36.3", "Done: ")
	u.must(0, []string{"plan"}, "flatcar 4152.2.0", "Done: ")
}

// Snapshots go into a bucket, and the cluster comes back from there.
func TestSnapshotsGoToABucket(t *testing.T) {
	server, err := controlplane.NewS3Server()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := server.NewBucket("saved"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	u := newUser(t, 1)
	u.add("  snapshots: {s3: {bucket: saved, prefix: north, endpoint: 'http://" + server.Endpoint() + "'}, keep: 2}\n")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.mark("first")
	for range 3 {
		u.must(0, []string{"etcd", "snapshot"}, "s3://saved/north/fleet-edge-", " keys at revision ")
	}
	u.mark("second")
	list := u.command("etcd", "list")
	list.Args = list.Args[:len(list.Args)-4] // it asks no host
	if out, err := list.CombinedOutput(); err != nil || strings.Count(string(out), "s3://saved/north/fleet-edge-") != 2 {
		t.Errorf("%v: %s", err, out)
	}
	u.must(0, []string{"etcd", "restore", "--confirm", "fleet/edge", "--although-it-answers"}, "Done: ")
	u.marked("first", true)
	u.marked("second", false)
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "strata-restore-*")); err != nil || len(left) > 0 {
		t.Errorf("what was fetched is left: %v (%v)", left, err)
	}
}
