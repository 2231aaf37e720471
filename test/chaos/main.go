// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Program chaos kills what Strata is and lives on, again and again, while
// commits go on: Strata itself, source-controller, helm-controller,
// kube-apiserver and etcd. Afterwards everything must be as the last commit
// says, and nothing may have been installed twice on the way. make chaos runs
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	time     time.Duration
	seed     uint64
	releases int
	only     string
	patience time.Duration
}

func parse(args []string, now time.Time) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.DurationVar(&s.time, "time", 30*time.Minute, "how long to kill and commit")
	flags.Uint64Var(&s.seed, "seed", 0, "of the plan; 0 draws one")
	flags.IntVar(&s.releases, "releases", 3, "how many each layer begins with")
	flags.StringVar(&s.only, "only", "", "kill these alone, with commas between")
	flags.DurationVar(&s.patience, "patience", 4*time.Minute, "how long everything may take to be right after the last fault")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.seed == 0 {
		s.seed = uint64(now.UnixNano())
	}
	if s.time <= 0 || s.releases < fewest {
		return s, fmt.Errorf("--time must be more than 0, and --releases at least %d", fewest)
	}
	return s, nil
}

// talker returns a function that writes lines with the time.
func talker(out io.Writer) func(string, ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s  %s\n", clock(time.Now()), fmt.Sprintf(format, args...))
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args, time.Now())
	if err != nil {
		return err
	}
	say := talker(out)
	say("seed %d, for %s", s.seed, s.time)
	began := time.Now()
	stack, err := startStack(ctx, io.Discard)
	if err != nil {
		return err
	}
	defer func() {
		dir := stack.dir()
		err = errors.Join(err, stack.stop())
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w\nthe seed is %d, and the logs are in %s", err, s.seed, dir)
		}
	}()
	recorder, err := record(ctx, stack.plane)
	if err != nil {
		return err
	}
	st := newStorm(stack, newWorld(rand.New(rand.NewPCG(s.seed, 1)), s.releases), say)
	if err := st.begin(ctx, s.patience); err != nil {
		return err
	}
	say("started in %s: %d layers, %d releases", time.Since(began).Round(time.Second), len(st.world.Layers), len(st.world.Lives))
	if err := st.blow(ctx, s); err != nil {
		return err
	}
	return st.judge(ctx, s, recorder)
}

// begin deploys the first commit in peace.
func (s *storm) begin(ctx context.Context, patience time.Duration) error {
	if err := errors.Join(s.publish(ctx), s.applyLayers(ctx)); err != nil {
		return err
	}
	s.fetch(ctx)
	return s.untilRight(ctx, patience)
}

// blow kills and commits for as long as the settings say.
func (s *storm) blow(ctx context.Context, o settings) error {
	storm, end := context.WithTimeout(ctx, o.time)
	defer end()
	var only []string
	if o.only != "" {
		only = strings.Split(o.only, ",")
	}
	group, storm := errgroup.WithContext(storm)
	group.Go(func() error { return s.rage(storm, ctx, rand.New(rand.NewPCG(o.seed, 2)), only) })
	group.Go(func() error { return s.write(storm, ctx, rand.New(rand.NewPCG(o.seed, 3))) })
	group.Go(func() error {
		for pause(storm, time.Minute) {
			s.progress(storm)
		}
		return nil
	})
	return errors.Join(group.Wait(), ctx.Err())
}

// progress says how far the storm is, and how many layers are deployed.
func (s *storm) progress(ctx context.Context) {
	s.mu.Lock()
	commits, faults := s.commits, len(s.faults)
	s.mu.Unlock()
	f, err := look(ctx, s.client)
	if err != nil {
		if ctx.Err() == nil {
			s.say("progress: %d commits, %d kills; the API server does not answer", commits, faults)
		}
		return
	}
	deployed := 0
	for _, layer := range f.Layers {
		if layer.Status.State == v1alpha1.StateDeployed && layer.Status.ObservedGeneration == layer.Generation {
			deployed++
		}
	}
	s.say("progress: %d commits, %d kills; %d of %d layers are deployed, %d releases", commits, faults, deployed, len(f.Layers), len(f.Releases))
}

// untilRight waits until nothing is wrong, and says now and then what it waits
// for.
func (s *storm) untilRight(ctx context.Context, patience time.Duration) error {
	const often = 20 * time.Second
	told := time.Now()
	return controlplane.WaitFor(ctx, patience, func(ctx context.Context) error {
		f, err := look(ctx, s.client)
		if err != nil {
			return err
		}
		if wrong := s.world.wrong(f, s.revision); len(wrong) > 0 {
			if time.Since(told) > often {
				told = time.Now()
				s.say("waiting, %d things are wrong:\n  %s", len(wrong), strings.Join(wrong[:min(len(wrong), 8)], "\n  "))
			}
			return fmt.Errorf("%d things are wrong:\n  %s", len(wrong), strings.Join(wrong, "\n  "))
		}
		return nil
	})
}
