// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/controlplane"
)

// The ways in which a plain client writes.
const (
	methodApply  = "apply"  // server-side apply
	methodCreate = "create" // which only does for objects that do not exist
)

// plainWorkers is how many requests a plain client has under way.
const plainWorkers = 16

// plain is the limit: a process that writes manifests by client-go, as fast as
// it can, and does nothing else.
type plain struct {
	name, method string
	runner       *controlplane.Runner
	url          string
	release      func()
	// more are arguments of the process beside those that every one has.
	more []string
}

func newPlain(name, method string) *plain { return &plain{name: name, method: method} }

// Report returns what it is.
func (p *plain) Report() report.System {
	about := "the same objects written by client-go alone, by server-side apply: the limit"
	if p.method == methodCreate {
		about = "the same objects written by client-go alone, by create"
	}
	return report.System{Name: p.name, About: about, Flags: []report.Flag{
		{Name: "method", Value: p.method, Given: true},
		{Name: "qps", Value: "unlimited", Given: true},
		{Name: "workers", Value: fmt.Sprint(plainWorkers), Given: true},
	}}
}

// Start runs the process, which is this program in another part.
func (p *plain) Start(ctx context.Context, b *bed) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	identity, err := b.account(ctx, p.name)
	if err != nil {
		return err
	}
	number, release, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	p.url, p.release = "http://"+controlplane.Loopback(number), release
	args := []string{plainCommand, identity.Kubeconfig, controlplane.Loopback(number), p.method}
	if b.remote != nil {
		args = append(args, b.remote.identity.Kubeconfig)
	}
	args = append(args, p.more...)
	p.runner, err = controlplane.NewRunner(controlplane.Program{
		Name: p.name, Path: self, Dir: filepath.Join(b.dir, p.name),
		Args:    args,
		Healthy: p.healthy,
	})
	if err != nil {
		return err
	}
	return p.runner.Start(ctx)
}

// healthy asks the process to write nothing.
func (p *plain) healthy(ctx context.Context) error { return p.Push(ctx, nil) }

// Changes is true for server-side apply.
func (p *plain) Changes() bool { return p.method == methodApply }

// Push has the process write manifests.
func (p *plain) Push(ctx context.Context, manifests []string) error {
	data, err := json.Marshal(manifests)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(answer)))
	}
	return err
}

// Kill ends the process.
func (p *plain) Kill() error { return p.runner.Kill() }

// Restart runs it again.
func (p *plain) Restart(ctx context.Context) error { return p.runner.Start(ctx) }

// Stop ends the process.
func (p *plain) Stop() error {
	if p.release != nil {
		defer p.release()
	}
	if p.runner == nil {
		return nil
	}
	return p.runner.Stop(stopGrace)
}

// PIDs returns the process.
func (p *plain) PIDs() []int { return pidsOf(p.runner) }

// User returns the name of its ServiceAccount.
func (p *plain) User() string { return accountUser(p.name) }
