// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"
)

// RevisionBump is by how much the revision grows when a snapshot is restored: no client has
// seen a higher one, as long as there were fewer changes after the snapshot.
const RevisionBump = 1_000_000_000

// Member is the one that a restored cluster begins with.
type Member struct {
	// Name of its host, and PeerURL at which others will reach it.
	Name, PeerURL string
	// Token makes the cluster another one than before: members of the old one cannot join.
	Token string
}

// Restore makes the data of the first member of a snapshot, in a folder that must not be
// there. work is a folder for what is decrypted meanwhile. Revisions are higher than any
// before, and what was watched has to be listed again.
func Restore(ctx context.Context, taken Snapshot, identities []age.Identity, member Member, work, dir string) error {
	db := filepath.Join(work, "db")
	if err := open(taken, identities, db); err != nil {
		return err
	}
	_, err := run(ctx, &task{DB: db, Dir: dir, Member: &member})
	if err = errors.Join(err, os.Remove(db)); err != nil {
		return fmt.Errorf("%s cannot be restored: %w", taken.File, err)
	}
	return nil
}

// open checks the file of a snapshot, and writes it as etcd has made it.
func open(taken Snapshot, identities []age.Identity, path string) error {
	from, err := os.Open(taken.File)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	defer func() { _ = from.Close() }()
	sum := sha256.New()
	all := io.TeeReader(io.LimitReader(from, maxSize), sum)
	content := all
	if taken.Encrypted {
		if len(identities) == 0 {
			return errors.New("the snapshot is encrypted: name the file with your key of age with --identity")
		}
		if content, err = age.Decrypt(bufio.NewReader(all), identities...); err != nil {
			return fmt.Errorf("the snapshot cannot be decrypted with this key: %w", err)
		}
	}
	err = write(path+".new", path, func(to io.Writer) error {
		_, err := io.Copy(to, content)
		return err
	})
	if err == nil {
		_, err = io.Copy(io.Discard, all) // to the end, for the digest
	}
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != taken.Digest {
		return fmt.Errorf("%s is not the file that was kept: its digest is %s, and was %s", taken.File, got, taken.Digest)
	}
	return nil
}
