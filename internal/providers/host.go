// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providers runs the programs that serve capabilities, and asks them.
package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/images"
)

// Options are what a host is made of.
type Options struct {
	// Folder holds the programs, each by the name that FileOf gives it; where it is empty no
	// program is run as a process.
	Folder string
	// Images fetches programs out of images, and checks who has signed those; nil where neither is
	// done.
	Images *images.Store
	// ImagesFrom are the registries, and repositories of such, whose programs may run as
	// processes.
	ImagesFrom []string
	// Credentials has a folder for each provider whose program, as a process, hands out what is
	// outside of clusters, with its credentials for that; where it is empty, none does.
	Credentials string
	// Listens is a program that is run as a Deployment would, on this machine, in place of each that
	// is asked; where it is empty none is.
	Listens string
	// Dial connects with programs that run elsewhere; nil means as ever.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log receives what programs say.
	Log logr.Logger
	// CallTimeout bounds one question; 0 is 5s.
	CallTimeout time.Duration
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Host runs programs, each from the first question to it on. It is safe for concurrent use.
type Host struct {
	options Options

	mu       sync.Mutex
	cluster  Cluster
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

// Knows tells whether a program of a digest was asked anything.
func (h *Host) Knows(digest string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, known := range h.programs {
		if known.digest == digest {
			return true
		}
	}
	return false
}

// NewHost returns a host that runs nothing yet.
func NewHost(options Options) *Host {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.CallTimeout = cmp.Or(options.CallTimeout, callTimeout)
	return &Host{options: options, programs: map[string]*program{}}
}

// On has the host run programs on a cluster, too. It is called before the first question.
func (h *Host) On(cluster Cluster) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cluster = cluster
}

// FileOf returns the name of the file of a program with a digest: sha256-HEX for sha256:HEX.
func FileOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// Describe returns what a program serves, which it is asked once in its life. It is healthy then.
func (h *Host) Describe(ctx context.Context, of Reference) (*pluginv1.DescribeResponse, error) {
	p, err := h.program(of)
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
		if err != nil {
			return err
		}
		problem, err := health(ctx, api)
		if err == nil && problem != "" {
			err = status.Error(codes.FailedPrecondition, "it is not healthy: "+problem)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	p.describes(response)
	return response, nil
}

// Tend sees to what a program runs by: that its image is still signed, and that the cluster has
// what it needs. One that may not run any more is ended.
func (h *Host) Tend(ctx context.Context, of Reference) error {
	p, err := h.program(of)
	if err != nil {
		return err
	}
	err = p.launcher.tend(ctx)
	var unsigned *images.UnsignedError
	if errors.As(err, &unsigned) {
		h.endAll(of)
	}
	return err
}

// isAsking tells whether a program is being asked something.
func (h *Host) isAsking(of Reference) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.programs[of.Key()]
	return known != nil && len(known.slots) > 0
}

// endAll ends what runs of a program of a provider, however it was referred to.
func (h *Host) endAll(of Reference) {
	h.mu.Lock()
	var ended []*program
	for _, p := range h.programs {
		if p.provider == of.Provider && p.digest == of.Digest {
			ended = append(ended, p)
		}
	}
	h.mu.Unlock()
	for _, p := range ended {
		p.mu.Lock()
		p.kill()
		p.mu.Unlock()
	}
}

// health returns what keeps a program from its work; empty for nothing. One that does not know
// the question is healthy.
func health(ctx context.Context, api pluginv1.CapabilityPluginClient, options ...grpc.CallOption) (string, error) {
	response, err := api.Health(ctx, &pluginv1.HealthRequest{}, options...)
	if status.Code(err) == codes.Unimplemented {
		return "", nil
	}
	return response.GetProblem(), err
}

// Validate asks a program what is wrong with parameters.
func (h *Host) Validate(ctx context.Context, of Reference, request *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	p, err := h.program(of)
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
func (h *Host) Plan(ctx context.Context, of Reference, request *pluginv1.PlanRequest) (*pluginv1.PlanResponse, error) {
	p, err := h.program(of)
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

// program returns the program of a reference, which need not run.
func (h *Host) program(of Reference) (*program, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("plug-in %s: %w", short(of.Digest), context.Canceled)
	}
	h.calls++
	key := of.Key()
	if known := h.programs[key]; known != nil {
		return known, nil
	}
	if err := of.check(); err != nil {
		return nil, err
	}
	var by launcher
	switch {
	case h.options.Listens != "":
		by = listening{of: of, options: h.options}
	case RunOf(of.CapabilityPlugin) == v1alpha1.PluginProcess:
		by = processes{of: of, options: h.options, cluster: h.cluster}
	default:
		by = deployed{of: of, options: h.options, cluster: h.cluster}
	}
	made := newProgram(of, by, h.options)
	h.programs[key] = made
	return made, nil
}

// End ends all programs. They start again with the next question.
func (h *Host) End() {
	h.mu.Lock()
	ended := h.programs
	h.programs = map[string]*program{}
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
	h.End()
	return nil
}

// isDigest tells whether a text is a digest that names a program.
func isDigest(text string) bool {
	hex, is := strings.CutPrefix(text, "sha256:")
	return is && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// short names a program for people.
func short(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }
