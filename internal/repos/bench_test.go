// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"testing"

	"github.com/strata-project/strata/internal/builds"
)

// BenchmarkNextArtifact reads all directories of an artifact that differs from
// the one before in one of them: 100 directories of 10 files.
func BenchmarkNextArtifact(b *testing.B) {
	const folders, each = 100, 10
	origin := newOrigin(b)
	artifact := func(i int) Artifact {
		var content []string
		for folder := range folders {
			for file := range each {
				name := fmt.Sprintf("release-%03d-%d", folder, file)
				if folder == 0 && file == 0 {
					name += fmt.Sprintf("-%d", i)
				}
				content = append(content, fmt.Sprintf("layer-%03d/%d.yaml", folder, file), release(name))
			}
		}
		return origin.serve(fmt.Sprint(i), archive(b, content...))
	}
	read := func(store *Store, artifact Artifact) {
		for folder := range folders {
			if _, err := store.Directory(b.Context(), artifact, fmt.Sprintf("layer-%03d", folder), builds.Build{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("anew", func(b *testing.B) {
		artifact := artifact(0)
		for b.Loop() {
			b.StopTimer()
			store := newStore(b, Options{})
			b.StartTimer()
			read(store, artifact)
		}
	})
	b.Run("next", func(b *testing.B) {
		store := newStore(b, Options{})
		read(store, artifact(0))
		i := 0
		for b.Loop() {
			i++
			b.StopTimer()
			next := artifact(i)
			b.StartTimer()
			read(store, next)
		}
	})
}
