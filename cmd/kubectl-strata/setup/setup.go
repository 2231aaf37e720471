// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup brings Strata into a cluster, checks what is there, and takes it away.
package setup

import (
	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
)

// Commands returns the commands that bring Strata into a cluster, look at it and take it
// away.
func Commands(c *console.Console, build Build) []*cobra.Command {
	t := &setup{c, build}
	return []*cobra.Command{newCheck(t), newInstall(t), newUninstall(t)}
}
