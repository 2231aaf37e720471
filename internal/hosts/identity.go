// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import "strings"

// Identify returns the ID of the manifest's cluster: the one that the cluster itself has
// saved, or that of the first journal that is of this namespace and name; empty where no
// action has begun. An ID is namespace/name/UID, so that hosts of a cluster of another
// name are told from ours, and so are those of an earlier cluster of the same name: then
// two IDs are found, and Decide refuses.
func Identify(namespace, name, saved string, hosts []Host) string {
	prefix := namespace + "/" + name + "/"
	if strings.HasPrefix(saved, prefix) {
		return saved
	}
	for _, host := range hosts {
		if strings.HasPrefix(host.Journal.ClusterID, prefix) {
			return host.Journal.ClusterID
		}
	}
	return ""
}
