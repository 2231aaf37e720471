// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/strata-project/strata/chart"
)

// The media types of a chart, as helm push writes them.
const (
	helmConfig  = "application/vnd.cncf.helm.config.v1+json"
	helmContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

func (r *release) chartRepository() string {
	if r.registry == "" {
		return unnamed + "/charts/strata"
	}
	return r.registry + "/charts/strata"
}

// chart packs the chart of this version, whose images are those that were just made, by
// their digests.
func (r *release) chart(context.Context) error {
	loaded, err := chart.Load(chart.Release{Version: r.number, Image: r.made.Image, HostsImage: r.made.HostsImage, Time: r.time})
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "strata-release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer os.RemoveAll(work)
	path, err := util.Save(loaded, work)
	if err != nil {
		return fmt.Errorf("cannot pack the chart: %w", err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the chart: %w", err)
	}
	if err := r.keep(filepath.Base(path), archive); err != nil {
		return err
	}
	digest, err := r.writeChart(loaded.Metadata, archive)
	if err != nil {
		return fmt.Errorf("cannot write the chart: %w", err)
	}
	r.made.Chart = r.chartRepository() + "@" + digest.String()
	return nil
}

// writeChart writes the chart as an OCI layout. Helm's own push would say in it when it
// was pushed, so that each push had another digest.
func (r *release) writeChart(metadata *chartv2.Metadata, archive []byte) (v1.Hash, error) {
	target, err := layout.Write(r.path("chart"), empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: r.labels()}
	manifest.Annotations["org.opencontainers.image.title"] = metadata.Name
	manifest.Annotations["org.opencontainers.image.description"] = metadata.Description
	manifest.Annotations["org.opencontainers.image.created"] = r.time.Format("2006-01-02T15:04:05Z")
	if manifest.Config, err = blob(target, helmConfig, config); err != nil {
		return v1.Hash{}, err
	}
	content, err := blob(target, helmContent, archive)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest.Layers = []v1.Descriptor{content}
	data, err := json.Marshal(manifest)
	if err != nil {
		return v1.Hash{}, err
	}
	described, err := blob(target, types.OCIManifestSchema1, data)
	if err != nil {
		return v1.Hash{}, err
	}
	described.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.number}
	return described.Digest, target.AppendDescriptor(described)
}

// blob stores data in a layout.
func blob(target layout.Path, kind types.MediaType, data []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(data))
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, target.WriteBlob(digest, io.NopCloser(bytes.NewReader(data)))
}
