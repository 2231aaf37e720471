// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"github.com/strata-project/strata/test/lab"
)

// repository is a repository of Debian packages that a test makes, signed by a key of its
// own.
type repository struct {
	t      *testing.T
	root   string
	key    *openpgp.Entity
	served string
}

// newRepository serves a folder to the hosts of a lab.
func newRepository(t *testing.T, l *lab.Lab) *repository {
	t.Helper()
	key, err := openpgp.NewEntity("Packages", "", "packages@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{t: t, root: t.TempDir(), key: key}
	listener, err := net.Listen("tcp", l.IP()+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(r.root)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	r.served = "http://" + listener.Addr().String()
	return r
}

// armored is the public key.
func (r *repository) armored() string {
	r.t.Helper()
	text := &bytes.Buffer{}
	encoder, err := armor.Encode(text, openpgp.PublicKeyType, nil)
	if err == nil {
		err = r.key.Serialize(encoder)
	}
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return text.String()
}

func (r *repository) write(path string, content []byte) {
	r.t.Helper()
	file := filepath.Join(r.root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// build makes a package with programs of the lab in /usr/bin, and returns its entry in the
// list of packages.
func (r *repository) build(below, name, version string, programs ...string) string {
	r.t.Helper()
	tree := r.t.TempDir()
	bin := filepath.Join(tree, "usr", "bin")
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: Packages <packages@example.com>\nDescription: %s\n", name, version, name)
	for _, dir := range []string{bin, filepath.Join(tree, "DEBIAN")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "DEBIAN", "control"), []byte(control), 0o644); err != nil {
		r.t.Fatal(err)
	}
	for _, program := range programs {
		// One that comes from elsewhere is named with its path.
		path := program
		if !filepath.IsAbs(program) {
			var err error
			if path, err = lab.Program(r.t.Context(), program); err != nil {
				r.t.Fatal(err)
			}
		}
		copyProgram(r.t, path, filepath.Join(bin, filepath.Base(program)))
	}
	file := filepath.Join(below, name+".deb")
	r.write(file, nil)
	out, err := exec.CommandContext(r.t.Context(), "dpkg-deb", "-Znone", "--build", tree, filepath.Join(r.root, file)).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	sum := sha256.New()
	opened, err := os.Open(filepath.Join(r.root, file))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	size, err := io.Copy(sum, opened)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%sFilename: %s\nSize: %d\nSHA256: %x\n\n", control, name+".deb", size, sum.Sum(nil))
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// release signs a list of packages, which is at a path below where the release is.
func (r *repository) release(below, list, packages, codename string) {
	r.t.Helper()
	r.write(filepath.Join(below, list), []byte(packages))
	text := fmt.Sprintf("Origin: test\nSuite: %[1]s\nCodename: %[1]s\nDate: %[2]s\nComponents: stable\nArchitectures: amd64\nSHA256:\n %[3]x %[4]d %[5]s\n",
		codename, time.Now().UTC().Format(time.RFC1123), sha256.Sum256([]byte(packages)), len(packages), list)
	signed := &bytes.Buffer{}
	writer, err := clearsign.Encode(signed, r.key.PrivateKey, nil)
	if err == nil {
		_, err = io.WriteString(writer, text)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(filepath.Join(below, "InRelease"), signed.Bytes())
}

// A host without anything of Kubernetes gets its packages by the real apt, from
// repositories of the manifest whose key the manifest has or which give it themselves, and
// then becomes a cluster. Packages that somebody else has signed are not installed.
func TestPackagesAreInstalled(t *testing.T) {
	t.Parallel()
	l := lab.NewBare(t, 1)
	u := userOf(t, l)
	r := newRepository(t, l)
	var list strings.Builder
	for name, programs := range map[string][]string{
		// Static Pods run as processes of the host, so that their programs come along.
		"kubeadm": {"kubeadm", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}, "kubelet": {"kubelet"},
	} {
		list.WriteString(r.build("core/v1.36/deb", name, "1.36.3-1.1", programs...))
	}
	r.release("core/v1.36/deb", "Packages", list.String(), "kubernetes")
	codename := codenameOf(t)
	entry := r.build("docker/debian", "containerd.io", "2.2.0-1", "containerd")
	r.release("docker/debian/dists/"+codename, "stable/binary-amd64/Packages", entry, codename)
	r.write("docker/debian/gpg", []byte(r.armored()))

	u.must(2, []string{"plan"}, "Init cp-0")
	stranger, err := openpgp.NewEntity("Somebody", "", "else@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := (&repository{t: t, key: stranger}).armored()
	packages := func(key string) string {
		return "  packages:\n    containerd: {url: " + r.served + "/docker}\n    kubernetes:\n      url: " + r.served + "/core/{minor}/deb\n      key: |\n        " +
			strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n        ") + "\n"
	}
	u.add(packages(theirs))
	u.must(1, []string{"apply", "--yes"}, "cp-0: apt-get has failed: kubectl strata hosts logs has what it said")
	u.must(0, []string{"logs", "cp-0"}, "apt-get")
	if u.run(l.Hosts()[0], "command -v kubeadm || echo none") != "none\n" {
		t.Error("packages of a stranger were installed")
	}
	u.write("edge", l.Hosts()...)
	u.add(packages(r.armored()))
	u.must(0, []string{"apply", "--yes"}, "cp-0 installs the packages of v1.36.3", "Done: ")
	if held := u.run(l.Hosts()[0], "apt-mark showhold"); !strings.Contains(held, "kubeadm\n") || !strings.Contains(held, "containerd.io\n") {
		t.Errorf("packages are not held: %s", held)
	}
}

// codenameOf returns that of the machine, which its hosts have, too.
func codenameOf(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^VERSION_CODENAME=(.*)$`).FindSubmatch(data)
	if found == nil {
		t.Skip("the machine is no Debian with a codename")
	}
	return string(found[1])
}
