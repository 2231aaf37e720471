// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"errors"
	"regexp"
)

// maxVersion bounds the version that a cluster may say to have, in bytes.
const maxVersion = 64

// gitVersion is what API servers answer: v1.30.1, v1.33.5-eks-113cf36, v1.29.3+k3s1,
// and v0.0.0-master+$Format:%H$ where nobody has said what was built.
var gitVersion = regexp.MustCompile(`^v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,6})?([-+.][0-9A-Za-z.+_~$:%-]*)?$`)

// CheckVersion returns an error where what a cluster calls its version is none: what
// answers there is no API server then, or one that is not to be believed. The error
// does not repeat what it has said.
func CheckVersion(version string) error {
	switch {
	case version == "":
		return errors.New("what answers there is no API server of Kubernetes")
	case len(version) > maxVersion || !gitVersion.MatchString(version):
		return errors.New("what answers there is no API server of Kubernetes: what it says is its version is none such as v1.36.3")
	}
	return nil
}
