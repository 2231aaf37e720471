// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxChart bounds a chart when it is unpacked.
const maxChart = 128 << 20

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// digestOfValues returns a digest of values that is the same for all ways to write
// them. None are the same as empty ones.
func digestOfValues(text []byte) (string, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return "", fmt.Errorf("has default values that cannot be read: %w", err)
	}
	if values == nil {
		values = map[string]any{}
	}
	data, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("has default values that cannot be read: %w", err)
	}
	return digestOf(data), nil
}

// ReadChart reads a packaged chart. The error says what is wrong with it.
func ReadChart(archive []byte) (Chart, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return Chart{}, fmt.Errorf("is no packaged chart: %w", err)
	}
	chart := Chart{Templates: map[string]string{}}
	var defaults []byte
	limited := &io.LimitedReader{R: unpacked, N: maxChart}
	entries := tar.NewReader(limited)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			break
		}
		if limited.N <= 0 {
			return Chart{}, fmt.Errorf("is larger than %d MiB when it is unpacked", maxChart>>20)
		}
		if err != nil {
			return Chart{}, fmt.Errorf("is no packaged chart: %w", err)
		}
		_, name, inside := strings.Cut(path.Clean(strings.ReplaceAll(header.Name, `\`, "/")), "/")
		if !inside || header.Typeflag != tar.TypeReg || strings.HasPrefix(name, "../") {
			continue
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return Chart{}, fmt.Errorf("is no packaged chart: %w", err)
		}
		data = bytes.TrimPrefix(data, []byte("\ufeff")) // as Helm does
		switch {
		case name == "Chart.yaml":
			if err := chart.describe(data); err != nil {
				return Chart{}, err
			}
		case name == "values.yaml":
			defaults = data
		case strings.HasPrefix(name, "templates/"):
			chart.Templates[name] = digestOf(data)
		case name == "requirements.yaml", strings.HasPrefix(name, "charts/"):
			chart.Dependencies = true
		}
	}
	if chart.Name == "" {
		return Chart{}, errors.New("is no packaged chart: it lacks Chart.yaml")
	}
	chart.Defaults, err = digestOfValues(defaults)
	return chart, err
}

func (c *Chart) describe(text []byte) error {
	var metadata struct {
		Name         string `json:"name"`
		Version      string `json:"version"`
		Dependencies []any  `json:"dependencies"`
	}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		return fmt.Errorf("has a Chart.yaml that cannot be read: %w", err)
	}
	c.Name, c.Version = metadata.Name, metadata.Version
	c.Dependencies = c.Dependencies || len(metadata.Dependencies) > 0
	return nil
}

// Differs says in what a chart differs from one that is installed; empty where
// it is the same. Charts below a chart are not compared, for Helm does not store
// them, and neither are default values that they may have changed.
func (c Chart) Differs(installed Chart) string {
	if c.Name != installed.Name || c.Version != installed.Version {
		return fmt.Sprintf("it is %s %s", c.Name, c.Version)
	}
	for _, name := range sortedKeys(installed.Templates) {
		switch digest, found := c.Templates[name]; {
		case !found:
			return "it lacks " + name
		case digest != installed.Templates[name]:
			return name + " differs"
		}
	}
	for _, name := range sortedKeys(c.Templates) {
		if _, found := installed.Templates[name]; !found {
			return "it has " + name + " beside"
		}
	}
	if !c.Dependencies && !installed.Dependencies && c.Defaults != installed.Defaults {
		return "its default values differ"
	}
	return ""
}

// Index is the index of a Helm repository, as far as it was asked for.
type Index map[string][]IndexEntry

// IndexEntry is one version of a chart.
type IndexEntry struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	// Digest is the SHA-256 of the archive; repositories may leave it out.
	Digest string `json:"digest"`
}

// ReadIndex reads the index of a Helm repository.
func ReadIndex(text []byte) (Index, error) {
	var index struct {
		Entries Index `json:"entries"`
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("its index cannot be read: %w", err)
	}
	if index.Entries == nil {
		return nil, errors.New("it answers with no index of charts")
	}
	return index.Entries, nil
}

// Find returns a version of a chart.
func (i Index) Find(chart, version string) (IndexEntry, bool) {
	at := slices.IndexFunc(i[chart], func(entry IndexEntry) bool { return entry.Version == version && len(entry.URLs) > 0 })
	if at < 0 {
		return IndexEntry{}, false
	}
	return i[chart][at], true
}
