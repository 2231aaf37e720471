// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/lint"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/versions"
)

const lintLong = `Find what is wrong with a repository of layers, without any cluster: in its
directories, and in AddonsLayers, ApplicationBundles, HelmApplications, Platforms
and RemoteClusters anywhere in it.

The rules are those of the controller and of the API server, so that what is found
here would be refused there: files that cannot be read, all of them; fields that do
not exist; objects that two layers own; dependencies and directories that do not
exist; layers that wait for each other. lint --rules lists all rules.

Paths of layers are below the root of the repository: the top of the git working
tree that the first folder is in, or that folder; --root says otherwise. What is
named on the command line is looked at, and what its layers name.

With --k8s it finds layers that do not allow a Kubernetes version, and APIs that it
does not serve: in the directories, and in what their charts make. No connection is
opened, unless --fetch-charts is given: charts that are not in the repository are a
warning, and so are those that cannot be fetched.

A layer holds what source-controller puts into the artifact: nothing that
.sourceignore files leave out. The spec.ignore of a GitRepository is not known here.

Limits: hidden files, binary files and folders of charts are left out; files over
8 MiB, and symbolic links, are not read. The text shows 50 findings, the other
formats all of them. Charts are rendered with --k8s only.

Exit codes:
  0  nothing is wrong, or there are warnings only
  1  the folders cannot be checked
  2  there are errors; with --strict, or warnings`

const lintExamples = `  # The repository that you are in
  kubectl strata lint .

  # Before clusters are upgraded
  kubectl strata lint . --k8s 1.36

  # In continuous integration
  kubectl strata lint . -o sarif > lint.sarif
  kubectl strata lint . -o junit > lint.xml

  # Some folders of a repository that is not in git
  kubectl strata lint addons clusters/prod --root .`

// lintOptions are what the flags of lint say.
type lintOptions struct {
	root, source, k8s string
	charts, strict    bool
	fetch             chartOptions
	rules             bool
	disable           []string
	output            string
}

