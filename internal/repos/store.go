// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repos fetches the artifacts of Flux sources, verifies and caches
// them, and hands on the objects of the directories in them.
package repos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
)

// Defaults of Options, and of the flags that set them.
const (
	DefaultMaxBytes    int64 = 2 << 30
	DefaultMaxArtifact int64 = 50 << 20
	DefaultMaxParsed   int64 = 64 << 20
	DefaultTimeout           = 2 * time.Minute
)

// How many artifacts are downloaded, how many directories parsed, and how many of those
// that have a kustomization, at the same time. All of them bound memory and disk. One that
// kustomize has long to do with keeps no other from being read.
const (
	maxFetches = 4
	maxParses  = 2
	maxBuilds  = 2
)

// maxAttempts is how often an artifact is fetched for one caller that joined a
// flight whose entry was gone before the caller wanted it, or that finds it
// damaged.
const maxAttempts = 5

// ErrNotFound says that the artifact is no longer where its source said it is.
// The source will say where the next one is.
var ErrNotFound = errors.New("artifact not found")

// Artifact is what a Flux source says about its artifact.
type Artifact struct {
	// URL of the archive, a tar compressed with gzip.
	URL string
	// Revision is handed on to the Directory.
	Revision string
	// Digest of the archive, as algorithm:hex.
	Digest string
	// Size of the archive in bytes; 0 where the source does not say.
	Size int64
}

