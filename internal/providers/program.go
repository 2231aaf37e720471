// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/pkg/plugin"
)

const (
	// startTimeout bounds the start of a program.
	startTimeout = 10 * time.Second
	// callTimeout bounds one question.
	callTimeout = 5 * time.Second
	// restAfter is for how long nobody asks a program that is ended then, and restEvery how often
	// that is looked for.
	restAfter = 10 * time.Minute
	restEvery = time.Minute
	// callsAtOnce is how many questions a program has at a time, and callsPerSecond how many are
	// begun.
	callsAtOnce    = 4
	callsPerSecond = 200
	// hangs is how many questions in a row a program may leave open until it is ended.
	hangs = 3
	// minPause and maxPause bound the pause after a program has failed.
	minPause = time.Second
	maxPause = 2 * time.Minute
	// maxSaid bounds what is told of an answer, in bytes.
	maxSaid = 512
)

// program is one that serves capabilities.
type program struct {
	digest, path string
	options      Options
	slots        chan struct{}
	limit        *rate.Limiter

	// starting is held by the one who starts it.
	starting sync.Mutex

	mu sync.Mutex
	// process is what runs; nil where nothing does.
	process   *process
	described *pluginv1.DescribeResponse
	// failures counts those in a row, hung the questions left open in a row, and pause is when it
	// is started again after the last one.
	failures, hung int
	pause          time.Time
	// asked is when it was asked last.
	asked time.Time
	ended bool
}

// process is a program that runs.
type process struct {
	client *goplugin.Client
	api    pluginv1.CapabilityPluginClient
	// folder is its own, and goes with it.
	folder string
	// over is closed with its end, for the thread that has started it.
	over chan struct{}
}

// kill ends the process, after a moment in which it may end by itself.
func (p *process) kill() {
	p.client.Kill()
	close(p.over)
	_ = os.RemoveAll(p.folder)
}

func newProgram(digest, path string, options Options) *program {
	return &program{
		digest: digest, path: path, options: options,
		slots: make(chan struct{}, callsAtOnce), limit: rate.NewLimiter(callsPerSecond, callsPerSecond),
	}
}

// FailedError says that a program has not answered.
type FailedError struct {
	Digest, Message string
	// Again is when it is asked again; zero where that hangs on nothing.
	Again time.Time
}

// Error says why.
func (e *FailedError) Error() string { return "plug-in " + short(e.Digest) + " " + e.Message }

func (p *program) failed(again time.Time, format string, args ...any) error {
	return &FailedError{Digest: p.digest, Message: printable.Line(fmt.Sprintf(format, args...), maxSaid), Again: again}
}

func (p *program) description() *pluginv1.DescribeResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.described
}

func (p *program) describes(response *pluginv1.DescribeResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.described = response
}

// ask asks a program something, which is started where it does not run. It waits for as long as
// others ask.
func (p *program) ask(ctx context.Context, question func(context.Context, pluginv1.CapabilityPluginClient) error) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := p.limit.Wait(ctx); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	api, err := p.running(starting)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, p.options.CallTimeout)
	defer cancel()
	return p.outcome(ctx, question(asking, api))
}

// outcome judges an answer. A program that has gone, or hangs, is started again after a pause.
func (p *program) outcome(ctx context.Context, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := status.Convert(err)
	switch {
	case err == nil:
		p.failures, p.hung = 0, 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case said.Code() == codes.DeadlineExceeded:
		p.hung++
		if p.hung >= hangs {
			p.stop()
		}
		return p.failed(p.pause, "does not answer within %s", p.options.CallTimeout)
	case said.Code() == codes.Unavailable || p.process == nil || p.process.client.Exited():
		p.stop()
		return p.failed(p.pause, "has ended")
	case said.Code() == codes.ResourceExhausted:
		return p.failed(time.Time{}, "answers with more than %d MiB", plugin.MaxMessage>>20)
	}
	return p.failed(time.Time{}, "says: %s", said.Message())
}

// stop ends the process, and has it started again after a pause. p.mu is held.
func (p *program) stop() {
	p.failures++
	p.hung = 0
	p.pause = p.options.Now().Add(min(minPause<<min(p.failures-1, 10), maxPause))
	p.kill()
}

