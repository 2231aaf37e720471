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
	for reason, c := range map[string]struct {
		with []Report
		want string
	}{
		"nothing":         {nil, "there is no report"},
		"another machine": {[]Report{sample(), machine}, "are of different machines: {Cores:2 "},
		"another delay":   {[]Report{sample(), delay}, "are of a --ready-delay of 0.1 s and of 1 s"},
		"other flags":     {[]Report{sample(), flags}, "strata ran with --workers 8 and with 99"},
	} {
		if _, err := Merge(c.with...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", reason, err, c.want)
		}
	}
}
