// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
)

func TestInventoryReadsWhatFluxWrites(t *testing.T) {
	release := snapshottest.Objects(t, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
status:
  inventory:
    entries:
    - {id: apps_web_apps_Deployment, v: v1}
    - {id: apps_web_apps_Deployment, v: v1}
    - {id: _system__web_rbac.authorization.k8s.io_ClusterRole, v: v1}
    - {id: apps_web__Service, v: v1}
    - {id: nonsense, v: v1}
    - {id: ___, v: v1}
    - nothing
`)[0]
	var got []string
	for _, made := range Inventory(release) {
		got = append(got, made.String()+" "+made.Version)
	}
	want := []string{"Service apps/web v1", "Deployment apps/web v1", "ClusterRole system:web v1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(Kinds(append(Inventory(release), Made{}))); strings.Count(got, "Deployment") != 1 {
		t.Errorf("kinds %s", got)
	}
}
