// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/postgres"
)

// runStatefulServer is the kubelet of a server that is a StatefulSet: it gives it a volume, and
// runs PostgreSQL as the StatefulSet says. What Pods are to be ready says kwok.
func (f *fixture) runStatefulServer(name string) *postgres.Server {
	f.Helper()
	set := &appsv1.StatefulSet{}
	f.eventually("StatefulSet "+name+" is there", func() error { return stack.client.Get(f.ctx, f.accountKey(name), set) })
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: f.prefix + "-" + name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: f.prefix, Name: "data-" + name + "-0"},
	}}
	f.must(stack.client.Create(f.ctx, volume))
	f.Cleanup(func() { _ = stack.client.Delete(f.ctx, volume) })
	container := set.Spec.Template.Spec.Containers[0]
	if !strings.HasPrefix(container.Image, "docker.io/library/postgres:15.") {
		f.Fatalf("the server is to be %s", container.Image)
	}
	secret := &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, f.accountKey(name), secret))
	var port int
	if _, err := fmt.Sscan(container.Args[1], &port); err != nil {
		f.Fatal(err)
	}
	return postgres.Start(f.T, port, "app", string(secret.Data["password"]))
}

// The application of a platform gets a database of a provider with templates, and is moved to one
// with a plug-in: the release takes the address of the new server, and the old one stays until
// the claim goes. With that the new one goes, too, once somebody has confirmed it.
func TestDatabaseMovesToAPlugin(t *testing.T) {
	f := newCapabilityFixture(t)
	digest := providerstest.Put(t, capabilityPlugins(), providerstest.Build(t, "../../examples/capability-plugin", "."))
	all := []string{"get", "create", "patch", "delete"}
	f.bind("servers", f.prefix, f.accountKey(databases), mayOn("", "services", all...), mayOn("apps", "statefulsets", all...))
	app := &v1alpha1.HelmApplication{}
	f.written(app, shopApplication)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
	// What a plug-in serves has one name, and the tests beside this one have others.
	f.provider(strings.NewReplacer("Database/PostgreSQL-PREFIX", "database/postgresql", "port: {type: integer, minimum: 1}",
		"port: {type: integer, minimum: 1}\n        address: {type: string}").Replace(postgresProvider))
	f.bundle("1.0.0", fmt.Sprintf("  layers: [{name: apps, applications: [{name: shop, application: PREFIX-shop, version: 1.0.0, "+
		"requires: [{name: db, capability: database/postgresql, version: '>=15 <16', parameters: {port: %d, address: 127.0.0.1}}]}]}]\n", f.freePort()))
	f.platform("shop", "  bundle: {family: PREFIX}\n  layerTemplate: {orphanGrace: 1s}\n")
	template := f.runServer("shop-db-server")
	f.claimSays("shop-db", metav1.ConditionTrue, v1alpha1.ReasonBound, f.prefix+"-postgres 15.18")
	f.state("shop-apps", v1alpha1.StateDeployed)

	f.provider(fmt.Sprintf(`
metadata: {name: PREFIX-plugged}
spec:
  capability: Database/PostgreSQL
  namespace: PREFIX
  serviceAccountName: databases
  plugin:
    digest: %s
    run: Process
    kinds: [{apiVersion: v1, kind: Secret}, {apiVersion: v1, kind: Service}, {apiVersion: apps/v1, kind: StatefulSet}]
`, digest))
	path, err := builtPlugin()
	f.must(err)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	admin.expect(0, []string{f.prefix + "-plugged", "15.18, 16.4"}, "capability", "list", "database/postgresql")
	f.claimSays("shop-db", metav1.ConditionTrue, v1alpha1.ReasonBound, f.prefix+"-postgres 15.18")
	template.Stop(t)
	claim := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "shop-db"}}
	admin.expect(0, []string{"what the provider's plug-in says"}, "capability", "move", f.prefix+"/shop-db", f.prefix+"-plugged", "--yes")

	server := f.runStatefulServer("shop-db-postgres")
	f.claimSays("shop-db", metav1.ConditionTrue, v1alpha1.ReasonBound, f.prefix+"-plugged 15.18")
	f.state("shop-apps", v1alpha1.StateDeployed)
	binding := &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shop-db-binding"}, binding))
	if string(binding.Data["provider"]) != f.prefix+"-plugged" {
		t.Errorf("the binding is of %s", binding.Data["provider"])
	}
	f.eventually("the application has the address of its new database", func() error {
		data, err := f.configMapOn(stack.client, f.prefix, "shop")
		if err != nil || data["uri"] != string(binding.Data["uri"]) {
			return fmt.Errorf("it has another one: %w", err)
		}
		out, err := server.Query(data["uri"], "SELECT current_user")
		if err != nil || out != "app" {
			return fmt.Errorf("the database says %q: %w", out, err)
		}
		return nil
	})
	if f.absent(&batchv1.Job{}, "shop-db-server") {
		t.Error("what the claim had before has gone")
	}
	f.keepsToItself(string(binding.Data["password"]))

	f.must(stack.client.Delete(f.ctx, f.getPlatform("shop")))
	f.claimSays("shop-db", metav1.ConditionFalse, v1alpha1.ReasonDeletionBlocked, "StatefulSet "+f.prefix+"/shop-db-postgres")
	f.patch(claim, `{"metadata":{"annotations":{"kraan.io/confirm-deletion":"true"}}}`)
	f.platformGone("shop")
	for _, obj := range []client.Object{&batchv1.Job{}, &appsv1.StatefulSet{}, &corev1.Service{}} {
		for _, name := range []string{"shop-db-server", "shop-db-postgres"} {
			f.eventually(fmt.Sprintf("%T %s is gone", obj, name), func() error {
				return isGone(stack.client.Get(f.ctx, f.accountKey(name), obj))
			})
		}
	}
}
