// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const help = `Usage of controller:
      --concurrent int                 The number of concurrent reconciles. (default 4)
      --enable-leader-election         Enable it.
  -e, --events-addr string             The address
                                       of the receiver. (default "http://localhost:80")
      --feature-gates mapStringBool    Gates (a, b).
      --flag-without-help
      --requeue-dependency duration    How often. (default 30s)
      --timeout duration               No limit.
      --watch strings                  What is watched.
  -h, --help                           help for controller
pflag: help requested
`

const goHelp = `Usage of controller:
  -kubeconfig string
    	Paths to a kubeconfig. Only required if out-of-cluster.
  -workers int
    	How many. (default 2)
`

func TestParseFlags(t *testing.T) {
	for _, test := range []struct {
		reason string
		help   string
		args   []string
		want   []Flag
	}{
		{
			reason: "defaults, those left out by the help too",
			help:   help,
			want: []Flag{
				{Name: "concurrent", Value: "4"},
				{Name: "enable-leader-election", Value: "false"},
				{Name: "events-addr", Value: "http://localhost:80"},
				{Name: "feature-gates"},
				{Name: "flag-without-help", Value: "false"},
				{Name: "requeue-dependency", Value: "30s"},
				{Name: "timeout", Value: "0"},
				{Name: "watch"},
			},
		},
		{
			reason: "what was given, in every form, also what the help does not name",
			help:   help,
			args: []string{
				"--concurrent", "20", "--enable-leader-election", "--events-addr=", "--hidden=x",
				"--requeue-dependency=1s", "--watch=a", "--watch=b", "--flag-without-help",
			},
			want: []Flag{
				{Name: "concurrent", Value: "20", Given: true},
				{Name: "enable-leader-election", Value: "true", Given: true},
				{Name: "events-addr", Given: true},
				{Name: "feature-gates"},
				{Name: "flag-without-help", Value: "true", Given: true},
				{Name: "hidden", Value: "x", Given: true},
				{Name: "requeue-dependency", Value: "1s", Given: true},
				{Name: "timeout", Value: "0"},
				{Name: "watch", Value: "a,b", Given: true},
			},
		},
		{
			reason: "flags of Go's own package have one dash and their help on a line of its own",
			help:   goHelp,
			args:   []string{"-workers", "3"},
			want:   []Flag{{Name: "kubeconfig"}, {Name: "workers", Value: "3", Given: true}},
		},
	} {
		if diff := cmp.Diff(test.want, ParseFlags(test.help, test.args)); diff != "" {
			t.Errorf("%s:\n%s", test.reason, diff)
		}
	}
}
