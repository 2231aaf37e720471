// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// An application on another cluster has its claim beside the RemoteCluster, and gets a database
// of its own cluster, made by the provider's account there. The release takes the address from
// the claim's binding, and workloads there have one of their own. With the platform all goes.
func TestApplicationElsewhereGetsADatabase(t *testing.T) {
	f := newCapabilityFixture(t)
	far := f.far(0)
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	f.joined("edge", far)
	app := &v1alpha1.HelmApplication{}
	f.written(app, shopApplication)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
	port := f.freePort()
	f.bundle("1.0.0", fmt.Sprintf("  layers: [{name: apps, applications: [{name: shop, application: PREFIX-shop, version: 1.0.0, "+
		"requires: [{name: db, clusterBinding: db, parameters: {port: %d}}]}]}]\n", port))
	f.platform("fleet", "  bundle: {family: PREFIX}\n  clusters: [{name: edge, namespace: PREFIX}]\n  layerTemplate: {orphanGrace: 1s}\n")
	f.provider(postgresProvider)
	var claim *v1alpha1.CapabilityClaim
	f.eventually("there is a claim", func() error {
		list := &v1alpha1.CapabilityClaimList{}
		f.must(stack.client.List(f.ctx, list, client.InNamespace(f.prefix)))
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		claim = &list.Items[0]
		return nil
	})
	if claim.Spec.Cluster != "edge" || !strings.HasPrefix(claim.Name, "edge-shop-db-") {
		t.Errorf("the claim %s is of the cluster %q", claim.Name, claim.Spec.Cluster)
	}
	f.claimSays(claim.Name, metav1.ConditionFalse, v1alpha1.ReasonServiceAccountNotFound, "on RemoteCluster "+f.prefix+"/edge", f.prefix+"/"+databases)

	f.accountOn(far, databases, "Role", mayServe...)
	f.patch(claim, `{"metadata":{"annotations":{"look":"again"}}}`)
	server := f.runServerOn(far.client, claim.Name+"-server")
	f.claimSays(claim.Name, metav1.ConditionTrue, v1alpha1.ReasonBound)
	f.platformReady("fleet", "1.0.0")
	var given map[string]string
	f.eventually("the application has an address there", func() (err error) {
		given, err = f.configMapOn(far.client, f.prefix, "shop")
		return err
	})
	there, beside := &corev1.Secret{}, &corev1.Secret{}
	f.must(far.client.Get(f.ctx, f.accountKey("db"), there))
	f.must(stack.client.Get(f.ctx, f.accountKey(claim.Name+"-binding"), beside))
	if diff := cmp.Diff(beside.Data, there.Data); diff != "" || beside.Type != there.Type {
		t.Errorf("the binding there differs, of type %s", there.Type)
	}
	for _, uri := range []string{given["uri"], string(there.Data["uri"])} {
		if out, err := server.Query(uri, "SELECT current_user"); err != nil || out != "app" {
			t.Errorf("the database says %q: %v", out, err)
		}
	}
	if !f.absent(&batchv1.Job{}, claim.Name+"-server") {
		t.Error("the server is here, too")
	}

	f.must(stack.client.Delete(f.ctx, f.getPlatform("fleet")))
	f.platformGone("fleet")
	f.eventually("all has gone", func() error {
		jobs, secrets := &batchv1.JobList{}, &corev1.SecretList{}
		for _, list := range []client.ObjectList{jobs, secrets} {
			f.must(far.client.List(f.ctx, list, client.InNamespace(f.prefix), client.HasLabels{v1alpha1.ClaimLabel}))
		}
		if left := len(jobs.Items) + len(secrets.Items); left > 0 || !f.absent(&v1alpha1.CapabilityClaim{}, claim.Name) {
			return fmt.Errorf("%d objects are left", left)
		}
		return nil
	})
}
