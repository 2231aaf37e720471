// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Keys are those with which somebody logs in. They are safe for concurrent use.
type Keys struct {
	signers []ssh.Signer
	close   func()

	mu   sync.Mutex
	used ssh.Signer
}

// Close ends the connection to an agent, where there is one.
func (k *Keys) Close() { k.close() }

// Methods are those by which somebody logs in with the keys.
func (k *Keys) Methods() []ssh.AuthMethod { return []ssh.AuthMethod{ssh.PublicKeys(k.signers...)} }

// Recorded is Methods, and keeps with which key a host has let somebody in: that one is
// Signer from then on.
func (k *Keys) Recorded() []ssh.AuthMethod {
	signers := make([]ssh.Signer, len(k.signers))
	for i, signer := range k.signers {
		signers[i] = recordedOf(signer, k)
	}
	return []ssh.AuthMethod{ssh.PublicKeys(signers...)}
}

// Signer is the key with which a host has let somebody in, or the first one where none has yet.
func (k *Keys) Signer() ssh.Signer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used == nil {
		return k.signers[0]
	}
	return k.used
}

// Public returns all keys with which somebody may log in.
func (k *Keys) Public() []ssh.PublicKey {
	found := make([]ssh.PublicKey, len(k.signers))
	for i, signer := range k.signers {
		found[i] = signer.PublicKey()
	}
	return found
}

// recorded is a key that keeps that it was used. A key signs only when a host has said that it
// lets that key in.
type recorded struct {
	ssh.Signer
	keys *Keys
}

func (r recorded) note() {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	r.keys.used = r.Signer
}

// Sign signs.
func (r recorded) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	r.note()
	return r.Signer.Sign(random, data)
}

// choosing is one that signs with several algorithms.
type choosing struct {
	recorded
	signer ssh.AlgorithmSigner
}

// SignWithAlgorithm signs.
func (c choosing) SignWithAlgorithm(random io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	c.note()
	return c.signer.SignWithAlgorithm(random, data, algorithm)
}

// limited is one that says with which algorithms it signs.
type limited struct {
	choosing
	signer ssh.MultiAlgorithmSigner
}

// Algorithms returns them.
func (l limited) Algorithms() []string { return l.signer.Algorithms() }

func recordedOf(signer ssh.Signer, keys *Keys) ssh.Signer {
	plain := recorded{signer, keys}
	switch signer := signer.(type) {
	case ssh.MultiAlgorithmSigner:
		return limited{choosing{plain, signer}, signer}
	case ssh.AlgorithmSigner:
		return choosing{plain, signer}
	}
	return plain
}
