// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/pkg/plugin"
)

const (
	// startTimeout bounds the start of a program that is there.
	startTimeout = 10 * time.Second
	// fetchTimeout bounds that of one that is fetched first.
	fetchTimeout = 5 * time.Minute
	// callTimeout bounds one question.
	callTimeout = 5 * time.Second
	// restAfter is for how long nobody asks a program that is ended then, and restEvery how often
	// that is looked for.
	restAfter = 10 * time.Minute
	restEvery = time.Minute
	// callsAtOnce is how many questions a program has at a time, and callsPerSecond how many are
	// begun.
	callsAtOnce    = 4
	callsPerSecond = 200
	// hangs is how many questions in a row a program may leave open until it is ended.
	hangs = 3
	// minPause and maxPause bound the pause after a program has failed.
	minPause = time.Second
	// waitPause is the pause while a program is on its way.
	waitPause = 2 * time.Second
	maxPause  = 2 * time.Minute
	// maxSaid bounds what is told of an answer, in bytes.
	maxSaid = 512
)

// program is one that serves capabilities.
type program struct {
	// digest is what it is known by, and provider the one that it serves.
	digest, provider string
	launcher         launcher
	options          Options
	slots            chan struct{}
	limit            *rate.Limiter

	// starting is held by the one who starts it.
	starting sync.Mutex

	mu sync.Mutex
	// runs is what runs; nil where nothing does.
	runs      *running
	described *pluginv1.DescribeResponse
	// failures counts those in a row, hung the questions left open in a row, and pause is when it
	// is started again after the last one.
	failures, hung int
	pause          time.Time
	// why says why it did not run when it was last asked.
	why string
	// asked is when it was asked last.
	asked time.Time
	ended bool
}

// running is a program that can be asked.
type running struct {
	api pluginv1.CapabilityPluginClient
	// gone tells whether it has ended by itself.
	gone func() bool
	// end ends it, or what leads to it.
	end func()
}

// launcher has a program run, and returns what asks it.
type launcher interface {
	launch(ctx context.Context) (*running, error)
	// tend sees to what a program runs by.
	tend(ctx context.Context) error
}

func newProgram(of Reference, launcher launcher, options Options) *program {
	return &program{
		digest: of.Digest, provider: of.Provider, launcher: launcher, options: options,
		slots: make(chan struct{}, callsAtOnce), limit: rate.NewLimiter(callsPerSecond, callsPerSecond),
	}
}

// WaitingError says that a program cannot be asked yet, which nothing need be done about.
type WaitingError struct {
	// Waits says for what, after the program's name.
	Waits string
}

// Error says for what.
func (e *WaitingError) Error() string { return e.Waits }

// FailedError says that a program has not answered.
type FailedError struct {
	Digest, Message string
	// Again is when it is asked again; zero where that hangs on nothing.
	Again time.Time
}

// Error says why.
func (e *FailedError) Error() string { return "plug-in " + short(e.Digest) + " " + e.Message }

func (p *program) failed(again time.Time, format string, args ...any) error {
	return &FailedError{Digest: p.digest, Message: printable.Line(fmt.Sprintf(format, args...), maxSaid), Again: again}
}

func (p *program) description() *pluginv1.DescribeResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.described
}

func (p *program) describes(response *pluginv1.DescribeResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.described = response
}

// ask asks a program something, which is started where it does not run. It waits for as long as
// others ask.
func (p *program) ask(ctx context.Context, question func(context.Context, pluginv1.CapabilityPluginClient) error) error {
	return p.askFor(ctx, p.options.CallTimeout, question)
}

// askFor is as ask, for a question that may take longer.
func (p *program) askFor(ctx context.Context, timeout time.Duration, question func(context.Context, pluginv1.CapabilityPluginClient) error) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := p.limit.Wait(ctx); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	api, err := p.running(starting)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return p.outcome(ctx, timeout, question(asking, api))
}

// outcome judges an answer. A program that has gone, or hangs, is started again after a pause.
func (p *program) outcome(ctx context.Context, timeout time.Duration, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := status.Convert(err)
	switch {
	case err == nil:
		p.failures, p.hung = 0, 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case said.Code() == codes.DeadlineExceeded:
		p.hung++
		why := fmt.Sprintf("does not answer within %s", timeout)
		if p.hung >= hangs {
			return p.stop(why)
		}
		return p.failed(p.pause, "%s", why)
	case said.Code() == codes.Unavailable || p.runs == nil || p.runs.gone():
		return p.stop("has ended")
	case said.Code() == codes.ResourceExhausted:
		return p.failed(time.Time{}, "answers with more than %d MiB", plugin.MaxMessage>>20)
	}
	return p.failed(time.Time{}, "says: %s", said.Message())
}

// stop ends the process, and has it started again after a pause, until when the error says why.
// p.mu is held.
func (p *program) stop(why string) error {
	p.failures++
	p.hung = 0
	p.why, p.pause = why, p.options.Now().Add(min(minPause<<min(p.failures-1, 10), maxPause))
	p.kill()
	return p.failed(p.pause, "%s", why)
}

// kill ends the process. p.mu is held.
func (p *program) kill() {
	ended := p.runs
	p.runs = nil
	if ended != nil {
		go ended.end()
	}
}

// rest ends the process where nobody has asked it for a while.
func (p *program) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs != nil && len(p.slots) == 0 && p.options.Now().Sub(p.asked) >= restAfter {
		p.kill()
	}
}

// end ends the process for good.
func (p *program) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	ended := p.runs
	p.runs = nil
	if ended != nil {
		ended.end()
	}
}

// running returns what asks the program, which is started where it does not run.
func (p *program) running(ctx context.Context) (pluginv1.CapabilityPluginClient, error) {
	p.starting.Lock()
	defer p.starting.Unlock()
	p.mu.Lock()
	if p.runs != nil && p.runs.gone() {
		_ = p.stop("has ended") // which is said below
	}
	p.asked = p.options.Now()
	runs, pause, why, ended := p.runs, p.pause, p.why, p.ended
	p.mu.Unlock()
	switch {
	case ended:
		return nil, p.failed(time.Time{}, "is not needed any more")
	case runs != nil:
		return runs.api, nil
	case p.options.Now().Before(pause):
		return nil, p.failed(pause, "%s", why)
	}
	made, err := p.launcher.launch(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		var waits *WaitingError
		if errors.As(err, &waits) { // which is no failure
			p.why, p.pause = waits.Waits, p.options.Now().Add(waitPause)
			return nil, p.failed(p.pause, "%s", p.why)
		}
		said, _, _ := strings.Cut(err.Error(), "\n") // what follows are guesses, of many lines
		return nil, p.stop("cannot be started: " + said)
	}
	p.runs = made
	return made.api, nil
}
