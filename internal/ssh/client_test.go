// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/ssh/sshtest"
)

// dialed connects to a machine.
func dialed(t *testing.T, target ssh.Target) *ssh.Client {
	t.Helper()
	client, err := ssh.Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestRunACommand(t *testing.T) {
	m := sshtest.New(t, func(line string, channel cryptossh.Channel) int {
		input, _ := io.ReadAll(channel)
		_, _ = io.WriteString(channel, line+" got "+string(input))
		_, _ = io.WriteString(channel.Stderr(), "beside")
		return 3
	})
	var followed bytes.Buffer
	result, err := dialed(t, target(m, "cp-0")).Run(t.Context(), ssh.Command{Line: "sh -s", Input: []byte("a secret"), Follow: &followed})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(result.Output); got != "sh -s got a secret" || followed.String() != got || string(result.Errors) != "beside" || result.Status != 3 {
		t.Errorf("%q %q %d, followed %q", result.Output, result.Errors, result.Status, &followed)
	}
}

// A machine with another key than the named one gets nothing, not even a name.
func TestAnotherHostKeyStopsBeforeTheLogin(t *testing.T) {
	m := sshtest.New(t, nil)
	target := target(m, "cp-0")
	target.HostKeys = []string{string(cryptossh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey()))}
	_, err := ssh.Dial(t.Context(), target)
	var differs *ssh.KeyError
	if !errors.As(err, &differs) || differs.Got != cryptossh.FingerprintSHA256(m.Host.PublicKey()) {
		t.Errorf("error %v", err)
	}
	if n := m.Logins.Load(); n > 0 {
		t.Errorf("%d attempts to log in", n)
	}
	target.HostKeys = []string{"ssh-ed25519 nonsense"}
	if _, err := ssh.Dial(t.Context(), target); err == nil || !strings.Contains(err.Error(), "cp-0: host key 1 is none") {
		t.Errorf("error %v", err)
	}
	target.HostKeys = nil
	if _, err := ssh.Dial(t.Context(), target); err == nil || !strings.Contains(err.Error(), "neither a host key nor a place for one") {
		t.Errorf("error %v", err)
	}
}

// The first key of a machine is kept in a file, beside what is there, and no other one is
// taken after it.
func TestFirstHostKeyIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "known_hosts")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	before := "# ours\nother.example.com " + strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey())))
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	m := sshtest.New(t, func(string, cryptossh.Channel) int { return 0 })
	pinned := func() ssh.Target {
		pins, err := ssh.OpenPins(path)
		if err != nil {
			t.Fatal(err)
		}
		target := target(m, "cp-0")
		target.HostKeys, target.Pins = nil, pins
		return target
	}
	for range 2 {
		dialed(t, pinned())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n"); !strings.HasPrefix(string(content), before+"\n") || len(lines) != 3 {
		t.Errorf("the file is %q", content)
	}
	logins := m.Logins.Load()
	m.Mu.Lock()
	m.Host = sshtest.NewKey(t)
	m.Mu.Unlock()
	var differs *ssh.KeyError
	if _, err := ssh.Dial(t.Context(), pinned()); !errors.As(err, &differs) || !strings.Contains(err.Error(), "known_hosts:3") {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the file is %q, %v", after, err)
	}
	if n := m.Logins.Load(); n != logins {
		t.Errorf("%d attempts to log in after %d", n, logins)
	}
}

// Of host keys that are fixed none is added: a machine that they do not have, and one that
// has changed, are not logged in to.
func TestFixedHostKeys(t *testing.T) {
	m := sshtest.New(t, func(string, cryptossh.Channel) int { return 0 })
	dial := func(known string) error {
		t.Helper()
		pins, err := ssh.FixedPins([]byte(known))
		if err != nil {
			t.Fatal(err)
		}
		target := target(m, "cp-0")
		target.HostKeys, target.Pins = nil, pins
		client, err := ssh.Dial(t.Context(), target)
		if err == nil {
			_ = client.Close()
		}
		return err
	}
	line := func(key cryptossh.PublicKey) string { return knownhosts.Line([]string{target(m, "cp-0").Address}, key) }
	if err := dial(line(m.Host.PublicKey())); err != nil {
		t.Error(err)
	}
	logins := m.Logins.Load()
	var differs *ssh.KeyError
	if err := dial(""); !errors.As(err, &differs) || !strings.Contains(err.Error(), "which nobody has named: compare it") {
		t.Errorf("error %v", err)
	}
	if err := dial("# ours\n" + line(sshtest.NewKey(t).PublicKey())); !errors.As(err, &differs) || !strings.Contains(err.Error(), "(known_hosts:2)") {
		t.Errorf("error %v", err)
	}
	if n := m.Logins.Load(); n != logins {
		t.Errorf("%d attempts to log in after %d", n, logins)
	}
	if _, err := ssh.FixedPins([]byte("nonsense")); err == nil || !strings.Contains(err.Error(), "known_hosts:1") || strings.Contains(err.Error(), os.TempDir()) {
		t.Errorf("error %v", err)
	}
}

