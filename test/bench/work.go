// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"strings"
)

// namespace holds the sources and the releases of a run.
const namespace = "bench"

// layer is a directory of releases, as every system is given it.
type layer struct {
	// Name of the layer, and of its directory in the repository.
	Name string
	// DependsOn names the layers that come before this one.
	DependsOn []string
	// Source is the name of its GitRepository.
	Source string
	// Releases are the names of its HelmReleases, as the API has them.
	Releases []string
	// Cluster is the RemoteCluster that it belongs on; empty for the cluster that
	// the system runs in.
	Cluster string
	// Built tells a directory that its objects are built from.
	Built bool
}

// path returns the layer's directory below the root of the repository.
func (l layer) path() string { return "./layers/" + l.Name }

// file returns the path of a release's manifest in the repository.
func (l layer) file(release string) string { return "layers/" + l.Name + "/" + release + ".yaml" }

// workload is the layers of a scenario and what their releases hold.
type workload struct {
	layers []layer
	// marks is the value by which the content of each release is told.
	marks map[string]string
	// clusters are the names of the RemoteClusters, and puts what their layers
	// are made of, by the names of the layers.
	clusters []string
	puts     map[string]put
	// built are the files of directories that are built, beside the releases, and key
	// is the private key for those that are encrypted.
	built map[string]string
	key   map[string]string
	// bundled is true where a bundle has the layers, and not a repository; there is
	// nothing on the clusters then but releases.
	bundled bool
}

// newWorkload makes count layers of size releases. In a chain each depends on
// the one before it, otherwise none depends on another. With sources each has
// one of its own, otherwise all have the same.
func newWorkload(count, size int, chain, sources bool) *workload {
	w := &workload{marks: map[string]string{}}
	for i := range count {
		l := layer{Name: fmt.Sprintf("layer-%04d", i), Source: "addons"}
		if sources {
			l.Source = l.Name
		}
		if chain && i > 0 {
			l.DependsOn = []string{w.layers[i-1].Name}
		}
		for j := range size {
			name := fmt.Sprintf("%s-release-%02d", l.Name, j)
			l.Releases = append(l.Releases, name)
			w.marks[name] = "first"
		}
		w.layers = append(w.layers, l)
	}
	return w
}

// sources returns the names of the sources of all layers, each once.
func (w *workload) sources() []string {
	var names []string
	if w.bundled {
		return nil
	}
	for _, l := range w.layers {
		if len(names) == 0 || names[len(names)-1] != l.Source {
			names = append(names, l.Source)
		}
	}
	return names
}

// releases returns the number of releases of all layers.
func (w *workload) releases() int { return len(w.marks) }

// files returns the manifests of all layers by their paths.
func (w *workload) files() map[string]string {
	files := map[string]string{}
	for _, l := range w.layers {
		if of, ok := w.puts[l.Name]; ok {
			maps.Copy(files, of.files)
			continue
		}
		for _, release := range l.Releases {
			files[l.file(release)] = w.manifest(l, release)
		}
	}
	maps.Copy(files, w.built)
	return files
}

// manifestsOf returns the manifests of some layers, in their order.
func (w *workload) manifestsOf(layers []layer) []string {
	var manifests []string
	for _, l := range layers {
		if of, ok := w.puts[l.Name]; ok {
			manifests = append(manifests, of.manifests...)
			continue
		}
		for _, release := range l.Releases {
			manifests = append(manifests, w.manifest(l, release))
		}
	}
	return manifests
}

// mark gives all releases a new content.
func (w *workload) mark(value string) {
	for name := range w.marks {
		w.marks[name] = value
	}
}

// manifest returns a release of a layer as its directory has it.
func (w *workload) manifest(l layer, release string) string {
	if l.Built {
		return unbuilt(manifest(release, w.marks[release]))
	}
	return manifest(release, w.marks[release])
}

// manifest returns a HelmRelease whose values hold a mark. It is of the size
// that a release with a few values has.
func manifest(release, mark string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "NAME", release, "MARK", mark).Replace(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: NAME
  namespace: NAMESPACE
spec:
  interval: 1h
  timeout: 5m
  releaseName: NAME
  chart:
    spec:
      chart: podinfo
      version: 6.0.0
      sourceRef:
        kind: HelmRepository
        name: charts
        namespace: NAMESPACE
  install:
    remediation:
      retries: 3
  upgrade:
    remediation:
      retries: 3
  values:
    mark: MARK
    replicaCount: 2
    logLevel: info
    resources:
      requests:
        cpu: 100m
        memory: 64Mi
    ingress:
      enabled: true
      host: NAME.example.com
`)
}
