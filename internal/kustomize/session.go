// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"sync"
)

// Session builds in processes that go on, for one who builds a whole repository at once:
// starting a process takes longer than most builds. They have what the process of one
// build has, and no more. So the builds of a session share what kustomize keeps in memory;
// the controller, where they are of authors who must not reach each other, has none.
//
// What takes down a process that has built before is built once more in one of its own,
// which tells the limit that it has reached.
//
// Its methods may be called side by side: then they take turns. It must be closed.
type Session struct {
	// generates has files to read, and builds has none, which it cannot take back.
	generates, builds shared
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

// Generate is Directory.Generate, in the session.
func (s *Session) Generate(ctx context.Context, request *Request) (*Kustomization, error) {
	answer, err := s.generates.ask(ctx, request)
	return answer.kustomization, err
}

// Decrypt is Directory.Decrypt, in the session.
func (s *Session) Decrypt(ctx context.Context, request *Request) (map[string][]byte, error) {
	answer, err := s.builds.ask(ctx, request)
	return answer.decrypted, err
}

// Close ends the processes of the session, and removes their files.
func (s *Session) Close() {
	s.generates.close()
	s.builds.close()
}

// shared is a process that is started again where it has ended.
type shared struct {
	turn    sync.Mutex
	process process
}

func (s *shared) ask(ctx context.Context, request *Request) (answered, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.process.bytes > maxLaidOut {
		_, _ = s.process.end() // it has answered
	}
	fresh := s.process.command == nil
	if fresh {
		if err := s.process.start(standard); err != nil {
			_, _ = s.process.end() // it has not begun
			return answered{}, err
		}
	}
	answer, err := s.process.ask(ctx, request)
	if err == nil || fresh || errors.As(err, new(*Refusal)) || ctx.Err() != nil {
		return answer, err
	}
	return ask(ctx, request, standard)
}

func (s *shared) close() {
	s.turn.Lock()
	defer s.turn.Unlock()
	_, _ = s.process.end() // it has answered
}