// Options of a Store. What is zero has a default, but for Dir.
type Options struct {
	// Dir is the folder of the cache, of one process alone. It is created.
	// Artifacts that an earlier process left there are verified and used
	// again; nothing but what a Store has put there is removed.
	Dir string
	// MaxBytes is how many unpacked bytes may stay on disk. The least recently
	// used artifact goes first.
	MaxBytes int64
	// MaxArtifact is how large one artifact may be, packed and unpacked.
	MaxArtifact int64
	// MaxParsed is how many bytes parsed directories may take in memory: nearly
	// all of it as CBOR, a part as objects. The directory that was used last
	// stays as CBOR, however large.
	MaxParsed int64
	// Timeout of the download of one artifact with its retries.
	Timeout time.Duration
	// Log receives what was evicted or removed, at level 1.
	Log logr.Logger
	// Fetched is told the end of each download, retries included: how many
	// bytes the archive has, or why there is none. Nil means nobody.
	Fetched func(bytes int64, err error)
	// Hosts that artifacts are fetched from; nil means any.
	Hosts *Hosts
	// DigestKey keys the digests of directories that hold Secrets. Without it they
	// are plain, which is for whoever writes no status.
	DigestKey digests.Key
	// Transport carries the requests for archives, which are compressed as they
	// are; nil means straight to where their URLs point.
	Transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxArtifact <= 0 {
		o.MaxArtifact = DefaultMaxArtifact
	}
	if o.MaxParsed <= 0 {
		o.MaxParsed = DefaultMaxParsed
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	return o
}

// Store is a cache of artifacts on disk and of parsed directories in memory.
// Its methods may be called at the same time.
type Store struct {
	options Options
	fetcher *fetcher
	disk    *disk
	parsed  *parsedCache

	start starting
	// searches in what cannot be read.
	searches searches

	fetches, parses                    singleflight.Group
	fetchSlots, parseSlots, buildSlots chan struct{}
}

// New returns a Store over options.Dir. Its error is of the file system.
func New(options Options) (*Store, error) {
	options = options.withDefaults()
	if options.Dir == "" {
		return nil, errors.New("the folder of the artifact cache is not set")
	}
	disk, err := openDisk(options.Dir, options.MaxBytes, options.Log)
	if err != nil {
		return nil, fmt.Errorf("cannot open artifact cache: %w", err)
	}
	return &Store{
		options:    options,
		fetcher:    newFetcher(options.MaxArtifact, options.Transport, options.Hosts),
		disk:       disk,
		parsed:     newParsedCache(options.MaxParsed),
		start:      standard,
		fetchSlots: make(chan struct{}, maxFetches),
		parseSlots: make(chan struct{}, maxParses),
		buildSlots: make(chan struct{}, maxBuilds),
	}, nil
}

// Directory returns the objects that a directory of an artifact becomes. The error is a
// *layers.ContentError where only an author can mend it, wraps ErrNotFound
// where the artifact is gone, and is worth a retry otherwise. All callers
// share one download of a digest and one parse of a directory; one whose
// context ends returns at once and leaves the work to the others.
func (s *Store) Directory(ctx context.Context, artifact Artifact, path string, how builds.Build) (*directories.Directory, error) {
	found, err := s.find(ctx, artifact, path, how)
	if err != nil {
		return nil, err
	}
	directory, err := s.parsed.directory(found)
	if err != nil {
		return nil, err
	}
	directory.Revision = artifact.Revision // artifacts with the same bytes may have several
	return directory, nil
}

// Digest returns the Digest that Directory would, and whether the directory is
// Missing. It does not have to expand the objects. The error is as of Directory.
func (s *Store) Digest(ctx context.Context, artifact Artifact, path string, how builds.Build) (digest string, missing bool, _ error) {
	found, err := s.find(ctx, artifact, path, how)
	if err != nil {
		return "", false, err
	}
	directory, err := found.directory()
	return directory.Digest, directory.Missing, err
}

// find returns what a directory turned out to be, which it reads where it is
// not in memory.
func (s *Store) find(ctx context.Context, artifact Artifact, path string, how builds.Build) (*parsed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := cleanPath(path)
	if err != nil {
		return nil, err
	}
	artifact.Digest, err = cleanDigest(artifact.Digest)
	if err != nil {
		return nil, err
	}
	key := parsedKey{artifact: artifact.Digest, path: path, build: how.Key()}
	if found, ok := s.parsed.get(key); ok {
		return found, nil
	}
	// Before others can join: they may name the same digest at another host.
	if err := s.admit(artifact); err != nil {
		return nil, err
	}
	done := s.parses.DoChan(key.artifact+"\x00"+key.path+"\x00"+key.build, func() (any, error) {
		// The work is for every caller: it outlives the first one's context.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.options.Timeout)
		defer cancel()
		return s.load(shared, artifact, key, how)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-done:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*parsed), nil
	}
}

// admit refuses an artifact that would have to be fetched from a host that is not
// listed.
func (s *Store) admit(artifact Artifact) error {
	if entry := s.disk.acquire(artifact.Digest); entry != nil {
		s.disk.release(entry)
		return nil
	}
	if artifact.URL == "" {
		return nil // the fetcher says that nothing is known of where it lies
	}
	return s.fetcher.hosts.checkText(artifact.URL)
}

// ByDigest returns a directory that was parsed earlier by the digest of its
// objects, while it is in memory.
func (s *Store) ByDigest(digest string) (*directories.Directory, bool) {
	if digest == EmptyDigest {
		return &directories.Directory{Digest: EmptyDigest}, true
	}
	found, ok := s.parsed.byDigest(digest)
	if !ok {
		return nil, false
	}
	directory, err := s.parsed.directory(found)
	return directory, err == nil
}

// load parses one directory, or fails in a way that is remembered where it
// would fail again.
func (s *Store) load(ctx context.Context, artifact Artifact, key parsedKey, how builds.Build) (_ *parsed, err error) {
	defer recoverTo(&err, s.options.Log)
	if found, ok := s.parsed.get(key); ok {
		return found, nil
	}
	refused := parsedKey{artifact: artifact.Digest, refused: true}
	if found, ok := s.parsed.get(refused); ok {
		return found, nil
	}
	entry, err := s.artifact(ctx, artifact)
	if err != nil {
		var content *directories.ContentError
		var again unverifiedError
		if errors.As(err, &content) && !errors.As(err, &again) {
			return s.parsed.add(refused, newParsed(nil, content, nil)), nil
		}
		return nil, err
	}
	defer s.disk.release(entry)
	index, err := s.disk.indexOf(entry)
	if err != nil {
		return nil, fmt.Errorf("cannot parse artifact %s: %w", artifact.Digest, err)
	}
	// The next artifact holds most directories as the one before held them.
	if last, ok := s.parsed.last(key); ok && last.basis.holds(index) {
		return s.parsed.add(key, last), nil
	}
	var directory *directories.Directory
	var read basis
	err = s.disk.read(entry, index, func(files fs.FS) error {
		slots := s.parseSlots
		if kustomization, err := findKustomization(files, key.path); err != nil || kustomization != "" || !how.IsZero() {
			slots = s.buildSlots
		}
		if err := acquire(ctx, slots); err != nil {
			return err
		}
		defer func() { <-slots }()
		recorder := newRecorder(files)
		var err error
		directory, err = parse(ctx, recorder, key.path, how, first, s.start)
		read = recorder.basis(index)
		return err
	})
	s.sign(directory)
	var content *directories.ContentError
	if err != nil && !errors.As(err, &content) {
		return nil, fmt.Errorf("cannot parse artifact %s: %w", artifact.Digest, err)
	}
	return s.parsed.add(key, newParsed(directory, content, read)), nil
}

// sign gives a directory, which may be nil, the digest that a status may have.
func (s *Store) sign(directory *directories.Directory) {
	if directory != nil {
		directory.Digest = s.options.DigestKey.OfDirectory(directory.Manifests)
	}
}

// artifact returns the unpacked artifact, which is kept until it is released.
func (s *Store) artifact(ctx context.Context, artifact Artifact) (*entry, error) {
	defer s.disk.expect(artifact.Digest)()
	for range maxAttempts {
		if entry := s.disk.acquire(artifact.Digest); entry != nil {
			return entry, nil
		}
		done := s.fetches.DoChan(artifact.Digest, func() (_ any, err error) {
			defer recoverTo(&err, s.options.Log)
			shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Timeout)
			defer cancel()
			return s.fetch(shared, artifact)
		})
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot fetch artifact %s: %w", artifact.Digest, ctx.Err())
		case result := <-done:
			if result.Err != nil {
				return nil, result.Err
			}
			held := result.Val.(*entry)
			if s.disk.retain(held) {
				return held, nil
			}
		}
	}
	return nil, fmt.Errorf("cannot keep artifact %s: it was dropped from the cache %d times before it could be read", artifact.Digest, maxAttempts)
}

