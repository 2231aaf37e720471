// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/pflag"

	"github.com/strata-project/strata/internal/answers/gather"
)

// chartOptions say what is asked for charts and artifacts, and what charts may see.
type chartOptions struct{ gather.ChartOptions }

func (o *chartOptions) hostsFlag(flags *pflag.FlagSet) {
	flags.StringSliceVar(
		&o.Hosts,
		"artifact-hosts",
		nil,
		"further Services that hold artifacts, as NAME.NAMESPACE.svc, which are asked through the API server with your rights; source-controller's own, and those that the controller's Deployment names, need not be given",
	)
}

func (o *chartOptions) trustFlag(flags *pflag.FlagSet) {
	flags.BoolVar(
		&o.TrustSources,
		"trust-sources",
		false,
		"send the credentials of sources to the addresses that the change gives them, too; whoever wrote it may be the one who gets them",
	)
}

func (o *chartOptions) secretsFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&o.ShowSecrets, "show-secrets", false, "render charts with the true values of Secrets, which may then be shown")
}

func (o *chartOptions) fetchFlag(flags *pflag.FlagSet, where string) {
	flags.BoolVar(&o.Fetch, "fetch-charts", false, where+"fetch charts from the addresses in the folder, without any credentials")
}
