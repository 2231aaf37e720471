// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package joining

import "testing"

// No two RemoteClusters have one account on a cluster, however their names run
// together: whoever forgets one would take the other's away.
func TestAccountsOfRemoteClustersDiffer(t *testing.T) {
	parts := []string{"a", "b", "a-b", "b-a", "a-b-a", "team", "team-a", "a-prod", "prod"}
	found := map[string]string{}
	for _, namespace := range parts {
		for _, name := range parts {
			account := Join{Namespace: namespace, Name: name}.Account()
			if other, taken := found[account]; taken {
				t.Errorf("%s and %s/%s are both %s", other, namespace, name, account)
			}
			found[account] = namespace + "/" + name
		}
	}
}
