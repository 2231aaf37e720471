// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ssh reaches machines and runs scripts on them. It knows nothing of clusters.
//
// A machine is known by its host key, and nothing is sent before that was compared: with
// those that the caller names, or with those of a Pins, where a key that was never seen is
// taken once and kept. A key that differs ends the attempt. What a machine answers is
// bounded while it is read, and never in an error as it came.
package ssh
