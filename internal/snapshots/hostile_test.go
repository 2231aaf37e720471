// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/test/hostile/root"
)

// member is one in a test.
type member struct{ root.Member }

// serve starts a member, and returns a client of it.
func (m *member) serve(t *testing.T) *clientv3.Client {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	m.Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{listener.Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Whoever has a host of the control plane decides what its etcd hands out, and etcd's own code
// ends the process that it runs in where it does not like that. This one, which works on the
// clusters of others, goes on, and says which member it was and what is wrong.
func TestHostileSnapshotEndsNobody(t *testing.T) {
	const keys = 50
	db, revision := root.Database(t, keys)
	for name, tc := range map[string]struct {
		db   []byte
		want string
	}{
		"a value": {root.WithValue(t, db), "failed to unmarshal"},
		"a lease": {root.WithLease(t, db), "lease"},
		"a page":  {root.BrokenPages(db), ""},
		"nothing": {nil, ""},
		"a user": {root.Changed(t, db, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("authUsers")).Put([]byte("eve"), []byte("\xffno user"))
		}), ""},
		"other keys": {root.Changed(t, db, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("key")) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := (&member{root.Member{Keys: keys, Revision: revision, Stream: root.Hands(tc.db)}}).serve(t)
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
	etcd := (&member{root.Member{Keys: keys, Revision: revision, Stream: root.Hands(db)}}).serve(t)
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
			etcd := (&member{root.Member{Keys: 1, Revision: 2, Stream: root.Endless(tc.states, tc.blob)}}).serve(t)
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
	db, revision := root.Database(t, keys)
	etcd := (&member{root.Member{Keys: keys, Revision: revision, Stream: root.Hands(db)}}).serve(t)
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
	etcd := (&member{root.Member{Keys: 1, Revision: 2, Stream: func(grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
		return status.Error(codes.Internal, "\x1b[31m"+strings.Repeat("no\n", 1000))
	}}}).serve(t)
	_, err := snapshots.Take(t.Context(), snapshots.Options{Etcd: etcd, Member: "cp-1", Dir: t.TempDir(), Cluster: "fleet/edge", ClusterID: "1", Now: time.Now})
	if err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\x1b\n") || !strings.Contains(err.Error(), "cp-1") {
		t.Errorf("%q", err)
	}
}
