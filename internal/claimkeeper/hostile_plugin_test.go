// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
)

// A plug-in that tries to get at what is not its own gets, in a Deployment, nothing; and as a process
// what the controller's user has, which docs/security.md says. In both ways it gets nothing of the
// API server, and no answer of another plug-in.
func TestWhatAHostilePluginGets(t *testing.T) {
	c := newCluster(t)
	program := providerstest.Build(t, ".", "github.com/strata-project/strata/internal/providers/testdata/hostile")
	c.plugins = t.TempDir()
	precious := filepath.Join(t.TempDir(), "precious")
	c.must(os.WriteFile(precious, []byte("precious"), 0o600))
	// Another plug-in of each kind that it may try.
	c.offered("beside", c.plugged())
	c.offered("other", c.plugin(c.push(), ""))
	c.offered("deployed", c.plugin(providerstest.ImageOf(c, strings.TrimPrefix(c.registry.URL("plugins/naughty"), "oci://"), program), ""))
	c.offered("process", fmt.Sprintf("  plugin: {digest: %q, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}]}\n", providerstest.Put(t, c.plugins, program)))
	c.start(0)
	for _, name := range []string{"beside", "other", "deployed", "process"} {
		c.providerSays(name, "offers database/naughty")
	}
	c.wants("other", "  provider: SHOP-other\n")
	c.says("other", v1alpha1.ReasonBound)
	c.wants("beside", "  provider: SHOP-beside\n")
	c.says("beside", v1alpha1.ReasonBound)
	addresses := c.kubelet.Addresses()
	for _, way := range []struct {
		name string
		want []string
	}{
		{"deployed", nil},
		// The test is root, as the user of a controller seldom is.
		{"process", []string{"environment-of-others", "file-of-controller", "files-of-plugins", "memory-of-others", "root", "writes"}},
	} {
		for at, address := range addresses {
			claim := fmt.Sprintf("%s-%d", way.name, at)
			c.wants(claim, fmt.Sprintf("  provider: SHOP-%s\n  parameters: {file: %q, api: %q, plugin: %q}\n", way.name, precious, plane.Config().Host, address))
			c.says(claim, v1alpha1.ReasonBound)
			got := &corev1.ConfigMap{}
			c.must(c.client.Get(c.ctx, c.key(claim+"-got"), got))
			if is := slices.Sorted(maps.Keys(got.Data)); !slices.Equal(is, way.want) {
				t.Errorf("%s it got %v, and is to get %v", way.name, got.Data, way.want)
			}
		}
	}
	if len(addresses) != 2 {
		t.Errorf("there were %v to try", addresses)
	}
}
