// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// asKubectl is how people call the plug-in, and all texts are written for that.
const asKubectl = "kubectl strata"

// program is how the plug-in is called this time; runAs alone sets it.
var program = asKubectl

// runAs runs a command line of a program by its file's name: kubectl-strata; or
// flux-strata, which says flux strata wherever the other says kubectl strata; or
// kubectl_complete-strata, which kubectl asks for completions.
func runAs(ctx context.Context, file string, args []string, out, errOut io.Writer) int {
	name := strings.TrimSuffix(filepath.Base(file), ".exe")
	if name == "flux-strata" {
		program = "flux strata"
	}
	if strings.HasPrefix(name, "kubectl_complete-") {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	t := newTool(out, errOut)
	t.ErrOut = renamed(errOut)
	return t.run(ctx, args)
}

// program returns how the plug-in is called.
func (t *tool) program() string { return program }

// file returns the name of the plug-in's file, by which shells know it.
func file() string { return strings.ReplaceAll(program, " ", "-") }

// renamed returns a writer of help and errors, in which the plug-in has the name by
// which it is called. What a command answers does not go through it.
func renamed(out io.Writer) io.Writer {
	if program == asKubectl {
		return out
	}
	return renaming{out}
}

type renaming struct{ io.Writer }

// Write writes a text. It comes in whole lines, so that no name is in two pieces.
func (r renaming) Write(text []byte) (int, error) {
	if _, err := r.Writer.Write(bytes.ReplaceAll(text, []byte(asKubectl), []byte(program))); err != nil {
		return 0, err
	}
	return len(text), nil
}
