// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/sshsig"
)

// Prefix is where Kubernetes keeps its keys.
const Prefix = "/registry/"

// maxSize is the longest snapshot that is read: more than etcd itself is recommended to
// have.
const maxSize = 32 << 30

// maxEmpty is how many parts of a snapshot may have nothing in them.
const maxEmpty = 100

// askTime is how long a member may take to count its keys.
const askTime = time.Minute

// Options say what is saved, and where.
type Options struct {
	// Etcd is one member of the cluster.
	Etcd *clientv3.Client
	// Member names the host that the member is on, for messages.
	Member string
	// Dir is the folder of snapshots, which is made where it lacks.
	Dir string
	// Cluster, ClusterID and Version as in Snapshot.
	Cluster, ClusterID, Version string
	// Recipients of age for whom it is encrypted; without any it is not.
	Recipients []age.Recipient
	// Keep is how many are kept; 0 keeps all.
	Keep int
	// Quota is how many bytes the snapshots of the cluster in Dir may have together; 0 is as
	// many as one may have at most.
	Quota int64
	// ForBucket is true where it goes into a bucket, which takes less than a folder.
	ForBucket bool
	// Signer signs what is known of the snapshot; without one it is not signed.
	Signer cryptossh.Signer
	// Now returns the time.
	Now func() time.Time
}

// signedBy is the fingerprint of the key that signs; empty for none.
func (o Options) signedBy() string {
	if o.Signer == nil {
		return ""
	}
	return sshsig.Fingerprint(o.Signer.PublicKey())
}

// member names the member of etcd that is saved.
func (o Options) member() string {
	if o.Member == "" {
		return "etcd"
	}
	return "the member of etcd on " + o.Member
}

