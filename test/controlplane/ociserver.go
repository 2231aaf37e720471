// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
)

// The media types of what `flux push artifact` and `cosign sign` make.
const (
	fluxConfig      = "application/vnd.cncf.flux.config.v1+json"
	fluxContent     = "application/vnd.cncf.flux.content.v1.tar+gzip"
	imageConfig     = "application/vnd.oci.image.config.v1+json"
	cosignPayload   = "application/vnd.dev.cosign.simplesigning.v1+json"
	cosignSignature = "dev.cosignproject.cosign/signature"
)

// OCIServer is a registry of OCI artifacts over plain HTTP.
type OCIServer struct{ *server }

// NewOCIServer starts a registry without repositories.
func NewOCIServer() (*OCIServer, error) {
	s, err := newServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	if err != nil {
		return nil, err
	}
	return &OCIServer{server: s}, nil
}

// Close stops the server and forgets its repositories.
func (s *OCIServer) Close() error { return s.close("") }

// URL returns the address of a repository as an OCIRepository names it.
func (s *OCIServer) URL(repository string) string { return "oci://" + s.host + "/" + repository }

// Push makes files, by their slash-separated paths, what a tag of a repository
// stands for, in the form of Flux's own artifacts. It returns the revision
// tag@sha256:..., which is new also where the files are not.
func (s *OCIServer) Push(ctx context.Context, repository, tag string, files map[string]string) (string, error) {
	archive, err := Archive(files)
	if err != nil {
		return "", err
	}
	digest, err := s.push(ctx, repository, tag, blob{fluxConfig, []byte("{}"), nil}, blob{fluxContent, archive, nil})
	return tag + "@" + digest, err
}

// The media types of a chart, as `helm push` makes it.
const (
	helmConfig  = "application/vnd.cncf.helm.config.v1+json"
	helmContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// PushChart makes one of Charts, at a version, what the tag of that name stands for in a
// repository, in the form of `helm push`.
func (s *OCIServer) PushChart(ctx context.Context, repository, name, version string) error {
	charts, err := NewChartServer()
	if err != nil {
		return err
	}
	defer charts.Close()
	if err := charts.AddBuiltin(name, version); err != nil {
		return err
	}
	packed := charts.packages[name+"-"+version+".tgz"]
	config, err := json.Marshal(packed.metadata)
	if err != nil {
		return fmt.Errorf("cannot write the configuration of chart %s: %w", name, err)
	}
	_, err = s.push(ctx, repository, version, blob{helmConfig, config, nil}, blob{helmContent, packed.content, nil})
	return err
}

// Sign adds a signature to a revision that Push has returned, as `cosign sign`
// does with a key of one's own.
func (s *OCIServer) Sign(ctx context.Context, repository, revision string, key *ecdsa.PrivateKey) error {
	_, digest, _ := strings.Cut(revision, "@")
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, s.host+"/"+repository, digest)
	sum := sha256.Sum256(payload)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return fmt.Errorf("cannot sign %s: %w", revision, err)
	}
	_, err = s.push(ctx, repository, strings.ReplaceAll(digest, ":", "-")+".sig", blob{imageConfig, []byte("{}"), nil},
		blob{cosignPayload, payload, map[string]string{cosignSignature: base64.StdEncoding.EncodeToString(signature)}})
	return err
}

// blob is a part of an artifact.
type blob struct {
	mediaType   string
	content     []byte
	annotations map[string]string
}

// push stores an artifact of one layer and returns its digest.
func (s *OCIServer) push(ctx context.Context, repository, tag string, config, content blob) (string, error) {
	store := memory.New()
	layer, err := oras.PushBytes(ctx, store, content.mediaType, content.content)
	if err != nil {
		return "", fmt.Errorf("cannot store the layer: %w", err)
	}
	layer.Annotations = content.annotations
	settings, err := oras.PushBytes(ctx, store, config.mediaType, config.content)
	if err != nil {
		return "", fmt.Errorf("cannot store the configuration: %w", err)
	}
	opts := oras.PackManifestOptions{
		ConfigDescriptor: &settings,
		// As precise as need be for each manifest to be another one.
		ManifestAnnotations: map[string]string{"dev.strata.test/pushed": time.Now().Format(time.RFC3339Nano)},
	}
	opts.Layers = append(opts.Layers, layer)
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "", opts)
	if err == nil {
		err = store.Tag(ctx, manifest, tag)
	}
	if err != nil {
		return "", fmt.Errorf("cannot make the manifest: %w", err)
	}
	// The server's own side of it, wherever others find it.
	target, err := remote.NewRepository(s.port.address() + "/" + repository)
	if err != nil {
		return "", fmt.Errorf("cannot push to %s: %w", repository, err)
	}
	target.PlainHTTP = true
	if _, err := oras.Copy(ctx, store, tag, target, tag, oras.DefaultCopyOptions); err != nil {
		return "", fmt.Errorf("cannot push to %s: %w", repository, err)
	}
	return manifest.Digest.String(), nil
}

// Archive packs files, by their slash-separated paths, as the artifacts of Flux
// are packed.
func Archive(files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := packed.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
		if _, err := io.Copy(packed, strings.NewReader(files[name])); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("cannot pack: %w", err)
	}
	return out.Bytes(), nil
}
