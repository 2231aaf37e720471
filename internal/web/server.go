// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web serves the page: its files, and one stream of what changes for each tab. What
// it shows are the answers of internal/answers, so that page and plug-in never differ. It
// knows neither commands nor a terminal, and who may look is for whoever serves it: Local
// is for one's own machine.
package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/platforms"
)

// dist holds the files of the page, as hack/page.sh makes them of the folder page.
//
//go:embed dist
var dist embed.FS

// Cluster gives the answers that are shown, from what it holds: it asks nobody while
// somebody waits. live.Cluster is one.
type Cluster interface {
	// Ready waits until there is something to show.
	Ready(ctx context.Context) error
	// Version returns a number that grows with each change, and what is closed at the next.
	Version() (uint64, <-chan struct{})
	// Broken says since when what is held may be old, and why; false while it is not.
	Broken() (live.Break, bool)
	Snapshot() *snapshot.Snapshot
	// Wanted chooses the layers that are shown; nil for all.
	Wanted() labels.Selector
	Verdict(s *snapshot.Snapshot) verdict.Verdict
	// Open returns a snapshot with what may be seen of a layer that is looked at, although it
	// may not be seen of all, and Made the objects that Helm has made for it.
	Open(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *snapshot.Snapshot
	Made(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *releases.Live
	Why(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) why.Answer
	// Events returns what happened to objects, the newest last, and what is not among it.
	Events(subjects *events.Subjects) ([]events.Event, []string)
	// Observe returns what a Platform would be decided from at a moment, and what of that is
	// missing.
	Observe(s *snapshot.Snapshot, platform *v1alpha1.Platform, at time.Time) (platforms.Observation, []string)
	// Preview returns what a plan or a comparison comes to, which takes its time.
	Preview(r live.Request) live.Preview
	// Repository says which revisions may be planned.
	Repository() live.Repository
}

// Options say what is shown. Cluster and Program must be set.
type Options struct {
	Cluster Cluster
	// Actor does what is asked for on the page; nil for a page that is only looked at. Told
	// is told what was done; it may be nil.
	Actor Actor
	Told  func(what string)
	// Program is how the plug-in is called in the commands that the page shows.
	Program string
	// Name of the cluster, such as that of a context.
	Name string
}

// policy is what the page may do: load its own files and stream, and nothing else. What a
// cluster says can therefore bring in no script, no picture and no form.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Server serves the page.
type Server struct {
	files  map[string]file
	boards *boards
}

// file is a file of the page, as it is and compressed.
type file struct {
	kind, tag    string
	plain, small []byte
}

// New returns a server. It holds streams until the requests that they answer end.
func New(o Options) (*Server, error) {
	s := &Server{files: map[string]file{}, boards: newBoards(o)}
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		s.files["/"+name], err = fileOf(name, data)
		return err
	})
	return s, err
}

// fileOf compresses a file once, and not for each request.
func fileOf(name string, data []byte) (file, error) {
	var small bytes.Buffer
	writer, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	if _, err = writer.Write(data); err == nil {
		err = writer.Close()
	}
	sum := sha256.Sum256(data)
	return file{kind: mime.TypeByExtension(path.Ext(name)), tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: data, small: small.Bytes()}, err
}

// ServeHTTP answers a request of somebody who may look.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method == http.MethodPost && r.URL.Path == "/act" && s.boards.o.Actor != nil {
		s.act(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is only looked at", http.StatusMethodNotAllowed)
		return
	}
	switch {
	case r.URL.Path == "/stream" && r.Method == http.MethodGet:
		s.boards.stream(w, r)
	case r.URL.Path == "/search":
		s.search(w, r)
	case isView(r.URL.Path):
		s.serve(w, r, s.files["/index.html"])
	default:
		found, is := s.files[r.URL.Path]
		if !is {
			http.Error(w, "there is no such page", http.StatusNotFound)
			return
		}
		s.serve(w, r, found)
	}
}

// isView tells whether a path is that of a view, which the page itself finds out.
func isView(name string) bool {
	return slices.Contains([]string{"/", "/clusters", "/platforms", "/plan"}, name) ||
		strings.HasPrefix(name, "/platforms/") || strings.HasPrefix(name, "/layers/")
}

// secure sets what every answer says of how it may be used.
func secure(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, f file) {
	header := w.Header()
	header.Set("Content-Type", f.kind)
	// Kept, and asked about each time: a new plug-in has a new page.
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", f.tag)
	header.Set("Vary", "Accept-Encoding")
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(f.small) < len(f.plain) {
		header.Set("Content-Encoding", "gzip")
		header.Set("ETag", strings.TrimSuffix(f.tag, `"`)+`-z"`)
		body = f.small
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// search answers which layers have a text in their names.
func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	text, err := json.Marshal(find(s.boards.o.Cluster, r.URL.Query().Get("q")))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // The tab may be gone.
}
