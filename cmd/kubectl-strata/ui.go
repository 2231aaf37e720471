// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/terminal"
	"github.com/strata-project/strata/internal/web"
)

const uiLong = `Show on a page whether everything is well that you may see, and if not, what the
cause is and until when: the layers in the order in which they are deployed, what
waits for what, and why, down to the Pod. What changes in the cluster changes on the
page at once.

The page is served on this machine alone, with your own kubeconfig and rights, until
the command is interrupted. The address that is printed opens it in one browser, once.
Nothing is installed. With --act layers can be held, resumed, reconciled and rolled
back on the page, and stages approved, each where the API server lets you and once you
have confirmed what it does; without it nothing can be changed.

Exit codes:
  0  it was interrupted
  1  the cluster cannot be read, or the page cannot be served`

const uiExamples = `  # Open the page
  kubectl strata ui

  # The layers of a team
  kubectl strata ui -l team=payments

  # With buttons to hold, resume, reconcile, roll back and approve
  kubectl strata ui --act

  # At a port of your own, without a browser
  kubectl strata ui --port 8080 --open=false`

// newUI returns the command that serves the page.
func newUI(t *tool) *cobra.Command {
	port, open, act := 0, true, false
	remote := remoteFlags{}
	plan := live.Options{}
	command := &cobra.Command{
		Use: "ui", Short: "Show on a page how everything stands", Long: uiLong, Example: uiExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := remote.options(t)
			if err != nil {
				return err
			}
			if port < 0 || port > 65535 {
				return fmt.Errorf("--port is %d: it must be from 1 to 65535, or 0 for any that is free", port)
			}
			if plan.Repository, err = repositoryOf(command.Flags().Changed("git"), plan.Repository); err != nil {
				return err
			}
			plan.Why = o
			return t.ui(command.Context(), plan, port, open, act)
		},
	}
	remote.add(command)
	remote.addSelector(command)
	command.Flags().IntVar(&port, "port", port, "the port of 127.0.0.1 to serve at; 0 for any that is free")
	flags := command.Flags()
	flags.BoolVar(&open, "open", open, "open the browser")
	flags.BoolVar(&act, "act", act, "offer to hold, resume, reconcile, roll back and approve, where you may")
	flags.StringVar(&plan.Repository, "git", ".", "a folder of the git repository whose branches, tags and commits can be planned")
	flags.StringVar(&plan.Source, "source", "", "the source that the repository stands for, as [KIND/][NAMESPACE/]NAME, where there are several")
	flags.StringSliceVar(&plan.LayersIn, "layers", nil, "files and folders of it that hold the AddonsLayers of this cluster, where others have some, too")
	return command
}

// firstRead bounds how long the cluster is waited for.
const firstRead = 30 * time.Second

// repositoryOf returns the folder of a git repository; none where the folder that the
// command runs in is in none, and nothing else was asked for.
func repositoryOf(asked bool, folder string) (string, error) {
	err := repository.InGit(folder)
	switch {
	case err == nil:
		return filepath.Abs(folder)
	case asked:
		return "", fmt.Errorf("--git is %s: %w", folder, err)
	}
	return "", nil
}

func (t *tool) ui(ctx context.Context, o live.Options, port int, open, act bool) error {
	o.Cluster, o.Now = t.Cluster, t.Now
	cluster, err := live.Open(ctx, o)
	if err != nil {
		return err
	}
	defer cluster.Close()
	first, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	if err := cluster.Ready(first); err != nil {
		return err
	}
	shown := web.Options{Cluster: cluster, Program: t.program(), Name: t.contextName()}
	if act {
		shown.Actor, shown.Told = cluster, func(what string) { console.Say(t.Out, "%s", terminal.Safe(what)) }
	}
	page, err := web.New(shown)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("cannot serve the page: %w", err)
	}
	local, err := web.NewLocal(page, listener.Addr().String(), port != 0)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	address := "http://" + listener.Addr().String() + local.Path()
	console.Say(t.Out, "The page is at %s\nThe address opens it once, in one browser. Ctrl-C ends it.", address)
	if open {
		t.browse(ctx, address, local.Opened())
	}
	return serve(ctx, listener, local)
}

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("cannot serve the page: %w", err)
	case <-ctx.Done():
	}
	return server.Close()
}

// contextName names the cluster that flags name: its context, or else its address.
func (t *tool) contextName() string {
	if raw, err := t.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil {
		if name := t.Flags.Context; name != nil && *name != "" {
			return *name
		}
		if raw.CurrentContext != "" {
			return raw.CurrentContext
		}
	}
	return ""
}
