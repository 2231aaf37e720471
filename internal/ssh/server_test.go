// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/ssh"
)

// machine is an SSH server whose commands are functions. It lets one key in.
type machine struct {
	address string
	user    cryptossh.Signer
	mu      sync.Mutex
	host    cryptossh.Signer
	// logins counts attempts to log in.
	logins atomic.Int32
	// run plays a command, and returns its status; below 0 there is none.
	run func(line string, channel cryptossh.Channel) int
}

// newKey makes a key.
func newKey(t *testing.T) cryptossh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cryptossh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// listen listens until the test ends, and gives each connection to a function.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

// newMachine starts a machine.
func newMachine(t *testing.T, run func(line string, channel cryptossh.Channel) int) *machine {
	t.Helper()
	m := &machine{host: newKey(t), user: newKey(t), run: run}
	m.address = listen(t, m.serve)
	return m
}

func (m *machine) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	config := &cryptossh.ServerConfig{PublicKeyCallback: func(_ cryptossh.ConnMetadata, key cryptossh.PublicKey) (*cryptossh.Permissions, error) {
		m.logins.Add(1)
		if !bytes.Equal(key.Marshal(), m.user.PublicKey().Marshal()) {
			return nil, cryptossh.ErrNoAuth
		}
		return nil, nil
	}}
	m.mu.Lock()
	config.AddHostKey(m.host)
	m.mu.Unlock()
	_, channels, requests, err := cryptossh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go cryptossh.DiscardRequests(requests)
	for asked := range channels {
		switch asked.ChannelType() {
		case "session":
			go m.session(asked)
		case "direct-tcpip":
			go forward(asked)
		default:
			_ = asked.Reject(cryptossh.UnknownChannelType, "no")
		}
	}
}

// session plays what is asked for in a session.
func (m *machine) session(asked cryptossh.NewChannel) {
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer func() { _ = channel.Close() }()
	for request := range requests {
		if request.Type != "exec" {
			continue
		}
		var command struct{ Line string }
		_ = cryptossh.Unmarshal(request.Payload, &command)
		_ = request.Reply(true, nil)
		go cryptossh.DiscardRequests(requests)
		// The program that ends it in time, its options, and the command; a held one has none.
		line := command.Line
		if words := strings.SplitN(line, " ", 5); len(words) == 5 && strings.Join(words[:3], " ") == "timeout -s KILL" {
			line = words[4]
		} else if !strings.HasPrefix(line, "hold") {
			return
		}
		if status := m.run(line, channel); status >= 0 {
			_, _ = channel.SendRequest("exit-status", false, cryptossh.Marshal(struct{ Status uint32 }{uint32(status)}))
		}
		return
	}
}

// forward reaches where the client asks for.
func forward(asked cryptossh.NewChannel) {
	var to struct {
		Host   string
		Port   uint32
		From   string
		Source uint32
	}
	_ = cryptossh.Unmarshal(asked.ExtraData(), &to)
	conn, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = asked.Reject(cryptossh.ConnectionFailed, "no")
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	go cryptossh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(channel, conn)
		_ = channel.Close()
	}()
	_, _ = io.Copy(conn, channel)
	_ = conn.Close()
}

// target returns how the machine is reached, by its own host key.
func (m *machine) target(name string) ssh.Target {
	return ssh.Target{
		Name: name, Address: m.address, User: "core", Auth: []cryptossh.AuthMethod{cryptossh.PublicKeys(m.user)},
		HostKeys: []string{string(cryptossh.MarshalAuthorizedKey(m.host.PublicKey()))},
	}
}
