// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package sshsig_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/strata-project/strata/internal/sshsig"
)

const purpose = "test"

var message = []byte("a message\n")

// keys returns one key of each kind.
func keys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ed25519": ed, "ecdsa": curve, "rsa": old}
}

// signers returns what signs with a key: itself, its certificate, and an agent that has it.
func signers(t *testing.T, key crypto.Signer) map[string]ssh.Signer {
	t.Helper()
	itself, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: itself.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, itself); err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(certificate, itself)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close() })
	go func() { _ = agent.ServeAgent(ring, there) }()
	held, err := agent.NewClient(here).Signers()
	if err != nil || len(held) != 1 {
		t.Fatalf("%v, %v", held, err)
	}
	return map[string]ssh.Signer{"itself": itself, "its certificate": certified, "an agent": held[0]}
}

func TestSignatures(t *testing.T) {
	for kind, key := range keys(t) {
		for by, signer := range signers(t, key) {
			made, err := sshsig.Sign(signer, purpose, message)
			if err != nil {
				t.Errorf("%s by %s: %v", kind, by, err)
				continue
			}
			read, err := sshsig.Verify(made, purpose, message)
			if err != nil || sshsig.Fingerprint(read) != sshsig.Fingerprint(signer.PublicKey()) {
				t.Errorf("%s by %s: %v, %v", kind, by, read, err)
			}
			if _, err := sshsig.Verify(made, "another", message); err == nil || !strings.Contains(err.Error(), "another purpose") {
				t.Errorf("%s by %s, for another purpose: %v", kind, by, err)
			}
			if _, err := sshsig.Verify(made, purpose, append([]byte("not "), message...)); err == nil || !strings.Contains(err.Error(), "does not fit") {
				t.Errorf("%s by %s, of another message: %v", kind, by, err)
			}
		}
	}
}

// No byte of a signature may be another one.
func TestChangedSignatures(t *testing.T) {
	signer := signers(t, keys(t)["ed25519"])["itself"]
	made, err := sshsig.Sign(signer, purpose, message)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(made)
	for i := range block.Bytes {
		changed := bytes.Clone(block.Bytes)
		changed[i] ^= 1
		if _, err := sshsig.Verify(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: changed}), purpose, message); err == nil {
			t.Errorf("byte %d may be another one", i)
		}
	}
	for name, text := range map[string][]byte{
		"nothing": nil, "no armour": block.Bytes, "another armour": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}),
		"cut off": pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes[:len(block.Bytes)-1]}),
		"more":    pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: append(bytes.Clone(block.Bytes), 0)}),
		"large":   append(make([]byte, sshsig.MaxSize), made...),
	} {
		if _, err := sshsig.Verify(text, purpose, message); err == nil {
			t.Errorf("%s is a signature", name)
		}
	}
}

// A signature with SHA-1 is easily made to fit another message.
func TestSignatureWithSHA1(t *testing.T) {
	signer := signers(t, keys(t)["rsa"])["itself"]
	if _, err := sshsig.Sign(onlyOld{signer}, purpose, message); err == nil || !strings.Contains(err.Error(), "SHA-1") {
		t.Errorf("a key signs with SHA-1: %v", err)
	}
}

// onlyOld signs as keys of RSA once did.
type onlyOld struct{ ssh.Signer }

// The real ssh-keygen takes what is signed here, and what it signs is taken here.
func TestSignaturesOfOpenSSH(t *testing.T) {
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skipf("ssh-keygen is not installed: %v", err)
	}
	for kind, key := range keys(t) {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			signer, err := ssh.NewSignerFromSigner(key)
			if err != nil {
				t.Fatal(err)
			}
			made, err := sshsig.Sign(signer, purpose, message)
			if err != nil {
				t.Fatal(err)
			}
			block, err := ssh.MarshalPrivateKey(key, "")
			if err != nil {
				t.Fatal(err)
			}
			public := ssh.MarshalAuthorizedKey(signer.PublicKey())
			for name, content := range map[string][]byte{
				"signers": append([]byte("a@b "), public...), "made.sig": made, "key": pem.EncodeToMemory(block), "key.pub": public, "message": message,
			} {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			verify := exec.CommandContext(t.Context(), program, "-Y", "verify", "-f", filepath.Join(dir, "signers"), "-I", "a@b", "-n", purpose, "-s", filepath.Join(dir, "made.sig"))
			verify.Stdin = bytes.NewReader(message)
			if said, err := verify.CombinedOutput(); err != nil {
				t.Errorf("ssh-keygen does not take it: %v: %s", err, said)
			}
			if said, err := exec.CommandContext(t.Context(), program, "-Y", "sign", "-f", filepath.Join(dir, "key"), "-n", purpose, filepath.Join(dir, "message")).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			theirs, err := os.ReadFile(filepath.Join(dir, "message.sig"))
			if err != nil {
				t.Fatal(err)
			}
			if read, err := sshsig.Verify(theirs, purpose, message); err != nil || sshsig.Fingerprint(read) != sshsig.Fingerprint(signer.PublicKey()) {
				t.Errorf("what ssh-keygen has signed is not taken: %v", err)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if key, err := sshsig.Verify(text, purpose, []byte("never signed")); err == nil {
			t.Errorf("%s has signed what nobody has", sshsig.Fingerprint(key))
		}
	})
}
