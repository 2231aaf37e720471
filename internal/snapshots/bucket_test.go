// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/test/controlplane"
)

// newBucket returns a bucket on a server of its own.
func newBucket(t *testing.T) (*snapshots.Bucket, *controlplane.S3Server) {
	t.Helper()
	server, err := controlplane.NewS3Server()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := server.NewBucket("saved"); err != nil {
		t.Fatal(err)
	}
	bucket, err := snapshots.OpenBucket(t.Context(), snapshots.BucketOptions{
		Endpoint: "http://" + server.Endpoint(), Bucket: "saved", Prefix: "north/etcd/", AccessKey: "key", SecretKey: "hunter2",
	})
	if err != nil {
		t.Fatal(err)
	}
	return bucket, server
}

// Snapshots go into a bucket and come back from it as they were; the oldest of the cluster
// go, and what somebody else has there stays.
func TestBucketKeepsSnapshots(t *testing.T) {
	etcd := startEtcd(t, filepath.Join(t.TempDir(), "data"))
	bucket, server := newBucket(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	now := clock()
	put(t, etcd, "secrets/default/a", "k8s:enc:secretbox:v1:strata-1-00000001:x")
	put(t, etcd, "secrets/default/b", "k8s\x00in clear")
	others := map[string]string{
		"north/etcd/fleet-edge-20260301T000000Z-1.json": `{"no": "snapshot"}`, "north/etcd/notes.txt": "mine", "north/etcd/fleet-edge-2-20260301T000000Z-1.json": `{}`,
		"north/etcd/fleet-edge-deep/fleet-edge-20260301T000000Z-1.json": `{}`,
	}
	if err := server.Put("saved", others); err != nil {
		t.Fatal(err)
	}
	var last snapshots.Snapshot
	for range 4 {
		put(t, etcd, "configmaps/default/a", "1")
		dir := t.TempDir()
		taken, err := snapshots.Take(t.Context(), snapshots.Options{
			Etcd: etcd, Dir: dir, Cluster: "fleet/edge", ClusterID: "fleet/edge/1", Version: "v1.36.3", Recipients: []age.Recipient{identity.Recipient()}, Now: now,
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{encryption.InClear, "strata-1-00000001"}; !slices.Equal(taken.Providers, want) {
			t.Errorf("the Secrets are written with %v", taken.Providers)
		}
		if last, err = bucket.Keep(t.Context(), taken, 3); err != nil {
			t.Fatal(err)
		}
	}
	found, err := bucket.List(t.Context(), "fleet/edge")
	if err != nil || len(found) != 3 || found[0].File != last.File || !strings.HasPrefix(last.File, "s3://saved/north/etcd/fleet-edge-20260301T") || !snapshots.IsInBucket(last.File) {
		t.Fatalf("%v, %+v", err, found)
	}
	dir := t.TempDir()
	back, err := bucket.Fetch(t.Context(), found[0], dir, snapshots.Trust{Unsigned: true})
	if err != nil || back.Digest != last.Digest || filepath.Dir(back.File) != dir {
		t.Fatalf("%v, %+v", err, back)
	}
	notIn(t, dir, "in clear")
	restored := filepath.Join(t.TempDir(), "data")
	if err := snapshots.Restore(t.Context(), back, []age.Identity{identity}, snapshots.Member{Name: "a", PeerURL: "http://127.0.0.1:1", Token: "b"}, t.TempDir(), restored); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"s3://other/north/etcd/" + filepath.Base(last.File), "s3://saved/north/etcd/../x.db", "s3://saved/north/etcd/x.db", "/etc/passwd"} {
		if _, err := bucket.Fetch(t.Context(), snapshots.Snapshot{File: wrong}, dir, snapshots.Trust{}); err == nil || !strings.Contains(err.Error(), "is no snapshot in s3://saved/north/etcd") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// endless writes blanks for as long as somebody reads.
func endless(to io.Writer, begins string) {
	_, err := io.WriteString(to, begins)
	for blanks := bytes.Repeat([]byte(" "), 64<<10); err == nil; {
		_, err = to.Write(blanks)
	}
}

// A bucket is asked as whoever was named: with the keys that are given, whatever this machine
// has, or with what the function finds that is given.
func TestAsWhomABucketIsAsked(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "machine")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	var signed string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed = r.Header.Get("Authorization")
		_, _ = w.Write([]byte("<ListBucketResult></ListBucketResult>"))
	}))
	defer server.Close()
	found := func(_ context.Context, client aws.HTTPClient) (aws.Config, error) {
		return aws.Config{HTTPClient: client, Credentials: credentials.NewStaticCredentialsProvider("found", "hunter2", "")}, nil
	}
	for want, o := range map[string]snapshots.BucketOptions{
		"given": {AccessKey: "given", SecretKey: "hunter2"},
		"found": {AccessKey: "given", SecretKey: "hunter2", Own: found},
	} {
		o.Endpoint, o.Bucket = server.URL, "saved"
		bucket, err := snapshots.OpenBucket(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bucket.List(t.Context(), "fleet/edge"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(signed, "Credential="+want+"/") {
			t.Errorf("it is asked with %q, want the key %s", signed, want)
		}
	}
	failing := snapshots.BucketOptions{Bucket: "saved", Own: func(context.Context, aws.HTTPClient) (aws.Config, error) {
		return aws.Config{}, errors.New("no profile")
	}}
	if _, err := snapshots.OpenBucket(t.Context(), failing); err == nil || !strings.Contains(err.Error(), "cannot read the configuration for S3: no profile") {
		t.Errorf("it says %v", err)
	}
}

// What a server of S3 answers is bounded, goes nowhere else, and is said without a key; an
// address that is not allowed is not reached.
func TestBucketThatIsNone(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("what was signed was sent elsewhere") }))
	defer elsewhere.Close()
	var answer http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	open := func(o snapshots.BucketOptions) *snapshots.Bucket {
		o.Endpoint, o.Bucket, o.AccessKey, o.SecretKey = server.URL, "saved", "key", "hunter2"
		bucket, err := snapshots.OpenBucket(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return bucket
	}
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code><Message>no way</Message></Error>"))
		}, "cannot list the snapshots in s3://saved: AccessDenied: no way"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "cannot list the snapshots in s3://saved: "},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("<Error>\x1b[31m"))
		}, "cannot list the snapshots in s3://saved: "},
		"an error without an end": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			endless(w, "<Error><Code>AccessDenied</Code><Message>")
		}, "s3://saved answers with an error of more than 256 KiB, which is not read"},
		"an error without an end, compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusForbidden)
			packed := gzip.NewWriter(w)
			endless(packed, "<Error><Code>AccessDenied</Code><Message>")
		}, "s3://saved answers with an error of more than 256 KiB, which is not read"},
		"a list without an end": {func(w http.ResponseWriter, _ *http.Request) {
			endless(w, "<ListBucketResult>")
		}, "s3://saved answers with data of more than 16384 KiB, which is not read"},
		"pages without an end": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken></ListBucketResult>"))
		}, "s3://saved lists its objects on more than 100 pages"},
		"facts without an end": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("list-type") {
				_, _ = w.Write([]byte("<ListBucketResult><Contents><Key>fleet-edge-20260301T000000Z-1.json</Key></Contents></ListBucketResult>"))
				return
			}
			for range 100 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, "is longer than 65536 bytes"},
	} {
		answer = c.answer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := open(snapshots.BucketOptions{}).List(ctx, "fleet/edge")
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused := errors.New("that address is not allowed")
	guarded := open(snapshots.BucketOptions{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, refused }})
	if _, err := guarded.List(t.Context(), "fleet/edge"); err == nil || !strings.Contains(err.Error(), refused.Error()) {
		t.Error(err)
	}
	if _, err := guarded.Keep(t.Context(), snapshots.Snapshot{File: os.DevNull, Size: 6 << 30}, 0); err == nil || !strings.Contains(err.Error(), "keep it in spec.snapshots.directory") {
		t.Error(err)
	}
}
