// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HelmName returns the name of the Helm release that a HelmRelease stands for, and
// the namespace in which Helm stores it.
func HelmName(obj *unstructured.Unstructured) (name, namespace string) {
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(obj.Object, "spec", field)
		return value
	}
	name = text("releaseName")
	if name == "" {
		name = obj.GetName()
		if target := text("targetNamespace"); target != "" {
			name = target + "-" + name
		}
	}
	if len(name) > 53 {
		sum := sha256.Sum256([]byte(name))
		name = name[:40] + "-" + hex.EncodeToString(sum[:])[:12]
	}
	return name, cmp.Or(text("storageNamespace"), obj.GetNamespace())
}

// HelmReleaseIdentity names the Helm release that a HelmRelease stands for, by
// Flux's rules: the storage namespace, and the release name shortened to 53
// characters.
func HelmReleaseIdentity(obj *unstructured.Unstructured) string {
	name, namespace := HelmName(obj)
	cluster := ""
	for _, ref := range []string{"secretRef", "configMapRef"} {
		if config, _, _ := unstructured.NestedString(obj.Object, "spec", "kubeConfig", ref, "name"); config != "" {
			cluster = obj.GetNamespace() + "/" + config + "/"
		}
	}
	return cluster + namespace + "/" + name
}
