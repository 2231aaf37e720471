// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Bench measures Strata beside other ways to bring the same releases about, on
// a real etcd, kube-apiserver and source-controller. A stand-in takes the place
// of helm-controller, so that only what deploys the layers is measured.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/strata-project/strata/test/bench/report"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == plainCommand {
		if err := plainProcess(os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", plainCommand, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == publishCommand {
		if err := publishReports(os.Args[2:], os.Stderr); err != nil {
			fmt.Fprintf(os.Stderr, "bench %s: %v\n", publishCommand, err)
			os.Exit(1)
		}
		return
	}
	o, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(2)
	}
	o.command = append([]string{"bench"}, withoutPlaces(os.Args[1:])...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		if ctx.Err() != nil {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

// bench measures, prints the report as a table and writes it as JSON, as far as
// it came also when the context has ended. What did not end is an error then.
func bench(ctx context.Context, o *options) error {
	made, err := measure(ctx, o)
	if len(made.Results) == 0 {
		return err
	}
	if err := errors.Join(report.Text(os.Stdout, made), write(o.out, made)); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range made.Results {
		if r.Error != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d scenarios did not end", failed, len(made.Results))
	}
	return nil
}

// write writes a report as JSON into a file, if there is to be one.
func write(path string, made report.Report) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return errors.Join(report.Encode(file, made), file.Close())
}
