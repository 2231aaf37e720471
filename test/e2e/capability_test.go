// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
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
