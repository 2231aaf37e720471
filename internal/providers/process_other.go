// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package providers

import (
	"errors"
	"os/exec"
)

func endWithParent(*exec.Cmd) {}

func limitProcess(int) error { return errors.New("programs of plug-ins run on Linux alone") }
