// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostkeeper keeps the HostClusters of a hub: it does to their hosts
// what the plug-in does for a manifest, says in their status how they are, and hands out the
// kubeconfigs of their clusters. It writes no layer and no RemoteCluster.
package hostkeeper
