// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scripts renders what is run on a host for an action: one script, for sh, which
// reads it from its input. Values go before the text as variables, quoted; the text itself
// is the same for all. The work is kubeadm's. It runs nothing.
package scripts
