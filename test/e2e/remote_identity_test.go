// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// identity returns the UID that a cluster is known by.
func (f *fixture) identity(on client.Client) string {
	f.Helper()
	found := &corev1.Namespace{}
	f.must(on.Get(f.ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, found))
	return string(found.UID)
}

// annotateCluster has somebody annotate a RemoteCluster.
func (f *fixture) annotateCluster(key types.NamespacedName, annotation, value string) {
	f.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
	f.must(stack.client.Patch(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, client.RawPatch(types.MergePatchType, patch)))
}

// A Secret is swapped for that of another cluster: neither Strata nor Flux writes
// there before somebody says that it is the right one. Then all is installed there.
func TestSwappedClusterIsWrittenToOnceAccepted(t *testing.T) {
	f := newFixture(t)
	was, is := f.far(0), f.far(1)
	f.must(was.CreateNamespace(f.ctx, f.prefix))
	f.must(is.CreateNamespace(f.ctx, f.prefix))
	cluster := f.joined("there", was)
	p := placed{fixture: f, there: was.client, on: on(cluster)}
	p.deployedFiles("base", p.both("base", "one"))
	p.holds("app", "one")

	f.kubeconfigSecret(stack.client, f.prefix, "there", is.kubeconfig(t))
	uid := f.identity(is.client)
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIdentityChanged, f.identity(was.client), uid)
	f.reason("base", v1alpha1.ReasonClusterMistaken, f.identity(was.client), uid, "kraan.io/accept-cluster="+uid)
	f.eventually("its release is suspended", func() error {
		if !p.helmRelease("app").Spec.Suspend {
			return errors.New("it is not")
		}
		return nil
	})
	revision := f.push(p.both("base", "two"))
	f.reason("base", v1alpha1.ReasonClusterMistaken)
	for _, name := range []string{"app", "settings"} {
		data, err := f.configMapOn(is.client, f.prefix, name)
		if err := isGone(err); err != nil {
			t.Errorf("%s is on the other cluster, with %v: %v", name, data, err)
		}
	}

	f.annotateCluster(cluster, v1alpha1.AcceptClusterAnnotation, uid)
	f.deployed("base", revision)
	there := placed{fixture: f, there: is.client, on: on(cluster)}
	there.holds("settings", "two")
	there.holds("app", "two")
	p.holds("app", "one") // as it was left
}

// Two RemoteClusters of one cluster install one Helm release once.
func TestOneHelmReleaseIsInstalledOnce(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	red := f.joined("red", far)
	p := placed{fixture: f, there: far.client, on: on(red)}
	p.deployedFiles("one", map[string]string{"one/release.yaml": p.configMapRelease("app", "one"), "two/release.yaml": p.configMapRelease("app", "two")})
	before := p.helmRelease("app").UID

	blue := f.joined("blue", far)
	f.layer("two", on(blue))
	f.reason("two", v1alpha1.ReasonOwnershipConflict, red.String(), blue.String(), f.name("one"))
	p.holds("app", "one")
	if after := p.helmRelease("app").UID; after != before {
		t.Error("there is another HelmRelease")
	}
	stored := &corev1.SecretList{}
	f.must(far.client.List(f.ctx, stored, client.InNamespace(f.prefix), client.MatchingLabels{"owner": "helm", "name": "app"}))
	if len(stored.Items) != 1 {
		t.Errorf("Helm has %d revisions of it", len(stored.Items))
	}
	f.clusterSays(blue, v1alpha1.IdentifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonClusterShared, red.String())
}
