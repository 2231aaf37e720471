// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/providers"
)

const capabilityTestLong = `Run a plug-in and ask it all that its contract says: that it describes itself,
takes parameters, plans an instance of each version that Strata would make, says
the same whenever it is asked the same, also after a restart, plans rotations,
and survives what it cannot read. No cluster is asked. What is outside of clusters
is handed out, rotated and taken back with --credentials alone.

The program is run as you. Its log is shown with --log.

Exit codes:
  0  it keeps the contract
  1  its file cannot be read
  2  it does not, or is no plug-in`

const capabilityTestExamples = `  go build -trimpath -o plugin . && kubectl strata capability test ./plugin

  # With what a claim says
  kubectl strata capability test ./plugin --parameters '{"size": "10Gi"}'`

// pluginTest says how a plug-in is tested.
type pluginTest struct {
	parameters, output, credentials string
	log, listen                     bool
}

func newCapabilityTest(t *tool) *cobra.Command {
	p := &pluginTest{}
	command := &cobra.Command{
		Use: "test PROGRAM", Short: "Test whether a plug-in keeps its contract", Long: capabilityTestLong, Example: capabilityTestExamples,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return t.capabilityTest(command.Context(), args[0], p)
		},
	}
	command.Flags().StringVar(&p.parameters, "parameters", "", "parameters of the claim that is asked about, in JSON; without them the defaults")
	command.Flags().StringVar(&p.credentials, "credentials", "", "folder with its credentials, for a plug-in that hands out what is outside of clusters: it does")
	command.Flags().BoolVar(&p.listen, "listen", false,
		"run it in place, and as a Deployment does: it listens where STRATA_PLUGIN_LISTEN says. That is for other languages than Go")
	command.Flags().BoolVar(&p.log, "log", false, "show what the plug-in logs")
	console.OutputFlag(command, &p.output, "json", "yaml")
	return command
}

func (t *tool) capabilityTest(ctx context.Context, program string, p *pluginTest) error {
	if p.parameters != "" && !json.Valid([]byte(p.parameters)) {
		return errors.New("--parameters is no JSON")
	}
	content, err := os.ReadFile(program) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("cannot read the plug-in: %w", err)
	}
	folder, err := os.MkdirTemp("", "strata-capability-test-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	sum := sha256.Sum256(content)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(folder, providers.FileOf(digest)), content, 0o500); err != nil { //nolint:gosec // it is a program
		return fmt.Errorf("cannot copy the plug-in: %w", err)
	}
	log := funcr.New(func(_, line string) {
		if p.log {
			console.Say(t.ErrOut, "%s", line)
		}
	}, funcr.Options{})
	options := providers.Options{Folder: folder, Log: log}
	if p.listen {
		if options.Listens, err = filepath.Abs(program); err != nil {
			return fmt.Errorf("cannot find the plug-in: %w", err)
		}
	}
	if p.credentials != "" {
		if options.Credentials, err = credentialsOf(folder, p.credentials); err != nil {
			return err
		}
	}
	host := providers.NewHost(options)
	defer host.End()
	plugin := providers.Reference{Provider: testedProvider, CapabilityPlugin: v1alpha1.CapabilityPlugin{Digest: digest, Run: v1alpha1.PluginProcess}}
	checks := providers.Conformance{Host: host, Plugin: plugin, Parameters: []byte(p.parameters)}.Run(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.output != "" {
		err = t.PrintAs(p.output, map[string]any{"digest": digest, "checks": checks})
	} else {
		t.Field("Digest", digest)
		console.Say(t.Out, "")
		err = t.Screen.Table(t.Out, console.Columns("KEPT", "CHECK", "MESSAGE"), printing.CheckRows(checks))
	}
	for _, check := range checks {
		if err == nil && !check.Passed {
			return console.ErrBlocked
		}
	}
	return err
}

// testedProvider is whose credentials the plug-in has.
const testedProvider = "tested"

// credentialsOf returns a folder as a host has it, in which those of the plug-in are the given ones.
func credentialsOf(folder, given string) (string, error) {
	given, err := filepath.Abs(given)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(given); err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
	}
	if err != nil {
		return "", fmt.Errorf("--credentials: %w", err)
	}
	all := filepath.Join(folder, "credentials")
	if err := os.Mkdir(all, 0o700); err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}
	return all, os.Symlink(given, filepath.Join(all, testedProvider))
}
