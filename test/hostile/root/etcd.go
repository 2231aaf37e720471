// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Member plays a member of etcd that says how many keys it has, and hands out what it likes.
type Member struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer

	// Keys, and the Revision at which it has them.
	Keys, Revision int64
	// Stream hands its data out.
	Stream func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error
}

// Register has a server answer as the member.
func (m *Member) Register(server *grpc.Server) {
	etcdserverpb.RegisterKVServer(server, m)
	etcdserverpb.RegisterMaintenanceServer(server, m)
}

// Range says how many keys there are.
func (m *Member) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{Revision: m.Revision}, Count: m.Keys}, nil
}

// Snapshot hands the data out.
func (m *Member) Snapshot(_ *etcdserverpb.SnapshotRequest, to grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
	return m.Stream(to)
}

// Hands returns what hands out a database as a member does: in parts, with what is left, and
// its digest at the end.
func Hands(db []byte) func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
	return func(to grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
		for rest := db; len(rest) > 0; {
			n := min(32<<10, len(rest))
			if err := to.Send(&etcdserverpb.SnapshotResponse{RemainingBytes: uint64(len(rest) - n), Blob: rest[:n]}); err != nil {
				return err
			}
			rest = rest[n:]
		}
		sum := sha256.Sum256(db)
		return to.Send(&etcdserverpb.SnapshotResponse{Blob: sum[:]})
	}
}

// Endless returns what hands out the same for ever, and states how much is left.
func Endless(states uint64, blob []byte) func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
	return func(to grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
		for {
			if err := to.Send(&etcdserverpb.SnapshotResponse{RemainingBytes: states, Blob: blob}); err != nil {
				return err
			}
		}
	}
}

// Database returns the database of an etcd with keys and a lease, and its revision.
func Database(t testing.TB, keys int) (db []byte, revision int64) {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.ListenPeerUrls, config.ListenClientUrls = filepath.Join(t.TempDir(), "etcd"), nil, nil
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	config.AdvertiseClientUrls = config.AdvertisePeerUrls
	config.InitialCluster = config.Name + "=http://127.0.0.1:1"
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.UnsafeNoFsync = true
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	<-etcd.Server.ReadyNotify()
	client := v3client.New(etcd.Server)
	defer func() { _ = client.Close() }()
	for i := range keys {
		answer, err := client.Put(t.Context(), fmt.Sprintf("/registry/configmaps/default/c-%03d", i), strings.Repeat("x", 500))
		if err != nil {
			t.Fatal(err)
		}
		revision = answer.Header.Revision
	}
	if _, err := client.Grant(t.Context(), 3600); err != nil {
		t.Fatal(err)
	}
	snapshot := etcd.Server.Backend().Snapshot()
	out, in := io.Pipe()
	go func() {
		_, err := snapshot.WriteTo(in)
		_ = in.CloseWithError(err)
	}()
	if db, err = io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	return db, revision
}

// Changed returns a database after a change of it.
func Changed(t testing.TB, db []byte, how func(*bolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, db, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Update(how); err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return db
}

// WithValue returns a database with a value that is none.
func WithValue(t testing.TB, db []byte) []byte {
	last := make([]byte, 17) // a revision as etcd writes it
	last[7], last[8] = 0xff, '_'
	return Changed(t, db, func(tx *bolt.Tx) error { return tx.Bucket([]byte("key")).Put(last, []byte("\xffno value")) })
}

// WithLease returns a database with a lease that is none.
func WithLease(t testing.TB, db []byte) []byte {
	return Changed(t, db, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("lease")).Put([]byte("12345678"), []byte("\xffno lease"))
	})
}

// BrokenPages returns a database in which no page but the first two is what it says it is.
func BrokenPages(db []byte) []byte {
	const page = 4096
	broken := append([]byte(nil), db...)
	for at := 2 * page; at+16 <= len(broken); at += page {
		copy(broken[at:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	return broken
}
