// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
)

// roundTrip answers requests in a test's stead.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// offline fails a fuzz test whose code asks the network, runs a program that kustomize
// knows, or leaves the folder of a clone. The function it returns says what was done.
func offline(f *testing.F) func() string {
	f.Helper()
	bin, temp := f.TempDir(), f.TempDir()
	ran := filepath.Join(bin, "ran")
	for _, name := range []string{"git", "helm", "sh", "docker"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n: >"+ran+"\nexit 1\n"), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Setenv("PATH", bin)
	f.Setenv("TMPDIR", temp)
	var asked atomic.Value
	before := http.DefaultTransport
	f.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
		asked.Store(r.URL.String() + " was asked for")
		return nil, errors.New("offline")
	})
	return func() string {
		if _, err := os.Stat(ran); err == nil {
			return "a program was run"
		}
		if made, err := os.ReadDir(temp); err != nil || len(made) > 0 {
			return fmt.Sprintf("%v was made: %v", made, err)
		}
		did, _ := asked.Load().(string)
		return did
	}
}

// observed is what kustomize sees in a fuzz test, and notes where else it looks, and
// what it would change.
type observed struct {
	filesys.FileSystem
	handed map[string][]byte
	strays []string
}

func (o *observed) note(name string) string {
	if clean := path.Clean(name); clean != kustomize.Mount && !strings.HasPrefix(clean, kustomize.Mount+"/") {
		o.strays = append(o.strays, name)
	}
	return name
}

// ReadFile notes a file that is not below the top, and one that was not handed over.
func (o *observed) ReadFile(name string) ([]byte, error) {
	data, err := o.FileSystem.ReadFile(o.note(name))
	if _, ok := o.handed[strings.TrimPrefix(path.Clean(name), kustomize.Mount+"/")]; err == nil && !ok {
		o.strays = append(o.strays, name)
	}
	return data, err
}

// CleanedAbs notes what is not below the top.
func (o *observed) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	return o.FileSystem.CleanedAbs(o.note(name))
}

// RemoveAll is what kustomize does to a clone.
func (o *observed) RemoveAll(name string) error {
	o.strays = append(o.strays, "the removal of "+name)
	return o.FileSystem.RemoveAll(name)
}

// observe builds in this process.
func (o *observed) build(_ context.Context, request *kustomize.Request) (objects []kustomize.Object, err error) {
	o.FileSystem, o.handed = kustomize.Files(request.Files), request.Files
	err = kustomize.Observed(o, request, func(object *kustomize.Object) error {
		objects = append(objects, *object)
		return nil
	})
	return objects, err
}

