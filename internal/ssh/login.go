// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// maxKey is how large a file with a key may be, in bytes.
const maxKey = 1 << 20

// defaultKeys are the files in which OpenSSH has keys, too, in the order of its own.
var defaultKeys = []string{"id_ed25519", "id_ecdsa", "id_rsa"}

// Login says where the keys are with which somebody logs in. Its zero value has none.
type Login struct {
	// KeyFile is a private key without a passphrase.
	KeyFile string
	// CertificateFile is the certificate of that key; the file beside it whose name ends
	// with -cert.pub where it is empty and there is one.
	CertificateFile string
	// Agent is the socket of an agent; its keys are tried after KeyFile.
	Agent string
	// Dir is where keys are looked for when neither KeyFile nor Agent is given, such as
	// ~/.ssh.
	Dir string
}

// Methods reads the keys. What it returns is used until close is called. An error names
// the file.
func (l Login) Methods(ctx context.Context) (methods []ssh.AuthMethod, closeAgent func(), err error) {
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	return keys.Methods(), keys.Close, nil
}

// Keys reads the keys, which are to be closed. An error names the file.
func (l Login) Keys(ctx context.Context) (*Keys, error) {
	found := &Keys{close: func() {}}
	if l.KeyFile != "" {
		signer, err := l.readKey(l.KeyFile, l.CertificateFile)
		if err != nil {
			return nil, err
		}
		found.signers = append(found.signers, signer)
	}
	if l.Agent != "" {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", l.Agent)
		if err != nil {
			return nil, fmt.Errorf("the SSH agent at %s does not answer: %w", l.Agent, err)
		}
		found.close = func() { _ = conn.Close() }
		held, err := agent.NewClient(conn).Signers()
		if err != nil {
			found.Close()
			return nil, fmt.Errorf("the SSH agent at %s tells no keys: %w", l.Agent, err)
		}
		found.signers = append(found.signers, held...)
	}
	if l.KeyFile == "" && len(found.signers) == 0 {
		var err error
		if found.signers, err = l.readDefaults(); err != nil {
			found.Close()
			return nil, err
		}
	}
	if len(found.signers) == 0 {
		found.Close()
		return nil, errors.New("there is no SSH key: give --ssh-key, or add one to an agent")
	}
	return found, nil
}

// readDefaults reads the keys of Dir that there are.
func (l Login) readDefaults() ([]ssh.Signer, error) {
	var signers []ssh.Signer
	if l.Dir == "" {
		return nil, nil
	}
	for _, name := range defaultKeys {
		signer, err := l.readKey(filepath.Join(l.Dir, name), "")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		signers = append(signers, signer)
	}
	return signers, nil
}

// readKey reads a private key, with its certificate where there is one.
func (l Login) readKey(file, certificate string) (ssh.Signer, error) {
	key, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the SSH key: %w", err)
	}
	isNamed := certificate != ""
	if !isNamed {
		certificate = file + "-cert.pub"
	}
	certified, err := readBounded(certificate)
	if err != nil && (isNamed || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("cannot read the SSH certificate: %w", err)
	}
	signer, err := signerOf(file, key, certificate, certified)
	if errors.Is(err, errPassphrase) {
		return nil, fmt.Errorf("%w: add it to an agent with ssh-add", err)
	}
	return signer, err
}

// errPassphrase says that a key cannot be used as it is.
var errPassphrase = errors.New("has a passphrase")

// ReadKeys returns a private key without a passphrase, with its certificate; empty for none. An
// error names the one that is wrong.
func ReadKeys(key, certificate []byte) (*Keys, error) {
	signer, err := signerOf("the private key", key, "the certificate", certificate)
	if err != nil {
		return nil, err
	}
	return &Keys{signers: []ssh.Signer{signer}, close: func() {}}, nil
}

// signerOf reads a private key, and its certificate where that is not empty. An error names
// the one that is wrong.
func signerOf(keyName string, key []byte, certificateName string, certificate []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, fmt.Errorf("%s %w", keyName, errPassphrase)
	case err != nil:
		return nil, fmt.Errorf("%s is no private key of OpenSSH", keyName)
	case len(certificate) == 0:
		return signer, nil
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(certificate)
	if err != nil {
		return nil, fmt.Errorf("%s is no SSH certificate", certificateName)
	}
	certified, is := public.(*ssh.Certificate)
	if !is {
		return nil, fmt.Errorf("%s is a key and no certificate", certificateName)
	}
	if signer, err = ssh.NewCertSigner(certified, signer); err != nil {
		return nil, fmt.Errorf("%s is the certificate of another key than %s", certificateName, keyName)
	}
	return signer, nil
}

func readBounded(file string) ([]byte, error) {
	opened, err := os.Open(file) //nolint:gosec // somebody names their own key
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, maxKey+1))
	if err == nil && len(data) > maxKey {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxKey)
	}
	return data, err
}
