// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provision does what was decided about the hosts of a cluster: one action at a
// time, after each of which all is looked at again. One actor at a time works on a cluster:
// it holds a lock on every host, and a Lease where there is an API server. It may be killed
// at any moment; what it has begun stands in the journals of the hosts.
package provision
