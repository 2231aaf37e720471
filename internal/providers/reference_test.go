// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/internal/providers"
)

// Images run as processes where one of the allowed registries or repositories has them, and
// nowhere else: a name that only begins alike is another one.
func TestImagesThatRunAsProcesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, image string
		allowed     bool
	}{
		{"127.0.0.1:1", "oci://127.0.0.1:1/plugins/postgres", true},
		{"127.0.0.1:1/", "oci://127.0.0.1:1/plugins/postgres:1.0", true},
		{"oci://127.0.0.1:1/plugins", "oci://127.0.0.1:1/plugins/postgres", true},
		{"127.0.0.1:1/plugins/postgres", "oci://127.0.0.1:1/plugins/postgres:1.0", true},
		{"127.0.0.1:1/plugins/postgres", "oci://127.0.0.1:1/plugins/postgresql", false},
		{"127.0.0.1:1/plugins", "oci://127.0.0.1:1/plugins-of-others/postgres", false},
		{"127.0.0.1", "oci://127.0.0.1:1/plugins/postgres", false},
		{"127.0.0.1:1", "oci://127.0.0.1:11/plugins/postgres", false},
		{"127.0.0.1:1/plugins", "oci://127.0.0.1:1/other/../plugins/postgres", false},
		{"127.0.0.1:1", "", false},
	} {
		host := providers.NewHost(providers.Options{
			Folder: t.TempDir(), Images: images.NewStore(t.TempDir()), ImagesFrom: []string{c.from}, Log: logr.Discard(),
		})
		_, err := host.Describe(t.Context(), providers.Reference{CapabilityPlugin: v1alpha1.CapabilityPlugin{
			Image: c.image, Digest: "sha256:" + strings.Repeat("1", 64), Run: v1alpha1.PluginProcess,
		}})
		if err == nil {
			t.Fatal("there is no such image")
		}
		// One that is allowed fails since nobody is there.
		var failed *providers.FailedError
		if fetched := errors.As(err, &failed) && strings.Contains(err.Error(), "cannot fetch image"); fetched != c.allowed {
			t.Errorf("from %s, %s says %v", c.from, c.image, err)
		}
		host.End()
	}
}
