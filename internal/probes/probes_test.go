// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/probes"
)

// host is a folder that stands for a host's files, with programs of its own.
type host struct {
	*testing.T
	root, programs string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{T: t, root: t.TempDir(), programs: t.TempDir()}
	h.write("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n")
	h.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n")
	h.write("proc/meminfo", "MemTotal:        4096 kB\nMemFree: 1 kB\n")
	h.write("var/lib/.keep", "")
	h.program("id", "echo 0")
	h.program("uname", `case $1 in -n) echo cp-0 ;; -r) echo 6.1.0-28-amd64 ;; -m) echo x86_64 ;; esac`)
	h.program("systemctl", "printf 'not-found\\ninactive\\ndead\\n\\nnot-found\\ninactive\\ndead\\n'")
	return h
}

func (h *host) write(path, content string) {
	h.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *host) program(name, script string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		h.Fatal(err)
	}
}

// answer runs the script, and makes sure that it changes nothing.
func (h *host) answer() []byte {
	h.Helper()
	before := h.files()
	command := exec.CommandContext(h.Context(), "sh", "-eu", "-s")
	command.Stdin = bytes.NewReader(probes.Script)
	command.Env = []string{"ROOT=" + h.root, "PATH=" + h.programs + ":/usr/bin:/bin"}
	var errs bytes.Buffer
	command.Stderr = &errs
	answer, err := command.Output()
	if err != nil || errs.Len() > 0 {
		h.Fatalf("%v: %s", err, &errs)
	}
	if diff := cmp.Diff(before, h.files()); diff != "" {
		h.Errorf("the script changes files:\n%s", diff)
	}
	return answer
}

