// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// standard are the limits of every build. As many as run at the same time must fit
// beside the controller into the chart's limit of 1 GiB: the system counts them with
// it, and where that is reached ends them all.
var standard = limits{memory: 256 << 20, cpu: time.Minute, time: 3 * time.Minute, output: 64 << 20}

const (
	// maxBuilds is how many builds run at the same time.
	maxBuilds = 2
	// maxComplaint is how much is kept of what a build that fails says.
	maxComplaint = 4 << 10
)

var slots = make(chan struct{}, maxBuilds)

// Ended is a build that was ended, or that took its process down: it has reached a
// limit, and will reach it again.
type Ended struct{ Message string }

// Error says which limit.
func (e *Ended) Error() string { return e.Message }

func ended(format string, args ...any) *Ended { return &Ended{fmt.Sprintf(format, args...)} }

// Build returns what kustomize makes of a request, in its order. The error is a
// *Refusal where kustomize refuses, an *Ended where a limit was reached, and otherwise
// worth another try: then the context has ended, or the system cannot start a process
// or is too busy to let it run.
func Build(ctx context.Context, request *Request) ([]Object, error) {
	return build(ctx, request, standard)
}

// Generate returns the kustomization of a directory as Flux's generator writes it. Its
// errors are those of Build.
func Generate(ctx context.Context, request *Request) (*Kustomization, error) {
	answer, err := ask(ctx, request, standard)
	return answer.kustomization, err
}

// Decrypt returns the files of a request that Decrypt names, as they are without their
// encryption. Its errors are those of Build, and quote nothing of the files.
func Decrypt(ctx context.Context, request *Request) (map[string][]byte, error) {
	answer, err := ask(ctx, request, standard)
	return answer.decrypted, err
}

func build(ctx context.Context, request *Request, within limits) ([]Object, error) {
	answer, err := ask(ctx, request, within)
	return answer.objects, err
}

// answered is what a process has answered.
type answered struct {
	objects       []Object
	kustomization *Kustomization
	decrypted     map[string][]byte
}

// ask starts a process for a request, when there is room for one.
func ask(ctx context.Context, request *Request, within limits) (answered, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return answered{}, fmt.Errorf("no other build has ended in time: %w", ctx.Err())
	}
	folder, err := os.MkdirTemp("", "strata-empty-")
	if err != nil {
		return answered{}, fmt.Errorf("cannot make the folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	handed := request
	if request.Generate != nil {
		if err := layOut(folder, request.Files); err != nil {
			return answered{}, fmt.Errorf("cannot lay out what is to be built: %w", err)
		}
		without := *request
		without.Files = nil
		handed = &without
	}
	input, err := json.Marshal(handed)
	if err != nil {
		return answered{}, fmt.Errorf("cannot hand over what is to be built: %w", err)
	}
	program, err := self()
	if err != nil {
		return answered{}, fmt.Errorf("cannot find the program to build with: %w", err)
	}
	return start(ctx, within, program, folder, input)
}

// self returns the file of this program. On Linux that is the one which runs, also
// where it has been replaced since.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

func start(caller context.Context, within limits, program, folder string, input []byte) (answered, error) {
	ctx, cancel := context.WithTimeout(caller, within.time)
	defer cancel()
	complaint := &beginning{}
	command := exec.CommandContext(ctx, program)
	command.Args = within.arguments()
	command.Env = []string{}
	command.Dir = folder
	command.Stdin = bytes.NewReader(input)
	command.Stderr = complaint
	command.WaitDelay = time.Second
	output, err := command.StdoutPipe()
	if err != nil {
		return answered{}, fmt.Errorf("cannot start a build: %w", err)
	}
	if err := command.Start(); err != nil {
		return answered{}, fmt.Errorf("cannot start a build: %w", err)
	}
	limited := &io.LimitedReader{R: output, N: within.output}
	answer, wrong := within.read(limited, json.NewDecoder(bufio.NewReader(limited)))
	late := ctx.Err() != nil
	if wrong != nil {
		// The answer is complete: nobody waits for more output.
		cancel()
	}
	err = command.Wait()
	var end *Ended
	switch {
	case wrong == nil || errors.As(wrong, new(*Refusal)):
		return answer, wrong
	case caller.Err() != nil:
		return answered{}, fmt.Errorf("a build was given up: %w", caller.Err())
	case errors.As(wrong, &end):
		return answered{}, end
	default:
		return answered{}, within.death(command.ProcessState, err, late, complaint.String())
	}
}

// errSilent is a build that ended without a last word.
var errSilent = errors.New("it has ended before it was done")

// read reads what a build answers, of which there may be as much as limited has.
func (l limits) read(limited *io.LimitedReader, decoder *json.Decoder) (answered, error) {
	var found answered
	for {
		var next message
		err := decoder.Decode(&next)
		switch {
		case limited.N <= 0:
			return answered{}, ended("makes more than %d MiB of objects", l.output>>20)
		case err != nil:
			return answered{}, errSilent
		case next.Object != nil:
			found.objects = append(found.objects, *next.Object)
		case next.End:
			found.kustomization, found.decrypted = next.Kustomization, next.Decrypted
			return found, nil
		default:
			return answered{}, &Refusal{next.Refusal}
		}
	}
}

// death says why a build has ended before it was done. One that was late, and has hardly
// been let run, may do better another time.
func (l limits) death(state *os.ProcessState, err error, late bool, complaint string) error {
	used := time.Duration(0)
	if state != nil {
		used = state.UserTime() + state.SystemTime()
	}
	said := complaint
	if line, _, found := strings.Cut(complaint, "\n"); found {
		said = line
	}
	switch code := exitCode(state); {
	case code == exitMemory, strings.Contains(complaint, "out of memory"), strings.Contains(complaint, "cannot allocate memory"),
		strings.Contains(complaint, "ThreadSanitizer failed to allocate"): // as a program with the race detector says it
		return ended("takes more than %d MiB of memory", l.memory>>20)
	case used >= l.cpu/2:
		return ended("takes more than %s of processor time", l.cpu)
	case late:
		return fmt.Errorf("a build was given up after %s, in which it could run for %s", l.time, used.Round(time.Millisecond))
	case code == exitFailed:
		return fmt.Errorf("a build has failed: %s", said)
	case strings.Contains(complaint, "stack exceeds"), strings.Contains(complaint, "stack overflow"):
		return ended("leads around in circles, or is nested too deeply")
	case code < 0 && said == "":
		return ended("was ended by the system (%v), which may have been short of memory", err)
	default:
		return ended("has ended kustomize: %s (%v)", said, err)
	}
}

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	return state.ExitCode()
}

// beginning keeps the beginning of what is written.
type beginning struct{ strings.Builder }

// Write keeps what there is room for.
func (b *beginning) Write(text []byte) (int, error) {
	b.Builder.Write(text[:min(len(text), maxComplaint-b.Len())])
	return len(text), nil
}
