// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter counts what a controller costs while it runs: its requests to
// the API server by kube-apiserver's audit log, its downloads of artifacts by
// a proxy in front of source-controller, and its CPU time and memory by what
// the kernel says of its process.
//
// Everything is read as a total that only grows. What a window cost is the
// difference of the totals at its two ends.
package meter
