// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
)

// address returns one of loopback that nobody uses.
func address(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// startEtcd starts the real etcd on a folder, which the test ends.
func startEtcd(t *testing.T, dir string) *clientv3.Client {
	t.Helper()
	program, err := lab.Program(t.Context(), "etcd")
	if err != nil {
		t.Fatal(err)
	}
	at, peer := "http://"+address(t), "http://"+address(t)
	runner, err := controlplane.NewRunner(controlplane.Program{
		Name: "etcd", Path: program, Dir: t.TempDir(),
		Args: []string{
			"--name=a", "--data-dir=" + dir, "--listen-client-urls=" + at, "--advertise-client-urls=" + at,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=a=" + peer, "--unsafe-no-fsync",
		},
		Healthy: func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/health", nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
				return fmt.Errorf("it answers %d: %w", answer.StatusCode, err)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Kill(); err != nil {
			t.Error(err)
		}
	})
	if err := runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func put(t *testing.T, etcd *clientv3.Client, key, value string) int64 {
	t.Helper()
	answer, err := etcd.Put(t.Context(), snapshots.Prefix+key, value)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}

// clock gives each snapshot another second.
func clock() func() time.Time {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// notIn fails where a text is in a file below a folder.
func notIn(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", path, info.Mode())
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			t.Errorf("%s has %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What was saved of a real etcd is what a real etcd has that is started from it: no more, no
// less, and at a revision that nobody has seen.
func TestWhatWasSavedComesBack(t *testing.T) {
	etcd := startEtcd(t, filepath.Join(t.TempDir(), "data"))
	for i := range 200 {
		put(t, etcd, fmt.Sprintf("configmaps/default/c-%03d", i), "kept")
	}
	const secret = "this is a Secret in clear"
	put(t, etcd, "secrets/default/s", secret)
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir, now := filepath.Join(t.TempDir(), "snapshots"), clock()
	options := snapshots.Options{
		Etcd: etcd, Dir: dir, Cluster: "fleet/edge", ClusterID: "fleet/edge/1", Version: "v1.36.3",
		Recipients: []age.Recipient{key.Recipient()}, Keep: 2, Now: now,
	}
	// A run that was killed has left this.
	killed := filepath.Join(dir, ".taking-fleet-edge")
	if err := os.MkdirAll(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed, "db"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := snapshots.Take(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if taken.Keys != 201 || taken.Etcd == "" || !strings.HasSuffix(taken.File, ".db.age") {
		t.Errorf("%+v", taken)
	}
	notIn(t, dir, secret)
	last := put(t, etcd, "configmaps/default/later", "lost")

	member := snapshots.Member{Name: "a", PeerURL: "http://127.0.0.1:1", Token: "another"}
	data, work := filepath.Join(t.TempDir(), "restored"), t.TempDir()
	found, err := snapshots.Find(taken.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Restore(t.Context(), found, nil, member, work, data); err == nil || !strings.Contains(err.Error(), "--identity") {
		t.Errorf("without a key: %v", err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Restore(t.Context(), found, []age.Identity{other}, member, work, data); err == nil || !strings.Contains(err.Error(), "cannot be decrypted") {
		t.Errorf("with another key: %v", err)
	}
	if err := snapshots.Restore(t.Context(), found, []age.Identity{key}, member, work, data); err != nil {
		t.Fatal(err)
	}
	notIn(t, work, secret)
	restored := startEtcd(t, data)
	all, err := restored.Get(t.Context(), snapshots.Prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if all.Count != 201 || all.Header.Revision <= last {
		t.Errorf("%d keys at revision %d, after %d", all.Count, all.Header.Revision, last)
	}
	for _, each := range all.Kvs {
		if want := "kept"; !strings.Contains(string(each.Key), "secrets") && string(each.Value) != want {
			t.Errorf("%s is %q", each.Key, each.Value)
		}
	}
	// A client that has watched lists again.
	if _, err := restored.Get(t.Context(), snapshots.Prefix, clientv3.WithPrefix(), clientv3.WithRev(last)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("an old revision: %v", err)
	}

	// Only the newest of this cluster are kept.
	foreign := options
	foreign.Cluster, foreign.ClusterID = "fleet/other", "fleet/other/1"
	if _, err := snapshots.Take(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, "note.json")
	if err := os.WriteFile(note, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := snapshots.Take(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	left, err := snapshots.List(dir, "fleet/edge")
	if err != nil || len(left) != 2 || left[0].Keys != 202 || !left[0].Time.After(left[1].Time) {
		t.Errorf("%v: %+v", err, left)
	}
	if _, err := os.Stat(taken.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest one is still there: %v", err)
	}
	if others, err := snapshots.List(dir, "fleet/other"); err != nil || len(others) != 1 {
		t.Errorf("%v: %+v", err, others)
	}
	if _, err := os.Stat(note); err != nil {
		t.Errorf("another file went: %v", err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 7 {
		t.Errorf("%v: %v", err, names)
	}
}

// A file that is not as it was kept is refused, and so is one of which nothing is known.
func TestSnapshotsThatDoNotCount(t *testing.T) {
	etcd := startEtcd(t, filepath.Join(t.TempDir(), "data"))
	put(t, etcd, "pods/default/p", strings.Repeat("x", 10_000))
	dir := t.TempDir()
	taken, err := snapshots.Take(t.Context(), snapshots.Options{Etcd: etcd, Dir: dir, Cluster: "fleet/edge", ClusterID: "1", Version: "v1.36.3", Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(taken.File)
	if err != nil {
		t.Fatal(err)
	}
	facts := strings.TrimSuffix(taken.File, ".db") + ".json"
	known, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte(nil), whole...)
	changed[len(changed)/2] ^= 1
	for name, tc := range map[string]struct {
		content, facts []byte
		want           string
	}{
		"cut off":         {whole[:len(whole)/2], known, "is not the file that was kept"},
		"changed":         {changed, known, "is not the file that was kept"},
		"empty":           {nil, known, "is not the file that was kept"},
		"nothing known":   {whole, nil, "does not say what a snapshot is"},
		"facts too long":  {whole, []byte(strings.Repeat(" ", 100_000)), "is longer than"},
		"no JSON":         {whole, []byte("\x1b[31m"), "does not say what a snapshot is"},
		"of another kind": {whole, []byte(strings.Replace(string(known), `"digest"`, `"encrypted": true, "digest"`, 1)), "is about another file"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.WriteFile(taken.File, tc.content, 0o600), os.WriteFile(facts, tc.facts, 0o600)); err != nil {
				t.Fatal(err)
			}
			found, err := snapshots.Find(taken.File)
			data := filepath.Join(t.TempDir(), "data")
			if err == nil {
				err = snapshots.Restore(t.Context(), found, nil, snapshots.Member{Name: "a", PeerURL: "http://127.0.0.1:1", Token: "t"}, t.TempDir(), data)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something was restored: %v", err)
			}
		})
	}
	if _, err := snapshots.Find(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("any file is a snapshot")
	}
	// A folder that cannot be written, and a member that has gone.
	if _, err := snapshots.Take(t.Context(), snapshots.Options{Etcd: etcd, Dir: facts, Cluster: "a/b", ClusterID: "1", Now: clock()}); err == nil {
		t.Error("a file was taken for a folder")
	}
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshots.Take(t.Context(), snapshots.Options{Etcd: etcd, Dir: dir, Cluster: "a/b", ClusterID: "1", Now: clock()}); err == nil {
		t.Error("nobody was asked")
	}
}