// fetch downloads, verifies and unpacks one artifact into the cache.
func (s *Store) fetch(ctx context.Context, artifact Artifact) (*entry, error) {
	if err := acquire(ctx, s.fetchSlots); err != nil {
		return nil, fmt.Errorf("cannot fetch artifact %s: %w", artifact.Digest, err)
	}
	defer func() { <-s.fetchSlots }()
	// A flight that landed between the caller's look and this one has it.
	if found := s.disk.acquire(artifact.Digest); found != nil {
		s.disk.release(found)
		return found, nil
	}
	return s.disk.put(artifact.Digest, func(archive, content string) (*index, error) {
		err := s.fetcher.download(ctx, artifact, archive)
		s.fetched(archive, err)
		if err != nil {
			return nil, err
		}
		return untarFile(archive, content, s.options.MaxArtifact)
	})
}

// fetched tells whoever counts that a download has ended.
func (s *Store) fetched(archive string, err error) {
	if s.options.Fetched == nil {
		return
	}
	var size int64
	if info, statErr := os.Stat(archive); err == nil && statErr == nil {
		size = info.Size()
	}
	s.options.Fetched(size, err)
}

func acquire(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recoverTo makes an error of a panic: one bad file must not end the process.
//
//nolint:gocritic // a deferred call sets the result through it
func recoverTo(err *error, log logr.Logger) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("reading the artifact panicked: %v", r)
		log.Error(*err, "Recovered", "stack", string(debug.Stack()))
	}
}
