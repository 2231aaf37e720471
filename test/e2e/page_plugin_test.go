// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/reads"
)

// The page about writing a plug-in does what it says, from an empty folder to a claim that is
// served. There are no nodes here that would run a Deployment, so that the controller runs the
// program of the image.
func TestPageOfWritingAPlugin(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	kubectl, err := controlplane.Binary("kubectl")
	f.must(err)
	root, err := reads.Root()
	f.must(err)
	reads.AddPrograms(root, "./pkg/plugin")
	t.Cleanup(func() {
		claim := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "greetings", Name: "hello"}}
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, claim)))
		f.eventually("the claim goes", func() error {
			err := stack.client.Get(f.ctx, client.ObjectKeyFromObject(claim), claim)
			if err == nil {
				return errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, &v1alpha1.CapabilityProvider{ObjectMeta: metav1.ObjectMeta{Name: "greeting"}})))
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "greetings"}})))
	})
	folder := filepath.Join(t.TempDir(), "greeting")
	f.must(os.Mkdir(folder, 0o750))
	environment := append(os.Environ(), "KUBECONFIG="+stack.plane.Kubeconfig(), "GOFLAGS=-mod=mod", "GOWORK=off",
		"PATH="+filepath.Dir(path)+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	runPage(t, "../../docs/write-a-plugin.md", folder, environment, 20, map[string]string{
		"registry.example.com": strings.TrimSuffix(strings.TrimPrefix(stack.oci.URL(""), "oci://"), "/"),
		"go mod tidy":          "go mod edit -replace github.com/strata-project/strata=" + root + " && cp " + root + "/go.sum . && go mod tidy",
		"    kinds:\n":         "    run: Process\n    kinds:\n",
	})
}