// kill ends the process. p.mu is held.
func (p *program) kill() {
	ended := p.process
	p.process = nil
	if ended != nil {
		go ended.kill()
	}
}

// rest ends the process where nobody has asked it for a while.
func (p *program) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil && len(p.slots) == 0 && p.options.Now().Sub(p.asked) >= restAfter {
		p.kill()
	}
}

// end ends the process for good.
func (p *program) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	ended := p.process
	p.process = nil
	if ended != nil {
		ended.kill()
	}
}

// running returns what asks the program, which is started where it does not run.
func (p *program) running(ctx context.Context) (pluginv1.CapabilityPluginClient, error) {
	p.starting.Lock()
	defer p.starting.Unlock()
	p.mu.Lock()
	if p.process != nil && p.process.client.Exited() {
		p.stop()
	}
	p.asked = p.options.Now()
	runs, pause, ended := p.process, p.pause, p.ended
	p.mu.Unlock()
	switch {
	case ended:
		return nil, p.failed(time.Time{}, "is not needed any more")
	case runs != nil:
		return runs.api, nil
	case p.options.Now().Before(pause):
		return nil, p.failed(pause, "has failed, and is started again at %s", pause.UTC().Format(time.RFC3339))
	}
	made, err := p.start(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.stop()
		said, _, _ := strings.Cut(err.Error(), "\n") // what follows are guesses, of many lines
		return nil, p.failed(p.pause, "cannot be started: %s", said)
	}
	p.process = made
	return made.api, nil
}

// start starts the process: with a checked checksum, an empty environment, a folder of its own,
// limits, and certificates that both sides make for this start.
func (p *program) start(ctx context.Context) (*process, error) {
	sum, err := hex.DecodeString(strings.TrimPrefix(p.digest, "sha256:"))
	if err != nil {
		return nil, fmt.Errorf("its digest is none: %w", err)
	}
	if _, err := os.Stat(p.path); err != nil {
		return nil, fmt.Errorf("there is no file %s of it", FileOf(p.digest))
	}
	folder, err := os.MkdirTemp("", "strata-plugin-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	command := exec.Command(p.path) //nolint:gosec // its checksum is checked before each start
	command.Dir, command.Env = folder, []string{"TMPDIR=" + folder, "HOME=" + folder}
	endWithParent(command)
	made := &process{folder: folder, over: make(chan struct{}), client: goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: plugin.Handshake, Plugins: goplugin.PluginSet{plugin.ServiceName: asked{}}, Cmd: command,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC}, AutoMTLS: true, SkipHostEnv: true, StartTimeout: startTimeout,
		SecureConfig: &goplugin.SecureConfig{Checksum: sum, Hash: sha256.New()},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugin.MaxMessage), grpc.MaxCallSendMsgSize(plugin.MaxMessage)),
		},
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: folder},
		Logger:           hclog.NewNullLogger(), Stderr: newLogWriter(p.options.Log.WithValues("plugin", short(p.digest))),
	})}
	dispensed := make(chan error, 1)
	go func() {
		// The process ends with the thread that has started it: that lives until it has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		made.api, err = dispense(made.client)
		dispensed <- err
		<-made.over
	}()
	select {
	case err = <-dispensed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = limitProcess(command.Process.Pid)
	}
	if err != nil {
		made.kill()
		return nil, err
	}
	return made, nil
}

// dispense starts a process, and returns what asks it.
func dispense(client *goplugin.Client) (pluginv1.CapabilityPluginClient, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(plugin.ServiceName)
	if err != nil {
		return nil, err
	}
	api, is := raw.(pluginv1.CapabilityPluginClient)
	if !is {
		return nil, errors.New("it serves no capabilities")
	}
	return api, nil
}

// asked is a plug-in as go-plugin asks it.
type asked struct {
	goplugin.NetRPCUnsupportedPlugin
}

// GRPCServer is for the other side.
func (asked) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a host serves nothing")
}

// GRPCClient returns what asks it.
func (asked) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, over *grpc.ClientConn) (any, error) {
	return pluginv1.NewCapabilityPluginClient(over), nil
}
