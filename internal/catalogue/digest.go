// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/oldwords"
)

// DigestOf identifies all of a version that must not change once it is published:
// everything but preview, endOfLife and withdrawn. v1.0.0 and 1.0.0 are the same,
// and how values are written does not matter.
func DigestOf(version v1alpha1.HelmApplicationVersion) (string, error) {
	content := *version.DeepCopy()
	content.Version = Plain(content.Version)
	content.Preview, content.EndOfLife, content.Withdrawn = false, nil, ""
	oldwords.WriteVersion(&content)
	if content.Values != nil {
		var values any
		// As json.Number, so that no two numbers are taken for one.
		decoder := json.NewDecoder(strings.NewReader(string(content.Values.Raw)))
		decoder.UseNumber()
		if err := decoder.Decode(&values); err != nil {
			return "", fmt.Errorf("its values are no JSON: %w", err)
		}
		raw, err := json.Marshal(values)
		if err != nil {
			return "", fmt.Errorf("its values cannot be written: %w", err)
		}
		content.Values = &apiextensionsv1.JSON{Raw: raw}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("it cannot be written: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Plain returns a semantic version without the v that some write in front.
func Plain(version string) string { return strings.TrimPrefix(version, "v") }

// VersionOf returns a version of an application; nil where it has none. v1.0.0 and
// 1.0.0 are the same.
func VersionOf(app *v1alpha1.HelmApplication, version string) *v1alpha1.HelmApplicationVersion {
	for i := range app.Spec.Versions {
		if Plain(app.Spec.Versions[i].Version) == Plain(version) {
			return &app.Spec.Versions[i]
		}
	}
	return nil
}

// IsChanged tells whether a version is not what was published under its number. One
// that was never seen before is not changed.
func IsChanged(app *v1alpha1.HelmApplication, version v1alpha1.HelmApplicationVersion) bool {
	digest, err := DigestOf(version)
	if err != nil {
		return true
	}
	for _, published := range app.Status.Published {
		if Plain(published.Version) == Plain(version.Version) {
			return published.Digest != digest
		}
	}
	return false
}
