// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machines holds the connections to the hosts of a cluster: one for each, through
// a bastion where there is one, made when it is first used.
package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/ssh"
)

// Access is how somebody logs in.
type Access struct {
	// Auth of hosts, and BastionAuth of the bastion.
	Auth, BastionAuth []cryptossh.AuthMethod
	// Pins keep the host keys that the manifest does not name.
	Pins *ssh.Pins
	// Dial makes the connections to the bastion, or to hosts where there is none; nil for the
	// usual way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// May says why a host must not be reached through the bastion, which makes that
	// connection; nil for no limit.
	May func(host string) error
}

// Machines are the hosts of one cluster. It is safe for concurrent use.
type Machines struct {
	cluster *v1alpha1.HostCluster
	access  Access

	mu      sync.Mutex
	bastion *dialled
	hosts   map[string]*dialled
}

// dialled is a connection that is made once.
type dialled struct {
	once   sync.Once
	client *ssh.Client
	err    error
}

// Open returns the machines of a cluster whose defaults are filled in. It connects to none
// yet.
func Open(cluster *v1alpha1.HostCluster, access Access) *Machines {
	if access.Dial == nil {
		access.Dial = (&net.Dialer{}).DialContext
	}
	return &Machines{cluster: cluster, access: access, hosts: map[string]*dialled{}}
}

// Close ends all connections.
func (m *Machines) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, host := range m.hosts {
		host.close()
	}
	m.hosts = map[string]*dialled{}
	if m.bastion != nil {
		m.bastion.close()
		m.bastion = nil
	}
}

func (d *dialled) close() {
	d.once.Do(func() { d.err = net.ErrClosed })
	if d.client != nil {
		_ = d.client.Close()
	}
}

// Client returns the connection to a host, which is made when there is none. One that
// failed is not tried again.
func (m *Machines) Client(ctx context.Context, name string) (*ssh.Client, error) {
	host, _, err := hostclusters.ByName(m.cluster, name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	d := m.hosts[name]
	if d == nil {
		d = &dialled{}
		m.hosts[name] = d
	}
	m.mu.Unlock()
	d.once.Do(func() {
		d.client, d.err = m.dial(ctx, ssh.Target{
			Name: name, Address: join(host.SSHAddress, host.SSHPort), User: host.SSHUser,
			Auth: m.access.Auth, HostKeys: host.HostKeys, Pins: m.access.Pins,
		})
	})
	return d.client, d.err
}

// Forget ends the connection to a host, so that the next use makes another one. A host that
// was never reached stays so: each attempt may take long.
func (m *Machines) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.hosts[name]; d != nil && d.client != nil {
		d.close()
		delete(m.hosts, name)
	}
}

func (m *Machines) dial(ctx context.Context, target ssh.Target) (*ssh.Client, error) {
	if m.cluster.Spec.SSH.Bastion == nil {
		return ssh.DialOver(ctx, target, m.access.Dial)
	}
	if m.access.May != nil {
		host, _, err := net.SplitHostPort(target.Address)
		if err == nil {
			err = m.access.May(host)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", target.Name, err)
		}
	}
	bastion, err := m.throughBastion(ctx)
	if err != nil {
		return nil, err
	}
	return bastion.Through(ctx, target)
}

// throughBastion returns the connection to the bastion.
func (m *Machines) throughBastion(ctx context.Context) (*ssh.Client, error) {
	spec := m.cluster.Spec.SSH.Bastion
	m.mu.Lock()
	if m.bastion == nil {
		m.bastion = &dialled{}
	}
	d := m.bastion
	m.mu.Unlock()
	d.once.Do(func() {
		d.client, d.err = ssh.DialOver(ctx, ssh.Target{
			Name: "the bastion", Address: join(spec.Address, spec.Port), User: spec.User,
			Auth: m.access.BastionAuth, HostKeys: spec.HostKeys, Pins: m.access.Pins,
		}, m.access.Dial)
	})
	return d.client, d.err
}

func join(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// Run runs a script on a host as root: the input of the command, unless it has a line.
func (m *Machines) Run(ctx context.Context, name string, command ssh.Command) (ssh.Result, error) {
	host, _, err := hostclusters.ByName(m.cluster, name)
	if err != nil {
		return ssh.Result{}, err
	}
	client, err := m.Client(ctx, name)
	if err != nil {
		return ssh.Result{}, err
	}
	if command.Line == "" {
		command.Line = "sh -s"
	}
	if host.SSHUser != "root" {
		command.Prefix = "sudo -n"
	}
	result, err := client.Run(ctx, command)
	if err == nil && host.SSHUser != "root" && (result.Status == 127 || result.Status == 1 && len(result.Output) == 0 && isSudo(result.Errors)) {
		return result, fmt.Errorf("%s: %w", name, ErrSudo)
	}
	return result, err
}

// Send runs a script on a host as root that reads a stream. The script is fixed text:
// everybody on the host may see it.
func (m *Machines) Send(ctx context.Context, name, script string, stream io.Reader, limit time.Duration) (ssh.Result, error) {
	return m.Run(ctx, name, ssh.Command{Line: asLine(script), Stream: stream, Timeout: limit})
}

// asLine is a script in a line for the login shell.
func asLine(script string) string { return "sh -c '" + strings.ReplaceAll(script, "'", `'\''`) + "'" }

// ErrSudo says that a user may not become root.
var ErrSudo = errors.New("its user needs sudo without a password")

// isSudo tells whether sudo itself has refused: its messages begin with its name.
func isSudo(said []byte) bool { return bytes.HasPrefix(said, []byte("sudo: ")) }

// Hold runs a script on a host as root that reads from its input, as ssh.Client.Hold does.
// The script is fixed text: everybody on the host may see it.
func (m *Machines) Hold(ctx context.Context, name, script, input string, limit time.Duration) (*ssh.Held, string, error) {
	host, _, err := hostclusters.ByName(m.cluster, name)
	if err != nil {
		return nil, "", err
	}
	client, err := m.Client(ctx, name)
	if err != nil {
		return nil, "", err
	}
	line := asLine(script)
	if host.SSHUser != "root" {
		line = "sudo -n " + line
	}
	return client.Hold(ctx, line, input, limit)
}
