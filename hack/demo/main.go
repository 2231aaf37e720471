// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows Strata at work on this machine: a real control plane with
// Flux, a git server, a chart repository, and the controller with the rights
// of its chart. It deploys examples/platform, shows the layers on their way,
// and then keeps everything running to look around in.
//
//	make demo               until Ctrl-C
//	make demo DEMO_EXIT=1   until all layers are deployed
//	make demo DEMO_REMOTE=1 with a second cluster, and examples/remote on it
//	make demo DEMO_FLEET=1  with two further clusters, and examples/fleet on them
//	                        in place of examples/platform
//	make demo DEMO_CLUSTER=current
//	                        on the cluster of the current context, from which it takes
//	                        everything away at its end
//
// It exits with 0 when it has done that, with 1 when something failed, and
// with 130 when it was interrupted before.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set by the linker.
var version = "dev"

// errInterrupted ends a demo that somebody has had enough of.
var errInterrupted = errors.New("interrupted")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The second Ctrl-C does not wait for anything.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errInterrupted):
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	exit    bool
	remote  bool
	fleet   bool
	current bool
	timeout time.Duration
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	says := func(variable string) bool { value := os.Getenv(variable); return value != "" && value != "0" }
	flags.BoolVar(&s.exit, "exit", says("DEMO_EXIT"), "stop when all layers are deployed; DEMO_EXIT=1 says the same")
	flags.BoolVar(&s.remote, "remote", says("DEMO_REMOTE"), "start a second cluster and put examples/remote on it; DEMO_REMOTE=1 says the same")
	flags.BoolVar(&s.fleet, "fleet", says("DEMO_FLEET"), "put examples/fleet on two further clusters, in place of examples/platform; DEMO_FLEET=1 says the same")
	cluster := flags.String(
		"cluster",
		os.Getenv("DEMO_CLUSTER"),
		"current takes the cluster of the current context, in place of one of its own; DEMO_CLUSTER says the same",
	)
	flags.DurationVar(&s.timeout, "timeout", 5*time.Minute, "with --exit, how long the layers may take")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.fleet && s.remote {
		return s, errors.New("--fleet and --remote cannot go together")
	}
	if *cluster != "" && *cluster != "current" {
		return s, fmt.Errorf("--cluster is %q: want current, or nothing", *cluster)
	}
	if s.current = *cluster == "current"; s.current && (s.fleet || s.remote) {
		return s, errors.New("--cluster current goes with neither --fleet nor --remote, which start clusters beside one of their own")
	}
	return s, nil
}

// run shows the demo and takes everything down again.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	d := &demo{out: out}
	defer func() {
		if ctx.Err() != nil {
			fmt.Fprintln(out, "\nstopping ...")
		}
		err = errors.Join(err, d.stop())
	}()
	show, invite := d.show, d.invite
	if s.fleet {
		show, invite = d.showFleet, d.inviteToFleet
	}
	err = d.makeDir()
	if err == nil && !s.current {
		err = d.programs(ctx)
	}
	if err == nil {
		err = show(ctx, s)
	}
	if err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	if s.exit {
		return d.lookAtPage(ctx)
	}
	if err := invite(); err != nil {
		return err
	}
	return d.stay(ctx)
}

// show starts everything and waits until the platform is deployed.
func (d *demo) show(ctx context.Context, s settings) error {
	first := step{"starting etcd, Kubernetes and Flux, building Strata", d.startPlane}
	if s.current {
		first = step{"building Strata, looking at the cluster of the current context", d.useCurrent}
	}
	err := d.steps(ctx, []step{
		first,
		{"serving examples/charts, and examples/platform from git", d.serve},
		{"installing Strata's chart, starting its controller", d.startController},
		{"serving the page", d.servePage},
		{"applying the GitRepository and the layers", d.apply},
	})
	if err != nil {
		return err
	}
	d.sayPage()
	if err := d.followFor(ctx, s); err != nil || !s.remote {
		return err
	}
	fmt.Fprintln(d.out)
	err = d.steps(ctx, []step{
		{"starting a second cluster, edge", d.startEdge},
		{"applying examples/remote", d.applyRemote},
	})
	if err != nil {
		return err
	}
	return d.followFor(ctx, s)
}

// followFor shows the layers until all are deployed, or for as long as they may
// take.
func (d *demo) followFor(ctx context.Context, s settings) error {
	if s.exit {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not all layers are deployed after %s", s.timeout))
		defer cancel()
	}
	return d.follow(ctx)
}

// step is something that is done while its words are shown.
type step struct {
	what string
	do   func(context.Context) error
}

// steps does one after the other.
func (d *demo) steps(ctx context.Context, all []step) error {
	for _, one := range all {
		if err := d.step(ctx, one.what, one.do); err != nil {
			return err
		}
	}
	return nil
}

// step says what is being done, and how long it took.
func (d *demo) step(ctx context.Context, what string, do func(context.Context) error) error {
	fmt.Fprintf(d.out, "%s ... ", what)
	began := time.Now()
	if err := do(ctx); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(d.out, "failed")
		}
		return err
	}
	fmt.Fprintf(d.out, "%.1fs\n", time.Since(began).Seconds())
	return nil
}