// A key that the file revokes is not taken, and nothing is sent.
func TestRevokedHostKey(t *testing.T) {
	m := sshtest.New(t, nil)
	path := filepath.Join(t.TempDir(), "known_hosts")
	line := "@revoked * " + string(cryptossh.MarshalAuthorizedKey(m.Host.PublicKey()))
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	pins, err := ssh.OpenPins(path)
	if err != nil {
		t.Fatal(err)
	}
	target := target(m, "cp-0")
	target.HostKeys, target.Pins = nil, pins
	if _, err := ssh.Dial(t.Context(), target); err == nil || !strings.HasPrefix(err.Error(), "cp-0: its host key is not taken: ") {
		t.Errorf("error %v", err)
	}
	if n := m.Logins.Load(); n > 0 {
		t.Errorf("%d attempts to log in", n)
	}
}

func TestKnownHostsThatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"nonsense": "one\ntwo three\n", "large": strings.Repeat("#\n", 3<<20)} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ssh.OpenPins(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestWrongUserKey(t *testing.T) {
	m := sshtest.New(t, nil)
	target := target(m, "cp-0")
	target.Auth = []cryptossh.AuthMethod{cryptossh.PublicKeys(sshtest.NewKey(t))}
	_, err := ssh.Dial(t.Context(), target)
	var denied *ssh.AuthError
	if !errors.As(err, &denied) || err.Error() != "cp-0 does not let core in: none of the keys is accepted" {
		t.Errorf("error %v", err)
	}
}

// Whatever answers at an address, the attempt ends with its name, and repeats nothing of
// what was answered.
func TestWhatIsNoSSHServer(t *testing.T) {
	const loud = "\x1b[31mHTTP/1.1 400 evil\r\n"
	serve := map[string]func(net.Conn){
		"silent":  func(net.Conn) {},
		"closing": func(conn net.Conn) { _ = conn.Close() },
		"garbage": func(conn net.Conn) {
			_, _ = io.WriteString(conn, loud)
			_ = conn.Close()
		},
		"endless": func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, loud); err != nil {
					return
				}
			}
		},
	}
	for name, serve := range serve {
		t.Run(name, func(t *testing.T) {
			at := target(&sshtest.Machine{Host: sshtest.NewKey(t), User: sshtest.NewKey(t), Address: sshtest.Listen(t, serve)}, "cp-7")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := ssh.Dial(ctx, at)
			if err == nil || !strings.Contains(err.Error(), "cp-7") || strings.Contains(err.Error(), "evil") || strings.ContainsRune(err.Error(), 0x1b) {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		at := target(&sshtest.Machine{Host: sshtest.NewKey(t), User: sshtest.NewKey(t), Address: "127.0.0.1:1"}, "cp-7")
		if _, err := ssh.Dial(t.Context(), at); err == nil || !strings.HasPrefix(err.Error(), "cp-7 cannot be reached: ") {
			t.Errorf("error %v", err)
		}
	})
}

// A command that does not end as it should ends all the same, and the machine can be used
// again.
func TestCommandsThatMisbehave(t *testing.T) {
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	m := sshtest.New(t, func(line string, channel cryptossh.Channel) int {
		switch line {
		case "endless":
			for {
				if _, err := channel.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
					return 0
				}
			}
		case "loud":
			_, _ = channel.Stderr().Write(bytes.Repeat([]byte("x"), 1<<17))
			<-stuck
		case "stuck":
			<-stuck
		case "closing":
			return -1
		}
		return 0
	})
	client := dialed(t, target(m, "cp-0"))
	for line, want := range map[string]string{
		"endless": "cp-0: it writes more than it may",
		"loud":    "cp-0: it writes more than it may",
		"stuck":   "cp-0: it takes longer than 300ms",
		"closing": "cp-0: the connection ends before the command does",
	} {
		result, err := client.Run(t.Context(), ssh.Command{Line: line, Timeout: 300 * time.Millisecond, MaxOutput: 1 << 16})
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v", line, err)
		}
		if errors.Is(err, ssh.ErrTooMuch) != strings.Contains(want, "more than it may") || len(result.Output) > 1<<16 {
			t.Errorf("%s: %d bytes, error %v", line, len(result.Output), err)
		}
	}
	if _, err := client.Run(t.Context(), ssh.Command{Line: "fine"}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Run(ctx, ssh.Command{Line: "fine"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A machine behind another one is reached with its own key and host key.
func TestThroughABastion(t *testing.T) {
	inner := sshtest.New(t, func(string, cryptossh.Channel) int { return 0 })
	bastion := sshtest.New(t, nil)
	client := dialed(t, target(bastion, "bastion"))
	through, err := client.Through(t.Context(), target(inner, "cp-0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = through.Close() }()
	if _, err := through.Run(t.Context(), ssh.Command{Line: "fine"}); err != nil {
		t.Error(err)
	}
	away := target(inner, "cp-1")
	away.Address = "127.0.0.1:1"
	if _, err := client.Through(t.Context(), away); err == nil || !strings.HasPrefix(err.Error(), "through bastion: cp-1 cannot be reached: ") {
		t.Errorf("error %v", err)
	}
	changed := target(inner, "cp-0")
	changed.HostKeys = target(bastion, "").HostKeys
	var differs *ssh.KeyError
	if _, err := client.Through(t.Context(), changed); !errors.As(err, &differs) {
		t.Errorf("error %v", err)
	}
}

// A machine that goes without a word is given up, and what runs on it ends long before its
// time.
func TestMachineThatNoLongerAnswers(t *testing.T) {
	began, stuck := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	m := sshtest.New(t, func(string, cryptossh.Channel) int {
		close(began)
		<-stuck
		return 0
	})
	// What the machine says arrives until the command runs, and nothing after it.
	address := sshtest.Listen(t, func(conn net.Conn) {
		server, err := net.Dial("tcp", m.Address)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(server, conn) }()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			select {
			case <-began:
			default:
				_, _ = conn.Write(buffer[:n])
			}
		}
	})
	target := target(m, "cp-0")
	target.Address = address
	client := dialed(t, target)
	client.WatchEvery(20 * time.Millisecond)
	if _, err := client.Run(t.Context(), ssh.Command{Line: "stuck"}); err == nil || err.Error() != "cp-0: it no longer answers" {
		t.Errorf("error %v", err)
	}
}

// A connection that is cut ends what runs on it.
func TestCutConnection(t *testing.T) {
	began, stuck := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	m := sshtest.New(t, func(string, cryptossh.Channel) int {
		close(began)
		<-stuck
		return 0
	})
	var cut net.Conn
	proxied := make(chan struct{})
	address := sshtest.Listen(t, func(conn net.Conn) {
		server, err := net.Dial("tcp", m.Address)
		if err != nil {
			return
		}
		cut = server
		close(proxied)
		go func() { _, _ = io.Copy(server, conn) }()
		_, _ = io.Copy(conn, server)
		_ = conn.Close()
	})
	target := target(m, "cp-0")
	target.Address = address
	client := dialed(t, target)
	<-proxied
	go func() {
		<-began
		_ = cut.Close()
	}()
	if _, err := client.Run(t.Context(), ssh.Command{Line: "stuck"}); err == nil || err.Error() != "cp-0: the connection ends before the command does" {
		t.Errorf("error %v", err)
	}
}

// target returns how a machine is reached, by its own host key.
func target(m *sshtest.Machine, name string) ssh.Target {
	return ssh.Target{
		Name: name, Address: m.Address, User: "core", Auth: []cryptossh.AuthMethod{cryptossh.PublicKeys(m.User)},
		HostKeys: []string{string(cryptossh.MarshalAuthorizedKey(m.Host.PublicKey()))},
	}
}
