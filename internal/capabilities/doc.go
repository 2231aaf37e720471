// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capabilities decides which provider serves a claim, and what follows from that. It
// asks nobody: it knows what a claim says, and which providers there are.
package capabilities
