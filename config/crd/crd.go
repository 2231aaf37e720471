// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of Strata, as they are installed.
package crd

import "embed"

// Bases holds the definitions below bases, one in each file.
//
//go:embed bases/*.yaml
var Bases embed.FS
