// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// program returns how the plug-in is called.
func (t *tool) program() string { return "kubectl strata" }
