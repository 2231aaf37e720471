// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
)

// awaitCallers waits until so many goroutines wait for a directory.
func awaitCallers(t *testing.T, count int) {
	t.Helper()
	stacks := make([]byte, 8<<20)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		waiting := 0
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "[select") && strings.Contains(stack, "repos.(*Store).Directory(") {
				waiting++
			}
		}
		if waiting == count {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait, want %d", waiting, count)
		}
	}
}

func TestOneDownloadForAll(t *testing.T) {
	data := archive(t, "a/r.yaml", release("a"), "b/r.yaml", release("b"))
	var gets atomic.Int64
	proceed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		gets.Add(1)
		<-proceed
		_, _ = w.Write(data)
	}))
	defer server.Close()
	artifact := newOrigin(t).serve("x", data)
	artifact.URL = server.URL
	store := newStore(t, Options{})

	// The first caller starts the download and gives up on it.
	impatient, cancel := context.WithCancel(context.Background())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := store.Directory(impatient, artifact, "./a", builds.Build{})
		gaveUp <- err
	}()
	for gets.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	// Another one joins it before that.
	patient := make(chan error, 1)
	go func() {
		_, err := store.Directory(context.Background(), artifact, "./a", builds.Build{})
		patient <- err
	}()
	awaitCallers(t, 2)
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up got %v", err)
	}

	var all sync.WaitGroup
	got := make([]*directories.Directory, 50)
	for i := range got {
		all.Go(func() {
			directory, err := store.Directory(context.Background(), artifact, "./"+string(rune('a'+i%2)), builds.Build{})
			if err != nil {
				t.Error(err)
			}
			got[i] = directory
		})
	}
	awaitCallers(t, 1+len(got))
	close(proceed)
	all.Wait()
	if err := <-patient; err != nil {
		t.Errorf("the caller that joined got %v", err)
	}
	if n := gets.Load(); n != 1 {
		t.Errorf("50 callers and one that gave up caused %d downloads", n)
	}
	for i, directory := range got {
		if directory == nil || directory.Manifests[0].Object != got[i%2].Manifests[0].Object {
			t.Fatalf("caller %d has objects of its own: a directory was parsed twice", i)
		}
	}
}

