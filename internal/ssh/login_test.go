// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/ssh/sshtest"
	"github.com/strata-project/strata/internal/sshsig"
)

// keyFile writes a new private key into a file, and returns it.
func keyFile(t *testing.T, path, passphrase string) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase != "" {
		block, err = cryptossh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	} else {
		block, err = cryptossh.MarshalPrivateKey(key, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, pem.EncodeToMemory(block))
	return key
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func signerOf(t *testing.T, key ed25519.PrivateKey) cryptossh.Signer {
	t.Helper()
	signer, err := cryptossh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// certify writes a certificate of a key, by an authority, and returns the authority.
func certify(t *testing.T, path string, key ed25519.PrivateKey) cryptossh.PublicKey {
	t.Helper()
	authority := sshtest.NewKey(t)
	certificate := &cryptossh.Certificate{
		Key: signerOf(t, key).PublicKey(), CertType: cryptossh.UserCert, ValidPrincipals: []string{"core"}, ValidBefore: cryptossh.CertTimeInfinity,
	}
	if err := certificate.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	put(t, path, cryptossh.MarshalAuthorizedKey(certificate))
	return authority.PublicKey()
}

// letsIn tells whether a machine that lets one key in is entered by a login.
func letsIn(t *testing.T, login ssh.Login, key ed25519.PrivateKey) bool {
	t.Helper()
	methods, closeAgent, err := login.Methods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeAgent()
	m := sshtest.New(t, nil)
	m.User = signerOf(t, key)
	target := target(m, "m")
	target.Auth = methods
	client, err := ssh.Dial(t.Context(), target)
	if err != nil {
		return false
	}
	return client.Close() == nil
}

func TestKeysAreFound(t *testing.T) {
	dir := t.TempDir()
	named, usual := keyFile(t, filepath.Join(dir, "key"), ""), keyFile(t, filepath.Join(dir, "id_ed25519"), "")
	_, held, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "agent")
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: held}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
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
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()
	for name, tc := range map[string]struct {
		login ssh.Login
		key   ed25519.PrivateKey
		want  bool
	}{
		"a file":                {ssh.Login{KeyFile: filepath.Join(dir, "key"), Dir: dir}, named, true},
		"a file, and no other":  {ssh.Login{KeyFile: filepath.Join(dir, "key"), Dir: dir}, usual, false},
		"the usual one":         {ssh.Login{Dir: dir}, usual, true},
		"the agent":             {ssh.Login{Agent: socket, Dir: dir}, held, true},
		"the agent, no file":    {ssh.Login{Agent: socket, Dir: dir}, usual, false},
		"the agent and a file":  {ssh.Login{Agent: socket, KeyFile: filepath.Join(dir, "key")}, held, true},
		"the file of those two": {ssh.Login{Agent: socket, KeyFile: filepath.Join(dir, "key")}, named, true},
	} {
		if got := letsIn(t, tc.login, tc.key); got != tc.want {
			t.Errorf("%s: let in %t", name, got)
		}
	}
}

