// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probes says what is asked of a host, and reads the answer. The script changes
// nothing. An answer comes from a machine that may be anybody's: it is bounded, each value
// is checked against what it may be, and none is repeated as it came.
package probes

import _ "embed"

// Script is run by sh as root. It is POSIX shell, needs nothing that Debian's base system
// has not, and writes lines of the form key=value, the last of which is end=1.
//
//go:embed probe.sh
var Script []byte
