// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/reads"
)

// The example of a plug-in with a repository of its own builds, tests and pushes itself.
func TestExampleBuildsTestsAndPushes(t *testing.T) {
	path, err := builtPlugin()
	if err != nil {
		t.Fatal(err)
	}
	image := stack.oci.URL("plugins/example") + ":1.0.0"
	reads.Add("../../examples/capability-plugin")
	reads.AddPrograms("../../examples/capability-plugin", "./...")
	push := exec.CommandContext(t.Context(), "make", "-C", "../../examples/capability-plugin", "push",
		"BIN="+t.TempDir(), "IMAGE="+image, "ARCHITECTURES="+runtime.GOARCH, "STRATA="+path)
	push.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=")
	out, err := push.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"ok  \texample.com/capability-plugin", "plans a rotation", image, "sha256:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not print %q: %s", want, out)
		}
	}
}

// The example for CloudNativePG makes Clusters that its definition takes, and gives a claim its
// address once all instances are ready.
func TestCloudNativePGByAPlugin(t *testing.T) {
	f := newCapabilityFixture(t)
	f.installOperator()
	digest := providerstest.Put(t, capabilityPlugins(), providerstest.Build(t, "../../examples/plugins", "./cloudnative-pg"))
	f.provider(fmt.Sprintf(`
metadata: {name: PREFIX-cnpg}
spec:
  capability: database/postgresql
  namespace: PREFIX
  serviceAccountName: databases
  plugin:
    digest: %s
    run: Process
    kinds: [{apiVersion: v1, kind: Secret}, {apiVersion: postgresql.cnpg.io/v1, kind: Cluster}]
`, digest))
	f.written(&v1alpha1.CapabilityClaim{}, `
metadata: {name: reports, namespace: PREFIX}
spec:
  capability: database/postgresql
  provider: PREFIX-cnpg
  version: ">=17"
  parameters: {storage: 20Gi, load: medium, database: reports}
`)
	f.claimSays("reports", metav1.ConditionFalse, v1alpha1.ReasonProgressing, "has 0 of 2 instances ready")
	cluster := instance("postgresql.cnpg.io", "Cluster", f.prefix, "reports")
	f.must(stack.client.Get(f.ctx, f.accountKey("reports"), cluster))
	if text := fmt.Sprint(cluster.Object["spec"]); !strings.Contains(text, "postgresql:17.5") || !strings.Contains(text, "shared_buffers:2GB") {
		t.Errorf("the Cluster is %s", text)
	}
	f.must(stack.client.Status().Patch(f.ctx, cluster, client.RawPatch(types.MergePatchType, []byte(`{"status":{"readyInstances":2}}`))))
	f.claimSays("reports", metav1.ConditionTrue, v1alpha1.ReasonBound, f.prefix+"-cnpg 17.5")
	binding, credentials := &corev1.Secret{}, &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "reports-binding"}, binding))
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "reports-app"}, credentials))
	if want := "postgresql://reports:" + string(credentials.Data["password"]) + "@reports-rw." + f.prefix + ".svc:5432/reports"; string(binding.Data["uri"]) != want {
		t.Error("the binding has another address")
	}
}
