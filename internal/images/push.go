// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/strata-project/strata/internal/reach"
)

// pushTimeout bounds one request of a push, with what it sends.
const pushTimeout = time.Hour

const (
	// programName is the file that an image of Push runs, and programUser who runs it.
	programName = "plugin"
	programUser = "65532:65532"
)

// Built is a program that was built for an architecture of Linux.
type Built struct {
	// Architecture as Go names it, such as arm64.
	Architecture string
	Content      []byte
}

var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm",
	elf.EM_RISCV: "riscv64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x",
}

// BuiltFrom returns a program with the architecture that it says it is for. One that cannot run in
// an image without other files is refused.
func BuiltFrom(content []byte) (Built, error) {
	if len(content) > maxProgram {
		return Built{}, fmt.Errorf("it has %d bytes, more than %d", len(content), maxProgram)
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return Built{}, errors.New("it is no program of Linux: build it with GOOS=linux")
	}
	defer func() { _ = file.Close() }()
	architecture, known := machines[file.Machine]
	if !known {
		return Built{}, fmt.Errorf("it is for %s, which is not known here", file.Machine)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return Built{}, errors.New("it needs libraries that its image would not have: build it with CGO_ENABLED=0, or make an image of your own")
		}
	}
	return Built{Architecture: architecture, Content: content}, nil
}

// Push pushes one image of programs, each for another architecture, to oci://HOST/PATH:TAG, and
// returns the digest of its index. The same programs have the same digest.
func Push(ctx context.Context, address string, programs []Built, credential auth.CredentialFunc) (string, error) {
	if err := CheckAddress(address); err != nil {
		return "", err
	}
	repository, err := remote.NewRepository(strings.TrimPrefix(address, scheme))
	if err != nil {
		return "", fmt.Errorf("cannot read the address: %w", err)
	}
	tag := repository.Reference.Reference
	if tag == "" {
		return "", fmt.Errorf("%s has no tag: give oci://HOST/PATH:TAG", address)
	}
	within := reach.Bounds{Server: "the registry", Of: reach.Always(maxManifest, pushTimeout), Redirects: maxRedirects}
	repository.Client = &auth.Client{Client: reach.Client(retry.NewTransport(http.DefaultTransport), within), Credential: credential, Cache: auth.NewCache()}
	repository.PlainHTTP = IsLoopback(repository.Reference.Host())
	store := memory.New()
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	seen := map[string]bool{}
	for _, program := range programs {
		if seen[program.Architecture] {
			return "", fmt.Errorf("two programs are for %s", program.Architecture)
		}
		seen[program.Architecture] = true
		manifest, err := pack(ctx, store, program)
		if err != nil {
			return "", err
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	root, err := put(ctx, store, ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return "", err
	}
	if err := store.Tag(ctx, root, tag); err != nil {
		return "", fmt.Errorf("cannot make the image: %w", err)
	}
	if _, err := oras.Copy(ctx, store, tag, repository, tag, oras.DefaultCopyOptions); err != nil {
		return "", fmt.Errorf("cannot push to %s: %w", address, err)
	}
	return root.Digest.String(), nil
}

// pack makes the image of one program.
func pack(ctx context.Context, store *memory.Store, program Built) (ocispec.Descriptor, error) {
	var packed, zipped bytes.Buffer
	archive := tar.NewWriter(&packed)
	header := &tar.Header{Name: programName, Mode: 0o555, Size: int64(len(program.Content)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	err := archive.WriteHeader(header)
	if err == nil {
		_, err = archive.Write(program.Content)
	}
	zip := gzip.NewWriter(&zipped)
	err = errors.Join(err, archive.Close())
	if err == nil {
		_, err = zip.Write(packed.Bytes())
	}
	if err = errors.Join(err, zip.Close()); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("cannot pack the program: %w", err)
	}
	layer, err := oras.PushBytes(ctx, store, ocispec.MediaTypeImageLayerGzip, zipped.Bytes())
	if err != nil {
		return layer, fmt.Errorf("cannot pack the program: %w", err)
	}
	platform := ocispec.Platform{OS: "linux", Architecture: program.Architecture}
	config, err := put(ctx, store, ocispec.MediaTypeImageConfig, ocispec.Image{
		Platform: platform,
		Config:   ocispec.ImageConfig{Entrypoint: []string{"/" + programName}, User: programUser},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(packed.Bytes())}},
	})
	if err != nil {
		return config, err
	}
	manifest, err := put(ctx, store, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{layer},
	})
	manifest.Platform = &platform
	return manifest, err
}

// put stores a part of an image.
func put(ctx context.Context, store *memory.Store, mediaType string, content any) (ocispec.Descriptor, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("cannot make the image: %w", err)
	}
	made, err := oras.PushBytes(ctx, store, mediaType, data)
	if err != nil {
		return made, fmt.Errorf("cannot make the image: %w", err)
	}
	return made, nil
}
