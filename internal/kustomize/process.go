// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// process is a process that builds, one request after another. The zero value has not been
// started.
type process struct {
	within    limits
	command   *exec.Cmd
	complaint *beginning
	input     io.WriteCloser
	output    *io.LimitedReader
	decoder   *json.Decoder
	// folder in which the process stands, how many folders were laid out in it, and how
	// many bytes. They stay until the process ends: some file systems make new files
	// many times more slowly when others have just been removed.
	folder string
	laid   int
	bytes  int
}

// self returns the file of this program. On Linux that is the one which runs, also
// where it has been replaced since.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// start starts the process, which takes no more than the limits.
func (p *process) start(within limits) error {
	program, err := self()
	if err != nil {
		return fmt.Errorf("cannot find the program to build with: %w", err)
	}
	if p.folder, err = os.MkdirTemp("", "strata-empty-"); err != nil {
		return fmt.Errorf("cannot make the folder to build in: %w", err)
	}
	p.within, p.complaint = within, &beginning{}
	// It outlives the request that it is started for, and is this program.
	command := exec.CommandContext(context.Background(), program) //nolint:gosec // see above
	command.Args = within.arguments()
	command.Env = []string{}
	command.Dir = p.folder
	command.Stderr = p.complaint
	command.WaitDelay = time.Second
	if p.input, err = command.StdinPipe(); err != nil {
		return fmt.Errorf("cannot start a build: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot start a build: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot start a build: %w", err)
	}
	p.command, p.output = command, &io.LimitedReader{R: output}
	p.decoder = json.NewDecoder(bufio.NewReader(p.output))
	return nil
}

// ask hands a request to the process, which has been started, and returns what it answers.
// Where the error is no *Refusal, the process has ended.
func (p *process) ask(caller context.Context, request *Request) (answered, error) {
	ctx, cancel := context.WithTimeout(caller, p.within.time)
	defer cancel()
	given, err := p.layOut(request)
	if err != nil {
		_, _ = p.end() // it has not been asked
		return answered{}, fmt.Errorf("cannot lay out what is to be built: %w", err)
	}
	running := p.command.Process
	defer context.AfterFunc(ctx, func() { _ = running.Kill() })()
	p.output.N = p.within.output
	// One that has ended takes no more, and its death says why.
	answer, wrong := answered{}, json.NewEncoder(p.input).Encode(given)
	if wrong == nil {
		answer, wrong = p.within.read(p.output, p.decoder)
	}
	if wrong == nil || errors.As(wrong, new(*Refusal)) {
		return answer, wrong
	}
	late := ctx.Err() != nil
	state, err := p.end()
	var end *Ended
	switch {
	case caller.Err() != nil:
		return answered{}, fmt.Errorf("a build was given up: %w", caller.Err())
	case errors.As(wrong, &end):
		return answered{}, end
	default:
		return answered{}, p.within.death(state, err, late, p.complaint.String())
	}
}

// layOut returns a request as it is handed over: what is generated from lies in a folder.
func (p *process) layOut(request *Request) (*handed, error) {
	given := &handed{Request: *request}
	if request.Generate == nil {
		return given, nil
	}
	p.laid++
	given.Folder, given.Files = strconv.Itoa(p.laid), nil
	folder := filepath.Join(p.folder, given.Folder)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	for _, text := range request.Files {
		p.bytes += len(text)
	}
	return given, layOut(folder, request.Files)
}

// end ends the process where it runs, and removes its files. It may be started again.
func (p *process) end() (state *os.ProcessState, err error) {
	if p.command != nil {
		// What was said of a death is complete before it is looked at. One that lives is
		// not waited for.
		_ = p.input.Close()
		_ = p.command.Process.Kill()
		err = p.command.Wait()
		state = p.command.ProcessState
	}
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
	p.command, p.folder, p.laid, p.bytes = nil, "", 0, 0
	return state, err
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
