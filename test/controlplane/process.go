// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that can be run again and again with the same
// arguments, environment and log.
type process struct {
	name    Component
	path    string
	args    []string
	env     []string
	log     string
	healthy func(context.Context) error

	mu  sync.Mutex
	run *run
}

// run is one execution of a process. Done is closed when it has ended.
type run struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start runs the process and returns once it is healthy. A process that runs
// already is left alone.
func (p *process) start(ctx context.Context) error {
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	if err := poll(ctx, func(ctx context.Context) error {
		select {
		case <-r.done:
			return fatal(fmt.Errorf("it ended: %s", r.cmd.ProcessState))
		default:
			return p.healthy(ctx)
		}
	}); err != nil {
		return fmt.Errorf("%s is not healthy: %w\n%s", p.name, err, p.tail())
	}
	return nil
}

// launch runs the process without waiting for its health.
func (p *process) launch() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.run; r != nil {
		select {
		case <-r.done:
		default:
			return r, nil
		}
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = filepath.Dir(p.log)
	cmd.Env = p.env
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = childAttributes()
	if err := spawn(cmd); err != nil {
		return nil, err
	}
	r := &run{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its ProcessState
		close(r.done)
	}()
	p.run = r
	return r, nil
}

// stop asks the process to end, and ends it when it has not within grace.
func (p *process) stop(grace time.Duration) error {
	r := p.current()
	if r == nil {
		return nil
	}
	if err := r.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("cannot stop %s: %w", p.name, err)
	}
	select {
	case <-r.done:
		return nil
	case <-time.After(grace):
		return p.kill()
	}
}

// kill ends the process at once and returns when it is gone.
func (p *process) kill() error {
	r := p.current()
	if r == nil {
		return nil
	}
	if err := r.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("cannot kill %s: %w", p.name, err)
	}
	<-r.done
	return nil
}

// signal sends a signal to the whole process group of a run.
func (r *run) signal(s syscall.Signal) error {
	if err := syscall.Kill(-r.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// current returns the run that has not ended, or nil.
func (p *process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	select {
	case <-p.run.done:
		return nil
	default:
		return p.run
	}
}

// tail returns the end of the process's log, for an error message.
func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-15):]
	return fmt.Sprintf("the end of %s:\n%s", p.log, strings.TrimSpace(string(bytes.Join(lines, []byte("\n")))))
}

// spawn starts a command from the one thread that starts all children. A
// child's parent-death signal is tied to the thread that forked it, so that
// thread must live as long as this process.
func spawn(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}

var spawner = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})