func TestRevisionAndDigest(t *testing.T) {
	origin, store := newOrigin(t), newStore(t, Options{})
	artifact := origin.serve("x", archive(t, "a/r.yaml", release("a"), "b/other.yaml", "# moved\n"+release("a")))
	first, err := store.Directory(context.Background(), artifact, "./a", builds.Build{})
	if err != nil {
		t.Fatal(err)
	}
	artifact.Revision = "tag@2"
	second, err := store.Directory(context.Background(), artifact, "a/", builds.Build{})
	if err != nil {
		t.Fatal(err)
	}
	if first.Revision != "main@x" || second.Revision != "tag@2" {
		t.Errorf("revisions are %s and %s", first.Revision, second.Revision)
	}
	moved, err := store.Directory(context.Background(), artifact, "./b", builds.Build{})
	if err != nil || moved.Digest != first.Digest {
		t.Errorf("the same objects in another file have another digest: %v", err)
	}
	if got, ok := store.ByDigest(first.Digest); !ok || len(got.Manifests) != 1 {
		t.Errorf("the directory is not found by its digest")
	}
	if _, ok := store.ByDigest("sha256:0"); ok {
		t.Errorf("a digest that nobody has is found")
	}
	if got, ok := store.ByDigest(EmptyDigest); !ok || len(got.Manifests) > 0 {
		t.Errorf("the empty directory is always known")
	}
	if n := origin.gets.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func TestRefusedOnce(t *testing.T) {
	origin, store := newOrigin(t), newStore(t, Options{})
	artifact := origin.serve("x", archive(t, "a/../../x.yaml", "a"))
	for range 3 {
		if reason, text := mistake(func() error {
			_, err := store.Directory(context.Background(), artifact, "./a", builds.Build{})
			return err
		}()); reason != "ArtifactRefused" || !strings.Contains(text, "a/../../x.yaml: its name leaves the artifact") {
			t.Errorf("got %s: %s", reason, text)
		}
	}
	if n := origin.gets.Load(); n != 1 {
		t.Errorf("an artifact that can only be refused was downloaded %d times", n)
	}
}

func TestFetchErrors(t *testing.T) {
	data := archive(t, "a/r.yaml", release("a"))
	good := newOrigin(t).serve("x", data)
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		change  func(*Artifact)
		want    string // part of the message
		kind    string
		gone    bool
		gets    int64
	}{
		"gone":         {"the source will say more", http.NotFound, nil, "artifact not found", "not an author's", true, 1},
		"server error": {"it may pass", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, nil, "the server answers 502 Bad Gateway", "not an author's", false, 3},
		"forbidden":    {"a retry would not help", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, nil, "the server answers 403 Forbidden", "not an author's", false, 1},
		"cut off": {"it may pass", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:10])
		}, nil, "unexpected EOF", "not an author's", false, 3},
		"short": {"it may pass", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data[:10]) }, nil, "got 10 bytes of", "not an author's", false, 3},
		"another content": {
			"the bytes could be anybody's", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("other")) },
			func(a *Artifact) { a.Size = 0 }, "its digest is not sha256:", "ArtifactRefused", false, 1,
		},
		"no digest":      {"the bytes could be anybody's", http.NotFound, func(a *Artifact) { a.Digest = "" }, "has no digest", "ArtifactRefused", false, 0},
		"strange digest": {"it cannot be verified", http.NotFound, func(a *Artifact) { a.Digest = "md5:abc" }, "not one that can be verified", "ArtifactRefused", false, 0},
		"large by its source": {
			"nothing is downloaded", http.NotFound, func(a *Artifact) { a.Size = 1 << 40 },
			"has 1099511627776 bytes, and 4096 are allowed", "ArtifactRefused", false, 0,
		},
		"large by its header": {
			"the body is not read", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1099511627776") },
			func(a *Artifact) { a.Size = 0 }, "has 1099511627776 bytes, and 4096 are allowed", "ArtifactRefused", false, 1,
		},
		"endless": {"the body is not drained", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, zeros{})
		}, func(a *Artifact) { a.Size = 0 }, "has more than the 4096 bytes", "ArtifactRefused", false, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var gets atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				gets.Add(1)
				c.handler(w, r)
			}))
			defer server.Close()
			artifact := good
			artifact.URL = server.URL + "/x?secret=1"
			if c.change != nil {
				c.change(&artifact)
			}
			store := newStore(t, Options{MaxArtifact: 4096})
			_, err := store.Directory(context.Background(), artifact, "./a", builds.Build{})
			kind, text := mistake(err)
			if kind != c.kind || !strings.Contains(text, c.want) || errors.Is(err, ErrNotFound) != c.gone || gets.Load() != c.gets || strings.Contains(text, "secret") {
				t.Errorf("%s: got %s: %s after %d requests", c.reason, kind, text, gets.Load())
			}
			if left := names(t, store.options.Dir); len(left) > 0 {
				t.Errorf("left in the cache: %v", left)
			}
			// The same digest is fine once the server is.
			artifact = newOrigin(t).serve("x", data)
			if _, err := store.Directory(context.Background(), artifact, "./a", builds.Build{}); err != nil {
				t.Errorf("does not recover: %v", err)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestEviction(t *testing.T) {
	origin := newOrigin(t)
	store := newStore(t, Options{MaxBytes: 5 * blockSize, MaxParsed: 1})
	artifacts := make([]Artifact, 4)
	for i := range artifacts {
		artifacts[i] = origin.serve(fmt.Sprint(i), archive(t, "a/r.yaml", release(fmt.Sprint("r", i))))
	}
	read := func(i int, path string) {
		t.Helper()
		if _, err := store.Directory(context.Background(), artifacts[i], path, builds.Build{}); err != nil {
			t.Fatal(err)
		}
	}
	read(0, "./a")
	read(1, "./a")
	read(0, "./b") // used again: 1 is the oldest now
	read(2, "./a")
	if got := len(names(t, store.options.Dir)); got != 2 {
		t.Errorf("%d artifacts of two blocks each are kept in five blocks", got)
	}
	before := origin.gets.Load()
	read(0, "./a")
	if origin.gets.Load() != before {
		t.Errorf("the artifact that was used was evicted")
	}
	read(1, "./a")
	if origin.gets.Load() != before+1 {
		t.Errorf("the artifact that was not used was kept")
	}
	if got := store.parsed.order.Len(); got != 1 {
		t.Errorf("%d directories are kept in memory, the last one is to be", got)
	}
	if store.disk.size != 4*blockSize || len(names(t, store.options.Dir)) != 2 {
		t.Errorf("%d bytes in %v", store.disk.size, names(t, store.options.Dir))
	}
}

func TestLargerThanTheCache(t *testing.T) {
	store := newStore(t, Options{MaxBytes: 1})
	if _, err := store.Directory(context.Background(), newOrigin(t).serve("x", archive(t, "a/r.yaml", release("a"))), "./a", builds.Build{}); err != nil {
		t.Fatal(err)
	}
	if left := names(t, store.options.Dir); len(left) > 0 || store.disk.size != 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

func TestLeftovers(t *testing.T) {
	origin, dir := newOrigin(t), t.TempDir()
	good := origin.serve("good", archive(t, "a/r.yaml", release("a")))
	bad := origin.serve("bad", archive(t, "a/r.yaml", release("b")))
	first := newStore(t, Options{Dir: dir})
	for _, artifact := range []Artifact{good, bad} {
		if _, err := first.Directory(context.Background(), artifact, "./a", builds.Build{}); err != nil {
			t.Fatal(err)
		}
	}
	folder := func(a Artifact) string { return filepath.Join(dir, strings.Replace(a.Digest, ":", "-", 1)) }
	changed := filepath.Join(folder(bad), contentName)
	half := "sha256-" + strings.Repeat("0", 64)
	for name, data := range map[string]string{changed: release("hacked"), filepath.Join(dir, "somebody's"): "x"} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{half + "/content", tempPrefix + "1/artifact"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	second := newStore(t, Options{Dir: dir})
	if diff := cmp.Diff([]string{filepath.Base(folder(good)), filepath.Base(folder(bad)), "somebody's"}, sortedLike(names(t, dir), good, bad, folder)); diff != "" {
		t.Errorf("what is whole is kept, what is not ours is not touched (-want +got):\n%s", diff)
	}
	before := origin.gets.Load()
	if _, err := second.Directory(context.Background(), good, "./a", builds.Build{}); err != nil || origin.gets.Load() != before {
		t.Errorf("an artifact that is whole was downloaded again: %v", err)
	}
	got, err := second.Directory(context.Background(), bad, "./a", builds.Build{})
	if err != nil || got.Manifests[0].Object.GetName() != "b" || origin.gets.Load() != before+1 {
		t.Errorf("an artifact that was changed was used: %v %v", objs(got), err)
	}
}

func sortedLike(all []string, good, bad Artifact, folder func(Artifact) string) []string {
	var out []string
	for _, want := range []string{filepath.Base(folder(good)), filepath.Base(folder(bad)), "somebody's"} {
		for _, name := range all {
			if name == want {
				out = append(out, name)
			}
		}
	}
	for _, name := range all {
		if strings.HasPrefix(name, tempPrefix) || strings.HasPrefix(name, "sha256-000000") {
			out = append(out, name)
		}
	}
	return out
}

// Callers that read, evict and fetch at once must all get their objects.
func TestConcurrentEviction(t *testing.T) {
	origin := newOrigin(t)
	store := newStore(t, Options{MaxBytes: 3 * blockSize, MaxParsed: 1})
	artifacts := make([]Artifact, 4)
	for i := range artifacts {
		artifacts[i] = origin.serve(fmt.Sprint(i), archive(t, "a/r.yaml", release(fmt.Sprint("r", i))))
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 40 {
				n := (worker + i) % len(artifacts)
				got, err := store.Directory(context.Background(), artifacts[n], "./a", builds.Build{})
				if err != nil || got.Manifests[0].Object.GetName() != fmt.Sprint("r", n) {
					t.Errorf("artifact %d: %v %v", n, objs(got), err)
					return
				}
			}
		})
	}
	all.Wait()
	if store.disk.size > 3*blockSize {
		t.Errorf("%d bytes are kept", store.disk.size)
	}
	for element := store.disk.order.Front(); element != nil; element = element.Next() {
		if e := element.Value.(*entry); e.holders != 0 {
			t.Errorf("%s is still held %d times", e.digest, e.holders)
		}
	}
}

// building has builds done by a function.
func building(with builder) starting { return func() programs { return programs{build: with} } }

// A directory whose build took its process down is not built again before a file of it
// changes, whatever else of the artifact does.
func TestEndedBuildIsRemembered(t *testing.T) {
	store, from := newStore(t, Options{}), newOrigin(t)
	var built atomic.Int64
	store.start = building(func(context.Context, *kustomize.Request) ([]kustomize.Object, error) {
		built.Add(1)
		return nil, &kustomize.Ended{Message: "takes more than 1 MiB of memory"}
	})
	for _, c := range []struct {
		reason, name, resource, other string
		want                          int64
	}{
		{"it is tried once", "1", "a", "", 1},
		{"it is not tried again", "1", "a", "", 1},
		{"nor where something else has changed", "2", "a", "x", 1},
		{"its own file has changed", "3", "b", "x", 2},
		{"which is not tried again either", "3", "b", "x", 2},
	} {
		artifact := from.serve(c.name, archive(t, "base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", release(c.resource), "other/b.yaml", c.other))
		_, err := store.Directory(t.Context(), artifact, "./base", builds.Build{})
		const says = "KustomizeFailed base/kustomization.yaml: its build takes more than 1 MiB of memory, and is not tried again before a file of it changes: look for patches"
		if reason, text := mistake(err); !strings.HasPrefix(reason+" "+text, says) {
			t.Errorf("%s: %s %s", c.reason, reason, text)
		}
		if got := built.Load(); got != c.want {
			t.Errorf("%s: built %d times, want %d", c.reason, got, c.want)
		}
	}
}

// What is worth another try is tried again.
func TestFailedBuildIsTriedAgain(t *testing.T) {
	store := newStore(t, Options{})
	artifact := newOrigin(t).serve("x", archive(t, "base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", release("a")))
	store.start = building(func(context.Context, *kustomize.Request) ([]kustomize.Object, error) {
		return nil, errors.New("no memory to start")
	})
	if _, err := store.Directory(t.Context(), artifact, "./base", builds.Build{}); err == nil || !strings.Contains(err.Error(), "no memory to start") || errors.As(err, new(*directories.ContentError)) {
		t.Errorf("got %v", err)
	}
	store.start = standard
	if got, err := store.Directory(t.Context(), artifact, "./base", builds.Build{}); err != nil || len(got.Manifests) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A build that does not end holds up neither other builds nor directories without one.
func TestHangingBuildHoldsUpNobody(t *testing.T) {
	store := newStore(t, Options{})
	artifact := newOrigin(t).serve("x", archive(t, "hangs/kustomization.yaml", "resources: [hangs.yaml]\n", "hangs/hangs.yaml", release("a"),
		"too/kustomization.yaml", "resources: [../hangs/hangs.yaml]\n", "other/kustomization.yaml", "resources: [b.yaml]\n", "other/b.yaml", release("b"), "plain/c.yaml", release("c")))
	hung := make(chan struct{}, 2)
	store.start = building(func(ctx context.Context, request *kustomize.Request) ([]kustomize.Object, error) {
		if request.Files["hangs/hangs.yaml"] != nil {
			hung <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return kustomize.Build(ctx, request)
	})
	store.options.Timeout = 30 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hang := func(path string) {
		go func() { _, _ = store.Directory(ctx, artifact, path, builds.Build{}) }()
		<-hung
	}
	hang("./hangs")
	for _, path := range []string{"./other", "./plain"} {
		if got, err := store.Directory(t.Context(), artifact, path, builds.Build{}); err != nil || len(got.Manifests) != 1 {
			t.Errorf("%s beside one that hangs: %v, %v", path, got, err)
		}
	}
	another := newOrigin(t).serve("y", archive(t, "plain/d.yaml", release("d")))
	hang("./too")
	if got, err := store.Directory(t.Context(), another, "./plain", builds.Build{}); err != nil || len(got.Manifests) != 1 {
		t.Errorf("beside as many as may run: %v, %v", got, err)
	}
}
