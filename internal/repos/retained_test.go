// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/builds"
)

// fullRelease is a manifest of a HelmRelease as people write them: with a chart,
// remediation and some values, 0.7 KB as JSON.
func fullRelease(name string) string {
	return release(name) + strings.ReplaceAll(`  releaseName: NAME
  targetNamespace: addons
  timeout: 5m
  chart:
    spec:
      chart: NAME
      version: 1.2.3
      sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}
  install: {createNamespace: true, remediation: {retries: 3}}
  upgrade: {cleanupOnFail: true, remediation: {retries: 3, remediateLastFailure: true}}
  values:
    replicaCount: 2
    image: {repository: registry.example.com/team/NAME, tag: 1.2.3}
    resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
    service: {type: ClusterIP, port: 8080}
`, "NAME", name)
}

// BenchmarkRetained tells how many bytes a store keeps for each of 1000
// directories of 10 HelmReleases, once nobody uses them.
func BenchmarkRetained(b *testing.B) {
	const folders, each = 1000, 10
	var content []string
	for folder := range folders {
		for file := range each {
			content = append(content, fmt.Sprintf("layer-%04d/%d.yaml", folder, file), fullRelease(fmt.Sprintf("release-%04d-%d", folder, file)))
		}
	}
	artifact := newOrigin(b).serve("x", archive(b, content...))
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // the first one leaves what pools hold
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for b.Loop() {
		before := inUse()
		store := newStore(b, Options{})
		for folder := range folders {
			if _, err := store.Directory(b.Context(), artifact, fmt.Sprintf("layer-%04d", folder), builds.Build{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(inUse()-before)/folders, "B/directory")
		b.ReportMetric(float64(store.parsed.size)/folders, "weight/directory")
		b.ReportMetric(float64(store.parsed.order.Len()), "directories")
		runtime.KeepAlive(store)
	}
}
