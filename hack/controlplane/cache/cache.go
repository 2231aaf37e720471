// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache names the folder in which the programs of a local control
// plane are kept, so that what builds them and what runs them agree.
package cache

import (
	"fmt"
	"os"
	"path/filepath"
)

// EnvRoot names another root for Strata's cache than the user's cache folder
// joined with "strata".
const EnvRoot = "STRATA_CACHE"

// CRDs is the folder, inside Dir, that holds the Flux CRDs.
const CRDs = "crds"

// KustomizeCRDs is the folder, inside Dir, that holds the CRD of
// kustomize-controller, which only benchmarks run.
const KustomizeCRDs = "crds-kustomize"

// ClusterAPICRDs is the folder, inside Dir, that holds the CRDs of Cluster API.
const ClusterAPICRDs = "crds-cluster-api"

// CloudNativePGCRDs is the folder, inside Dir, that holds the CRDs of CloudNativePG.
const CloudNativePGCRDs = "crds-cloudnative-pg"

// Dir returns the folder of the programs. It need not exist yet. It fails
// when EnvRoot is unset and the user has no cache folder.
func Dir() (string, error) {
	if root := os.Getenv(EnvRoot); root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return "", fmt.Errorf("cannot resolve %s: %w", EnvRoot, err)
		}
		return filepath.Join(abs, "controlplane"), nil
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the user's cache folder, set %s: %w", EnvRoot, err)
	}
	return filepath.Join(root, "strata", "controlplane"), nil
}
