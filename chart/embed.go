// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart holds Strata's chart, so that the plug-in can install it and knows
// what belongs to it.
package chart

import "embed"

// Files are the files of the chart, by their paths inside it.
//
//go:embed Chart.yaml values.yaml values.schema.json README.md .helmignore all:files all:templates
var Files embed.FS
