// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// What goes into a pipe has all columns, and no colours; a terminal has as many
// columns as it has room for.
func TestGetAndClustersAreGolden(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/graph.yaml", "testdata/clusters.yaml")...)
	for _, command := range []string{"get", "clusters"} {
		for name, screen := range map[string]terminal.Screen{
			"": {}, "-40": {Width: 40}, "-100-colour": {Width: 100, Colour: true},
		} {
			code, out, errOut := commandLine(t, server, screen, command)
			if code != exitBlocked || errOut != "" {
				t.Errorf("%s: exit code %d: %s", command, code, errOut)
			}
			golden(t, command+name+".txt", out)
			for line := range strings.Lines(out) {
				if plain := strings.TrimSuffix(line, "\n"); screen.Width == 40 && len([]rune(plain)) > 40 {
					t.Errorf("%s: longer than 40 columns: %q", command, line)
				}
			}
		}
	}
}

func TestGetIsTheSameOnATerminalWhereItIsForOthers(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/graph.yaml")...)
	for _, args := range []string{"get -o wide", "get -o name", "get -o json", "get nothing"} {
		_, piped, _ := commandLine(t, server, terminal.Screen{}, args)
		_, shown, _ := commandLine(t, server, terminal.Screen{Width: 40, Colour: true}, args)
		if piped != shown {
			t.Errorf("%s: on a terminal\n%s\nin a pipe\n%s", args, shown, piped)
		}
	}
}

// Every column that may be left out is there to be left out.
func TestExpendableColumnsExist(t *testing.T) {
	for _, kind := range []kind{layerKind, clusterKind} {
		header := kind.header(false)
		for _, name := range slices.Concat(kind.expendable, kind.painted) {
			if !slices.Contains(header, name) {
				t.Errorf("%s have no column %s", kind.Plural, name)
			}
		}
	}
}
