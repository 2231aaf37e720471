// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images fetches programs out of images, by their digests, and checks who has signed
// those.
package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/strata-project/strata/internal/reach"
)

const (
	// scheme begins the address of an image.
	scheme = "oci://"
	// maxManifest bounds a manifest, and a configuration, in bytes.
	maxManifest = 4 << 20
	// maxLayer bounds a layer as it is fetched, and maxUnpacked as it is unpacked, in bytes.
	maxLayer    = 512 << 20
	maxUnpacked = 2 << 30
	// maxProgram bounds a program, in bytes.
	maxProgram = 256 << 20
	// maxLayers bounds how many layers are looked through.
	maxLayers = 128
	// fetchTimeout bounds one fetch of an image or of its signatures, and answerTimeout how long
	// a registry may take to begin with an answer.
	fetchTimeout  = 5 * time.Minute
	answerTimeout = 30 * time.Second
	// maxHeader is how long the headers of an answer are, and maxRedirects how many are followed:
	// registries keep layers elsewhere.
	maxHeader    = 64 << 10
	maxRedirects = 5
)

// Image is one of a registry.
type Image struct {
	// Address as oci://HOST/PATH, with a tag for people or without one.
	Address string
	// Digest of the image, or of its index, as sha256:HEX. Nothing else is used.
	Digest string
	// Login is what the registry asks for, as docker login writes it; empty for nothing.
	Login []byte
	// Keys are public keys in PEM, one of which must have signed the image; without any none need
	// have.
	Keys []string
}

// String names the image.
func (i Image) String() string { return strings.TrimPrefix(i.Address, scheme) + "@" + i.Digest }

// Store keeps programs that were fetched. It is safe for concurrent use.
type Store struct {
	// folder has the programs, each in a file sha256-HEX, and of each image a file of facts.
	folder string
	// own makes the requests to the hosts of images, and other those to where these lead.
	own, other http.RoundTripper

	// asked are the locks of the images that are being asked for.
	asked locks
}

// NewStore returns a store of a folder, which is made once something is fetched.
func NewStore(folder string) *Store {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented
	transport.ResponseHeaderTimeout = answerTimeout
	transport.MaxResponseHeaderBytes = maxHeader
	return &Store{folder: folder, own: retry.NewTransport(transport), other: retry.NewTransport(newElsewhere(transport))}
}

// client makes the requests for the images of a host.
func (s *Store) client(host string) *http.Client {
	within := reach.Bounds{Server: "the registry", Of: reach.Always(maxLayer, fetchTimeout), Redirects: maxRedirects}
	return reach.Client(&led{host: host, own: s.own, other: s.other}, within)
}

// Program is one that was fetched.
type Program struct {
	// Path of its file, and the Digest of that, as sha256:HEX.
	Path, Digest string
}

// Program returns the program that an image runs, on this platform. It is fetched where it is not
// there yet; and an image with Keys counts only where one of them has signed it. An image that was
// fetched needs its registry no more, unless its signatures are asked for: see Check.
func (s *Store) Program(ctx context.Context, image Image) (Program, error) {
	release, err := s.asked.take(ctx, image)
	if err != nil {
		return Program{}, err
	}
	defer release()
	known := s.facts(image)
	if known.Program == "" || len(image.Keys) > 0 && checkSignatures(image, known.Signatures) != nil {
		fetched, err := s.fetch(ctx, image, known.Program)
		if err != nil {
			return Program{}, err
		}
		known = fetched
	}
	if err := checkSignatures(image, known.Signatures); err != nil {
		return Program{}, err
	}
	found := Program{Path: s.path(known.Program), Digest: known.Program}
	now := time.Now()
	_ = os.Chtimes(found.Path, now, now) // which says that it is used
	s.trim(known.Program)
	return found, nil
}

