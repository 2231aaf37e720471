// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostclusters reads HostClusters, checks what their definition cannot say, and
// fills in what they leave out. It connects to nothing.
package hostclusters

import _ "embed"

// Sample is a manifest with a comment on each field.
//
//go:embed sample.yaml
var Sample string
