// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers is what is read of any cluster, and how it is reached: the kinds
// that are watched, single objects that are followed, what accounts may do, and the
// connections to other clusters with the gate that each write passes. It decides
// nothing, and imports the API, the pure rooms, kubeconfig and reach; who is told of
// what it sees is handed to it.
package informers

import "sigs.k8s.io/controller-runtime/pkg/client"

// VersionOf names an object at its version.
func VersionOf(obj client.Object) string {
	return obj.GetNamespace() + "/" + obj.GetName() + "@" + obj.GetResourceVersion()
}