// files returns what the host has.
func (h *host) files() map[string]string {
	h.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(h.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = string(content)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// certificate returns one that ends at a moment.
func certificate(t *testing.T, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
}

func TestEmptyHost(t *testing.T) {
	facts, err := probes.Read(newHost(t).answer())
	if err != nil {
		t.Fatal(err)
	}
	if facts.Time.IsZero() || facts.FreeBytes == 0 {
		t.Errorf("time %s, %d bytes free", facts.Time, facts.FreeBytes)
	}
	facts.Time, facts.FreeBytes = time.Time{}, 0
	want := probes.Facts{
		Hostname: "cp-0", Kernel: "6.1.0-28-amd64", Machine: "x86_64", OS: "debian 12", Swaps: 1, MemoryBytes: 4096 * 1024,
		Certificates: map[string]time.Time{},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHostOfACluster(t *testing.T) {
	h := newHost(t)
	until := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	authority := certificate(t, until.AddDate(9, 0, 0))
	h.write("etc/kubernetes/kubelet.conf", "secret")
	h.write("etc/kubernetes/pki/ca.crt", authority)
	h.write("etc/kubernetes/pki/ca.key", "SECRET KEY")
	h.write("etc/kubernetes/pki/etcd/server.crt", certificate(t, until))
	h.write("etc/kubernetes/pki/broken.crt", "SECRET KEY")
	h.write("etc/kubernetes/manifests/etcd.yaml", "spec: {}")
	h.write("var/lib/etcd/member/snap/db", "data")
	h.write("var/lib/strata/journal", `{"cluster":"ns/c/00000001","action":"Join","version":"v1.35.3","ended":true}`+"\n"+`{"cluster":"ns/c/00000001","action":"Upgrade","version":"v1.36.3"}`+"\n")
	h.program("systemctl", "printf 'loaded\\nactive\\nrunning\\n\\nloaded\\nactive\\nrunning\\n'")
	h.program("kubelet", "echo Kubernetes v1.36.3")
	h.program("kubeadm", "echo v1.36.3")
	h.program("containerd", "echo containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4")
	answer := h.answer()
	if bytes.Contains(answer, []byte("SECRET")) || bytes.Contains(answer, []byte("secret")) {
		t.Errorf("the answer has secrets: %s", answer)
	}
	facts, err := probes.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(authority))
	facts.Time, facts.FreeBytes = time.Time{}, 0
	want := probes.Facts{
		Hostname: "cp-0", Kernel: "6.1.0-28-amd64", Machine: "x86_64", OS: "debian 12", Swaps: 1, MemoryBytes: 4096 * 1024,
		Kubelet: probes.Unit{Loaded: true, Running: true, Version: "v1.36.3"}, Kubeadm: "v1.36.3",
		Containerd:  probes.Unit{Loaded: true, Running: true, Version: "v2.1.4"},
		Initialised: true, Authority: hex.EncodeToString(sum[:]),
		Remains:      []string{"/etc/kubernetes/pki", "/etc/kubernetes/manifests", "/var/lib/etcd"},
		Certificates: map[string]time.Time{"ca.crt": until.AddDate(9, 0, 0), "etcd/server.crt": until},
		Journal:      hosts.Entry{ClusterID: "ns/c/00000001", Action: hosts.VerbUpgrade, Version: "v1.36.3"},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnitsThatDoNotStay(t *testing.T) {
	for states, want := range map[string]probes.Unit{
		`loaded\nactivating\nauto-restart\n`: {Loaded: true},
		`loaded\nfailed\nfailed\n`:           {Loaded: true},
		`masked\nactive\nrunning\n`:          {},
		`\n`:                                 {},
	} {
		h := newHost(t)
		h.program("systemctl", "printf '"+states+`\nloaded\nactive\nexited\n'`)
		facts, err := probes.Read(h.answer())
		// The other unit is read, unless one says nothing.
		other := probes.Unit{Loaded: want != (probes.Unit{}) || strings.HasPrefix(states, "masked")}
		if err != nil || facts.Kubelet != want || facts.Containerd != other {
			t.Errorf("%q: %+v, %+v, %v", states, facts.Kubelet, facts.Containerd, err)
		}
	}
}

// A host without systemd, or with programs that fail, says less, and ends.
func TestHostsThatLack(t *testing.T) {
	h := newHost(t)
	h.program("systemctl", "echo Failed to connect to bus >&2; exit 1")
	h.program("kubelet", "exit 139")
	h.program("containerd", "yes '\033[31mevil' | head -c 100000")
	facts, err := probes.Read(h.answer())
	if err != nil || facts.Kubelet != (probes.Unit{}) || facts.Containerd != (probes.Unit{}) {
		t.Errorf("%+v, %v", facts, err)
	}
}

// What a host says is believed as far as it may be so, and is in no error.
func TestAnswersOfHostsThatLie(t *testing.T) {
	const good = "user=0\nend=1\n"
	for name, test := range map[string]struct {
		answer string
		want   error
	}{
		"nothing":        {"", probes.ErrCutOff},
		"cut off":        {"user=0\nhostname=cp-0\n", probes.ErrCutOff},
		"goes on":        {good + "hostname=other\n", probes.ErrCutOff},
		"not as root":    {"user=1000\nend=1\n", probes.ErrNotRoot},
		"a banner first": {"Welcome to evil\n" + good, nil},
	} {
		if _, err := probes.Read([]byte(test.answer)); !errors.Is(err, test.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := probes.Read(bytes.Repeat([]byte("x"), probes.MaxAnswer+1)); err == nil || strings.Contains(err.Error(), "xx") {
		t.Errorf("error %v", err)
	}
	facts, err := probes.Read([]byte(strings.Join([]string{
		"hostname=\x1b[31mevil", "hostname2=x", "kernel=" + strings.Repeat("9", 300), "machine=x86;64", "os=debian; rm -rf 12",
		"time=-5", "swap=99999999999999999999", "memory=9223372036854775807", "free=-1", "cgroup=tmpfs",
		"version.kubelet=Kubernetes v1.36.3; evil", "unit.kubelet=loaded active running extra", "version.kubeadm=v1.36",
		"initialised=/etc/passwd", "remains=/etc/passwd", "remains=/var/lib/etcd", "remains=/var/lib/etcd", "authority=" + strings.Repeat("A", 64),
		"certificate.../../ca.crt=AAAA", "certificate.ca.crt=!", "certificate.b.crt=AAAA",
		`journal={"cluster":"c 1","action":"Join"}`, "user=0", "end=1", "",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := probes.Facts{
		Swaps: 0, MemoryBytes: 1 << 60, Remains: []string{"/var/lib/etcd"}, Certificates: map[string]time.Time{},
		Journal: hosts.Entry{ClusterID: probes.Unreadable},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	many, one := "user=0\n", encoded(t)
	for i := range 100 {
		many += "certificate.c" + strings.Repeat("a", i%50) + string(rune('a'+i/50)) + ".crt=" + one + "\n"
	}
	if facts, err := probes.Read([]byte(many + "end=1\n")); err != nil || len(facts.Certificates) != 40 {
		t.Errorf("%d certificates, %v", len(facts.Certificates), err)
	}
}

// encoded is a certificate as the script writes one.
func encoded(t *testing.T) string {
	t.Helper()
	h := newHost(t)
	h.write("etc/kubernetes/pki/ca.crt", certificate(t, time.Unix(2e9, 0)))
	for line := range strings.Lines(string(h.answer())) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "certificate.ca.crt="); found {
			return value
		}
	}
	t.Fatal("there is no certificate")
	return ""
}

func TestJournals(t *testing.T) {
	for text, want := range map[string]hosts.Entry{
		`{"cluster":"ns/c/00000001","action":"Init","version":"v1.36.3"}`: {ClusterID: "ns/c/00000001", Action: hosts.VerbInit, Version: "v1.36.3"},
		`{"cluster":"ns/c/00000001","action":"Reset","ended":true}`:       {ClusterID: "ns/c/00000001", Action: hosts.VerbReset, Ended: true},
		`{"cluster":"ns/c/00000001","action":"RemoveMember"}`:             {ClusterID: probes.Unreadable},
		`{"cluster":"ns/c/00000001","action":"Init","version":"latest"}`:  {ClusterID: probes.Unreadable},
		`{"cluster":"","action":"Init"}`:                                  {ClusterID: probes.Unreadable},
		`{"cluster":"ns/c/00000001","act`:                                 {ClusterID: probes.Unreadable},
	} {
		h := newHost(t)
		h.write("var/lib/strata/journal", "{}\n"+text+"\n")
		facts, err := probes.Read(h.answer())
		if err != nil || facts.Journal != want {
			t.Errorf("%s: %+v, %v", text, facts.Journal, err)
		}
	}
}

// Whatever comes, it is read or refused.
func FuzzRead(f *testing.F) {
	f.Add([]byte("user=0\nunit.kubelet=loaded active running\ncertificate.ca.crt=AAAA\nremains=/var/lib/etcd\nend=1\n"))
	f.Add([]byte("=\n=1\nend=1\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		facts, err := probes.Read(answer)
		if err != nil {
			return
		}
		texts := slices.Concat([]string{facts.Hostname, facts.Kernel, facts.Machine, facts.OS, facts.Kubelet.Version, facts.Kubeadm, facts.Authority}, facts.Remains)
		for _, text := range texts {
			if len(text) > 64 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q is let through", text)
			}
		}
	})
}
