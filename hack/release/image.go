// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	title  = "Strata"
	source = "https://github.com/strata-project/strata"
	// user is who the controller is in its image: a number, so that runAsNonRoot can be
	// checked without a list of users.
	user = "65532:65532"
)

// unnamed stands for a registry where none is named: it is what the chart in git has.
const unnamed = "strata-project"

func (r *release) repository() string {
	if r.registry == "" {
		return unnamed + "/strata"
	}
	return r.registry + "/strata"
}

// image makes the image of the controllers: nothing but the programs, the certificates of
// Mozilla's authorities, and the licences.
func (r *release) image(ctx context.Context) error {
	index := v1.ImageIndex(empty.Index)
	index = mutate.IndexMediaType(index, types.OCIImageIndex)
	work, err := os.MkdirTemp("", "strata-release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer os.RemoveAll(work)
	for _, p := range imagePlatforms(r.wanted) {
		var programs []program
		for _, each := range []struct{ name, source string }{{"strata", "."}, {"strata-hosts", "./cmd/strata-hosts"}} {
			path := filepath.Join(work, each.name+"-"+p.arch)
			if err := r.build(ctx, each.source, path, p, map[string]string{"version": r.version}); err != nil {
				return err
			}
			built, err := readProgram(each.name, path)
			if err != nil {
				return err
			}
			programs = append(programs, built)
		}
		image, err := r.imageOf(ctx, programs, p)
		if err != nil {
			return fmt.Errorf("cannot make the image for %s: %w", p, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return fmt.Errorf("cannot make the image for %s: %w", p, err)
		}
		r.bills[r.repository()+"@"+digest.String()] = billOf(r.programOf(p))
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("cannot make the image: %w", err)
	}
	target, err := layout.Write(r.path("image"), empty.Index)
	if err == nil {
		err = target.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.number}))
	}
	if err != nil {
		return fmt.Errorf("cannot write the image: %w", err)
	}
	r.made.Image = r.repository() + "@" + digest.String()
	return nil
}

// programOf names the controllers for a platform.
func (r *release) programOf(p platform) string {
	return fmt.Sprintf("strata_%s_%s_%s", r.number, p.os, p.arch)
}

// labels are what an image says of itself, to people and to scanners.
func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.version":  r.number,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

func (r *release) imageOf(ctx context.Context, programs []program, p platform) (v1.Image, error) {
	if err := r.bill(r.programOf(p), programs...); err != nil {
		return nil, err
	}
	licences, err := r.licences(ctx, programs...)
	if err != nil {
		return nil, err
	}
	type part struct {
		what    string
		entries []entry
	}
	parts := []part{
		{"certificates, users and licences", slices.Concat(base(), []entry{{"licenses/", 0o755, nil}}, within("licenses/", licences))},
	}
	for _, each := range programs {
		parts = append(parts, part{each.name, []entry{{each.name, 0o755, each.content}}})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range parts {
		layer, err := r.layer(part.entries)
		if err != nil {
			return nil, err
		}
		addendum := mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: part.what}}
		if image, err = mutate.Append(image, addendum); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{User: user, Entrypoint: []string{"/strata"}, WorkingDir: "/", Labels: r.labels()}
	return mutate.ConfigFile(image, config)
}

func (r *release) layer(entries []entry) (v1.Layer, error) {
	data, err := packed(entries, r.time)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithMediaType(types.OCILayer))
}

// base is what a program that speaks TLS finds on every system. The certificates are
// those of a Go module, so that go.mod decides which they are. Those that Mozilla trusts
// only within bounds are left out: a file has no place for the bounds.
func base() []entry {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			certificates.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return []entry{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates.Bytes()},
	}
}

// within puts entries into a folder.
func within(folder string, entries []entry) []entry {
	moved := slices.Clone(entries)
	for i := range moved {
		moved[i].name = folder + moved[i].name
	}
	return moved
}
