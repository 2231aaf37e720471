// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package providers

import "os/exec"

func endWithParent(*exec.Cmd) {}

// limitProcess limits nothing: a controller runs on Linux, and authors test their plug-ins elsewhere.
func limitProcess(int) error { return nil }
