// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sshsig signs messages with SSH keys, and checks such signatures, in the form of
// OpenSSH (PROTOCOL.sshsig): ssh-keygen -Y verify reads what is written here.
package sshsig

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// MaxSize is how long a signature may be, in bytes.
const MaxSize = 16 << 10

const (
	armour  = "SSH SIGNATURE"
	version = 1
)

// magic begins a signature, and what is signed.
var magic = [6]byte{'S', 'S', 'H', 'S', 'I', 'G'}

// signed is what is signed of a message.
type signed struct {
	Magic         [6]byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          []byte
}

// signature is one as it is written.
type signature struct {
	Magic         [6]byte
	Version       uint32
	PublicKey     []byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     []byte
}

// Sign signs a message for a purpose, which the namespace names.
func Sign(signer ssh.Signer, namespace string, message []byte) ([]byte, error) {
	sum := sha512.Sum512(message)
	data := ssh.Marshal(signed{Magic: magic, Namespace: namespace, HashAlgorithm: "sha512", Hash: sum[:]})
	made, err := sign(signer, data)
	if err != nil {
		return nil, fmt.Errorf("cannot sign with the SSH key %s: %w", Fingerprint(signer.PublicKey()), err)
	}
	written := ssh.Marshal(signature{
		Magic: magic, Version: version, PublicKey: plain(signer.PublicKey()).Marshal(), Namespace: namespace, HashAlgorithm: "sha512",
		Signature: ssh.Marshal(made),
	})
	return pem.EncodeToMemory(&pem.Block{Type: armour, Bytes: written}), nil
}

// sign signs data. A key of RSA does it with SHA-512: nobody takes SHA-1 any more.
func sign(signer ssh.Signer, data []byte) (*ssh.Signature, error) {
	if plain(signer.PublicKey()).Type() != ssh.KeyAlgoRSA {
		return signer.Sign(rand.Reader, data)
	}
	chooses, is := signer.(ssh.AlgorithmSigner)
	if !is {
		return nil, errors.New("it signs with SHA-1 alone")
	}
	return chooses.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
}

// plain returns the key of a certificate, or the key itself.
func plain(key ssh.PublicKey) ssh.PublicKey {
	if certificate, is := key.(*ssh.Certificate); is {
		return certificate.Key
	}
	return key
}

// Fingerprint returns that of a key, or of the key of a certificate, as OpenSSH shows it.
func Fingerprint(key ssh.PublicKey) string { return ssh.FingerprintSHA256(plain(key)) }

// Verify returns the key with which a message was signed for a purpose. Whose that is, and
// whether it counts, is for the caller to say.
func Verify(armoured []byte, namespace string, message []byte) (ssh.PublicKey, error) {
	if len(armoured) > MaxSize {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxSize)
	}
	block, _ := pem.Decode(armoured)
	if block == nil || block.Type != armour {
		return nil, errors.New("it is no signature of OpenSSH")
	}
	var read signature
	if err := ssh.Unmarshal(block.Bytes, &read); err != nil || read.Magic != magic || read.Version != version {
		return nil, errors.New("it is no signature of OpenSSH")
	}
	if read.Namespace != namespace {
		return nil, errors.New("it was made for another purpose")
	}
	hash, err := hashOf(read.HashAlgorithm, message)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePublicKey(read.PublicKey)
	if err != nil {
		return nil, errors.New("it names no key")
	}
	var made ssh.Signature
	if err := ssh.Unmarshal(read.Signature, &made); err != nil || made.Format == ssh.KeyAlgoRSA {
		return nil, errors.New("it is none that counts")
	}
	key = plain(key)
	data := ssh.Marshal(signed{Magic: magic, Namespace: namespace, Reserved: read.Reserved, HashAlgorithm: read.HashAlgorithm, Hash: hash})
	if err := key.Verify(data, &made); err != nil {
		return nil, errors.New("it does not fit what was signed")
	}
	return key, nil
}

func hashOf(algorithm string, message []byte) ([]byte, error) {
	switch algorithm {
	case "sha256":
		sum := sha256.Sum256(message)
		return sum[:], nil
	case "sha512":
		sum := sha512.Sum512(message)
		return sum[:], nil
	}
	return nil, errors.New("it is over a digest that does not count")
}
