// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// boundClaim returns the manifest of a PersistentVolumeClaim, and makes the
// volume that it is bound to: without a volume it would never be ready.
func (f *fixture) boundClaim(name, annotations string) string {
	f.Helper()
	volume := f.prefix + "-" + name
	f.make(f.manifest(fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /nowhere}
  claimRef: {namespace: %s, name: %s} # no claim of another test gets it
`, volume, f.prefix, name)))
	return fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: %s, annotations: {%s}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
  storageClassName: ""
  volumeName: %s
`, name, f.prefix, annotations, volume)
}

// claimStays fails the test unless a claim is there, bound and nobody's.
func (f *fixture) claimStays(name string) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if f.absent(claim, name) || !claim.DeletionTimestamp.IsZero() || claim.Status.Phase != corev1.ClaimBound {
		f.Fatalf("the claim %s is gone: deleted %v, %s", name, claim.DeletionTimestamp, claim.Status.Phase)
	}
	for _, label := range []string{v1alpha1.LayerLabel, v1alpha1.OrphanedLabel} {
		if value, found := claim.Labels[label]; found {
			f.Errorf("the claim %s still has the label %s: %s", name, label, value)
		}
	}
	f.told("base", v1alpha1.ReasonReleased, name)
}

// A claim in a layer's directory is its volume's data: it stays when its file
// goes and when the layer goes, without asking, unless it says itself that it
// may go.
func TestClaimsOfADirectoryStay(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("release", "x"),
		"base/pruned.yaml":  f.boundClaim("pruned", ""),
		"base/goes.yaml":    f.boundClaim("goes", "kraan.io/prune: enabled"),
		"base/kept.yaml":    f.boundClaim("kept", ""),
		"base/too.yaml":     f.boundClaim("too", "kraan.io/prune: enabled"),
	})
	f.layer("base")
	f.deployed("base", revision)
	gone := func(name string) {
		t.Helper()
		f.eventually("the claim "+name+" is gone", func() error {
			if !f.absent(&corev1.PersistentVolumeClaim{}, name) {
				return errStillThere
			}
			return nil
		})
	}

	f.deployed("base", f.remove("base/pruned.yaml", "base/goes.yaml"))
	f.claimStays("pruned")
	gone("goes")

	f.deleteLayer("base")
	f.layerGone("base")
	f.claimStays("pruned")
	f.claimStays("kept")
	gone("too")
	f.uninstalled("release")
}