// lintCommands returns the command that looks at repositories.
func lintCommands(t *tool) []*cobra.Command {
	o := &lintOptions{}
	command := &cobra.Command{
		Use: "lint DIR...", Short: "Find what is wrong with a repository of layers, without a cluster", Long: lintLong, Example: lintExamples,
		RunE: func(command *cobra.Command, folders []string) error {
			if o.rules {
				return t.lintRules(o)
			}
			if len(folders) == 0 {
				return errors.New("name the folders to look at: \"kubectl strata lint .\" looks at the one that you are in")
			}
			return t.lint(command.Context(), o, folders)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.root, "root", "", "the folder that paths of layers begin at; the top of the git working tree where there is one")
	flags.StringVar(&o.source, "source", "", "the source that this repository is, as [KIND/][NAMESPACE/]NAME, where layers have several")
	flags.StringVar(&o.k8s, "k8s", "", "the Kubernetes version that the layers are for, such as 1.34")
	flags.BoolVar(&o.charts, "charts", true, "with --k8s, look at what charts make, too")
	o.fetch.fetchFlag(flags, "with --k8s, ")
	flags.BoolVar(&o.strict, "strict", false, "let warnings count as errors do")
	flags.StringSliceVar(&o.disable, "disable", nil, "a rule that is to find nothing; may be given several times")
	flags.BoolVar(&o.rules, "rules", false, "list the rules, and look at nothing")
	console.OutputFlag(command, &o.output, "json", "yaml", "sarif", "junit")
	return []*cobra.Command{command}
}

func (t *tool) lintRules(o *lintOptions) error {
	switch o.output {
	case "":
		_, err := fmt.Fprint(t.Out, printing.LintRules(t.Screen.Width))
		return err
	case "sarif", "junit":
		return fmt.Errorf("--rules are listed as text, json or yaml, and not as %s", o.output)
	}
	return t.PrintAs(o.output, lint.Rules())
}

func (t *tool) lint(ctx context.Context, o *lintOptions, folders []string) error {
	if err := lint.CheckRules(o.disable); err != nil {
		return err
	}
	if o.k8s != "" && versions.Semantic(o.k8s) == nil {
		return fmt.Errorf("--k8s is %q: it must be a version such as 1.34", o.k8s)
	}
	if of := versions.Semantic(o.k8s); of != nil && of.GreaterThan(versions.Semantic(setup.AssumedKubernetes)) {
		fmt.Fprintf(t.ErrOut, "kubectl strata: Kubernetes %s is newer than %s, the newest that this version of Strata knows: is that meant? What it serves no more is not known here\n",
			o.k8s, setup.AssumedKubernetes)
	}
	root, below, err := rootOf(o.root, folders)
	if err != nil {
		return err
	}
	opened, err := repository.OpenFolder(root)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // nothing was written that could be lost
	artifact, err := opened.Artifact(ctx, "")
	if err != nil {
		return err
	}
	options := lint.Options{Files: opened.Files, Artifact: artifact, Below: below, Source: o.source, Kubernetes: o.k8s, Disabled: o.disable, Now: t.Now()}
	if o.k8s != "" && o.charts {
		renderer, err := gather.NewRenderer(o.fetch.Offline("lint"))
		if err != nil {
			return err
		}
		options.Render = renderer.Render
	}
	progress := t.Progress()
	progress.Say("reading %s", strings.Join(folders, ", "))
	report, err := lint.Run(ctx, options)
	progress.Done()
	if err != nil {
		return err
	}
	if err := t.printLint(report, o); err != nil {
		return err
	}
	if report.Errors > 0 || o.strict && report.Warnings > 0 {
		return console.ErrDiffers
	}
	return nil
}

func (t *tool) printLint(report *lint.Report, o *lintOptions) error {
	var data []byte
	var err error
	switch o.output {
	case "":
		data = []byte(printing.Lint(report, t.Screen.Width))
	case "sarif":
		data, err = lint.SARIF(report, version)
	case "junit":
		data, err = lint.JUnit(report, o.strict)
	default:
		return t.PrintAs(o.output, report)
	}
	if err != nil {
		return fmt.Errorf("cannot print as %s: %w", o.output, err)
	}
	_, err = t.Out.Write(data)
	return err
}

// rootOf returns the folder that paths begin at, and the folders as they are below
// it.
func rootOf(root string, folders []string) (string, []string, error) {
	for _, folder := range folders {
		info, err := os.Stat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil, fmt.Errorf("there is no folder %s", folder)
		case err != nil:
			return "", nil, fmt.Errorf("cannot read %s: %w", folder, err)
		case !info.IsDir() && !info.Mode().IsRegular():
			return "", nil, fmt.Errorf("%s is neither a folder nor a file", folder)
		}
	}
	if root == "" {
		top, err := topOf(folders[0])
		if err != nil {
			return "", nil, err
		}
		root = top
	}
	top, err := realPath(root)
	if err != nil {
		return "", nil, fmt.Errorf("there is no folder %s: %w", root, err)
	}
	below := make([]string, 0, len(folders))
	for _, folder := range folders {
		name, err := realPath(folder)
		if err != nil {
			return "", nil, err
		}
		name, err = filepath.Rel(top, name)
		if err != nil || !filepath.IsLocal(name) {
			return "", nil, fmt.Errorf("%s is not below %s: --root names the folder that paths of layers begin at, which must hold all others", folder, root)
		}
		below = append(below, filepath.ToSlash(name))
	}
	return top, below, nil
}

// topOf returns the top of the git working tree that a folder is in, or the folder.
func topOf(folder string) (string, error) {
	top, err := realPath(folder)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(top); err == nil && !info.IsDir() {
		top = filepath.Dir(top)
	}
	for at := top; ; at = filepath.Dir(at) {
		// In other working trees of a repository it is a file.
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return top, nil
		}
	}
}

func realPath(name string) (string, error) {
	whole, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(whole)
}
