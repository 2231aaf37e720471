// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providers runs the programs that serve capabilities, and asks them.
package providers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
)

// Options are what a host is made of.
type Options struct {
	// Folder holds the programs, each by the name that FileOf gives it.
	Folder string
	// Log receives what programs say.
	Log logr.Logger
	// CallTimeout bounds one question; 0 is 5s.
	CallTimeout time.Duration
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Host runs programs, each from the first question to it on, as processes of this one's user. It
// is safe for concurrent use.
type Host struct {
	options Options

	mu       sync.Mutex
	programs map[string]*program
	closed   bool
	calls    int
}

// Calls returns how many questions there were.
func (h *Host) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// NewHost returns a host that runs nothing yet.
func NewHost(options Options) *Host {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.CallTimeout = cmp.Or(options.CallTimeout, callTimeout)
	return &Host{options: options, programs: map[string]*program{}}
}

// FileOf returns the name of the file of a program with a digest: sha256-HEX for sha256:HEX.
func FileOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// Describe returns what a program serves, which it is asked once in its life.
func (h *Host) Describe(ctx context.Context, digest string) (*pluginv1.DescribeResponse, error) {
	p, err := h.program(digest)
	if err != nil {
		return nil, err
	}
	if known := p.description(); known != nil {
		return known, nil
	}
	var response *pluginv1.DescribeResponse
	err = p.ask(ctx, func(ctx context.Context, api pluginv1.CapabilityPluginClient) error {
		var err error
		response, err = api.Describe(ctx, &pluginv1.DescribeRequest{})
		return err
	})
	if err != nil {
		return nil, err
	}
	p.describes(response)
	return response, nil
}

// Validate asks a program what is wrong with parameters.
func (h *Host) Validate(ctx context.Context, digest string, request *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	p, err := h.program(digest)
	if err != nil {
		return nil, err
	}
	var response *pluginv1.ValidateResponse
	err = p.ask(ctx, func(ctx context.Context, api pluginv1.CapabilityPluginClient) error {
		var err error
		response, err = api.Validate(ctx, request)
		return err
	})
	return response, err
}

// Plan asks a program of what an instance is made.
func (h *Host) Plan(ctx context.Context, digest string, request *pluginv1.PlanRequest) (*pluginv1.PlanResponse, error) {
	p, err := h.program(digest)
	if err != nil {
		return nil, err
	}
	var response *pluginv1.PlanResponse
	err = p.ask(ctx, func(ctx context.Context, api pluginv1.CapabilityPluginClient) error {
		var err error
		response, err = api.Plan(ctx, request)
		return err
	})
	return response, err
}

// program returns the program of a digest, which need not run.
func (h *Host) program(digest string) (*program, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("plug-in %s: %w", short(digest), context.Canceled)
	}
	h.calls++
	if known := h.programs[digest]; known != nil {
		return known, nil
	}
	if !isDigest(digest) { // it becomes the name of a file
		return nil, fmt.Errorf("%q is no digest such as sha256:0123", digest)
	}
	made := newProgram(digest, filepath.Join(h.options.Folder, FileOf(digest)), h.options)
	h.programs[digest] = made
	return made, nil
}

// Keep ends the programs that are not among some digests.
func (h *Host) Keep(digests map[string]bool) {
	h.mu.Lock()
	var ended []*program
	for digest, p := range h.programs {
		if !digests[digest] {
			ended = append(ended, p)
			delete(h.programs, digest)
		}
	}
	h.mu.Unlock()
	for _, p := range ended {
		p.end()
	}
}

// Rest ends the programs that were asked nothing for a while. They start again with the next
// question.
func (h *Host) Rest() {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.programs))
	h.mu.Unlock()
	for _, p := range all {
		p.rest()
	}
}

// UntilDone has programs rest that nobody asks until the end of ctx, and then ends all.
func (h *Host) UntilDone(ctx context.Context) error {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			h.Rest()
		}
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Keep(nil)
	return nil
}

// isDigest tells whether a text is a digest that names a program.
func isDigest(text string) bool {
	hex, is := strings.CutPrefix(text, "sha256:")
	return is && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// short names a program for people.
func short(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }
