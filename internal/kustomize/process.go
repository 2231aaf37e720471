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
	"strconv"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/confined"
)

// process is a process that builds, one request after another. The zero value has not been
// started.
type process struct {
	within    limits
	command   *exec.Cmd
	complaint *confined.Complaint
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

// start starts the process, which takes no more than the limits.
func (p *process) start(within limits) error {
	var err error
	if p.folder, err = os.MkdirTemp("", "strata-empty-"); err != nil {
		return fmt.Errorf("cannot make the folder to build in: %w", err)
	}
	// It outlives the request that it is started for.
	command, complaint, err := confined.Command(context.Background(), p.folder, within.arguments())
	if err != nil {
		return fmt.Errorf("cannot start a build: %w", err)
	}
	p.within, p.complaint = within, complaint
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
	used := confined.Used(state)
	said, _, _ := strings.Cut(complaint, "\n")
	switch code := confined.ExitCode(state); {
	case confined.IsOutOfMemory(code, complaint):
		return ended("takes more than %d MiB of memory", l.memory>>20)
	case used >= l.cpu/2:
		return ended("takes more than %s of processor time", l.cpu)
	case late:
		return fmt.Errorf("a build was given up after %s, in which it could run for %s", l.time, used.Round(time.Millisecond))
	case code == confined.ExitFailed:
		return fmt.Errorf("a build has failed: %s", said)
	case strings.Contains(complaint, "stack exceeds"), strings.Contains(complaint, "stack overflow"):
		return ended("leads around in circles, or is nested too deeply")
	case code < 0 && said == "":
		return ended("was ended by the system (%v), which may have been short of memory", err)
	default:
		return ended("has ended kustomize: %s (%v)", said, err)
	}
}