// Whatever a kustomization, and a file that it loads, say: kustomize opens nothing but
// what it was handed, no program runs, the network is left alone, and what is wrong is an
// author's mistake with a place. kustomize runs in this process here, where nothing but
// what was judged keeps it from all that.
func FuzzKustomize(f *testing.F) {
	did := offline(f)
	jsonpatch.AccumulatedCopySizeLimit = 1 << 16
	for _, seed := range append(slices.Collect(maps.Values(hostile("https://example.invalid/a.yaml"))),
		"resources: [a.yaml]\nnamePrefix: x-\n", "resources: [../common, ../other.yaml]\n", "resources: [../../etc/passwd]\n", "resources: [/etc/passwd]\n",
		"resources: [https://example.invalid/a.yaml]\n", "bases: [github.com/a/b]\n", "components: [\"git@example.invalid:a/b\"]\n", "RESOURCES: [a.yaml]\n",
		"resources: [a.yaml]\npatches:\n- path: b.yaml\n", "resources: [a.yaml]\npatches:\n- patch: |\n    - op: remove\n      path: /spec\n  target: {kind: HelmRelease}\n",
		"configMapGenerator:\n- name: c\n  files: [k=b.yaml]\n  envs: [b.yaml]\n  literals: [a=b]\n", "transformers: [b.yaml]\n", "generators:\n- |-\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n",
		"resources: [.]\n", "resources: [../layer]\n", "helmCharts: [{name: a}]\n", "openapi: {path: b.yaml}\n", "crds: [b.yaml]\n", "configurations: [b.yaml]\n", "vars: [{name: a, objref: {kind: A, name: a, apiVersion: v1}}]\n",
		"replacements: [{source: {kind: ConfigMap, name: a}, targets: [{select: {kind: A}, fieldPaths: [a.b]}]}]\nresources: [a.yaml]\n", "x: &x [a.yaml]\nresources: *x\n", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n", "",
	) {
		f.Add(seed, release("b"))
		f.Add(seed, "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: ../../x\n")
	}
	f.Fuzz(func(t *testing.T, kustomization, other string) {
		if len(kustomization)+len(other) > 20_000 {
			return
		}
		watched := &watchedFS{FS: files("layer/kustomization.yaml", kustomization, "layer/a.yaml", release("a"), "layer/b.yaml", other,
			"common/kustomization.yaml", "resources: [c.yaml]\n", "common/c.yaml", configMap("c", "{a: b}"), "other.yaml", other)}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		looks := &observed{}
		got, err := parse(ctx, watched, "./layer", builds.Build{}, first, building(looks.build))
		if did := did(); did != "" {
			t.Fatal(did)
		}
		if watched.outside != "" || len(looks.strays) > 0 {
			t.Fatalf("%s was looked at, and %q", watched.outside, looks.strays)
		}
		if err != nil {
			authorsMistake(t, err)
			return
		}
		again, err := parse(ctx, watched, "./layer", builds.Build{}, first, building(looks.build))
		if err != nil || again.Digest != got.Digest {
			t.Fatalf("another digest the second time: %v", err)
		}
	})
}

// watchedFS notes the first name outside of what it shows.
type watchedFS struct {
	fs.FS
	outside string
}

// Open opens a file, and notes a name that io/fs does not know.
func (w *watchedFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) && w.outside == "" {
		w.outside = name
	}
	return w.FS.Open(name)
}

// authorsMistake fails a test whose error is not one that an author can mend,
// by its place.
func authorsMistake(t *testing.T, err error) {
	t.Helper()
	var mistake *directories.ContentError
	switch {
	case !errors.As(err, &mistake):
		t.Fatalf("not an author's mistake: %v", err)
	case mistake.Reason == "" || mistake.Message == "" || mistake.File == "" && mistake.Field == "" && mistake.Reason != "PathOutsideArtifact":
		t.Fatalf("a mistake without a place: %#v", mistake)
	case strings.Contains(mistake.Error(), kustomize.Mount):
		t.Fatalf("a place that no author knows: %s", mistake)
	case len(mistake.Message) > 4096:
		t.Fatalf("a message of %d bytes", len(mistake.Message))
	}
}

// A path is inside of the artifact, or refused with the field that names it.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"./", ".", "", "./a/b", "a/../b", "../a", "/a", "a//b", "./a/./b/", "a\x00b", "..", "a/..", "...", "a\\..\\b", "./\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := cleanPath(name)
		if err != nil {
			authorsMistake(t, err)
			return
		}
		if !filepath.IsLocal(clean) || utf8.ValidString(name) && !fs.ValidPath(clean) {
			t.Fatalf("%q becomes %q, which is outside or no path", name, clean)
		}
		if again, err := cleanPath(clean); err != nil || again != clean {
			t.Fatalf("%q becomes %q, and that %q: %v", name, clean, again, err)
		}
		if _, err := Parse(t.Context(), files("x/a.yaml", release("a")), name); err != nil {
			authorsMistake(t, err)
		}
	})
}

