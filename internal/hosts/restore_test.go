// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/hosts"
)

// What is restored where, and what is said where nothing is.
func TestRestore(t *testing.T) {
	lost := situation{kinds: []kind{"Bd", "Bd", "Ud"}, versions: []string{current, current, current}, version: current, target: current}
	for name, tc := range map[string]struct {
		kinds []kind
		wish  hosts.Wish
		want  string
	}{
		"on the first":         {nil, hosts.Wish{Without: []string{"cp-2"}}, "{cp-0 [cp-1] [cp-2]}"},
		"on one that is named": {nil, hosts.Wish{Without: []string{"cp-2"}, Host: "cp-1"}, "{cp-1 [cp-0] [cp-2]}"},
		"where it has begun":   {[]kind{"Bd", "Gs", "Ud"}, hosts.Wish{Without: []string{"cp-2"}}, "{cp-1 [cp-0] [cp-2]}"},
		"beside an empty one":  {[]kind{"Ed", "Bd", "Bd"}, hosts.Wish{}, "{cp-1 [cp-2] []}"},
		"one is not spoken of": {nil, hosts.Wish{}, "cp-2 cannot be reached: with what it has of etcd it must not come back"},
		"one can be reached":   {nil, hosts.Wish{Without: []string{"cp-1", "cp-2"}}, "cp-1 is no host of the control plane that cannot be reached"},
		"on one that is away":  {nil, hosts.Wish{Without: []string{"cp-2"}, Host: "cp-2"}, "the cluster cannot begin on cp-2: it can on cp-0, cp-1"},
		"no authorities":       {[]kind{"E", "E", "E"}, hosts.Wish{}, "the cluster can begin on no host"},
		"an upgrade has begun": {[]kind{"Gud"}, hosts.Wish{}, "Upgrade of cp-0 has not ended"},
		"remains of others":    {[]kind{"Bd", "R", "Bd"}, hosts.Wish{}, "there are remains of a cluster on cp-1"},
		"a majority":           {[]kind{"H", "H", "Bd"}, hosts.Wish{}, "2 of 3 members of etcd are healthy, and the cluster answers"},
		"a majority goes back": {[]kind{"H", "H", "Bd"}, hosts.Wish{AlthoughItAnswers: true}, "{cp-0 [cp-1 cp-2] []}"},
		"of another cluster":   {nil, hosts.Wish{ClusterID: "other"}, "the snapshot is of the cluster other, and that of these hosts is cluster-1"},
		"of a version to come": {[]kind{"Bd"}, hosts.Wish{Version: "v1.37.0"}, "cp-0 has v1.36.3, and the snapshot is of v1.37.0"},
		"of a version before":  {[]kind{"Bd"}, hosts.Wish{Version: old}, "{cp-0 [] []}"},
	} {
		s := lost
		if tc.kinds != nil {
			s.kinds = tc.kinds
		}
		if tc.wish.ClusterID == "" {
			tc.wish.ClusterID = id
		}
		if tc.wish.Version == "" {
			tc.wish.Version = current
		}
		made, err := hosts.Restore(s.observe(), tc.wish)
		got := fmt.Sprint(made)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
