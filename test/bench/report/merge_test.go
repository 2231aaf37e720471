// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	first, second := sample(), sample()
	second.Run.Date = first.Run.Date.Add(-time.Hour)
	second.Run.Command = []string{"bench", "--systems", "kustomize"}
	second.Run.Systems = []System{
		{Name: Kustomize, About: "Flux's own."},
		{Name: Strata, Flags: []Flag{{Name: "workers", Value: "8"}, {Name: "kubeconfig", Value: "ANOTHER", Given: true}}},
	}
	second.Run.Programs = append(second.Run.Programs, Program{Name: "etcd", Version: "v3"})
	second.Results = []Result{seconds(Chain, Kustomize, 10, 5, AllDeployed, 276.0)}
	merged, err := Merge(first, second)
	if err != nil {
		t.Fatal(err)
	}
	if !merged.Run.Date.Equal(second.Run.Date) || strings.Join(merged.Run.Command, " ") != "bench --scenarios chain,fan-out && bench --systems kustomize" {
		t.Errorf("date %s, command %q", merged.Run.Date, merged.Run.Command)
	}
	var names []string
	for _, s := range merged.Run.Systems {
		names = append(names, s.Name)
	}
	for _, p := range merged.Run.Programs {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{Strata, Plain, Kustomize, "kube-apiserver", "kustomize-controller", "etcd"}, names); diff != "" {
		t.Errorf("systems and programs:\n%s", diff)
	}
	if len(merged.Results) != len(first.Results)+1 || merged.Schema != Schema {
		t.Errorf("%d results of schema %s", len(merged.Results), merged.Schema)
	}
}

func TestMergeRefuses(t *testing.T) {
	machine, delay, flags := sample(), sample(), sample()
	machine.Run.Machine.Cores = 64
	delay.Run.ReadyDelaySeconds = 1
	flags.Run.Systems = []System{{Name: Strata, Flags: []Flag{{Name: "workers", Value: "99"}}}}
	for reason, with := range map[string][]Report{
		"nothing": nil, "another machine": {sample(), machine}, "another delay": {sample(), delay}, "other flags": {sample(), flags},
	} {
		if _, err := Merge(with...); err == nil {
			t.Errorf("%s is accepted", reason)
		}
	}
}
