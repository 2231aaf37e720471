// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/postgres"
)

// conformance tests a program with credentials, and returns what it does not keep, and all that
// was asked.
func conformance(t *testing.T, program []byte, credentials, parameters string) (broken, asked []string) {
	t.Helper()
	folder, all := t.TempDir(), t.TempDir()
	digest := providerstest.Put(t, folder, program)
	of := process(digest)
	if err := os.Mkdir(filepath.Join(all, of.Provider), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(all, of.Provider, "uri"), []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	host := providers.NewHost(providers.Options{Folder: folder, Credentials: all, Log: logr.Discard()})
	defer host.End()
	// What it depends on may not answer yet, or not in time: it is asked until it is well.
	for range 20 {
		if _, err := host.Describe(t.Context(), of); err == nil || !strings.Contains(err.Error(), "not healthy") {
			break
		}
	}
	for _, check := range (providers.Conformance{Host: host, Plugin: of, Parameters: []byte(parameters)}).Run(t.Context()) {
		asked = append(asked, check.Name)
		if !check.Passed {
			broken = append(broken, check.Name+": "+check.Message)
		}
	}
	return broken, asked
}

// The examples keep the contract: the one that hands out databases does with a real server, too, and
// leaves nothing on it.
func TestExamplesKeepTheContract(t *testing.T) {
	t.Parallel()
	build := func(source string) []byte { return providerstest.Build(t, "../../examples/plugins", source) }
	if broken, asked := conformance(t, build("./cloudnative-pg"), "", `{"storage": "10Gi"}`); len(broken) > 0 || len(asked) < 10 {
		t.Errorf("cloudnative-pg: %q of %q", broken, asked)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	server := postgres.Start(t, port, "postgres", "of-the-admin-alone")
	uri := server.URI("postgres", "of-the-admin-alone", "postgres")
	broken, asked := conformance(t, build("./postgres"), uri, "")
	if len(broken) > 0 || !slices.ContainsFunc(asked, func(name string) bool { return strings.HasSuffix(name, "takes it back with its data") }) {
		t.Errorf("postgres: %q of %q", broken, asked)
	}
	if left, err := server.Query(uri, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'claim%'"); err != nil || left != "0" {
		t.Errorf("%s roles are left, %v", left, err)
	}
}

// One that tells a password, or says something else each time, is found out.
func TestOutsidersThatBreakTheContract(t *testing.T) {
	t.Parallel()
	program := providerstest.Build(t, ".", "github.com/strata-project/strata/internal/providers/testdata/leaky")
	for do, want := range map[string]string{
		"tells": "publishes a password in password", "fail": "says: the password is ***", "waits": "it waits: the password is ***", "unsteady": "something else",
	} {
		broken, _ := conformance(t, program, "", `{"do": "`+do+`"}`)
		if len(broken) != 1 || !strings.Contains(broken[0], want) {
			t.Errorf("%s: %q", do, broken)
		}
	}
}
