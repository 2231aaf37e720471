// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sshtest has SSH servers for tests, whose commands are functions.
package sshtest

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
)

// Machine is an SSH server whose commands are functions. It lets one key in.
type Machine struct {
	// Address with its port, and User who is let in.
	Address string
	User    cryptossh.Signer
	// Mu guards Host, the key of the machine.
	Mu   sync.Mutex
	Host cryptossh.Signer
	// Logins counts attempts to log in.
	Logins atomic.Int32
	// Forward returns where an address leads from the machine; nil for the address itself.
	Forward func(address string) string
	// run plays a command, and returns its status; below 0 there is none.
	run func(line string, channel cryptossh.Channel) int
}

// Held begins the line of a script that is held, such as the one that locks a host.
const Held = "sh -c "

// NewKey makes a key.
func NewKey(t testing.TB) cryptossh.Signer {
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

// Listen listens until the test ends, and gives each connection to a function.
func Listen(t testing.TB, serve func(net.Conn)) string {
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

// New starts a machine.
func New(t testing.TB, run func(line string, channel cryptossh.Channel) int) *Machine {
	t.Helper()
	m := &Machine{Host: NewKey(t), User: NewKey(t), run: run}
	m.Address = Listen(t, m.serve)
	return m
}

func (m *Machine) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	config := &cryptossh.ServerConfig{PublicKeyCallback: func(_ cryptossh.ConnMetadata, key cryptossh.PublicKey) (*cryptossh.Permissions, error) {
		m.Logins.Add(1)
		if !bytes.Equal(key.Marshal(), m.User.PublicKey().Marshal()) {
			return nil, cryptossh.ErrNoAuth
		}
		return nil, nil
	}}
	m.Mu.Lock()
	config.AddHostKey(m.Host)
	m.Mu.Unlock()
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
			go m.forward(asked)
		default:
			_ = asked.Reject(cryptossh.UnknownChannelType, "no")
		}
	}
}

// session plays what is asked for in a session.
func (m *Machine) session(asked cryptossh.NewChannel) {
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
		// Root's rights, the program that ends it in time, its options, and the command; a
		// held one has none.
		line := strings.TrimPrefix(command.Line, "sudo -n ")
		if words := strings.SplitN(line, " ", 5); len(words) == 5 && strings.Join(words[:3], " ") == "timeout -s KILL" {
			line = words[4]
		} else if !strings.HasPrefix(line, "hold") && !strings.HasPrefix(line, Held) {
			return
		}
		if status := m.run(line, channel); status >= 0 {
			_, _ = channel.SendRequest("exit-status", false, cryptossh.Marshal(struct{ Status uint32 }{uint32(status)})) //nolint:gosec // a test says it
		}
		return
	}
}

// forward reaches where the client asks for.
func (m *Machine) forward(asked cryptossh.NewChannel) {
	var to struct {
		Host   string
		Port   uint32
		From   string
		Source uint32
	}
	_ = cryptossh.Unmarshal(asked.ExtraData(), &to)
	address := net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port)))
	if m.Forward != nil {
		address = m.Forward(address)
	}
	conn, err := net.Dial("tcp", address)
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
