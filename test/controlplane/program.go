// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Program describes a program that is run beside the control plane, such as
// the controller under test. It dies with this process.
type Program struct {
	// Name for messages, and of the log file.
	Name string
	// Path of the executable.
	Path string
	Args []string
	// Env is added to PATH, HOME and TMPDIR.
	Env []string
	// Dir is where the log file is written and the program runs.
	Dir string
	// Healthy tells whether it has come up; nil means that it has when it
	// runs.
	Healthy func(context.Context) error
}

// Runner runs a Program, again and again where that is wanted. Its methods are
// safe for concurrent use.
type Runner struct{ process *process }

// NewRunner returns a runner for a program that is not started yet.
func NewRunner(program Program) (*Runner, error) {
	if program.Name == "" || program.Path == "" || program.Dir == "" {
		return nil, errors.New("a program needs a name, a path and a folder")
	}
	if err := os.MkdirAll(filepath.Join(program.Dir, "tmp"), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of %s: %w", program.Name, err)
	}
	healthy := program.Healthy
	if healthy == nil {
		healthy = func(context.Context) error { return nil }
	}
	return &Runner{process: &process{
		name: Component(program.Name), path: program.Path, args: program.Args,
		env:     append(environment(program.Dir), program.Env...),
		log:     filepath.Join(program.Dir, program.Name+".log"),
		healthy: healthy,
	}}, nil
}

// Start runs the program and returns when it is healthy.
func (r *Runner) Start(ctx context.Context) error { return r.process.start(ctx) }

// Stop asks the program to end, and ends it when it has not within grace.
func (r *Runner) Stop(grace time.Duration) error { return r.process.stop(grace) }

// Kill ends the program at once.
func (r *Runner) Kill() error { return r.process.kill() }

// Log returns the path of the log file.
func (r *Runner) Log() string { return r.process.log }

// Ended returns a channel that is closed when the present run has ended; nil
// where there is none.
func (r *Runner) Ended() <-chan struct{} {
	run := r.process.current()
	if run == nil {
		return nil
	}
	return run.done
}

// PID returns the process ID of the present run, or 0.
func (r *Runner) PID() int {
	run := r.process.current()
	if run == nil {
		return 0
	}
	return run.cmd.Process.Pid
}

// ExitCode returns the exit code of the last run; -1 where it has not ended or a
// signal ended it.
func (r *Runner) ExitCode() int {
	r.process.mu.Lock()
	defer r.process.mu.Unlock()
	run := r.process.run
	if run == nil {
		return -1
	}
	select {
	case <-run.done:
		return run.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// FreePort returns a loopback port that nothing listens on, and a function that
// gives it back.
func FreePort() (number int, release func(), err error) {
	p, err := reservePort()
	if err != nil {
		return 0, nil, err
	}
	return p.number, p.release, nil
}

// Loopback returns the address of a port on this machine.
func Loopback(number int) string { return "127.0.0.1:" + strconv.Itoa(number) }
