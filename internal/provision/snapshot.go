// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"os"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/snapshots"
)

// snapshots says whether etcd is saved before members change.
func (w *worker) snapshots() hosts.Snapshots {
	switch {
	case w.saved:
		return hosts.SnapshotTaken
	case w.WithoutSnapshot:
		return hosts.SnapshotWaived
	}
	return hosts.SnapshotNowhere // or what the manifest says
}

// snapshot saves etcd where the manifest says.
func (w *worker) snapshot(ctx context.Context) error {
	w.Report(Event{Message: "saves etcd"})
	taken, err := w.takeSnapshot(ctx)
	if err != nil {
		return err
	}
	w.saved = true
	w.Report(Event{Message: fmt.Sprintf("has saved etcd with %d keys in %s", taken.Keys, taken.File)})
	return nil
}

// takeSnapshot saves etcd in the folder of snapshots, or in a folder of its own from where it
// goes to the bucket.
func (w *worker) takeSnapshot(ctx context.Context) (taken snapshots.Snapshot, err error) {
	dir, keep := w.SnapshotDir, int(w.Cluster.Spec.Snapshots.Keep)
	if w.Bucket == nil {
		return w.takeInto(ctx, dir, keep)
	}
	if dir, err = os.MkdirTemp("", "strata-snapshot-"); err != nil {
		return snapshots.Snapshot{}, fmt.Errorf("cannot save etcd: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if taken, err = w.takeInto(ctx, dir, 0); err != nil {
		return snapshots.Snapshot{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, actionTime, fmt.Errorf("it takes longer than %s to keep the snapshot in %s", actionTime, w.Bucket))
	defer cancel()
	return w.Bucket.Keep(ctx, taken, keep)
}

func (w *worker) takeInto(ctx context.Context, dir string, keep int) (snapshots.Snapshot, error) {
	cluster, spec := w.sight.Cluster, w.Cluster.Spec.Snapshots
	if cluster == nil {
		return snapshots.Snapshot{}, errors.New("the cluster does not answer: " + w.sight.NotQueried)
	}
	recipients, err := hostclusters.Recipients(spec)
	if err != nil {
		return snapshots.Snapshot{}, err
	}
	etcd, err := cluster.Etcd(ctx)
	if err != nil {
		return snapshots.Snapshot{}, err
	}
	defer func() { _ = etcd.Close() }()
	ctx, cancel := context.WithTimeoutCause(ctx, actionTime, fmt.Errorf("it takes longer than %s to save etcd", actionTime))
	defer cancel()
	var signer cryptossh.Signer
	if w.Keys != nil {
		signer = w.Keys.Signer()
	}
	taken, err := snapshots.Take(ctx, snapshots.Options{
		Etcd: etcd, Member: cluster.Leader, Dir: dir,
		Cluster: w.Cluster.Namespace + "/" + w.Cluster.Name, ClusterID: w.id, Version: w.sight.Observation.Cluster.Version,
		Recipients: recipients, Keep: keep, Quota: hostclusters.Quota(spec, w.MaxQuota), ForBucket: w.Bucket != nil, Signer: signer, Now: w.Now,
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return taken, err
}

// Snapshot saves etcd once. Nothing else is done to the cluster.
func Snapshot(ctx context.Context, o Options) (snapshots.Snapshot, error) {
	w := newWorker(o)
	if _, err := w.lookAtRest(ctx); err != nil {
		return snapshots.Snapshot{}, err
	}
	switch {
	case w.sight.Cluster == nil:
		return snapshots.Snapshot{}, errors.New("there is no cluster that answers on these hosts: kubectl strata hosts plan says what there is")
	case w.id == "":
		return snapshots.Snapshot{}, errors.New("the cluster on these hosts is not that of the manifest: kubectl strata hosts plan says what there is")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() { w.lease.release() }()
	if err := w.holdLease(ctx, cancel); err != nil {
		return snapshots.Snapshot{}, err
	}
	return w.takeSnapshot(ctx)
}
