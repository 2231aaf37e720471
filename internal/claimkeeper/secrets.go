// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/objects"
)

// secrets are what Secrets hold that claims read, at the versions at which they were read; and
// which claims read which Secrets.
type secrets struct {
	memo[objects.ID, seenSecret]

	mu sync.Mutex
	// readers of each Secret, and what each of them reads.
	readers map[types.NamespacedName]map[types.NamespacedName]bool
	read    map[types.NamespacedName][]objects.ID
}

// seenSecret is what a Secret held at a version, and what it said of its passwords then: its
// metadata in a cache may be older.
type seenSecret struct {
	uid      types.UID
	version  string
	data     map[string][]byte
	rotation capabilities.Rotation
}

// reads notes which Secrets a claim reads, so that their changes wake it.
func (s *secrets) reads(claim types.NamespacedName, ids []objects.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers == nil {
		s.readers, s.read = map[types.NamespacedName]map[types.NamespacedName]bool{}, map[types.NamespacedName][]objects.ID{}
	}
	for _, id := range s.read[claim] {
		delete(s.readers[id.Key()], claim)
		if len(s.readers[id.Key()]) == 0 {
			delete(s.readers, id.Key())
		}
	}
	delete(s.read, claim)
	for _, id := range ids {
		if s.readers[id.Key()] == nil {
			s.readers[id.Key()] = map[types.NamespacedName]bool{}
		}
		s.readers[id.Key()][claim] = true
		s.read[claim] = append(s.read[claim], id)
	}
}

// readersOf returns the claims that read a Secret.
func (s *secrets) readersOf(secret types.NamespacedName) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []types.NamespacedName
	for claim := range s.readers[secret] {
		found = append(found, claim)
	}
	return found
}

// known returns what a Secret holds, where that was read at the version of its metadata.
func (s *secrets) known(id objects.ID, seen *unstructured.Unstructured) (seenSecret, bool) {
	last, found := s.get(id)
	return last, found && last.uid == seen.GetUID() && last.version == seen.GetResourceVersion()
}

// content reads what a Secret holds, as an account may. seen is its metadata. Its data are nil
// where the Secret has gone.
func (k *Keeper) content(ctx context.Context, as client.Reader, id objects.ID, seen *unstructured.Unstructured) (seenSecret, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	switch err := as.Get(ctx, id.Key(), secret); {
	case apierrors.IsNotFound(err):
		return seenSecret{}, nil
	case err != nil:
		return seenSecret{}, fmt.Errorf("cannot read %s: %w", id, err)
	case secret.UID != seen.GetUID():
		return seenSecret{}, nil // another one is there now, and a watch tells of it
	}
	read := seenSecret{secret.UID, secret.ResourceVersion, secret.Data, capabilities.RotationOf(secret)}
	if read.data == nil {
		read.data = map[string][]byte{}
	}
	k.secrets.set(id, read)
	return read, nil
}

// fresh makes a password.
func fresh(length int) string {
	const alphabet = capabilities.PasswordAlphabet
	made := make([]byte, length)
	for i := range made {
		at, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			panic(err) // which never happens
		}
		made[i] = alphabet[at.Int64()]
	}
	return string(made)
}
