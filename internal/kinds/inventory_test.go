// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// What Flux's library writes is read as it reads it, and what it cannot read names no object.
func TestEntriesAreReadAsFluxReadsThem(t *testing.T) {
	parts := rapid.SampledFrom([]string{"", "apps", "web-1", "system:node", "a:b:c", "rbac.authorization.k8s.io", "Deployment", "ClusterRole", "x_y", "_"})
	rapid.Check(t, func(t *rapid.T) {
		written := object.ObjMetadata{
			Namespace: parts.Draw(t, "namespace"), Name: parts.Draw(t, "name"),
			GroupKind: schema.GroupKind{Group: parts.Draw(t, "group"), Kind: parts.Draw(t, "kind")},
		}.String()
		if rapid.Bool().Draw(t, "cut") {
			written = written[:rapid.IntRange(0, len(written)).Draw(t, "at")]
		}
		read, err := object.ParseObjMetadata(written)
		want := objects.ID{Group: read.GroupKind.Group, Kind: read.GroupKind.Kind, Namespace: read.Namespace, Name: read.Name}
		got, named := kinds.ParseEntry(written)
		if names := err == nil && want.Kind != "" && want.Name != ""; named != names || named && got != want {
			t.Fatalf("%q is %+v, %t, and Flux reads %+v, %v", written, got, named, want, err)
		}
	})
}
