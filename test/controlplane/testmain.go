// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/strata-project/strata/test/reads"
)

// Main runs the tests of a package with one control plane and returns the
// exit code for os.Exit; it is called from TestMain. The setup function gets
// the control plane before the first test; it keeps it in a variable and
// installs what all tests need.
//
// With -short nothing is started and setup is not called: tests that need the
// control plane skip themselves. The same holds while tests are listed or
// fuzzed, which none that needs a control plane takes part in. When tests fail, or EnvKeep is 1, the folder
// with the logs is kept and its path is printed.
func Main(m *testing.M, opts Options, setup func(*ControlPlane) error) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if testing.Short() || isSet("test.list") || isSet("test.fuzz") {
		return reads.Run(m)
	}
	opts.ExitOnSignal = true
	if opts.Log == nil && testing.Verbose() {
		opts.Log = os.Stderr
	}
	c, err := Open(context.Background(), opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := runTests(m, c, setup)
	if opts.After != nil {
		if err := opts.After(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if c.Managed() && (code != 0 || os.Getenv(EnvKeep) == "1") {
		c.Keep()
		fmt.Fprintf(os.Stderr, "the control plane's logs are in %s\n", c.Dir())
	}
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// isSet tells whether a flag is given.
func isSet(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// EnvKeep makes Main keep the control plane's folder when it is 1.
const EnvKeep = "STRATA_E2E_KEEP"

func runTests(m *testing.M, c *ControlPlane, setup func(*ControlPlane) error) int {
	if setup != nil {
		if err := setup(c); err != nil {
			fmt.Fprintf(os.Stderr, "cannot set up the tests: %v\n", err)
			return 1
		}
	}
	return reads.Run(m)
}
