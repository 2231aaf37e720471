// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing/fstest"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/yaml"
)

//go:embed all:charts
var charts embed.FS

// Charts returns the built-in charts, a folder each:
//
//	podinfo     a ConfigMap and a Service
//	configmap   one ConfigMap with .Values.data; .Values.fail makes it fail
//	deployment  a Deployment with .Values.replicas; .Values.nodeSelector can keep it unready
//	crd         the CustomResourceDefinition widgets.example.dev
//	widget      one Widget, which needs crd
func Charts() fs.FS {
	sub, err := fs.Sub(charts, "charts")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// ChartServer is a Helm repository: an index and packaged charts over HTTP.
type ChartServer struct {
	*server
	dir string

	mu       sync.Mutex
	packages map[string]packaged // by file name
	index    []byte
}

// packaged is a chart in its archive.
type packaged struct {
	metadata *chart.Metadata
	content  []byte
	digest   string
	created  time.Time
}

// NewChartServer starts a Helm repository without charts.
func NewChartServer() (*ChartServer, error) {
	dir, err := os.MkdirTemp("", "strata-charts-")
	if err != nil {
		return nil, err
	}
	s := &ChartServer{dir: dir, packages: map[string]packaged{}}
	err = s.writeIndex()
	if err == nil {
		s.server, err = newServer(s)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Close stops the server and forgets its charts.
func (s *ChartServer) Close() error { return s.close(s.dir) }

// ServeHTTP serves the index and the archives.
func (s *ChartServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := filepath.Base(r.URL.Path)
	s.mu.Lock()
	content := s.packages[name].content
	if name == "index.yaml" {
		content = s.index
	}
	s.mu.Unlock()
	if content == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

// AddBuiltin publishes one of Charts in each of the versions.
func (s *ChartServer) AddBuiltin(name string, versions ...string) error {
	tree, err := fs.Sub(Charts(), name)
	if err != nil {
		return err
	}
	for _, version := range versions {
		if err := s.Add(tree, version); err != nil {
			return err
		}
	}
	return nil
}

// AddFiles publishes a chart given by its files: Chart.yaml, values.yaml and
// so on. The version is that of Chart.yaml.
func (s *ChartServer) AddFiles(files map[string]string) error {
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return s.Add(tree, "")
}

// Add packages and publishes the chart at the root of a file system, such as
// os.DirFS(dir), with the given version in place of its own; "" keeps it. A
// chart of the same name and version is replaced.
func (s *ChartServer) Add(tree fs.FS, version string) error {
	c, err := loadChart(tree)
	if err != nil {
		return fmt.Errorf("cannot load the chart: %w", err)
	}
	if version != "" {
		c.Metadata.Version = version
		c.Metadata.AppVersion = version
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path, err := chartutil.Save(c, s.dir)
	if err != nil {
		return fmt.Errorf("cannot package chart %s: %w", c.Name(), err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	s.packages[filepath.Base(path)] = packaged{
		metadata: c.Metadata,
		content:  content,
		digest:   hex.EncodeToString(digest[:]),
		created:  time.Now(),
	}
	return s.writeIndex()
}

// Remove withdraws a version of a chart.
func (s *ChartServer) Remove(name, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.packages, name+"-"+version+".tgz")
	return s.writeIndex()
}

// writeIndex renders the index of the published charts.
func (s *ChartServer) writeIndex() error {
	index := repo.NewIndexFile()
	for _, name := range slices.Sorted(maps.Keys(s.packages)) {
		p := s.packages[name]
		if err := index.MustAdd(p.metadata, name, "", p.digest); err != nil {
			return err
		}
		versions := index.Entries[p.metadata.Name]
		versions[len(versions)-1].Created = p.created
	}
	index.SortEntries()
	content, err := yaml.Marshal(index)
	if err != nil {
		return fmt.Errorf("cannot render the index: %w", err)
	}
	s.index = content
	return nil
}

// loadChart reads a chart from a file system.
func loadChart(tree fs.FS) (*chart.Chart, error) {
	var files []*archive.BufferedFile
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		files = append(files, &archive.BufferedFile{Name: path, Data: content})
		return nil
	})
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	return c, c.Validate()
}
