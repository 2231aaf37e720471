// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// An application on another cluster has its claim beside the RemoteCluster, and gets a database
// of the cluster that Strata runs in: of a provider that has its objects there. One that has
// them where the application is says why it does not serve it. With the platform all goes.
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
		"requires: [{name: db, parameters: {port: %d}}]}]}]\n", port))
	f.platform("fleet", "  bundle: {family: PREFIX}\n  clusters: [{name: edge, namespace: PREFIX}]\n  layerTemplate: {orphanGrace: 1s}\n")
	here := f.provider(postgresProvider)
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
	f.claimSays(claim.Name, metav1.ConditionFalse, v1alpha1.ReasonNoProvider, "has placement ClaimCluster, and not Home, as claims of other clusters need it")

	f.patch(here, `{"spec":{"placement":"Home"}}`)
	server := f.runServer(claim.Name + "-server")
	f.claimSays(claim.Name, metav1.ConditionTrue, v1alpha1.ReasonBound)
	f.platformReady("fleet", "1.0.0")
	var given map[string]string
	f.eventually("the application has an address there", func() (err error) {
		given, err = f.configMapOn(far.client, f.prefix, "shop")
		return err
	})
	if out, err := server.Query(given["uri"], "SELECT current_user"); err != nil || out != "app" {
		t.Errorf("the database says %q: %v", out, err)
	}

	f.must(stack.client.Delete(f.ctx, f.getPlatform("fleet")))
	f.platformGone("fleet")
	f.eventually("all has gone", func() error {
		if !f.absent(&v1alpha1.CapabilityClaim{}, claim.Name) || !f.absent(&batchv1.Job{}, claim.Name+"-server") {
			return errors.New("something is left")
		}
		return nil
	})
}
