// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab makes hosts out of network namespaces, for tests: each with an address, a
// name and files of its own, and Debian's SSH server. It needs root on Linux with apt.
package lab

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/reads"
)

//go:embed host.sh
var hostScript string

// hostPackages of Debian are what a host has besides what the machine has.
var hostPackages = []string{"openssh-server", "libwrap0", "sudo"}

// Sudoer is a user of every host who may become root without a password.
const Sudoer = "admin"

// Missing says why this machine can make no hosts; empty where it can.
func Missing() string {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return "it needs root on Linux, for network namespaces"
	}
	for _, program := range []string{"ip", "nsenter", "unshare", "apt-get", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return "it needs the program " + program
		}
	}
	return ""
}

// Lab is a network with hosts on it. They end with the test.
type Lab struct {
	t       testing.TB
	dir     string
	server  string
	bridge  string
	network string
	// network6 is the beginning of the addresses of version 6.
	network6  string
	userKey   ssh.Signer
	keyFile   string
	hosts     []*Host
	libraries string
	programs  string
	debian    string
	// disks are in memory, and outlive hosts.
	disks string
	// plugins are the network plug-ins of a real host; empty on others.
	plugins string
}

// Host is one of them.
type Host struct {
	// Name of the host, and Address of its SSH server, with the port.
	Name, Address string

	lab    *Lab
	index  int
	runner *controlplane.Runner
}

// IP is the address of the host.
func (h *Host) IP() string {
	address, _, _ := strings.Cut(h.Address, ":")
	return address
}

// IPv6 is the other address of the host.
func (h *Host) IPv6() string { return fmt.Sprintf("%s%d", h.lab.network6, 10+h.index) }

// labs counts those of this process, so that each has a network of its own.
var labs atomic.Int32

// New makes a network of hosts, named cp-0 and so on, that let one key in, as root and as
// Sudoer.
func New(t testing.TB, hosts int) *Lab {
	t.Helper()
	return newLab(t, hosts, slices.Concat(released, played), false)
}

// NewBare makes hosts as New does, that have nothing of Kubernetes and no containerd.
func NewBare(t testing.TB, hosts int) *Lab {
	t.Helper()
	return newLab(t, hosts, []string{"systemctl"}, false)
}