// A digest that is accepted can be verified, stays as it is, and names a folder
// that a later process takes over.
func FuzzDigest(f *testing.F) {
	hex := strings.Repeat("0123456789abcdef", 8)
	for _, seed := range []string{"", "sha256:" + hex[:64], hex[:64], "sha512:" + hex, "sha384:" + hex[:96], "blake3:" + hex[:64], "sha256:" + strings.ToUpper(hex[:64]), "sha256:../../x", "md5:" + hex[:32], "sha256:", ":"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean, err := cleanDigest(text)
		if err != nil {
			if reason, message := mistake(err); reason != "ArtifactRefused" || message == "" {
				t.Fatalf("not refused but failed: %v", err)
			}
			return
		}
		_ = digest.Digest(clean).Verifier()
		if again, err := cleanDigest(clean); err != nil || again != clean {
			t.Fatalf("%q becomes %q: %v", clean, again, err)
		}
		if folder := strings.Replace(clean, ":", "-", 1); !artifactName.MatchString(folder) {
			t.Fatalf("%q is not a folder that is taken over", folder)
		}
	})
}

// Whatever a server answers, or the way to it, and wherever it leads: what is stored
// is what the digest says, no more is written than one byte beyond the limit, and no
// error has what signs an address.
func FuzzDownload(f *testing.F) {
	f.Add([]byte("artifact"), int64(8), int64(8), 200, true, "http://source.invalid/a.tar.gz", "", false)
	f.Add([]byte("artifact"), int64(0), int64(-1), 200, true, "http://source.invalid/a.tar.gz", "", true)
	f.Add([]byte("artifact"), int64(9), int64(8), 200, true, "https://bucket.invalid:9000/a b", "", false)
	f.Add([]byte("something else"), int64(0), int64(3), 200, false, "http://source.invalid/a.tar.gz", "", true)
	f.Add(bytes.Repeat([]byte("x"), 100), int64(0), int64(-1), 200, true, "http://source.invalid/a.tar.gz", "", false)
	f.Add([]byte(""), int64(-1), int64(0), 404, false, "http://source.invalid/a.tar.gz", "", false)
	f.Add([]byte("moved"), int64(5), int64(5), 302, true, "http://source.invalid/a.tar.gz", "http://bucket.invalid/a", false)
	f.Add([]byte("moved"), int64(5), int64(5), 302, true, "http://source.invalid/a.tar.gz", "a", false)
	f.Add([]byte("moved"), int64(5), int64(5), 307, true, "http://source.invalid/a.tar.gz", "http://h/%zz", false)
	f.Add([]byte(""), int64(0), int64(0), 200, true, "http://source.invalid/\x7f", "", false)
	f.Add([]byte(""), int64(0), int64(0), 200, true, "no address", "", false)
	const limit, signature = 64, "X-Sig=s3cr3t-s1gn4tur3"
	f.Fuzz(func(t *testing.T, body []byte, size, length int64, code int, right bool, url, leads string, away bool) {
		file := filepath.Join(t.TempDir(), "archive")
		wanted := digest.FromBytes(body)
		if !right {
			wanted = digest.FromString("another")
		}
		reached := false
		fetch := &fetcher{max: limit, client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			reached = true
			if away {
				return nil, fmt.Errorf("dial %s: connection refused", r.URL)
			}
			header := http.Header{}
			if leads != "" {
				header.Set("Location", leads+"?"+signature)
			}
			return &http.Response{StatusCode: code, Header: header, ContentLength: length, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
		})}}
		err := fetch.download(t.Context(), Artifact{URL: url + "?" + signature, Digest: wanted.String(), Size: size}, file)
		stored, _ := os.ReadFile(file)
		if len(stored) > limit+1 {
			t.Fatalf("%d bytes were stored, at most %d are allowed", len(stored), limit)
		}
		switch {
		case err == nil && (!right && wanted != digest.FromBytes(body) || !bytes.Equal(stored, body) || len(body) > limit || code != http.StatusOK):
			t.Fatalf("%q was taken, which is not what was asked for", stored)
		case err == nil && size > 0 && size != int64(len(body)):
			t.Fatalf("%d bytes were taken for %d", len(body), size)
		case err != nil && strings.Contains(err.Error(), "s3cr3t"):
			t.Fatalf("the error shows what signs the address: %v", err)
		case err != nil && reached && !away && right && code == http.StatusOK && len(body) <= limit && length <= limit && (size <= 0 || size == int64(len(body))):
			t.Fatalf("what was asked for was not taken: %v", err)
		}
	})
}

