// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// maxPins is how large a file of known hosts may be.
const maxPins = 4 << 20

// KeyError says that a machine has another host key than the one it is known by. Somebody
// may be in between, or the machine is another one.
type KeyError struct {
	// Host as it was asked for.
	Host string
	// Got is the fingerprint of the key that was offered.
	Got string
	// Want are the fingerprints that were expected, or where they are written; none where
	// the machine is not known, and must be.
	Want []string
}

// Error says which key differs, and what to do.
func (e *KeyError) Error() string {
	if len(e.Want) == 0 {
		return fmt.Sprintf("%s has the host key %s, which nobody has named: compare it with that of the machine, and name it", e.Host, e.Got)
	}
	return fmt.Sprintf("%s has the host key %s, and not %s: somebody may be in between. If the machine was made anew, name its new key", e.Host, e.Got, e.Want)
}

// Pins are the host keys that machines were found to have: a file in the format of
// OpenSSH's known_hosts. It is safe for concurrent use.
type Pins struct {
	// path of the file; empty where no key is added.
	path string

	mu sync.Mutex
	// known is what the file says; nil while there is none.
	known ssh.HostKeyCallback
}

// OpenPins reads a file of known hosts; one that is missing has none. It is made when the
// first key is kept. An error names the file and its line.
func OpenPins(path string) (*Pins, error) {
	p := &Pins{path: path}
	return p, p.read()
}

// FixedPins are the host keys of a text in the format of known_hosts: of a machine that is
// not in it, no key is taken. An error names the line.
func FixedPins(text []byte) (*Pins, error) {
	if len(text) > maxPins {
		return nil, fmt.Errorf("has more than %d bytes", maxPins)
	}
	// The package reads files alone.
	file, err := os.CreateTemp("", "known_hosts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	known, err := knownhosts.New(file.Name())
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), file.Name(), "known_hosts"))
	}
	return &Pins{known: known}, nil
}

func (p *Pins) read() error {
	info, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the known hosts: %w", err)
	case info.Size() > maxPins:
		return fmt.Errorf("%s has more than %d bytes", p.path, maxPins)
	}
	if p.known, err = knownhosts.New(p.path); err != nil {
		return fmt.Errorf("cannot read the known hosts: %w", err)
	}
	return nil
}

// check compares a key with the one that a machine is known by, and keeps the first one.
func (p *Pins) check(host string, address net.Addr, key ssh.PublicKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		return p.keep(host, key)
	}
	err := p.known(host, address, key)
	var differs *knownhosts.KeyError
	switch {
	case !errors.As(err, &differs):
		return err // nil, or a key that the file revokes
	case len(differs.Want) == 0:
		return p.keep(host, key)
	}
	want := make([]string, len(differs.Want))
	for i, known := range differs.Want {
		file := known.Filename
		if p.path == "" {
			file = "known_hosts"
		}
		want[i] = fmt.Sprintf("%s (%s:%d)", ssh.FingerprintSHA256(known.Key), file, known.Line)
	}
	return &KeyError{Host: host, Got: ssh.FingerprintSHA256(key), Want: want}
}

// keep adds a key to the file. What is there stays as it is.
func (p *Pins) keep(host string, key ssh.PublicKey) error {
	if p.path == "" {
		return &KeyError{Host: host, Got: ssh.FingerprintSHA256(key)}
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return fmt.Errorf("cannot keep the host key: %w", err)
	}
	file, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot keep the host key: %w", err)
	}
	// A last line that somebody left open must not become one with this.
	line := knownhosts.Line([]string{knownhosts.Normalize(host)}, key) + "\n"
	if p.endsOpen() {
		line = "\n" + line
	}
	_, err = file.WriteString(line)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cannot keep the host key: %w", err)
	}
	return p.read()
}

// endsOpen tells whether the file's last line does not end.
func (p *Pins) endsOpen() bool {
	content, err := os.ReadFile(p.path)
	return err == nil && len(content) > 0 && content[len(content)-1] != '\n'
}

// algorithms returns those of the keys that a machine is known by, so that no other one
// of its keys is asked for; nil for a machine that is not known.
func (p *Pins) algorithms(host string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var differs *knownhosts.KeyError
	if p.known == nil || !errors.As(p.known(host, noAddress, noKey), &differs) {
		return nil
	}
	var found []string
	for _, known := range differs.Want {
		found = append(found, algorithmsOf(known.Key)...)
	}
	return found
}

// algorithmsOf returns by which algorithms a key signs.
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// noAddress and noKey ask for what is known of a name, and match nothing.
var (
	noAddress = &net.TCPAddr{IP: net.IPv4zero}
	noKey     = unknownKey{}
)

// unknownKey is a key that no machine has.
type unknownKey struct{}

func (unknownKey) Type() string                        { return "none" }
func (unknownKey) Marshal() []byte                     { return []byte("none") }
func (unknownKey) Verify([]byte, *ssh.Signature) error { return errors.New("it is no key") }

// named returns what compares a key with those that the caller names, in the format of
// authorized_keys, and the algorithms by which those sign. An error says which of them is
// none.
func named(keys []string) (ssh.HostKeyCallback, []string, error) {
	var algorithms []string
	parsed, want := make([]ssh.PublicKey, len(keys)), make([]string, len(keys))
	for i, text := range keys {
		key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil || len(bytes.TrimSpace(rest)) > 0 {
			return nil, nil, fmt.Errorf("host key %d is none such as \"ssh-ed25519 AAAA...\"", i+1)
		}
		parsed[i], want[i] = key, ssh.FingerprintSHA256(key)
		algorithms = append(algorithms, algorithmsOf(key)...)
	}
	compare := func(host string, _ net.Addr, got ssh.PublicKey) error {
		for _, key := range parsed {
			if bytes.Equal(key.Marshal(), got.Marshal()) {
				return nil
			}
		}
		return &KeyError{Host: host, Got: ssh.FingerprintSHA256(got), Want: want}
	}
	return compare, algorithms, nil
}