// Check fetches the signatures of an image anew, and says what is wrong with them. Where its
// registry cannot be reached the last ones count.
func (s *Store) Check(ctx context.Context, image Image) error {
	if len(image.Keys) == 0 {
		return nil
	}
	release, err := s.asked.take(ctx, image)
	if err != nil {
		return err
	}
	defer release()
	known := s.facts(image)
	repository, err := s.repository(image)
	if err != nil {
		return err
	}
	if err := s.make(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	signatures, err := signaturesOf(ctx, repository, image.Digest)
	if err != nil {
		if checkSignatures(image, known.Signatures) == nil {
			return nil
		}
		return err
	}
	if !sameSignatures(known.Signatures, signatures) {
		known.Signatures = signatures
		if err := s.keep(image, known); err != nil {
			return err
		}
	}
	return checkSignatures(image, signatures)
}

// fetch fetches an image's signatures, where there are keys, and then its program, where program
// is not it.
func (s *Store) fetch(ctx context.Context, image Image, program string) (facts, error) {
	repository, err := s.repository(image)
	if err != nil {
		return facts{}, err
	}
	if err := s.make(); err != nil {
		return facts{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	found := facts{Program: program}
	if len(image.Keys) > 0 {
		if found.Signatures, err = signaturesOf(ctx, repository, image.Digest); err != nil {
			return facts{}, err
		}
		if err := checkSignatures(image, found.Signatures); err != nil {
			return facts{}, err
		}
	}
	if found.Program == "" {
		if found.Program, err = s.unpack(ctx, repository, image); err != nil {
			return facts{}, err
		}
	}
	return found, s.keep(image, found)
}

// make makes the folder.
func (s *Store) make() error {
	if err := os.MkdirAll(filepath.Join(s.folder, factsFolder), 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of programs: %w", err)
	}
	return nil
}

// unpack fetches the program of an image, and returns the digest of its file.
func (s *Store) unpack(ctx context.Context, repository *remote.Repository, image Image) (string, error) {
	manifest, config, err := read(ctx, repository, image)
	if err != nil {
		return "", err
	}
	entry := append(append([]string{}, config.Config.Entrypoint...), config.Config.Cmd...)
	if len(entry) == 0 || !path.IsAbs(entry[0]) {
		return "", fmt.Errorf("image %s runs no program by its path: its entrypoint is %q", image, entry)
	}
	wanted := strings.TrimPrefix(path.Clean(entry[0]), "/")
	if len(manifest.Layers) > maxLayers {
		return "", fmt.Errorf("image %s has %d layers, more than %d", image, len(manifest.Layers), maxLayers)
	}
	for i := len(manifest.Layers) - 1; i >= 0; i-- {
		program, found, err := s.fromLayer(ctx, repository, manifest.Layers[i], wanted)
		if err != nil {
			return "", fmt.Errorf("image %s: layer %s: %w", image, manifest.Layers[i].Digest, err)
		}
		if found {
			return program, nil
		}
	}
	return "", fmt.Errorf("image %s has no file %s, which is its entrypoint", image, entry[0])
}

// read reads the manifest of an image, for this platform where there are several, and its
// configuration.
func read(ctx context.Context, repository *remote.Repository, image Image) (ocispec.Manifest, ocispec.Image, error) {
	var manifest ocispec.Manifest
	var config ocispec.Image
	options := oras.DefaultFetchBytesOptions
	options.MaxBytes = maxManifest
	options.TargetPlatform = &ocispec.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	_, data, err := oras.FetchBytes(ctx, repository, image.Digest, options)
	if err != nil {
		return manifest, config, fmt.Errorf("cannot fetch image %s for %s/%s: %w", image, runtime.GOOS, runtime.GOARCH, err)
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return manifest, config, fmt.Errorf("image %s has a manifest that cannot be read: %w", image, err)
	}
	if manifest.Config.Size > maxManifest {
		return manifest, config, fmt.Errorf("image %s has a configuration of %d bytes, more than %d", image, manifest.Config.Size, maxManifest)
	}
	data, err = content.FetchAll(ctx, repository, manifest.Config)
	if err != nil {
		return manifest, config, fmt.Errorf("cannot fetch the configuration of image %s: %w", image, err)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return manifest, config, fmt.Errorf("image %s has a configuration that cannot be read: %w", image, err)
	}
	return manifest, config, nil
}

// CheckAddress says what is wrong with the address of an image.
func CheckAddress(address string) error {
	rest, is := strings.CutPrefix(address, scheme)
	if _, err := remote.NewRepository(rest); !is || err != nil || strings.Contains(rest, "@") {
		return fmt.Errorf("%q is no address of an image: it must be oci://HOST/PATH", address)
	}
	return nil
}

// repository returns the repository of an image.
func (s *Store) repository(image Image) (*remote.Repository, error) {
	if err := CheckAddress(image.Address); err != nil {
		return nil, err
	}
	if err := digest.Digest(image.Digest).Validate(); err != nil {
		return nil, fmt.Errorf("%q is no digest of an image: %w", image.Digest, err)
	}
	repository, err := remote.NewRepository(strings.TrimPrefix(image.Address, scheme))
	if err != nil {
		return nil, fmt.Errorf("cannot read the address of image %s: %w", image, err)
	}
	login := cmp.Or(string(bytes.TrimSpace(image.Login)), "{}")
	store, err := credentials.NewMemoryStoreFromDockerConfig([]byte(login))
	if err != nil {
		return nil, errors.New("the login of the registry cannot be read: it must be what docker login writes")
	}
	host := repository.Reference.Host()
	repository.Client = &auth.Client{Client: s.client(host), Credential: credentials.Credential(store), Cache: auth.NewCache()}
	repository.PlainHTTP = IsLoopback(host)
	repository.MaxMetadataBytes = maxManifest
	return repository, nil
}

// IsLoopback tells whether a registry, as HOST or HOST:PORT, is on this very machine, where
// registries have no certificates.
func IsLoopback(host string) bool {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && address.IsLoopback()
}
