// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// Release says of which release a chart is. The zero value is the chart as it is in git.
type Release struct {
	// Version is that of chart and controller, such as 0.2.0.
	Version string
	// Image is that of the controller, with its digest: HOST/PATH@sha256:HEX. HostsImage is
	// that of the controller of hosts: HOST/PATH-hosts@sha256:HEX. A chart has both or none.
	Image, HostsImage string
	// Time is that of the files of the chart.
	Time time.Time
}

// UnreleasedRepository is the repository of the image in the chart as it is in git. It has
// no host, and nobody has pushed an image there.
const UnreleasedRepository = "strata-project/strata"

// The lines of values.yaml that a release changes.
const (
	unreleasedRepository  = "\n  repository: " + UnreleasedRepository + "\n"
	unreleasedDigest      = "\n  digest: \"\"\n"
	unreleasedHostsDigest = "\n    digest: \"\"\n"
)

// imagesAnnotation lists the images of a chart, as Artifact Hub reads it. The chart itself
// finds there whether values name the images of one release.
const imagesAnnotation = "artifacthub.io/images"

// Load returns the chart of a release.
func Load(release Release) (*chartv2.Chart, error) {
	var files []*archive.BufferedFile
	err := fs.WalkDir(Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := Files.ReadFile(name)
		if err == nil && name == "values.yaml" && release.Image != "" {
			data, err = released(data, release)
		}
		files = append(files, &archive.BufferedFile{Name: name, Data: data, ModTime: release.Time})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the chart: %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart: %w", err)
	}
	if release.Version != "" {
		loaded.Metadata.Version, loaded.Metadata.AppVersion = release.Version, release.Version
	}
	if release.Image != "" {
		loaded.Metadata.Annotations[imagesAnnotation] = "- name: strata\n  image: " + release.Image + "\n- name: strata-hosts\n  image: " + release.HostsImage + "\n"
	}
	return loaded, nil
}

// released returns values.yaml with the images of a release, and with all its comments.
func released(values []byte, release Release) ([]byte, error) {
	repository, digest, found := strings.Cut(release.Image, "@")
	if !found {
		return nil, fmt.Errorf("the image %s has no digest", release.Image)
	}
	// The templates take the repository from the controller's, so that people name one where
	// they keep copies of the images.
	hostsDigest, beside := strings.CutPrefix(release.HostsImage, repository+"-hosts@")
	if !beside {
		return nil, fmt.Errorf("the image %q of the controller of hosts is not %s-hosts with a digest", release.HostsImage, repository)
	}
	for from, to := range map[string]string{
		unreleasedRepository:  "\n  repository: " + repository + "\n",
		unreleasedDigest:      "\n  digest: " + digest + "\n",
		unreleasedHostsDigest: "\n    digest: " + hostsDigest + "\n",
	} {
		if bytes.Count(values, []byte(from)) != 1 {
			return nil, fmt.Errorf("values.yaml has the line %q not once", strings.TrimSpace(from))
		}
		values = bytes.Replace(values, []byte(from), []byte(to), 1)
	}
	return values, nil
}
