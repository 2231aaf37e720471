// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshots saves etcd of a cluster in a folder, and makes the data of a new member
// of what was saved. A snapshot counts once an etcd that was started from it has the keys
// that were there.
package snapshots
