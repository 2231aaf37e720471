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
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-logr/logr"
	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/pkg/plugin"
)

// processes launches a program as a process of this one's user.
type processes struct {
	of      Reference
	options Options
	cluster Cluster
}

// launch starts the program, which is fetched before where it is one of an image.
func (p processes) launch(ctx context.Context) (*running, error) {
	digest, path := p.of.Digest, filepath.Join(p.options.Folder, FileOf(p.of.Digest))
	switch {
	case p.options.Folder == "":
		return nil, errors.New("this controller runs no programs: start it with --plugin-processes")
	case p.of.Image != "":
		found, err := p.fetched(ctx)
		if err != nil {
			return nil, err
		}
		digest, path = found.Digest, found.Path
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no file %s of it", FileOf(digest))
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	made, err := start(ctx, digest, path, p.credentials(), p.options.Log.WithValues("plugin", short(p.of.Digest)))
	if err != nil {
		return nil, err
	}
	return &running{api: made.api, gone: made.client.Exited, end: made.kill}, nil
}

// credentials returns the folder with what the program needs outside of clusters; empty where it
// has none.
func (p processes) credentials() string {
	if p.options.Credentials == "" {
		return ""
	}
	folder := filepath.Join(p.options.Credentials, p.of.Provider)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return ""
	}
	return folder
}

// fetched returns the program of an image. Only images are fetched that the controller was told
// of: it is a process of the controller's user.
func (p processes) fetched(ctx context.Context) (images.Program, error) {
	if p.options.Images == nil || !p.options.fetches(p.of.Image) {
		return images.Program{}, fmt.Errorf("this controller runs no programs of %s: start it with --plugin-process-images", p.of.Image)
	}
	image, err := p.of.image(ctx, p.cluster)
	if err != nil {
		return images.Program{}, err
	}
	return p.options.Images.Program(ctx, image)
}

// tend sees to it that the image is still signed.
func (p processes) tend(ctx context.Context) error {
	if p.of.Image == "" || p.of.Verify == nil || p.options.Images == nil {
		return nil
	}
	image, err := p.of.image(ctx, p.cluster)
	if err != nil {
		return err
	}
	return p.options.Images.Check(ctx, image)
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

// start starts a process: with a checked checksum, an empty environment, a folder of its own,
// limits, and certificates that both sides make for this start.
func start(ctx context.Context, digest, path, credentials string, log logr.Logger) (*process, error) {
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return nil, fmt.Errorf("its digest is none: %w", err)
	}
	folder, err := os.MkdirTemp("", "strata-plugin-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	command := exec.Command(path) // its checksum is checked before each start
	command.Dir, command.Env = folder, []string{"TMPDIR=" + folder, "HOME=" + folder}
	if credentials != "" {
		command.Env = append(command.Env, plugin.CredentialsVariable+"="+credentials)
	}
	endWithParent(command)
	made := &process{folder: folder, over: make(chan struct{}), client: goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: plugin.Handshake, Plugins: goplugin.PluginSet{plugin.ServiceName: asked{}}, Cmd: command,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC}, AutoMTLS: true, SkipHostEnv: true, StartTimeout: startTimeout,
		SecureConfig:     &goplugin.SecureConfig{Checksum: sum, Hash: sha256.New()},
		GRPCDialOptions:  dialOptions(),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: folder},
		Logger:           hclog.NewNullLogger(), Stderr: newLogWriter(log),
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

// dialOptions bound what is said on a connection.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugin.MaxMessage), grpc.MaxCallSendMsgSize(plugin.MaxMessage)),
	}
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
