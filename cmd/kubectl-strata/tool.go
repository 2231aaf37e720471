// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
)

// tool is what every command works with.
type tool struct{ *console.Console }

func newTool(out, errOut io.Writer) *tool { return &tool{console.New(out, errOut)} }
