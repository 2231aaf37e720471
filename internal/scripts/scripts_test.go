// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/scripts"
)

var update = flag.Bool("update", false, "write the golden files again")

const plain = `apiVersion: kraan.io/v1alpha1
kind: HostCluster
metadata: {name: edge, namespace: fleet}
spec:
  version: v1.36.3
  controlPlane:
  - {name: cp-0, address: 10.0.0.10}
  workers:
  - {name: w-0, address: 10.0.0.20}
`

const rich = `apiVersion: kraan.io/v1alpha1
kind: HostCluster
metadata: {name: edge, namespace: fleet}
spec:
  version: v1.36.3
  endpoint: {host: "fd00::1", port: 8443, alternativeNames: [api.example.com], kubeVIP: {interface: eth0, image: "example.com/kube-vip:v1"}}
  network: {pods: ["fd00:1::/56", 10.1.0.0/16], services: ["fd00:2::/112", 10.2.0.0/16], domain: edge.local}
  controlPlane:
  - name: cp-0
    address: fd00::10
    secondAddress: 10.0.0.10
    taints: []
    kubelet: {maxPods: 200, cgroupV1: true, systemReserved: {cpu: 500m}}
  workers:
  - name: w-0
    address: fd00::20
    secondAddress: 10.0.0.20
    taints: [{key: gpu, value: "yes", effect: NoSchedule}]
  containerd:
    mirrors: [{registry: docker.io, endpoints: ["https://mirror.example.com/v2", "http://10.0.0.5:5000"]}]
  apiServer:
    audit: {policy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n", maxAge: 7}
    oidc: {issuerURL: "https://issuer.example.com/it's", clientID: kubernetes, groupsClaim: groups, groupsPrefix: "oidc:", requiredClaims: {team: edge, site: north}}
  packages:
    leaveRepositories: true
    directory: /opt/packages
    kubernetes: {url: "https://packages.example.com/{minor}/deb", key: "it's a key"}
`

