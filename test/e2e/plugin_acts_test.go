// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// What people do to layers with the plug-in, against the real thing: hold, resume,
// have a commit fetched and deployed, see what was deployed, and go back.
func TestThePluginActs(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	first := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base")
	f.deployed("base", first)
	base := f.name("base")
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")

	admin.expect(0, []string{"layer " + base + " is held: looking around"}, "hold", base, "--reason", "looking around", "--until", "1h")
	admin.expect(0, []string{"layer " + base + " is held"}, "wait", base, "--for", "held")
	f.state("base", v1alpha1.StateHold, "looking around", "until 20")
	admin.expect(0, []string{"layer " + base + " is resumed"}, "resume", base)
	admin.expect(0, []string{"layer " + base + " is deployed"}, "wait", base)

	commit := f.commit(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	code, output := admin.run("reconcile", base, "--with-source", "--wait")
	if code != 0 || !contains(output, "GitRepository "+f.prefix+"/addons is at ", commit, "layer "+base+" is deployed") {
		t.Errorf("exit code %d: %s", code, output)
	}
	if got := f.get("base").Status; got.Revision == first || got.State != v1alpha1.StateDeployed {
		t.Errorf("it waited for %s at %s", got.State, got.Revision)
	}

	admin.expect(0, []string{"ID VERSION REVISION RESULT STARTED TOOK KEPT", "2 1.0.0 main@sha1:" + commit + " Deployed", "1 1.0.0 " + first + " Deployed"}, "history", base)
	admin.expect(0, []string{"layer " + base + " goes back to deployment 1: version 1.0.0 of revision " + first}, "rollback", base, "--to", "1")
	f.eventually("the layer is back", func() error {
		data, err := f.configMapOn(stack.client, f.prefix, "base")
		if err != nil || data["value"] != "one" {
			return fmt.Errorf("it holds %v, %w", data, err)
		}
		return nil
	})

	viewer := plugin{fixture: f, path: path}.of("viewer", "view")
	viewer.expect(1, []string{"you may not change layer " + base}, "hold", base, "--reason", "x")
	viewer.expect(0, []string{"Deployed"}, "history", base)
}
