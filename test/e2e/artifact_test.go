// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

const (
	megabyte = 1 << 20
	// gigabytes10 is how much a body without end sends.
	gigabytes10 = 10 << 30
	// memoryLimit is what the controller may use in kilobytes, whatever an
	// artifact holds.
	memoryLimit = 200_000
)

// artifactServer is a source whose artifacts the test makes: a suspended
// GitRepository, which source-controller leaves alone, and a server.
type artifactServer struct {
	*fixture
	url     string
	mu      sync.Mutex
	content map[string]http.HandlerFunc
	count   int
}

func (f *fixture) artifactServer() *artifactServer {
	f.Helper()
	s := &artifactServer{fixture: f, content: map[string]http.HandlerFunc{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		serve := s.content[r.URL.Path]
		s.mu.Unlock()
		if serve == nil {
			http.NotFound(w, r)
			return
		}
		serve(w, r)
	}))
	f.Cleanup(server.CloseClientConnections)
	f.Cleanup(server.Close)
	s.url = server.URL
	f.must(stack.client.Create(f.ctx, &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "crafted"},
		Spec: sourcev1.GitRepositorySpec{
			URL: "https://example.invalid/crafted.git", Interval: metav1.Duration{Duration: time.Hour}, Suspend: true,
		},
	}))
	return s
}

// offer makes an artifact the source's current one, and returns its revision.
// serve is nil for one that is not there.
func (s *artifactServer) offer(digest string, size *int64, serve http.HandlerFunc) string {
	s.Helper()
	s.mu.Lock()
	s.count++
	name := fmt.Sprintf("/%d.tar.gz", s.count)
	revision := fmt.Sprintf("main@sha1:%040d", s.count)
	s.content[name] = serve
	s.mu.Unlock()
	source := &sourcev1.GitRepository{}
	s.eventually("the source says that there is a new artifact", func() error {
		s.must(stack.client.Get(s.ctx, types.NamespacedName{Namespace: s.prefix, Name: "crafted"}, source))
		source.Status.ObservedGeneration = source.Generation
		source.Status.Artifact = &fluxmeta.Artifact{
			Path: strings.TrimPrefix(name, "/"), URL: s.url + name, Revision: revision, Digest: digest, Size: size, LastUpdateTime: metav1.Now(),
		}
		meta.SetStatusCondition(&source.Status.Conditions, metav1.Condition{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "stored " + revision, ObservedGeneration: source.Generation,
		})
		return stack.client.Status().Update(s.ctx, source)
	})
	return revision
}

// offerBytes offers an archive with its right digest and size.
func (s *artifactServer) offerBytes(archive []byte) string {
	s.Helper()
	size := int64(len(archive))
	return s.offer(digestOf(archive), &size, serveBytes(archive))
}