func cluster(t *testing.T, text string) *v1alpha1.HostCluster {
	t.Helper()
	made, err := hostclusters.Read(t.Context(), "hosts.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// each calls with the script of each host and action.
func each(t *testing.T, call func(name string, script []byte)) {
	t.Helper()
	secrets := scripts.Secrets{Token: "abcdef.0123456789abcdef", AuthorityHash: "sha256:00", CertificateKey: strings.Repeat("0", 64)}
	for kind, text := range map[string]string{"plain": plain, "rich": rich} {
		made := cluster(t, text)
		for name, action := range map[string]hosts.Action{
			"init":         {Verb: hosts.VerbInit, Host: "cp-0", Version: "v1.36.3"},
			"init-goes-on": {Verb: hosts.VerbInit, Host: "cp-0", Version: "v1.36.3", Continues: true},
			"join":         {Verb: hosts.VerbJoin, Host: "cp-0", Version: "v1.36.3"},
			"join-goes-on": {Verb: hosts.VerbJoin, Host: "cp-0", Version: "v1.36.3", Continues: true},
			"worker":       {Verb: hosts.VerbJoinWorker, Host: "w-0", Version: "v1.36.3"},
			"reset":        {Verb: hosts.VerbReset, Host: "cp-0"},
			"restore":      {Verb: hosts.VerbRestore, Host: "cp-0", Version: "v1.36.3"},
			"renew":        {Verb: hosts.VerbRenew, Host: "cp-0", Version: "v1.36.3"},
			"upgrade":      {Verb: hosts.VerbUpgrade, Host: "cp-0", Version: "v1.36.3", Leads: true},
			"follow":       {Verb: hosts.VerbUpgrade, Host: "w-0", Version: "v1.36.3"},
			"containerd":   {Verb: hosts.VerbUpgradeContainerd, Host: "w-0", Version: "v1.36.3"},
			"update":       {Verb: hosts.VerbUpdate, Host: "cp-0", Version: "v1.36.3"},
		} {
			job := scripts.Job{Cluster: made, ID: "fleet/edge/0123456789", Action: action, Secrets: secrets}
			if kind == "rich" {
				job.Encryption = encryption.Configuration{File: "/etc/kubernetes/strata/encryption-01234567.yaml", Content: "apiVersion: apiserver.config.k8s.io/v1\nkind: it's abcdef"}
				job.Kept = []string{"/etc/kubernetes/strata/encryption-89abcdef.yaml"}
			}
			script, err := scripts.Render(job)
			if err != nil {
				t.Fatal(err)
			}
			call(kind+"-"+name, script)
		}
		job := scripts.Job{Cluster: made, Action: hosts.Action{Verb: hosts.VerbJoin, Host: "cp-0", Version: "v1.36.3"}, Secrets: secrets}
		call(kind+"-certificates", scripts.Certificates(job, made.Spec.ControlPlane[0]))
	}
	call("lock", []byte(scripts.Lock))
	call("log", []byte(scripts.Log))
	call("receive", []byte(scripts.Receive))
}

func TestScriptsAreThoseOfTheGoldenFiles(t *testing.T) {
	each(t, func(name string, script []byte) {
		path := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(path, script, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, script) {
			t.Errorf("%s differs from %s: look at it, and write it with -update", name, path)
		}
	})
}

// A host that is reset has no key of the cluster any more, and nothing that was a Secret there:
// not where kubeadm or an action that was killed has put it aside either.
func TestResetLeavesNoKey(t *testing.T) {
	const secret = "THE SECRET"
	secrets := []string{
		"etc/kubernetes/pki/ca.key", "etc/kubernetes/pki/sa.key", "etc/kubernetes/pki/front-proxy-ca.key", "etc/kubernetes/pki/apiserver-etcd-client.key",
		"etc/kubernetes/pki/etcd/ca.key", "etc/kubernetes/pki/etcd/server.key", "etc/kubernetes/strata/encryption-01234567.yaml",
		"etc/kubernetes/manifests/kube-apiserver.yaml", "etc/kubernetes/patches/kube-apiserver.yaml",
		"etc/kubernetes/admin.conf", "etc/kubernetes/super-admin.conf", "etc/kubernetes/kubelet.conf", "etc/kubernetes/bootstrap-kubelet.conf",
		"etc/kubernetes/tmp/kubeadm-backup-etcd-2026-03-01/member/snap/db", "etc/kubernetes/tmp/kubeadm-upgraded-manifests1/etcd.yaml",
		"var/lib/kubelet/pki/kubelet-client-current.pem", "var/lib/etcd/member/snap/db", "var/lib/etcd/member/wal/0.wal",
		"var/lib/strata/restoring/a", "var/lib/strata/restore.tar.gz", "var/lib/strata/restore.tar.gz.new", "var/lib/strata/manifests/etcd.yaml",
		"var/lib/strata/etcd-20260301T120000Z/snap/db", "run/strata/kubeadm.yaml", "run/strata/upload.yaml",
	}
	others := []string{"etc/hostname", "var/lib/other/data", "root/.ssh/authorized_keys"}
	root := t.TempDir()
	for _, file := range slices.Concat(secrets, others) {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("shell/reset.sh")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`[^ ]/(etc|var|run)/`).FindString(strings.ReplaceAll(string(script), "unix:///run/", "")); found != "" {
		t.Fatalf("%s would be one of this machine", found)
	}
	// The host's folders are below another one, and its programs are not there.
	moved := strings.NewReplacer(" /etc/", " "+root+"/etc/", " /var/", " "+root+"/var/").Replace(string(script))
	stubs := "set -eu; STATE=" + root + "/var/lib/strata WORK=" + root + "/run/strata KEEP= FORGET=1\n" +
		"journal() { :; }; say() { :; }; run() { :; }; must() { :; }; park() { :; }\n"
	command := exec.CommandContext(t.Context(), "sh", "-c", stubs+moved)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var left []string
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(others)
	if !slices.Equal(left, others) {
		t.Errorf("what is left is %v, want %v", left, others)
	}
}

// A shell reads every script, whatever stands in its values.
func TestShellReadsEveryScript(t *testing.T) {
	each(t, func(name string, script []byte) {
		command := exec.CommandContext(t.Context(), "sh", "-n")
		command.Stdin = strings.NewReader(string(script))
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	})
}

// No value is ever a command: what a manifest may hold comes out of the shell as it was.
func TestValuesAreNoCommands(t *testing.T) {
	made := cluster(t, plain)
	const hostile = "a'; touch ran; '$(touch ran)`touch ran`\n\"\\"
	made.Spec.Packages.Kubernetes.Key, made.Spec.Packages.ContainerdPackage = hostile+"|", hostile
	made.Spec.Containerd.Mirrors = []v1alpha1.RegistryMirror{{Registry: hostile, Endpoints: []string{hostile}}}
	script, err := scripts.Render(scripts.Job{Cluster: made, ID: hostile, Action: hosts.Action{Verb: hosts.VerbUpdate, Host: "cp-0", Version: "v1.36.3"}})
	if err != nil {
		t.Fatal(err)
	}
	// The values, and the function that has more of them, without what the script does.
	values, _, _ := strings.Cut(string(script), "set -eu\n")
	_, mirrors, found := strings.Cut(string(script), "mirrors() {\n")
	if !found {
		t.Fatal("the script has no mirrors")
	}
	mirrors, _, _ = strings.Cut(mirrors, "  for folder in ")
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "sh", "-s")
	command.Dir = dir
	command.Stdin = strings.NewReader(values + "put() { :; }\n" + mirrors + "printf '%s' \"$KUBERNETES_KEY$CONTAINERD_PACKAGE\"\n")
	out, err := command.Output()
	if err != nil || string(out) != hostile+"|"+hostile {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a value was run")
	}
}

// Secrets stand in what the shell reads, and in no command that it runs.
func TestSecretsAreInNoCommand(t *testing.T) {
	each(t, func(name string, script []byte) {
		for line := range strings.Lines(string(script)) {
			if strings.HasPrefix(line, "  ") && (strings.Contains(line, "must ") || strings.Contains(line, "run ")) && strings.Contains(line, "abcdef") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if strings.Contains(string(script), "set -x") {
			t.Errorf("%s has the shell repeat what it runs", name)
		}
	})
}
