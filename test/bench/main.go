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
	o, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(2)
	}
	o.command = append([]string{"bench"}, os.Args[1:]...)
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

// bench measures, prints the report as a table and writes it as JSON.
func bench(ctx context.Context, o *options) error {
	made, err := measure(ctx, o)
	if err != nil {
		return err
	}
	if err := report.Text(os.Stdout, made); err != nil {
		return err
	}
	if o.out == "" {
		return nil
	}
	file, err := os.Create(o.out)
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return errors.Join(report.Encode(file, made), file.Close())
}
