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
	"sync"
)

// Session builds in processes that go on, for one who builds a whole repository at once:
// starting a process takes longer than most builds. They have what the process of one
// build has, and no more. So the builds of a session share what kustomize keeps in memory;
// the controller, where they are of authors who must not reach each other, has none.
//
// What takes a process of a session down is built once more in a process of its own, which
// tells the limit that it has reached.
//
// Its methods may be called side by side: then they take turns. It must be closed.
type Session struct {
	// generates has files to read, and builds has none, which it cannot take back.
	generates, builds running
}

// maxLaidOut is how many bytes are laid out for one process, but for the last directory.
const maxLaidOut = 64 << 20

// NewSession returns a session that has started nothing yet.
func NewSession() *Session { return &Session{} }

// Build is the function Build, in the session.
func (s *Session) Build(ctx context.Context, request *Request) ([]Object, error) {
	answer, err := s.builds.ask(ctx, request)
	return answer.objects, err
}

// Generate is the function Generate, in the session.
func (s *Session) Generate(ctx context.Context, request *Request) (*Kustomization, error) {
	answer, err := s.generates.ask(ctx, request)
	return answer.kustomization, err
}

// Decrypt is the function Decrypt, in the session.
func (s *Session) Decrypt(ctx context.Context, request *Request) (map[string][]byte, error) {
	answer, err := s.builds.ask(ctx, request)
	return answer.decrypted, err
}

// Close ends the processes of the session, and removes their files.
func (s *Session) Close() {
	s.generates.close()
	s.builds.close()
}

// running is a process that builds one thing after another. The zero value has not been
// started.
type running struct {
	turn    sync.Mutex
	command *exec.Cmd
	input   io.WriteCloser
	output  *io.LimitedReader
	decoder *json.Decoder
	// folder in which the process stands, how many folders were laid out in it, and how
	// many bytes. They stay until the process ends: some file systems make new files
	// many times more slowly when others have just been removed.
	folder string
	laid   int
	bytes  int
}

// ask hands a request to the process, and returns what it answers.
func (r *running) ask(ctx context.Context, request *Request) (answered, error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	answer, err := r.try(ctx, request)
	var refusal *Refusal
	if err == nil || errors.As(err, &refusal) {
		return answer, err
	}
	r.end()
	if ctx.Err() != nil {
		return answered{}, fmt.Errorf("a build was given up: %w", ctx.Err())
	}
	return ask(ctx, request, standard)
}

func (r *running) try(ctx context.Context, request *Request) (answered, error) {
	if r.bytes > maxLaidOut {
		r.end()
	}
	if r.command == nil {
		if err := r.start(); err != nil {
			return answered{}, err
		}
	}
	handed := *request
	if request.Generate != nil {
		r.laid++
		handed.Folder, handed.Files = strconv.Itoa(r.laid), nil
		folder := filepath.Join(r.folder, handed.Folder)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return answered{}, err
		}
		if err := layOut(folder, request.Files); err != nil {
			return answered{}, err
		}
		for _, text := range request.Files {
			r.bytes += len(text)
		}
	}
	within, cancel := context.WithTimeout(ctx, standard.time)
	defer cancel()
	process := r.command.Process
	defer context.AfterFunc(within, func() { _ = process.Kill() })()
	if err := json.NewEncoder(r.input).Encode(&handed); err != nil {
		return answered{}, err
	}
	r.output.N = standard.output
	return standard.read(r.output, r.decoder)
}

func (r *running) start() error {
	program, err := self()
	if err != nil {
		return err
	}
	if r.folder, err = os.MkdirTemp("", "strata-empty-"); err != nil {
		return err
	}
	command := exec.Command(program) //nolint:noctx // it outlives the request that it is started for
	command.Args = standard.arguments()
	command.Env = []string{}
	command.Dir = r.folder
	if r.input, err = command.StdinPipe(); err != nil {
		return err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	r.command, r.output = command, &io.LimitedReader{R: output}
	r.decoder = json.NewDecoder(bufio.NewReader(r.output))
	return nil
}

// close ends the process when it is done.
func (r *running) close() {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.end()
}

// end ends the process, and removes its files. It may be started again.
func (r *running) end() {
	if r.command != nil {
		_ = r.command.Process.Kill()
		_ = r.command.Wait() // it was killed
	}
	if r.folder != "" {
		_ = os.RemoveAll(r.folder)
	}
	r.command, r.folder, r.laid, r.bytes = nil, "", 0, 0
}
