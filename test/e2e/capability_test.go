// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/controlplane"
)

// shopApplication needs a database, and takes its address from there.
const shopApplication = `
metadata: {name: PREFIX-shop}
spec:
  versions:
  - version: 1.0.0
    namespace: {name: PREFIX}
    chart: {repository: {url: CHARTS, chart: configmap}}
    requires:
    - {name: db, capability: database/postgresql-PREFIX, version: ">=15", parameters: {database: app}}
    valuesFrom: [{capability: db, key: uri, targetPath: data.uri}]
`

// operatorProvider makes clusters of CloudNativePG, whose operator makes a Secret of each.
const operatorProvider = `
metadata: {name: PREFIX-operator}
spec:
  capability: database/postgresql-PREFIX
  versions: ["16.4", "17.2"]
  namespace: PREFIX
  serviceAccountName: databases
  parameters:
    schema:
      type: object
      properties:
        instances: {type: integer, default: 3}
        size: {type: string, default: 1Gi}
  objects:
  - id: cluster
    holdsData: true
    ready: object.?status.?conditions.orValue([]).exists(c, c.type == "Ready" && c.status == "True")
    template:
      apiVersion: postgresql.cnpg.io/v1
      kind: Cluster
      metadata: {name: "${claim.name}"}
      spec:
        instances: "${parameters.instances}"
        imageName: ghcr.io/cloudnative-pg/postgresql:${claim.version}
        storage: {size: "${parameters.size}"}
  publishes:
  - {key: host, value: "${objects.cluster.status.writeService}.${claim.namespace}.svc"}
  - {key: uri, secretKeyRef: {name: "${claim.name}-app", key: uri}}
`

