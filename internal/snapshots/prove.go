// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"github.com/strata-project/strata/internal/encryption"
)

// startTime is how long an etcd may take to start from a snapshot.
const startTime = 5 * time.Minute

// scratchURL is where the scratch etcd would be reached, which listens nowhere: what is in
// it is for nobody else on this machine.
const scratchURL = "http://127.0.0.1:1"

// prove starts an etcd from a snapshot, counts what it has, and adds with what its Secrets are
// written.
func prove(ctx context.Context, db, dir string, taken *Snapshot) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: db, Name: "scratch", OutputDataDir: dir, PeerURLs: []string{scratchURL}, InitialCluster: "scratch=" + scratchURL,
		InitialClusterToken: "scratch",
	})
	if err != nil {
		return fmt.Errorf("it cannot be restored: %w", err)
	}
	etcd, err := start(ctx, dir)
	if err != nil {
		return err
	}
	defer etcd.Close()
	answer, err := etcd.Server.Range(ctx, &etcdserverpb.RangeRequest{
		Key: []byte(Prefix), RangeEnd: []byte(Prefix[:len(Prefix)-1] + "0"), Revision: taken.Revision, CountOnly: true,
	})
	if err != nil {
		return fmt.Errorf("an etcd that was started from it does not answer: %w", err)
	}
	if answer.Count != taken.Keys {
		return fmt.Errorf("an etcd that was started from it has %d keys at revision %d, and the cluster had %d", answer.Count, taken.Revision, taken.Keys)
	}
	client := v3client.New(etcd.Server)
	defer func() { _ = client.Close() }() // it has no connection, and says that it is cancelled
	if taken.Providers, err = Providers(ctx, client); errors.Is(err, encryption.ErrForeignKey) {
		err = nil // with somebody else's keys, nobody here knows what a host can read
	}
	return err
}

// start starts an etcd that listens nowhere.
func start(ctx context.Context, dir string) (*embed.Etcd, error) {
	at, err := url.Parse(scratchURL)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir, config.Name, config.InitialCluster, config.InitialClusterToken = dir, "scratch", "scratch="+scratchURL, "scratch"
	config.AdvertisePeerUrls, config.AdvertiseClientUrls = []url.URL{*at}, []url.URL{*at}
	config.ListenPeerUrls, config.ListenClientUrls = nil, nil
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.UnsafeNoFsync, config.QuotaBackendBytes = true, maxSize
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("no etcd starts from it: %w", err)
	}
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-timer.C:
		err = fmt.Errorf("it takes longer than %s", startTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	etcd.Close()
	return nil, fmt.Errorf("no etcd starts from it: %w", err)
}
