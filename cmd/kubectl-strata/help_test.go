// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/internal/terminal"
)

// What -h says fits a screen of 40 lines and 100 columns, of every command; help says all
// that the command has to say, and the flags of kubectl are in neither.
func TestHelpFitsAScreen(t *testing.T) {
	const lines, columns = 40, 100
	said := func(args ...string) string {
		out := &bytes.Buffer{}
		t := newTool(out, out)
		t.Screen = terminal.Screen{Width: columns}
		t.run(context.Background(), args)
		return out.String()
	}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		path := strings.Fields(nameBelow(command.Root(), command))
		if !command.HasParent() {
			path = nil
		}
		brief := said(append(path, "-h")...)
		if count := strings.Count(brief, "\n"); count > lines {
			t.Errorf("%v -h has %d lines:\n%s", path, count, brief)
		}
		for line := range strings.Lines(brief) {
			// What can be copied is not cut.
			if len(line) > columns+1 && !strings.HasPrefix(line, "  kubectl") {
				t.Errorf("%v -h has a line of %d columns: %s", path, len(line)-1, line)
			}
		}
		whole := said(append([]string{"help"}, path...)...)
		if !strings.Contains(whole, strings.TrimSpace(command.Long)) {
			t.Errorf("help %v does not say all:\n%s", path, whole)
		}
		if strings.Contains(brief+whole, "--as-group") {
			t.Errorf("%v lists the flags of all commands", path)
		}
		for _, each := range command.Commands() {
			// cobra's own commands have cobra's words.
			if each.IsAvailableCommand() && each.Name() != "completion" {
				visit(each)
			}
		}
	}
	visit(newCommand(newTool(&bytes.Buffer{}, &bytes.Buffer{})))
	if options := said("options"); !strings.Contains(options, "--as-group") || !strings.Contains(options, "--context") {
		t.Errorf("options lists\n%s", options)
	}
	if wrong := said("help", "nonsense"); !strings.Contains(wrong, "there is no command nonsense") {
		t.Error(wrong)
	}
}