// NewUpgradable makes hosts as NewBare does, that have what static Pods of two versions of
// Kubernetes need, and a network plug-in.
func NewUpgradable(t testing.TB, hosts int, older, newer string) *Lab {
	t.Helper()
	l := newLab(t, hosts, []string{"systemctl", "network-plugin", "pause", "etcd"}, false)
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		before, err := OlderProgram(name)
		if err != nil {
			t.Fatal(err)
		}
		after, err := Program(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for version, path := range map[string]string{older: before, newer: after} {
			if err := os.Symlink(path, filepath.Join(l.programs, name+"-"+version)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func newLab(t testing.TB, hosts int, programs []string, containers bool) *Lab {
	t.Helper()
	if why := Missing(); why != "" {
		t.Skip(why)
	}
	reads.AddFromRoot("hack/controlplane") // the pins of what runs on hosts
	l := &Lab{t: t, dir: t.TempDir()}
	debian, err := Debian(t.Context(), "host", hostPackages...)
	if err != nil {
		t.Skipf("it needs Debian's SSH server: %v", err)
	}
	l.debian, l.server = debian, filepath.Join(debian, "usr", "sbin", "sshd")
	libraries, err := filepath.Glob(filepath.Join(debian, "usr", "lib", "*-linux-gnu*"))
	if err != nil || len(libraries) == 0 {
		t.Fatalf("the SSH server has no libraries in %s: %v", debian, err)
	}
	l.libraries = libraries[0]
	l.programs = t.TempDir()
	if err := fillPrograms(t.Context(), l.programs, programs); err != nil {
		t.Fatal(err)
	}
	if containers {
		if l.plugins, err = addReal(t.Context(), l.programs); err != nil {
			t.Fatal(err)
		}
	}
	l.disks = t.TempDir()
	if err := syscall.Mount("lab", l.disks, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(l.disks, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l.reserve()
	l.ip("addr", "add", l.network+"1/24", "dev", l.bridge)
	l.ip("link", "set", l.bridge, "up")
	var public []byte
	var private []byte
	l.userKey, private, public = newKey(t)
	l.keyFile = l.write("user.key", private)
	l.write("authorized_keys", public)
	for i := range hosts {
		h := &Host{lab: l, index: i, Name: fmt.Sprintf("cp-%d", i), Address: fmt.Sprintf("%s%d:22", l.network, 10+i)}
		l.hosts = append(l.hosts, h)
		h.connect()
		h.prepare()
		h.Start()
	}
	return l
}

// reserve makes a bridge, whose name is that of the lab, with a network of its own. Labs of other
// processes have other ones, and so have those that a process has left behind which was killed.
func (l *Lab) reserve() {
	l.t.Helper()
	const numbers = 250
	var said []byte
	for range numbers {
		number := (os.Getpid() + int(labs.Add(1))) % numbers
		l.bridge, l.network, l.network6 = fmt.Sprintf("slab%d", number), fmt.Sprintf("10.88.%d.", number), fmt.Sprintf("fd88:%x::", number)
		if left, err := filepath.Glob("/run/netns/" + l.bridge + "-*"); err != nil || len(left) > 0 {
			continue
		}
		out, err := exec.CommandContext(l.t.Context(), "ip", "link", "add", l.bridge, "type", "bridge").CombinedOutput()
		if err == nil {
			l.t.Cleanup(func() { l.try("ip", "link", "del", l.bridge) })
			return
		}
		said = out
	}
	l.t.Fatalf("no network is free for a lab: %s", said)
}

// Hosts returns the hosts.
func (l *Lab) Hosts() []*Host { return l.hosts }

// Auth is how to log in as root.
func (l *Lab) Auth() ssh.AuthMethod { return ssh.PublicKeys(l.userKey) }

// IP is the address at which hosts reach this process.
func (l *Lab) IP() string { return l.network + "1" }

// KeyFile is the file with the key that logs in.
func (l *Lab) KeyFile() string { return l.keyFile }

// Debian has packages of Debian unpacked in a folder of the cache, and returns which. They
// are fetched once, by apt, which checks who made them.
func Debian(ctx context.Context, name string, packages ...string) (string, error) {
	root, err := cache.Dir()
	if err != nil {
		return "", err
	}
	made := filepath.Join(filepath.Dir(root), "lab", name)
	if _, err := os.Stat(made); err == nil {
		return made, nil
	}
	if err := os.MkdirAll(filepath.Dir(made), 0o755); err != nil {
		return "", err
	}
	making, err := os.MkdirTemp(filepath.Dir(made), "making-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(making) }()
	fetch := exec.CommandContext(ctx, "apt-get", append([]string{"download", "-q"}, packages...)...)
	fetch.Dir = making
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot fetch %s: %w: %s", strings.Join(packages, " and "), err, out)
	}
	files, err := filepath.Glob(filepath.Join(making, "*.deb"))
	if err != nil || len(files) != len(packages) {
		return "", fmt.Errorf("apt-get download has left %d files: %w", len(files), err)
	}
	into := filepath.Join(making, "root")
	for _, file := range files {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", file, into).CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot unpack %s: %w: %s", filepath.Base(file), err, out)
		}
	}
	if err := os.Rename(into, made); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return "", err
	}
	return made, nil
}

// newKey makes a key: as a signer, as OpenSSH's file, and its public half.
func newKey(t testing.TB) (signer ssh.Signer, private, public []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block), ssh.MarshalAuthorizedKey(signer.PublicKey())
}

func (l *Lab) write(name string, content []byte) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// ip runs ip, which must succeed.
func (l *Lab) ip(args ...string) {
	l.t.Helper()
	if out, err := exec.CommandContext(l.t.Context(), "ip", args...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// try runs a program when the test has ended.
func (l *Lab) try(name string, args ...string) {
	if out, err := exec.CommandContext(context.WithoutCancel(l.t.Context()), name, args...).CombinedOutput(); err != nil {
		l.t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// namespace is the host's network namespace, link its end on the bridge.
func (h *Host) namespace() string { return fmt.Sprintf("%s-%d", h.lab.bridge, h.index) }
func (h *Host) link() string      { return fmt.Sprintf("%sv%d", h.lab.bridge, h.index) }

// connect makes the host's network.
func (h *Host) connect() {
	h.lab.t.Helper()
	address, _, _ := strings.Cut(h.Address, ":")
	h.lab.ip("netns", "add", h.namespace())
	h.lab.t.Cleanup(func() { h.lab.try("ip", "netns", "del", h.namespace()) })
	h.lab.ip("link", "add", h.link(), "type", "veth", "peer", "name", "eth0", "netns", h.namespace())
	// A namespace goes some time after its last process; its link need not wait for that.
	h.lab.t.Cleanup(func() { h.lab.try("ip", "link", "del", h.link()) })
	h.lab.ip("link", "set", h.link(), "master", h.lab.bridge)
	h.lab.ip("-n", h.namespace(), "addr", "add", address+"/24", "dev", "eth0")
	// It need not be asked whether another host has this one.
	h.lab.ip("-n", h.namespace(), "addr", "add", h.IPv6()+"/64", "dev", "eth0", "nodad")
	h.lab.ip("-n", h.namespace(), "link", "set", "eth0", "up")
	h.Plug()
}

// Plug connects the host with the network, and Unplug cuts it off.
func (h *Host) Plug() { h.lab.ip("link", "set", h.link(), "up") }

// Unplug cuts the host off from the network.
func (h *Host) Unplug() { h.lab.ip("link", "set", h.link(), "down") }

// Start starts the host as one that was never used, with a new host key, and waits until
// its server answers. The host must not run.
func (h *Host) Start() {
	h.lab.t.Helper()
	if err := os.RemoveAll(h.disk()); err != nil {
		h.lab.t.Fatal(err)
	}
	_, key, _ := newKey(h.lab.t)
	h.lab.write(h.Name+".key", key)
	h.Boot()
}

// Boot starts the host with what is on its disk, and waits until its server answers. The
// host must not run.
func (h *Host) Boot() {
	h.lab.t.Helper()
	if err := h.runner.Start(h.lab.t.Context()); err != nil {
		h.lab.t.Fatal(err)
	}
}

// Kill ends the host at once, with all that runs on it. Its disk stays.
func (h *Host) Kill() {
	h.lab.t.Helper()
	if err := h.runner.Kill(); err != nil {
		h.lab.t.Fatal(err)
	}
}

// disk is where the host's own files are.
func (h *Host) disk() string { return filepath.Join(h.lab.disks, h.Name) }

// File returns what is in a file of the host; empty where there is none. It is one of /etc
// or /var/lib.
func (h *Host) File(path string) string {
	below := strings.Replace(strings.Replace(path, "/var/lib/", "lib/", 1), "/etc/", "etc/", 1)
	data, err := os.ReadFile(filepath.Join(h.disk(), below))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.lab.t.Fatal(err)
	}
	return string(data)
}

// Files returns what is in the files of the host that match patterns, by their names. They
// are ones of /var/lib, or of /var/log of a real host.
func (h *Host) Files(patterns ...string) map[string]string {
	found := map[string]string{}
	below := strings.NewReplacer("/var/lib/", "lib/", "/var/log/", "bare/log/")
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(h.disk(), below.Replace(pattern)))
		if err != nil {
			h.lab.t.Fatal(err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				found[strings.TrimPrefix(file, h.disk())] = string(data)
			}
		}
	}
	return found
}

// prepare says how the host is run, and has it end with the test.
func (h *Host) prepare() {
	t := h.lab.t
	t.Helper()
	config := strings.Join([]string{
		"ListenAddress " + h.Address, "HostKey " + filepath.Join(h.lab.dir, h.Name+".key"), "AuthorizedKeysFile /etc/ssh/lab_keys", "StrictModes no",
		"UsePAM no", "PasswordAuthentication no", "PermitRootLogin yes", "PidFile none",
		// A proxy that leads nowhere: nothing of a cluster may be asked for there.
		"SetEnv HTTPS_PROXY=http://192.0.2.1:3128 https_proxy=http://192.0.2.1:3128", "",
	}, "\n")
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	// ip netns exec would hide the control groups.
	command := []string{"nsenter", "--net=/run/netns/" + h.namespace(), "--", "unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"}
	var groups []string
	if h.lab.plugins != "" {
		command = append(command, "--cgroup")
		groups = h.makeGroups()
	}
	h.runner, err = controlplane.NewRunner(controlplane.Program{
		Name: h.Name, Path: shell, Dir: h.lab.dir, Healthy: h.answers,
		Args: enterGroups(groups, append(command, "sh", "-c", hostScript)...),
		Env: []string{
			"NAME=" + h.Name, "LIB=" + h.lab.libraries, "SSHD=" + h.lab.server, "PROGRAMS=" + h.lab.programs, "DISK=" + h.disk(),
			"DEBIAN=" + h.lab.debian, "PLUGINS=" + h.lab.plugins, "SUDOER=" + Sudoer, "KEYS=" + filepath.Join(h.lab.dir, "authorized_keys"),
			"CONFIG=" + h.lab.write(h.Name+".config", []byte(config)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.runner.Kill(); err != nil {
			t.Error(err)
		}
	})
}

// answers tells whether the host's server listens.
func (h *Host) answers(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}
