// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/strata-project/strata/test/bench/publish"
	"github.com/strata-project/strata/test/bench/report"
)

// publishCommand makes this program write reports into the documentation.
const publishCommand = "publish"

// publishReports reads the reports that its arguments name, puts them together
// and writes their tables and plots into the documentation.
func publishReports(args []string, usage io.Writer) error {
	flags := pflag.NewFlagSet("bench "+publishCommand+" REPORT...", pflag.ContinueOnError)
	flags.SetOutput(usage)
	docs := flags.String("docs", "docs", "folder of the documentation")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("it needs a report, as bench --out writes it")
	}
	reports := make([]report.Report, 0, flags.NArg())
	for _, path := range flags.Args() {
		r, err := readReport(path)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	merged, err := report.Merge(reports...)
	if err != nil {
		return err
	}
	return publish.Write(*docs, merged)
}

// readReport reads a report from a file.
func readReport(path string) (report.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return report.Report{}, fmt.Errorf("cannot read the report: %w", err)
	}
	defer func() { _ = file.Close() }()
	r, err := report.Decode(file)
	if err != nil {
		return report.Report{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