// What an earlier process left, whole or not, is used only where it is what it
// was; nothing keeps the cache from opening, and it knows its size.
func FuzzLeftover(f *testing.F) {
	good := func(content string) string {
		data, err := indexed(files("a/r.yaml", content)).marshal()
		if err != nil {
			f.Fatal(err)
		}
		return string(data)
	}
	f.Add(good("x"), "x", good("y"), "y")
	f.Add(good("x"), "changed", "{}", "")
	f.Add(`{"digest":"","files":[{"name":"a","size":-1}]}`, "x", "{", "x")
	f.Add(`{"digest":"","files":[{"name":"a","size":9223372036854775807}]}`, "x", `{"files":[{"name":"../a"}]}`, "x")
	f.Add("null", "", "[]", "x")
	f.Fuzz(func(t *testing.T, tree1, content1, tree2, content2 string) {
		dir := t.TempDir()
		contents := map[string]string{}
		for i, pair := range [][2]string{{tree1, content1}, {tree2, content2}} {
			name := "sha256-" + strings.Repeat(string(rune('a'+i)), 64)
			folder := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, contentName), []byte(pair[1]), 0o600),
				os.WriteFile(filepath.Join(folder, treeName), []byte(pair[0]), 0o600)); err != nil {
				t.Fatal(err)
			}
			contents[strings.Replace(name, "-", ":", 1)] = pair[1]
		}
		const limit = 1 << 20
		d, err := openDisk(dir, limit, logr.Discard())
		if err != nil {
			t.Fatalf("the cache does not open: %v", err)
		}
		if d.size < 0 || d.size > limit {
			t.Fatalf("the cache counts %d bytes, at most %d are allowed", d.size, limit)
		}
		for name, content := range contents {
			e := d.acquire(name)
			if e == nil {
				continue
			}
			index, err := d.indexOf(e)
			if err != nil {
				t.Fatal(err)
			}
			total := 0
			err = d.read(e, index, func(files fs.FS) error {
				for name, file := range index.files {
					data, err := fs.ReadFile(files, name)
					if err != nil {
						return err
					}
					if sum(sha256.Sum256(data)) != file.sum {
						t.Fatalf("%s holds %q, which is not what it was", name, data)
					}
					total += len(data)
				}
				return nil
			})
			if err != nil || total != len(content) {
				t.Fatalf("%d bytes of %q were used: %v", total, content, err)
			}
			d.release(e)
		}
		again, err := openDisk(dir, limit, logr.Discard())
		if err != nil || again.size != d.size {
			t.Fatalf("opened again it counts %d bytes instead of %d: %v", again.size, d.size, err)
		}
	})
}

var kept = regexp.MustCompile(`its digest is (sha256:[0-9a-f]+) instead of x$`)

// What the cluster keeps of a layer is read back as what it was, whoever wrote
// it, as long as it is what its digest says.
func FuzzRevision(f *testing.F) {
	const object = `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"},"data":{"n":9007199254740993,"f":0.1,"x":null}}}`
	for _, seed := range []string{
		"[]", "null", "[" + object + "]", "[" + object + "," + object + "]", `[{"file":"a.yaml","line":-1,"object":{"apiVersion":"v1","kind":"List","items":[]}}]`,
		`[{"object":{"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"a":1}}}}]`, `[{"object":{"kind":"A"}},{"object":{"kind":"A","metadata":7}}]`, `[{"object":{"kind":"A","x":1e400}}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		if len(plain) > 100_000 {
			return
		}
		var zipped bytes.Buffer
		writer := gzip.NewWriter(&zipped)
		_, _ = writer.Write(plain)
		_ = writer.Close()
		_, err := UnpackRevision(zipped.Bytes(), "x", digests.Key{})
		found := kept.FindStringSubmatch(err.Error())
		if found == nil {
			return
		}
		got, err := UnpackRevision(zipped.Bytes(), found[1], digests.Key{})
		if err != nil {
			t.Fatal(err)
		}
		packed, err := PackRevision(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := UnpackRevision(packed, got.Digest, digests.Key{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("it is another one once it is packed (-was +is):\n%s", diff)
		}
	})
}