// Take saves etcd. What it returns has been started from once, with the keys that were
// there. Two runs for one cluster must not go on at the same time.
func Take(ctx context.Context, o Options) (taken Snapshot, err error) {
	work := filepath.Join(o.Dir, ".taking-"+strings.ReplaceAll(o.Cluster, "/", "-"))
	// What a run has left that was killed has all Secrets in it.
	if err := os.RemoveAll(work); err != nil {
		return Snapshot{}, fmt.Errorf("cannot save etcd: %w", err)
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return Snapshot{}, fmt.Errorf("cannot save etcd: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	left, err := room(o)
	if err != nil {
		return Snapshot{}, err
	}
	db := filepath.Join(work, "db")
	taken = Snapshot{Cluster: o.Cluster, ClusterID: o.ClusterID, Version: o.Version, Encrypted: len(o.Recipients) > 0}
	for attempt := 1; ; attempt++ {
		if taken.Revision, taken.Keys, err = count(ctx, o.Etcd); err != nil {
			return Snapshot{}, err
		}
		taken.Time = o.Now().UTC().Truncate(time.Second)
		if taken.Etcd, err = fetch(ctx, o, db, left); err != nil {
			return Snapshot{}, fmt.Errorf("cannot save %s: %w", o.member(), plainly(err))
		}
		err = prove(ctx, db, filepath.Join(work, "scratch"), &taken)
		if attempt < 3 && errors.Is(err, rpctypes.ErrCompacted) {
			continue // somebody has had etcd forget that revision in between
		}
		if err != nil {
			return Snapshot{}, fmt.Errorf("the snapshot of %s does not count: %w", o.member(), err)
		}
		break
	}
	if taken, err = place(o, db, work, taken); err != nil {
		return Snapshot{}, fmt.Errorf("cannot keep the snapshot: %w", err)
	}
	if o.Keep > 0 {
		if _, err := keep(o.Dir, o.Cluster, o.ClusterID, o.Keep, o.signedBy()); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// plainly returns an error as one printable line: a member says of one what it likes.
func plainly(err error) error { return errors.New(printable.Line(err.Error(), maxSaid)) }

// count returns how many keys Kubernetes has in etcd, and at which revision.
func count(ctx context.Context, etcd *clientv3.Client) (revision, keys int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := etcd.Get(ctx, Prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, 0, fmt.Errorf("cannot count the keys of etcd: %w", plainly(err))
	}
	return answer.Header.Revision, answer.Count, nil
}

// fetch writes a snapshot into a file, and returns the version of the member. The member says
// how long it is, which must be within the limit, and no more is read.
func fetch(ctx context.Context, o Options, path string, limit int64) (version string, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream, however much of it is left
	defer cancel()
	stream, err := etcdserverpb.NewMaintenanceClient(o.Etcd.ActiveConnection()).Snapshot(ctx, &etcdserverpb.SnapshotRequest{})
	if err != nil {
		return "", err
	}
	part, err := stream.Recv()
	if err != nil {
		return "", err
	}
	stated := part.GetRemainingBytes() + uint64(len(part.GetBlob()))
	if part.GetRemainingBytes() > maxSize || stated > uint64(limit) { //nolint:gosec // a limit is no negative number
		return "", fmt.Errorf("it states that its data have %d MiB, and spec.snapshots.quota leaves %d MiB: raise it, or keep fewer snapshots", stated>>20, limit>>20)
	}
	if o.ForBucket && stated > maxObject {
		return "", fmt.Errorf("it states that its data have %d MiB, and a bucket takes %d MiB: keep them in spec.snapshots.directory", stated>>20, maxObject>>20)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // it is in a folder of ours
	if err != nil {
		return "", err
	}
	return part.GetVersion(), errors.Join(receive(stream, part, file, stated), file.Close())
}

// receive writes the parts of a snapshot, of which the first is there: what the member has
// stated, and a digest.
func receive(stream etcdserverpb.Maintenance_SnapshotClient, part *etcdserverpb.SnapshotResponse, to io.Writer, stated uint64) error {
	empty := 0
	for left := stated + sha256.Size; ; {
		n := uint64(len(part.GetBlob()))
		if n > left {
			return fmt.Errorf("it has stated that its data have %d bytes, and sends more", stated)
		}
		if left -= n; n == 0 {
			empty++
		}
		if empty > maxEmpty {
			return fmt.Errorf("it sends more than %d parts with nothing in them", maxEmpty)
		}
		if _, err := to.Write(part.GetBlob()); err != nil {
			return err
		}
		var err error
		if part, err = stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// place puts a snapshot where it stays, encrypted where that is wanted, and then what is
// known of it.
func place(o Options, db, work string, taken Snapshot) (Snapshot, error) {
	base, ending := filepath.Join(o.Dir, nameOf(o.Cluster, taken.Time, taken.Revision)), plainEnding
	if taken.Encrypted {
		ending = encryptedEnding
	}
	taken.File = base + ending
	from, err := os.Open(db) //nolint:gosec // it is in a folder of ours
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { _ = from.Close() }()
	sum, size := sha256.New(), &counter{}
	err = write(filepath.Join(work, "whole"), taken.File, func(to io.Writer) error {
		to = io.MultiWriter(to, sum, size)
		if !taken.Encrypted {
			_, err := io.Copy(to, from)
			return err
		}
		sealed, err := age.Encrypt(to, o.Recipients...)
		if err != nil {
			return err
		}
		if _, err := io.Copy(sealed, from); err != nil {
			return err
		}
		return sealed.Close()
	})
	if err != nil {
		return Snapshot{}, err
	}
	taken.Digest, taken.Size = "sha256:"+hex.EncodeToString(sum.Sum(nil)), size.n
	err = describe(o, base, work, &taken)
	return taken, err
}

// describe writes what is known of a snapshot beside it, and before that who says so.
func describe(o Options, base, work string, taken *Snapshot) error {
	known := *taken
	known.File = filepath.Base(taken.File)
	facts, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	facts = append(facts, '\n')
	if o.Signer != nil {
		signature, err := sign(o.Signer, facts)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(work, "signature"), base+factsEnding+signatureEnding, content(signature)); err != nil {
			return err
		}
	}
	taken.SignedBy = o.signedBy()
	return write(filepath.Join(work, "facts"), base+factsEnding, content(facts))
}

// content writes bytes.
func content(data []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	}
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(data []byte) (int, error) {
	c.n += int64(len(data))
	return len(data), nil
}

// write writes a file as a whole or not at all: first beside, then in its place.
func write(beside, path string, fill func(io.Writer) error) error {
	file, err := os.OpenFile(beside, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // it is in a folder of ours
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(beside, path)
}
