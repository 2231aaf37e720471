// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package kustomize

// set leaves it to watchMemory, and to the one that waits for the build:
// the system has no limits that a process could set for itself.
func (limits) set() error { return nil }

// closeFiles does nothing.
func closeFiles() error { return nil }
