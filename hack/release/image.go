// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
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
	// user is who a controller is in its image: a number, so that runAsNonRoot can be
	// checked without a list of users.
	user = "65532:65532"
)

// unnamed stands for a registry where none is named: it is what the chart in git has.
const unnamed = "strata-project"

// imaged is a program that has an image of its own.
type imaged struct {
	// name is that of the program, of its image, and of its bills.
	name string
	// source is its package, and folder that of the image's layout.
	source, folder string
	// made is where the address of the image is kept.
	made func(*outcome) *string
}

// allImaged are the programs with images. Each has one of its own: what decrypts the directories
// of layers lies beside no keys of hosts, and a cluster without hosts pulls nothing for them.
var allImaged = []imaged{
	{"strata", ".", "image", func(o *outcome) *string { return &o.Image }},
	{"strata-hosts", "./cmd/strata-hosts", "image-hosts", func(o *outcome) *string { return &o.HostsImage }},
}

func (r *release) repository(name string) string { return cmp.Or(r.registry, unnamed) + "/" + name }

// images makes the images of the controllers.
func (r *release) images(ctx context.Context) error {
	for _, each := range allImaged {
		if err := r.image(ctx, each); err != nil {
			return err
		}
	}
	return nil
}

// image makes an image: nothing but the program, the certificates of Mozilla's authorities,
// and the licences.
func (r *release) image(ctx context.Context, of imaged) error {
	index := v1.ImageIndex(empty.Index)
	index = mutate.IndexMediaType(index, types.OCIImageIndex)
	work, err := os.MkdirTemp("", "strata-release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer os.RemoveAll(work)
	for _, p := range imagePlatforms(r.wanted) {
		path := filepath.Join(work, of.name+"-"+p.arch)
		if err := r.build(ctx, of.source, path, p, map[string]string{"version": r.version}); err != nil {
			return err
		}
		built, err := readProgram(of.name, path)
		if err != nil {
			return err
		}
		image, err := r.imageOf(ctx, built, p)
		if err != nil {
			return fmt.Errorf("cannot make the image of %s for %s: %w", of.name, p, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return fmt.Errorf("cannot make the image of %s for %s: %w", of.name, p, err)
		}
		r.bills = append(r.bills, billed{of, r.repository(of.name) + "@" + digest.String(), billOf(r.billName(of.name, p))})
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("cannot make the image of %s: %w", of.name, err)
	}
	target, err := layout.Write(r.path(of.folder), empty.Index)
	if err == nil {
		err = target.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.number}))
	}
	if err != nil {
		return fmt.Errorf("cannot write the image of %s: %w", of.name, err)
	}
	*of.made(&r.made) = r.repository(of.name) + "@" + digest.String()
	return nil
}

// billName names the bill of a program for a platform.
func (r *release) billName(program string, p platform) string {
	return fmt.Sprintf("%s_%s_%s_%s", program, r.number, p.os, p.arch)
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

func (r *release) imageOf(ctx context.Context, built program, p platform) (v1.Image, error) {
	if err := r.bill(r.billName(built.name, p), built); err != nil {
		return nil, err
	}
	licences, err := r.licences(ctx, built)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		what    string
		entries []entry
	}{
		{"certificates, users and licences", slices.Concat(base(), []entry{{"licenses/", 0o755, nil}}, within("licenses/", licences))},
		{built.name, []entry{{built.name, 0o755, built.content}}},
	} {
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
	config.Config = v1.Config{User: user, Entrypoint: []string{"/" + built.name}, WorkingDir: "/", Labels: r.labels()}
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
