// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestLimitOfTheRest(t *testing.T) {
	in := Input{Now: now, UID: "uid", Target: "2.0.0", Since: now}
	for _, name := range []string{"a", "b", "c", "d"} {
		in.Clusters = append(in.Clusters, Cluster{Name: name, Stage: -1, Current: "1.0.0", Next: "2.0.0", Condition: Ready})
	}
	if got := len(Plan(in).Moves); got != 1 {
		t.Errorf("without a limit %d clusters of the rest begin at a time", got)
	}
	half := intstr.FromString("50%")
	in.MaxUnavailable = &half
	if got := len(Plan(in).Moves); got != 2 {
		t.Errorf("half may be moving, and %d of 4 clusters begin", got)
	}
	in.Clusters[0].Moving, in.Clusters[0].Condition = "2.0.0", Failed
	if d := Plan(in); d.Halted != Rest || len(d.Moves) > 0 {
		t.Errorf("halted is %q, and %d begin", d.Halted, len(d.Moves))
	}
}
