// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/sshsig"
)

const (
	// SignatureNamespace is the purpose for which facts are signed, as ssh-keygen -n has it.
	SignatureNamespace = "strata-snapshot"
	// signatureEnding is that of the signature of a file.
	signatureEnding = ".sig"
)

// Trust says whose snapshots are taken.
type Trust struct {
	// Keys are fingerprints of SSH keys, as SHA256:...
	Keys []string
	// Unsigned takes a snapshot that nobody has signed, too, but none with a signature that does
	// not fit.
	Unsigned bool
}

// Check returns an error unless a snapshot is one that is taken: whoever may write where it lies
// can make one that fits in all else.
func (t Trust) Check(s Snapshot) error {
	switch {
	case s.Forged != "":
		return fmt.Errorf("%s has a signature that does not count: %s", s.File, s.Forged)
	case s.SignedBy == "" && t.Unsigned:
		return nil
	case s.SignedBy == "":
		return fmt.Errorf("%s is not signed, so that whoever can write there may have made it: take it with --from and --accept-unsigned where you know whose it is",
			s.File)
	case slices.Contains(t.Keys, s.SignedBy):
		return nil
	}
	return fmt.Errorf("%s is signed with the SSH key %s, and not with %s: take it with --signed-by %s where you know whose that is",
		s.File, s.SignedBy, strings.Join(t.Keys, " or "), s.SignedBy)
}

// Newest returns the newest snapshot that is taken, of those that begin with the newest, and why
// those before it are not.
func (t Trust) Newest(found []Snapshot) (taken *Snapshot, passed []error) {
	for i := range found {
		err := t.Check(found[i])
		if err == nil {
			return &found[i], passed
		}
		passed = append(passed, err)
	}
	return nil, passed
}

// readSigned reads the facts at a path, with their signature; signature returns that, or an
// error that wraps fs.ErrNotExist where there is none.
func readSigned(path string, facts []byte, signature func() ([]byte, error)) (Snapshot, error) {
	found, err := parseFacts(path, facts)
	if err != nil {
		return Snapshot{}, err
	}
	kept := filepath.Base(found.kept)
	text, err := signature()
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return Snapshot{}, err
	}
	key, err := sshsig.Verify(text, SignatureNamespace, facts)
	switch {
	case err != nil:
		found.Forged = err.Error()
	case kept != filepath.Base(found.File):
		found.Forged = "it is that of another snapshot"
	default:
		found.SignedBy = sshsig.Fingerprint(key)
	}
	return found, nil
}

// sign signs the facts about a snapshot.
func sign(signer cryptossh.Signer, facts []byte) ([]byte, error) {
	return sshsig.Sign(signer, SignatureNamespace, facts)
}

// oldOnes are all snapshots of a cluster but the newest ones, of which those that were signed
// with a key come before all others: a snapshot that somebody else has put there makes none of
// these go. Those of an earlier cluster of that name are all that is left of it, and stay.
func oldOnes(all []Snapshot, clusterID string, newest int, by string) []Snapshot {
	var own, others []Snapshot
	for _, each := range all {
		switch {
		case each.ClusterID != clusterID:
		case by != "" && each.SignedBy == by:
			own = append(own, each)
		default:
			others = append(others, each)
		}
	}
	all = slices.Concat(own, others)
	return all[min(newest, len(all)):]
}