func serveBytes(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// archive packs files, and then entries that no source-controller would make.
func (f *fixture) archive(files map[string]string, hostile ...tar.Header) []byte {
	f.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for name, content := range files {
		f.must(packed.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := packed.Write([]byte(content))
		f.must(err)
	}
	for i := range hostile {
		f.must(packed.WriteHeader(&hostile[i]))
	}
	f.must(packed.Close())
	f.must(zipped.Close())
	return out.Bytes()
}

// bomb packs files of zeros, of so many megabytes each and a little more. What
// zeros are compressed to repeats itself, so that only a little of it is really
// compressed; the archive has no valid end, which nobody should come to.
func (f *fixture) bomb(files, megabytes int) []byte {
	f.Helper()
	var out bytes.Buffer
	out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) // the header of gzip
	zipped, err := flate.NewWriter(&out, flate.BestCompression)
	f.must(err)
	write := func(content []byte) []byte {
		start := out.Len()
		_, err := zipped.Write(content)
		f.must(err)
		f.must(zipped.Flush())
		return bytes.Clone(out.Bytes()[start:])
	}
	zeros := make([]byte, megabyte)
	// As far back as the compression looks there are zeros from here on.
	window := zeros[:64<<10]
	var again []byte
	for i := range files {
		var header bytes.Buffer
		f.must(tar.NewWriter(&header).WriteHeader(&tar.Header{
			Name: fmt.Sprintf("apps/%d.yaml", i), Mode: 0o644, Size: int64(megabytes)*megabyte + int64(len(window)),
			Typeflag: tar.TypeReg, Format: tar.FormatGNU,
		}))
		write(header.Bytes())
		write(window)
		rest := megabytes
		if again == nil {
			again = write(zeros)
			rest--
		}
		for range rest {
			out.Write(again)
		}
	}
	return out.Bytes()
}

// memory returns how much memory a process has used at most, in kilobytes.
func (f *fixture) memory(pid int) int {
	f.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	f.must(err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(data)
	if found == nil {
		f.Fatalf("no memory figure in\n%s", data)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	f.must(err)
	return kilobytes
}

// An artifact that is not what the source says, or that a source-controller
// never makes, is refused as a whole: nothing of it is applied, what is
// deployed stays exactly as it is, memory stays small, and the next artifact
// heals the layer. The controller is the one that ships, without the race
// detector, so that its memory means something.
func TestHostileArtifactsAreRefused(t *testing.T) {
	f := newFixture(t)
	controller := f.controller(plainBinary)
	f.must(controller.Start(f.ctx))
	s := f.artifactServer()
	files := func(readme string) map[string]string {
		return map[string]string{"apps/one.yaml": f.configMapRelease("one", "one"), "README.md": readme}
	}
	revision := s.offerBytes(f.archive(files("first")))
	f.layer("apps", f.own, func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Name = "crafted" })
	f.deployed("apps", revision)
	before := f.footprints()
	t.Logf("memory of the controller with a good artifact: %d kB", f.memory(controller.PID()))

	// changed would be seen if it were applied.
	changed := map[string]string{"apps/one.yaml": f.configMapRelease("one", "changed"), "apps/two.yaml": f.configMapRelease("two", "new")}
	whole := f.archive(changed)
	wholeSize := int64(len(whole))
	var sent atomic.Int64 // the most of one answer: the controller may ask more than once
	entry := func(header tar.Header) func(*artifactServer) {
		return func(s *artifactServer) { s.offerBytes(s.archive(changed, header)) }
	}
	cases := []struct {
		name, reason string
		offer        func(*artifactServer)
		want         string
		stalled      bool
		words        []string
	}{
		{
			name: "wrong digest", reason: "somebody is in between",
			offer: func(s *artifactServer) { s.offer(digestOf([]byte("other")), nil, serveBytes(whole)) },
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"its digest is not sha256:"},
		},
		{
			name: "no digest", reason: "what cannot be verified is not used",
			offer: func(s *artifactServer) { s.offer("md5:d41d8cd98f00b204e9800998ecf8427e", nil, serveBytes(whole)) },
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"digest"},
		},
		{
			name: "404", reason: "garbage collection was faster; the source will say what is next",
			offer: func(s *artifactServer) { s.offer(digestOf(whole), &wholeSize, nil) },
			want:  v1alpha1.ReasonArtifactFailed, words: []string{"artifact not found"},
		},
		{
			name: "download breaks off", reason: "a network does that",
			offer: func(s *artifactServer) { s.offer(digestOf(whole), &wholeSize, serveBytes(whole[:wholeSize/2])) },
			want:  v1alpha1.ReasonArtifactFailed, words: []string{"cannot fetch artifact"},
		},
		{
			name: "truncated", reason: "half an archive, with the right digest of that half",
			offer: func(s *artifactServer) { s.offerBytes(whole[:wholeSize/2]) },
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"artifact"},
		},
		{
			name: "not an archive", reason: "a page that says that you should log in",
			offer: func(s *artifactServer) { s.offerBytes([]byte("<html>log in</html>")) },
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"not a tar archive"},
		},
		{
			name: "parent directory", reason: "would be written beside the cache",
			offer: entry(tar.Header{Name: "apps/../../../escaped.yaml", Typeflag: tar.TypeReg, Mode: 0o644}),
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"apps/../../../escaped.yaml", "leaves the artifact"},
		},
		{
			name: "absolute path", reason: "would be written anywhere",
			offer: entry(tar.Header{Name: "/tmp/escaped.yaml", Typeflag: tar.TypeReg, Mode: 0o644}),
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"/tmp/escaped.yaml", "absolute"},
		},
		{
			name: "symbolic link out", reason: "would read the controller's own token",
			offer: entry(tar.Header{Name: "apps/token.yaml", Linkname: "/var/run/secrets/kubernetes.io/serviceaccount/token", Typeflag: tar.TypeSymlink}),
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"apps/token.yaml", "symbolic link"},
		},
		{
			name: "hard link out", reason: "the same in other words",
			offer: entry(tar.Header{Name: "apps/passwd.yaml", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}),
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"apps/passwd.yaml", "hard link"},
		},
		{
			name: "device", reason: "never ends",
			offer: entry(tar.Header{Name: "apps/zero.yaml", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5}),
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"apps/zero.yaml", "device"},
		},
		{
			name: "10 GB of zeros in one file", reason: "ten megabytes packed",
			offer: func(s *artifactServer) { s.offerBytes(s.bomb(1, 10<<10)) },
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"unpacks to more than", "--artifact-max-size"},
		},
		{
			name: "10 GB of zeros in many files", reason: "each of them is small enough",
			offer: func(s *artifactServer) { s.offerBytes(s.bomb(256, 40)) },
			want:  v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"unpacks to more than", "--artifact-max-size"},
		},
		{
			name: "10 GB of zeros over the wire", reason: "the source does not say how large it is",
			offer: func(s *artifactServer) {
				s.offer(digestOf([]byte("zeros")), nil, func(w http.ResponseWriter, _ *http.Request) {
					zeros, written := make([]byte, megabyte), int64(0)
					for range gigabytes10 / megabyte {
						n, err := w.Write(zeros)
						written += int64(n)
						if err != nil {
							break
						}
					}
					for most := sent.Load(); written > most; most = sent.Load() {
						if sent.CompareAndSwap(most, written) {
							break
						}
					}
				})
			},
			want: v1alpha1.ReasonArtifactRefused, stalled: true, words: []string{"that are allowed", "--artifact-max-size"},
		},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			f := f.in(t)
			s.fixture = f
			test.offer(s)
			found := f.reason("apps", test.want, test.words...)
			if got := meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.StalledCondition); got != test.stalled || found.Status.State != v1alpha1.StateFailed {
				t.Errorf("%s: state %s, Stalled %t, want %t", test.reason, found.Status.State, got, test.stalled)
			}
			f.untouched(before)
			f.deployed("apps", s.offerBytes(f.archive(files(test.name))))
			f.untouched(before)
			used := f.memory(controller.PID())
			t.Logf("memory of the controller so far: %d kB", used)
			if used > memoryLimit {
				t.Errorf("the controller has used %d kB", used)
			}
		})
	}
	if sent := sent.Load(); sent > gigabytes10/10 {
		t.Errorf("%d bytes were read of what is too large", sent)
	}
}