// Clusters of CloudNativePG serve claims, by its real definitions. Its operator is not there:
// the test does what that would do. Of two providers none is chosen until one is the default;
// what the API server refuses, and what takes its time, is said by the claim
// itself; and what holds data goes once that is confirmed.
func TestClaimIsServedByAnOperator(t *testing.T) {
	f := newCapabilityFixture(t)
	f.installOperator()
	operator := f.provider(operatorProvider)
	f.provider(strings.ReplaceAll(operatorProvider, "PREFIX-operator", "PREFIX-other"))
	claim := &v1alpha1.CapabilityClaim{}
	f.written(claim, "metadata: {name: reports, namespace: PREFIX}\nspec: {capability: database/postgresql-PREFIX, version: 16.x, parameters: {instances: -1}}\n")
	f.claimSays("reports", metav1.ConditionFalse, v1alpha1.ReasonAmbiguous, f.prefix+"-operator", f.prefix+"-other")

	t.Log("one is the default, and makes what the API server refuses")
	f.patch(operator, `{"spec":{"default":true}}`)
	f.claimSays("reports", metav1.ConditionFalse, v1alpha1.ReasonObjectFailed, "Cluster "+f.prefix+"/reports", "spec.instances: Invalid value: -1: spec.instances in body should be greater than or equal to 1")

	t.Log("it makes a cluster, which takes its time")
	f.patch(claim, `{"spec":{"parameters":{"instances":1}}}`)
	f.claimSays("reports", metav1.ConditionFalse, v1alpha1.ReasonProgressing, "Cluster "+f.prefix+"/reports is not ready, as ready has it")
	cluster := instance("postgresql.cnpg.io", "Cluster", f.prefix, "reports")
	f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(cluster), cluster))
	if image, _, _ := unstructured.NestedString(cluster.Object, "spec", "imageName"); image != "ghcr.io/cloudnative-pg/postgresql:16.4" {
		t.Errorf("the image is %s", image)
	}
	f.must(stack.client.Status().Patch(f.ctx, cluster, client.RawPatch(types.MergePatchType, []byte(`{"status":{"writeService":"reports-rw","conditions":[{"type":"Ready","status":"True","reason":"ClusterIsReady","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))))
	f.claimSays("reports", metav1.ConditionFalse, v1alpha1.ReasonProgressing, "waits for Secret "+f.prefix+"/reports-app, which does not exist yet")
	f.must(stack.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "reports-app", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "postgresql.cnpg.io/v1", Kind: "Cluster", Name: "reports", UID: cluster.GetUID()},
		}},
		StringData: map[string]string{"uri": "postgresql://app:made-by-the-operator@reports-rw/app"},
	}))
	f.claimSays("reports", metav1.ConditionTrue, v1alpha1.ReasonBound, "is served by "+f.prefix+"-operator 16.4")
	binding := &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "reports-binding"}, binding))
	if host, uri := string(binding.Data["host"]), string(binding.Data["uri"]); host != "reports-rw."+f.prefix+".svc" || !strings.Contains(uri, "made-by-the-operator") {
		t.Errorf("the binding has the host %s and an address of %d bytes", host, len(uri))
	}

	t.Log("data go once that is confirmed")
	f.must(stack.client.Delete(f.ctx, claim))
	f.claimSays("reports", metav1.ConditionFalse, v1alpha1.ReasonDeletionBlocked, "data would go with Cluster "+f.prefix+"/reports", v1alpha1.ConfirmDeletionAnnotation)
	if f.absent(cluster, "reports") {
		t.Error("the data went unasked")
	}
	f.patch(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.ConfirmDeletionAnnotation))
	f.eventually("all has gone", func() error {
		if !f.absent(&v1alpha1.CapabilityClaim{}, "reports") || !f.absent(cluster, "reports") {
			return errors.New("something is left")
		}
		return nil
	})
}

// The application of a platform gets a database: a claim is made for what it requires, a
// provider makes a server of it, and the release waits for the address and takes it from the
// claim's binding. With the platform all of it goes.
func TestApplicationGetsADatabase(t *testing.T) {
	f := newCapabilityFixture(t)
	app := &v1alpha1.HelmApplication{}
	f.written(app, shopApplication)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
	port := f.freePort()
	f.bundle("1.0.0", fmt.Sprintf(`
  layers:
  - name: apps
    applications:
    - name: shop
      application: PREFIX-shop
      version: 1.0.0
      requires: [{name: db, parameters: {port: %d}}]
`, port))
	f.platform("shop", "  bundle: {family: PREFIX}\n  layerTemplate: {orphanGrace: 1s}\n")

	t.Log("nobody has what is needed")
	f.claimSays("shop-db", metav1.ConditionFalse, v1alpha1.ReasonNoProvider, "there is no provider of database/postgresql-"+f.prefix)
	f.state("shop-apps", v1alpha1.StateApplying, "HelmRelease "+f.prefix+"/shop waits for CapabilityClaim "+f.prefix+"/shop-db", "there is no provider")
	if !f.absent(&helmv2.HelmRelease{}, "shop") {
		t.Error("the release is there before its database")
	}

	path, err := builtPlugin()
	f.must(err)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	admin.expect(0, []string{"CapabilityClaim", "there is no provider of database/postgresql-" + f.prefix, "capability why shop-db --namespace " + f.prefix}, "why", f.name("shop-apps"))
	admin.expect(2, []string{"Claim: " + f.prefix + "/shop-db", "Layer: " + f.name("shop-apps"), "ask a platform team"}, "capability", "why", f.prefix+"/shop-db")

	t.Log("a provider appears, and makes a server")
	f.provider(postgresProvider)
	server := f.runServer("shop-db-server")
	claim := f.claimSays("shop-db", metav1.ConditionTrue, v1alpha1.ReasonBound, "is served by "+f.prefix+"-postgres 15.18", "Secret shop-db-binding")
	if claim.Status.Provider != f.prefix+"-postgres" || claim.Status.Version != "15.18" || claim.Status.Binding == nil || claim.Status.Binding.Name != "shop-db-binding" {
		t.Errorf("its status is %+v", claim.Status)
	}
	f.state("shop-apps", v1alpha1.StateDeployed)

	t.Log("the application has the address of its database")
	data, err := f.configMapOn(stack.client, f.prefix, "shop")
	f.must(err)
	if out, err := server.Query(data["uri"], "SELECT current_user || ' ' || split_part(version(), ' ', 2)"); err != nil || !strings.HasPrefix(out, "app 15.") {
		t.Errorf("the database says %q: %v", out, err)
	}
	binding := &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shop-db-binding"}, binding))
	if string(binding.Type) != "servicebinding.io/postgresql-"+f.prefix || string(binding.Data["type"]) != "postgresql-"+f.prefix ||
		string(binding.Data["provider"]) != f.prefix+"-postgres" || string(binding.Data["uri"]) != data["uri"] || string(binding.Data["username"]) != "app" {
		t.Errorf("the binding is of type %s and has %d keys", binding.Type, len(binding.Data))
	}

	admin.expect(0, []string{f.prefix + "-postgres", "namespace " + f.prefix}, "capability", "list", "database/postgresql-"+f.prefix)
	admin.expect(0, []string{"Read by: shop", "Job " + f.prefix + "/shop-db-server"}, "capability", "why", f.prefix+"/shop-db")
	admin.expect(0, nil, "plan", f.name("shop-apps"))

	t.Log("nobody is told the password")
	f.keepsToItself(string(binding.Data["password"]))

	t.Log("with the platform all goes")
	f.must(stack.client.Delete(f.ctx, f.getPlatform("shop")))
	f.platformGone("shop")
	for name, obj := range map[string]client.Object{"shop-db": &v1alpha1.CapabilityClaim{}, "shop-db-server": &batchv1.Job{}} {
		f.eventually(name+" is gone", func() error {
			return isGone(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, obj))
		})
	}
	for _, name := range []string{"shop-db-server", "shop-db-binding", "shop-db-passwords"} {
		f.must(isGone(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, &corev1.Secret{})))
	}
}

// keepsToItself checks that a password is in no status, event, layer or log.
func (f *fixture) keepsToItself(password string) {
	f.Helper()
	if len(password) < 16 {
		f.Fatalf("the password is %q", password)
	}
	claims, layers, events := &v1alpha1.CapabilityClaimList{}, &v1alpha1.AddonsLayerList{}, &corev1.EventList{}
	jobs, releases := &batchv1.JobList{}, &helmv2.HelmReleaseList{}
	for _, list := range []client.ObjectList{claims, layers, events, jobs, releases} {
		f.must(stack.client.List(f.ctx, list))
		f.must(meta.EachListItem(list, func(obj runtime.Object) error {
			if text := fmt.Sprintf("%+v", obj); strings.Contains(text, password) {
				f.Errorf("%T %s has the password", obj, obj.(client.Object).GetName())
			}
			return nil
		}))
	}
	log, err := os.ReadFile(stack.controller.Log())
	f.must(err)
	if strings.Contains(string(log), password) {
		f.Error("the controller's log has the password")
	}
}

// installOperator installs the kinds of CloudNativePG, of which the providers' account may have
// Clusters.
func (f *fixture) installOperator() {
	f.Helper()
	crds, err := controlplane.Binary(cache.CloudNativePGCRDs)
	f.must(err)
	f.must(stack.plane.InstallCRDs(f.ctx, crds))
	f.bind("operator", f.prefix, f.accountKey(databases), mayOn("postgresql.cnpg.io", "clusters", "get", "create", "patch", "delete"))
}
