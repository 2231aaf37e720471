// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane builds the servers that the end-to-end tests and the
// demo run (etcd, the Kubernetes control plane, kwok and the Flux controllers)
// from Go modules into a cache folder outside the tree.
//
// Every program has a module of its own beside this file, whose go.mod and
// go.sum pin what it is built from. A program is built again only when those
// pins, its linker flags or the Go version change.
//
// The demo runs what is there: these programs where they are current, or others that
// the machine has. With --demo those that it has not are built together, from a module
// of their own.
//
// With --older the earlier minor versions of Kubernetes and of Flux that are supported,
// too, are built into a folder beside it, from the modules in older.
//
// With --host what runs on every host of a cluster is built instead: the kubelet, containerd
// and kube-proxy, with CoreDNS.
//
//	go run ./hack/controlplane [--only etcd,kube-apiserver] [--demo] [--older] [--host] [--print-dir]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/strata-project/strata/hack/controlplane/cache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	only := flags.String("only", "", "comma-separated targets to build, all that tests need when it is empty: "+strings.Join(targetNames(targets), ","))
	demo := flags.Bool("demo", false, "make what the demo runs, in less time, and print the folder of its programs")
	older := flags.Bool("older", false, "build the earlier versions of Kubernetes and Flux that are supported, too")
	host := flags.Bool("host", false, "build what runs on the hosts of a cluster, and nothing else")
	printDir := flags.Bool("print-dir", false, "print the folder of the programs and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := cache.Dir()
	if err != nil {
		return err
	}
	if *older {
		dir += "-older"
	}
	if *printDir {
		fmt.Fprintln(out, dir)
		return nil
	}
	modules, err := findModules()
	if err != nil {
		return err
	}
	if *older {
		wanted, err := selectTargets(olderTargets, *only)
		if err != nil {
			return err
		}
		return builder{modules: filepath.Join(modules, "older"), dir: dir, out: out}.ensure(ctx, wanted)
	}
	if *demo {
		// What is said on the way must not be taken for the folder.
		g, err := forDemo(builder{modules: modules, dir: dir, out: os.Stderr}, *only)
		if err != nil {
			return err
		}
		folder, err := g.ensure(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, folder)
		return nil
	}
	if *host {
		return builder{modules: modules, dir: dir, out: out}.ensure(ctx, hostTargets)
	}
	wanted, err := selectTargets(targets, *only)
	if err != nil {
		return err
	}
	b := builder{modules: modules, dir: dir, out: out}
	return b.ensure(ctx, wanted)
}

// selectTargets returns those of the targets that a comma-separated list names, in the
// order in which they are built; an empty list is all.
func selectTargets(of []target, only string) ([]target, error) {
	if only == "" {
		return slices.Clone(of), nil
	}
	known, names := targetNames(of), strings.Split(only, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown target %q: want one of %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(of), func(t target) bool { return !slices.Contains(names, t.name) }), nil
}

// findModules returns the folder of the tool modules, looked for from the
// working directory upwards, so that the command runs anywhere in the tree.
func findModules() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		modules := filepath.Join(dir, "hack", "controlplane")
		if _, err := os.Stat(filepath.Join(modules, "etcd", "go.mod")); err == nil {
			return modules, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no hack/controlplane above %s: run inside the tree", wd)
		}
	}
}

// builder brings a cache folder up to date with the tool modules.
type builder struct {
	modules string
	dir     string
	out     io.Writer
}

// ensure builds the wanted targets that are missing or stale. Only one run at
// a time builds; another waits and then finds the work done.
func (b builder) ensure(ctx context.Context, wanted []target) error {
	stale, err := b.stale(wanted)
	if err != nil {
		return err
	}
	if len(stale) == 0 {
		fmt.Fprintf(b.out, "control plane is current in %s\n", b.dir)
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(b.dir, ".lock"), func() {
		fmt.Fprintf(b.out, "waiting for another run that builds into %s\n", b.dir)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if stale, err = b.stale(wanted); err != nil {
		return err
	}
	for i, s := range stale {
		if err := b.build(ctx, s, fmt.Sprintf("[%d/%d]", i+1, len(stale))); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "control plane is current in %s\n", b.dir)
	return nil
}

// build makes one target and stamps it; nothing is stamped that failed.
func (b builder) build(ctx context.Context, s staleTarget, progress string) error {
	version, err := b.version(s.target)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s building %s %s ... ", progress, s.target.name, version)
	start := time.Now()
	if err := s.target.make(ctx, b, s.target); err != nil {
		fmt.Fprintln(b.out, "failed")
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return fmt.Errorf("cannot build %s: %w", s.target.name, err)
	}
	fmt.Fprintln(b.out, time.Since(start).Round(time.Second))
	return b.stamp(s)
}
