// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/internal/plugindeploy"
	"github.com/strata-project/strata/pkg/plugin"
)

// listening launches a program of this machine as a Deployment has it run: it listens, and has
// its certificates in files. That is for testing one of any language.
type listening struct {
	of      Reference
	options Options
}

// tend has nothing to do.
func (l listening) tend(context.Context) error { return nil }

// launch starts the program, and connects with it.
func (l listening) launch(ctx context.Context) (*running, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	folder, err := os.MkdirTemp("", "strata-plugin-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	made, err := l.start(ctx, folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return made, nil
}

func (l listening) start(ctx context.Context, folder string) (*running, error) {
	of := plugindeploy.Plugin{Provider: l.of.Provider, Namespace: "default", CapabilityPlugin: l.of.CapabilityPlugin}
	secret, _, err := of.Secret(nil, l.options.Now())
	if err != nil {
		return nil, err
	}
	for _, name := range []string{plugin.CertificateFile, plugin.KeyFile, plugin.AuthorityFile} {
		if err := os.WriteFile(filepath.Join(folder, name), secret.Data[name], 0o600); err != nil {
			return nil, fmt.Errorf("cannot write a certificate: %w", err)
		}
	}
	config, err := of.ClientTLS(secret.Data)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	command := exec.Command(l.options.Listens) //nolint:gosec // whoever tests a program names it
	command.Dir, command.Env = folder, []string{
		plugin.ListenVariable + "=" + address, plugin.CertificatesVariable + "=" + folder, "TMPDIR=" + folder, "HOME=" + folder,
	}
	if l.options.Credentials != "" {
		command.Env = append(command.Env, plugin.CredentialsVariable+"="+filepath.Join(l.options.Credentials, l.of.Provider))
	}
	command.Stderr = newLogWriter(l.options.Log.WithValues("plugin", short(l.of.Digest)))
	endWithParent(command)
	over, err := run(command)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+address, append(dialOptions(), grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithNoProxy())...)
	if err != nil {
		return nil, fmt.Errorf("cannot connect with it: %w", err)
	}
	made := &running{
		api: pluginv1.NewCapabilityPluginClient(conn),
		gone: func() bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		},
		end: func() {
			_ = conn.Close()
			_ = command.Process.Kill()
			<-over
			_ = os.RemoveAll(folder)
		},
	}
	if _, err := health(ctx, made.api, grpc.WaitForReady(true)); err != nil {
		ended := made.gone()
		made.end()
		if ended {
			return nil, fmt.Errorf("it has ended: %s", command.ProcessState)
		}
		return nil, fmt.Errorf("it does not answer at %s, which %s says, with the certificates of the folder that %s says: %w",
			address, plugin.ListenVariable, plugin.CertificatesVariable, err)
	}
	config = config.Clone()
	config.Certificates = nil
	if answersStrangers(ctx, address, config) {
		made.end()
		return nil, errors.New("it answers those who have no certificate: it must ask for one that " + plugin.AuthorityFile + " has signed")
	}
	return made, nil
}

// answersStrangers tells whether a program answers who has no certificate.
func answersStrangers(ctx context.Context, address string, config *tls.Config) bool {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithNoProxy())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_, err = health(ctx, pluginv1.NewCapabilityPluginClient(conn))
	return err == nil
}

// run starts a process, on a thread that lives until it has ended, for it ends with that. over is
// closed when it has.
func run(command *exec.Cmd) (over chan struct{}, err error) {
	started := make(chan error, 1)
	over = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(over)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
	}()
	return over, <-started
}

// freeAddress returns an address of this machine that nobody listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
