// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"fmt"
	"time"
)

// standard are the limits of every build. As many as run at the same time must fit
// beside the controller into the chart's limit of 1 GiB: the system counts them with
// it, and where that is reached ends them all.
var standard = limits{memory: 256 << 20, cpu: time.Minute, time: 3 * time.Minute, output: 64 << 20}

// maxBuilds is how many builds run at the same time.
const maxBuilds = 2

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
	d := Directory{within: within}
	defer d.Close()
	return d.ask(ctx, request)
}

// Directory builds one directory in steps, in a process of its own that is started when
// there is room for it. It must be closed.
type Directory struct {
	within  limits
	process process
	waited  bool
}

// NewDirectory returns a directory for which nothing has been started yet.
func NewDirectory() *Directory { return &Directory{within: standard} }

// Generate returns the kustomization of a directory as Flux's generator writes it. It comes
// before all else: what follows opens no file any more. Its errors are those of Build.
func (d *Directory) Generate(ctx context.Context, request *Request) (*Kustomization, error) {
	answer, err := d.ask(ctx, request)
	return answer.kustomization, err
}

// Decrypt returns the files of a request that Decrypt names, as they are without their
// encryption. Its errors are those of Build, and quote nothing of the files.
func (d *Directory) Decrypt(ctx context.Context, request *Request) (map[string][]byte, error) {
	answer, err := d.ask(ctx, request)
	return answer.decrypted, err
}

// Build is the function Build, in the directory's process.
func (d *Directory) Build(ctx context.Context, request *Request) ([]Object, error) {
	answer, err := d.ask(ctx, request)
	return answer.objects, err
}

// Close ends the process.
func (d *Directory) Close() {
	_, _ = d.process.end() // it has answered, or said why it has not
	if d.waited {
		<-slots
		d.waited = false
	}
}

func (d *Directory) ask(ctx context.Context, request *Request) (answered, error) {
	if !d.waited {
		select {
		case slots <- struct{}{}:
			d.waited = true
		case <-ctx.Done():
			return answered{}, fmt.Errorf("no other build has ended in time: %w", ctx.Err())
		}
	}
	if d.process.command == nil {
		if err := d.process.start(d.within); err != nil {
			return answered{}, err
		}
	}
	return d.process.ask(ctx, request)
}
