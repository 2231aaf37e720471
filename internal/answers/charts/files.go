// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// fromFiles loads a chart from the content of a GitRepository, a Bucket or an
// ExternalArtifact: a folder, or a packed chart.
func (r *Renderer) fromFiles(ctx context.Context, q Request, source *unstructured.Unstructured, ref reference) (*chart.Chart, error) {
	var files fs.FS
	var err error
	if q.Files != nil {
		files, err = q.Files(ctx, ref.source)
	}
	if err != nil {
		return nil, problem(ChartUnavailable, err, "the content of %s cannot be had", ref.source)
	}
	if files == nil {
		return nil, problem(ChartUnavailable, nil, "the chart is a folder of %s, whose content is not at hand here", ref.source)
	}
	at, isFolder, err := placeOf(files, ref)
	if err != nil {
		return nil, err
	}
	var loaded *chart.Chart
	if isFolder {
		loaded, err = loadFolder(files, at, r.limits.archive)
	} else {
		loaded, err = loadFile(files, at, r.limits.archive)
	}
	if err != nil {
		return nil, problem(ChartUnavailable, err, "the chart at %s of %s cannot be read", at, ref.source)
	}
	if missing := missingDependencies(loaded); isFolder && len(missing) > 0 {
		return nil, problem(
			Unsupported,
			nil,
			"the chart at %s of %s needs %s, which are not in its folder charts: Flux fetches them, and this program does not",
			at,
			ref.source,
			strings.Join(missing, ", "),
		)
	}
	if ref.byRevision {
		if err := withRevision(loaded, source, ref); err != nil {
			return nil, err
		}
	}
	// Flux takes the paths of valuesFiles from the top of the source here.
	return loaded, replaceValues(loaded, ref, func(name string) ([]byte, error) {
		data, err := fs.ReadFile(files, strings.TrimPrefix(name, "/"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return data, err
	})
}

// placeOf returns where a chart is, and whether that is a folder.
func placeOf(files fs.FS, ref reference) (string, bool, error) {
	at := strings.TrimPrefix(path.Clean("/"+ref.chart), "/")
	if at == "" {
		at = "."
	}
	info, err := fs.Stat(files, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, problem(ChartNotFound, nil, "%s has no %s", ref.source, at)
	case err != nil:
		return "", false, problem(ChartUnavailable, err, "%s of %s cannot be read", at, ref.source)
	}
	if _, err := fs.Stat(files, path.Join(at, "Chart.yaml")); err == nil || ref.chart != "" || !info.IsDir() {
		return at, info.IsDir(), nil
	}
	// An artifact that is a chart holds it in one folder.
	entries, err := fs.ReadDir(files, at)
	if err == nil && len(entries) == 1 && entries[0].IsDir() {
		at = entries[0].Name()
	}
	return at, true, nil
}

func loadFile(files fs.FS, name string, limit int64) (*chart.Chart, error) {
	data, err := readFile(files, name, limit)
	if err != nil {
		return nil, err
	}
	return unpack(data, limit)
}

func readFile(files fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	}
	return fs.ReadFile(files, name)
}

// loadFolder loads a chart from a folder, without what its .helmignore names, as
// Helm does. Links are left out: they may lead out of the chart.
func loadFolder(files fs.FS, root string, limit int64) (*chart.Chart, error) {
	sub, err := fs.Sub(files, root)
	if err != nil {
		return nil, err
	}
	rules := ignore.Empty()
	if text, err := readFile(sub, ignore.HelmIgnore, limit); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	var loaded []*archive.BufferedFile
	left := limit
	err = fs.WalkDir(sub, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch ignored := rules.Ignore(name, info); {
		case ignored && entry.IsDir():
			return fs.SkipDir
		case ignored, !entry.Type().IsRegular():
			return nil
		}
		data, err := readFile(sub, name, left)
		if err != nil {
			return err
		}
		if left -= int64(len(data)); left < 0 {
			return fmt.Errorf("it is larger than %d MiB", limit>>20)
		}
		loaded = append(loaded, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return loader.LoadFiles(loaded)
}

// missingDependencies returns the charts that a chart says it depends on, and that
// are not with it.
func missingDependencies(c *chart.Chart) []string {
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(has *chart.Chart) bool { return has.Name() == wanted.Name }) {
			missing = append(missing, strings.TrimSpace(wanted.Name+" "+wanted.Version))
		}
	}
	return missing
}

// withRevision puts the revision of the source into the version of a chart, shortened
// as Flux does it.
func withRevision(c *chart.Chart, source *unstructured.Unstructured, ref reference) error {
	var status struct {
		Status struct {
			Artifact *meta.Artifact `json:"artifact"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(source.Object, &status); err != nil || status.Status.Artifact == nil {
		return problem(ChartUnavailable, nil, "%s has no artifact yet, whose revision the chart's version is to hold", ref.source)
	}
	revision := status.Status.Artifact.Revision
	if ref.source.Kind == sourcev1.GitRepositoryKind || ref.source.Kind == sourcev1.BucketKind {
		// main@sha1:abc, or sha256:abc
		revision = revision[strings.LastIndexAny(revision, ":/@")+1:]
		revision = revision[:min(len(revision), 12)]
	}
	version, err := semver.NewVersion(c.Metadata.Version)
	if err != nil {
		return problem(ChartUnavailable, nil, "the chart of %s has the version %q, which is none", ref.source, c.Metadata.Version)
	}
	with, err := version.SetMetadata(revision)
	if err != nil {
		return problem(ChartUnavailable, err, "revision %s of %s cannot be part of a version", revision, ref.source)
	}
	c.Metadata.Version = with.String()
	return nil
}
