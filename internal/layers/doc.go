// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layers holds the rules of an AddonsLayer as pure functions: what its
// directory means, which gates are open, what is to be done, and what its
// status says. It reads no clock, no cluster and no file.
package layers
