// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/strata-project/strata/internal/snapshots"
)

// member plays a member of etcd that says how many keys it has, and hands out what it likes.
type member struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer

	keys, revision int64
	stream         func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error
}

func (m *member) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{Revision: m.revision}, Count: m.keys}, nil
}

func (m *member) Snapshot(_ *etcdserverpb.SnapshotRequest, to grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
	return m.stream(to)
}

// serve starts a member, and returns a client of it.
func (m *member) serve(t *testing.T) *clientv3.Client {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, m)
	etcdserverpb.RegisterMaintenanceServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{listener.Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// hands returns what hands out a database as a member does: in parts, with what is left, and
// its digest at the end.
func hands(db []byte) func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
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

// database returns the database of an etcd with keys and a lease, and its revision.
func database(t *testing.T, keys int) (db []byte, revision int64) {
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
		revision = put(t, client, fmt.Sprintf("configmaps/default/c-%03d", i), strings.Repeat("x", 500))
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

// changed returns a database after a change of it.
func changed(t *testing.T, db []byte, how func(*bolt.Tx) error) []byte {
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

// brokenPages returns a database in which no page but the first two is what it says it is.
func brokenPages(db []byte) []byte {
	const page = 4096
	broken := append([]byte(nil), db...)
	for at := 2 * page; at+16 <= len(broken); at += page {
		copy(broken[at:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	return broken
}

// Whoever has a host of the control plane decides what its etcd hands out, and etcd's own code
// ends the process that it runs in where it does not like that. This one, which works on the
// clusters of others, goes on, and says which member it was and what is wrong.
func TestHostileSnapshotEndsNobody(t *testing.T) {
	const keys = 50
	db, revision := database(t, keys)
	last := make([]byte, 17) // a revision as etcd writes it
	last[7], last[8] = 0xff, '_'
	for name, tc := range map[string]struct {
		db   []byte
		want string
	}{
		"a value": {changed(t, db, func(tx *bolt.Tx) error { return tx.Bucket([]byte("key")).Put(last, []byte("\xffno value")) }), "failed to unmarshal"},
		"a lease": {changed(t, db, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("lease")).Put([]byte("12345678"), []byte("\xffno lease"))
		}), "lease"},
		"a page":  {brokenPages(db), ""},
		"nothing": {nil, ""},
		"a user": {changed(t, db, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("authUsers")).Put([]byte("eve"), []byte("\xffno user"))
		}), ""},
		"other keys": {changed(t, db, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("key")) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := (&member{keys: keys, revision: revision, stream: hands(tc.db)}).serve(t)
			dir := t.TempDir()
			_, err := snapshots.Take(t.Context(), snapshots.Options{
				Etcd: etcd, Member: "cp-1", Dir: dir, Cluster: "fleet/edge", ClusterID: "1", Version: "v1.36.3", Now: time.Now,
			})
			if err == nil || !strings.Contains(err.Error(), "cp-1") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that names cp-1 and has %q", err, tc.want)
			}
			if err != nil && (len(err.Error()) > 700 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' })) {
				t.Errorf("the error is no short line: %q", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("it has left %v", left)
			}
			t.Logf("%v", err)
		})
	}
	// A member that is honest is saved.
	etcd := (&member{keys: keys, revision: revision, stream: hands(db)}).serve(t)
	taken, err := snapshots.Take(t.Context(), snapshots.Options{
		Etcd: etcd, Member: "cp-1", Dir: t.TempDir(), Cluster: "fleet/edge", ClusterID: "1", Version: "v1.36.3", Now: time.Now,
	})
	if err != nil || taken.Keys != keys {
		t.Fatalf("%v, %+v", err, taken)
	}
}

// A member hands out no more than it has stated, and states no more than the quota leaves.
func TestMemberStreamsWithoutEnd(t *testing.T) {
	part := make([]byte, 1<<20)
	for name, tc := range map[string]struct {
		states uint64
		blob   []byte
		want   string
	}{
		"more than it states": {3 << 20, part, "it has stated that its data have 4194304 bytes, and sends more"},
		"more than the quota": {100 << 20, part, "it states that its data have 101 MiB, and spec.snapshots.quota leaves 64 MiB"},
		"all that there is":   {1<<64 - 1, part, "spec.snapshots.quota leaves 64 MiB"},
		"nothing":             {3 << 20, nil, "parts with nothing in them"},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := (&member{keys: 1, revision: 2, stream: func(to grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
				for {
					if err := to.Send(&etcdserverpb.SnapshotResponse{RemainingBytes: tc.states, Blob: tc.blob}); err != nil {
						return err
					}
				}
			}}).serve(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			dir := t.TempDir()
			_, err := snapshots.Take(ctx, snapshots.Options{
				Etcd: etcd, Member: "cp-1", Dir: dir, Cluster: "fleet/edge", ClusterID: "1", Quota: 64 << 20, Now: time.Now,
			})
			if err == nil || !strings.Contains(err.Error(), "cp-1") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that names cp-1 and has %q", err, tc.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("it has left %v", left)
			}
		})
	}
}

// All snapshots of a cluster that stay count for its quota, also those whose facts have gone,
// and those of others do not.
func TestQuotaOfSnapshots(t *testing.T) {
	const keys = 20
	db, revision := database(t, keys)
	etcd := (&member{keys: keys, revision: revision, stream: hands(db)}).serve(t)
	dir, now := t.TempDir(), clock()
	one := int64(len(db))
	take := func(cluster string, keep int, quota int64) error {
		_, err := snapshots.Take(t.Context(), snapshots.Options{
			Etcd: etcd, Member: "cp-1", Dir: dir, Cluster: cluster, ClusterID: cluster, Keep: keep, Quota: quota, Now: now,
		})
		return err
	}
	if err := take("fleet/edge", 0, 3*one); err != nil {
		t.Fatal(err)
	}
	if err := take("fleet/edge-2", 0, 3*one/2); err != nil {
		t.Errorf("another cluster's count: %v", err)
	}
	if err := take("fleet/edge", 0, 3*one/2); err == nil || !strings.Contains(err.Error(), "spec.snapshots.quota leaves") {
		t.Errorf("two where there is room for one: %v", err)
	}
	if err := take("fleet/edge", 1, 3*one/2); err != nil {
		t.Errorf("one in place of another: %v", err)
	}
	facts, err := filepath.Glob(filepath.Join(dir, "fleet-edge-2026*.json"))
	if err != nil || len(facts) != 1 {
		t.Fatalf("%v %v", facts, err)
	}
	if err := os.Remove(facts[0]); err != nil {
		t.Fatal(err)
	}
	if err := take("fleet/edge", 1, one); err == nil || !strings.Contains(err.Error(), "the snapshots of fleet/edge in "+dir) {
		t.Errorf("what is left without facts does not count: %v", err)
	}
}

// What a member says of an error is one line that is not long.
func TestErrorsOfMembersAreShort(t *testing.T) {
	etcd := (&member{keys: 1, revision: 2, stream: func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
		return status.Error(codes.Internal, "\x1b[31m"+strings.Repeat("no\n", 1000))
	}}).serve(t)
	_, err := snapshots.Take(t.Context(), snapshots.Options{Etcd: etcd, Member: "cp-1", Dir: t.TempDir(), Cluster: "fleet/edge", ClusterID: "1", Now: time.Now})
	if err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\x1b\n") || !strings.Contains(err.Error(), "cp-1") {
		t.Errorf("%q", err)
	}
}