// Of several keys the one that a machine lets in is known afterwards, and signs: one of a file,
// or of an agent.
func TestKeyThatWasLetInIsKnown(t *testing.T) {
	dir := t.TempDir()
	named := keyFile(t, filepath.Join(dir, "key"), "")
	ring, socket := agent.NewKeyring(), filepath.Join(dir, "agent")
	var held []ed25519.PrivateKey
	for range 3 {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
		held = append(held, key)
	}
	listener, err := net.Listen("unix", socket)
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
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()
	for name, key := range map[string]ed25519.PrivateKey{"the file": named, "the first of the agent": held[0], "the last of the agent": held[2]} {
		keys, err := ssh.Login{KeyFile: filepath.Join(dir, "key"), Agent: socket}.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(keys.Close)
		if len(keys.Public()) != 4 || !bytes.Equal(keys.Signer().PublicKey().Marshal(), signerOf(t, named).PublicKey().Marshal()) {
			t.Errorf("%s: before anybody was let in it is %v of %d", name, keys.Signer().PublicKey(), len(keys.Public()))
		}
		m := sshtest.New(t, nil)
		m.User = signerOf(t, key)
		at := target(m, "m")
		at.Auth = keys.Recorded()
		client, err := ssh.Dial(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(keys.Signer().PublicKey().Marshal(), m.User.PublicKey().Marshal()) {
			t.Errorf("%s: another key is taken for the one that was let in", name)
		}
		if _, err := sshsig.Sign(keys.Signer(), "test", []byte("message")); err != nil {
			t.Errorf("%s does not sign: %v", name, err)
		}
	}
}

// A key that has a certificate beside it logs in with that.
func TestCertificateIsUsed(t *testing.T) {
	dir := t.TempDir()
	key := keyFile(t, filepath.Join(dir, "key"), "")
	for _, file := range []string{"key-cert.pub", "other.pub"} {
		authority := certify(t, filepath.Join(dir, file), key)
		login := ssh.Login{KeyFile: filepath.Join(dir, "key")}
		if file != "key-cert.pub" {
			login.CertificateFile = filepath.Join(dir, file)
		}
		methods, _, err := login.Methods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checker := &cryptossh.CertChecker{IsUserAuthority: func(k cryptossh.PublicKey) bool { return bytes.Equal(k.Marshal(), authority.Marshal()) }}
		host := sshtest.NewKey(t)
		address := sshtest.Listen(t, func(conn net.Conn) {
			config := &cryptossh.ServerConfig{PublicKeyCallback: checker.Authenticate}
			config.AddHostKey(host)
			if server, channels, requests, err := cryptossh.NewServerConn(conn, config); err == nil {
				go cryptossh.DiscardRequests(requests)
				for range channels {
				}
				_ = server.Close()
			}
		})
		client, err := ssh.Dial(t.Context(), ssh.Target{
			Name: "m", Address: address, User: "core", Auth: methods, HostKeys: []string{string(cryptossh.MarshalAuthorizedKey(host.PublicKey()))},
		})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		_ = client.Close()
	}
}

// What is no key is said, with its file, and without what is in it.
func TestKeysThatAreNone(t *testing.T) {
	dir := t.TempDir()
	key := keyFile(t, filepath.Join(dir, "key"), "")
	keyFile(t, filepath.Join(dir, "locked"), "secret")
	keyFile(t, filepath.Join(dir, "another"), "")
	put(t, filepath.Join(dir, "garbage"), []byte("SECRET"))
	put(t, filepath.Join(dir, "large"), make([]byte, 2<<20))
	put(t, filepath.Join(dir, "public"), cryptossh.MarshalAuthorizedKey(signerOf(t, key).PublicKey()))
	certify(t, filepath.Join(dir, "certificate"), key)
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, tc := range map[string]struct {
		login ssh.Login
		want  string
	}{
		"none":                   {ssh.Login{Dir: filepath.Join(dir, "empty")}, "there is no SSH key: give --ssh-key"},
		"a file that is missing": {ssh.Login{KeyFile: at("none")}, "cannot read the SSH key"},
		"a passphrase":           {ssh.Login{KeyFile: at("locked")}, "locked has a passphrase: add it to an agent with ssh-add"},
		"garbage":                {ssh.Login{KeyFile: at("garbage")}, "garbage is no private key"},
		"too large":              {ssh.Login{KeyFile: at("large")}, "has more than"},
		"a public key":           {ssh.Login{KeyFile: at("public")}, "public is no private key"},
		"no certificate":         {ssh.Login{KeyFile: at("key"), CertificateFile: at("none")}, "cannot read the SSH certificate"},
		"a key for one":          {ssh.Login{KeyFile: at("key"), CertificateFile: at("public")}, "public is a key and no certificate"},
		"garbage for one":        {ssh.Login{KeyFile: at("key"), CertificateFile: at("garbage")}, "garbage is no SSH certificate"},
		"that of another key":    {ssh.Login{KeyFile: at("another"), CertificateFile: at("certificate")}, "is the certificate of another key"},
		"no agent":               {ssh.Login{Agent: at("none")}, "the SSH agent at"},
	} {
		_, _, err := tc.login.Methods(t.Context())
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
