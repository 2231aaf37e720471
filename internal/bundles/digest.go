// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/oldwords"
)

// changedContent is said of a bundle that is not what was published.
const changedContent = "was published with other content: put that back, and publish another bundle"

// DigestOf identifies all of a bundle that must not change once it is published:
// everything but descriptions, preview, endOfLife and withdrawn. v1.0.0 and 1.0.0
// are the same, and how JSON is written does not matter.
func DigestOf(bundle *v1alpha1.ApplicationBundle) (string, error) {
	content := bundle.Spec.DeepCopy()
	content.Version = catalogue.Plain(content.Version)
	content.Description, content.Preview, content.EndOfLife, content.Withdrawn = "", false, nil, ""
	oldwords.WriteBundle(content)
	for i := range content.Inputs {
		content.Inputs[i].Description = ""
	}
	for i := range content.Layers {
		for j := range content.Layers[i].Applications {
			application := &content.Layers[i].Applications[j]
			application.Version = catalogue.Plain(application.Version)
		}
	}
	text, err := canonical(content)
	if err != nil {
		return "", fmt.Errorf("the bundle cannot be written: %w", err)
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Changed says that a bundle is not what was published under its name; empty where it is, and
// for one that nothing has looked at yet. Of its status only the digest counts, whatever its
// conditions say.
func Changed(bundle *v1alpha1.ApplicationBundle) string {
	digest, err := DigestOf(bundle)
	if err != nil || bundle.Status.Digest != "" && bundle.Status.Digest != digest {
		return changedContent
	}
	return ""
}

// canonical writes a value as JSON that is the same for equal values.
func canonical(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	// As json.Number, so that no two numbers are taken for one.
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return "", err
	}
	data, err = json.Marshal(plain)
	return string(data), err
}
