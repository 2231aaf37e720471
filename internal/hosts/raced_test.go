// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package hosts_test

// raced tells whether the race detector is on.
const raced = true
