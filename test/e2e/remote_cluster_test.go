// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// A cluster whose kubeconfig is yet to be written is waited for, and its layers
// begin when it is.
func TestKubeConfigThatAppearsLater(t *testing.T) {
	f := newFixture(t)
	cluster := f.remoteCluster("later")
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for Secret "+f.prefix+"/later, which does not exist")
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.state("base", v1alpha1.StatePending, "waits for RemoteCluster "+cluster.String()+": waits for Secret")

	f.kubeconfigSecret(stack.client, f.prefix, "later", f.far(0).kubeconfig(t))
	f.deployed("base", revision)
}

// What is wrong with a kubeconfig is said by the cluster and by all that waits for
// it, and nothing is begun.
func TestKubeConfigThatIsRefused(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.kubeconfigSecret(stack.client, f.prefix, "refused", []byte(strings.ReplaceAll(string(far.kubeconfig(t)), "token:", "tokenFile:")))
	cluster := f.remoteCluster("refused")
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidKubeConfig,
		"Secret "+f.prefix+"/refused user.tokenFile: a file is refused", "--insecure-kubeconfig-files")
	f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.state("base", v1alpha1.StatePending, "user.tokenFile")

	f.kubeconfigSecret(stack.client, f.prefix, "refused", far.kubeconfig(t))
	f.state("base", v1alpha1.StateDeployed)
}

// A certificate authority that has not signed the API server's certificate is the
// true error, on the cluster and on its layers.
func TestWrongCertificateAuthority(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	config := far.Config()
	config.CAData = stack.plane.Config().CAData
	f.kubeconfigSecret(stack.client, f.prefix, "wrong", kubeconfigOf(t, config))
	cluster := f.remoteCluster("wrong")
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "certificate signed by unknown authority")
	f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.state("base", v1alpha1.StatePending, "certificate signed by unknown authority")

	f.kubeconfigSecret(stack.client, f.prefix, "wrong", far.kubeconfig(t))
	f.state("base", v1alpha1.StateDeployed)
}

// When the Secret of the kubeconfig goes, work goes on with the copy, which is
// said; when it is back, it is followed. Nobody's finalizer is on it.
func TestSourceOfCredentialsGoes(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("orphan", far)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)

	secret := &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, cluster, secret))
	if len(secret.Finalizers) > 0 || len(secret.Labels) > 0 {
		t.Errorf("the foreign Secret has finalizers %v and labels %v", secret.Finalizers, secret.Labels)
	}
	f.must(stack.client.Delete(f.ctx, secret))
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsSourceGone, "the copy of it is used")
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	f.deployed("base", revision)

	f.kubeconfigSecret(stack.client, f.prefix, "orphan", far.kubeconfig(t))
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
}

// Strata's own copy of a kubeconfig is made anew when somebody deletes it.
func TestCopyOfKubeConfigIsDeleted(t *testing.T) {
	f := newFixture(t)
	cluster := f.joined("copied", f.far(0))
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)

	key := types.NamespacedName{Namespace: f.prefix, Name: "strata-kubeconfig-copied"}
	before, after := &corev1.Secret{}, &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, key, before))
	f.must(stack.client.Delete(f.ctx, before))
	f.eventually("the copy is there again", func() error {
		if err := stack.client.Get(f.ctx, key, after); err != nil {
			return err
		}
		if after.UID == before.UID || after.DeletionTimestamp != nil || len(after.Finalizers) != 1 {
			return fmt.Errorf("it has the UID %s, finalizers %v, deleted %v", after.UID, after.Finalizers, after.DeletionTimestamp)
		}
		return nil
	})
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	f.deployed("base", revision)
}

// A cluster whose API server stops is Unknown after a while, with its releases
// suspended and nothing deleted; when it answers again exactly those go on.
func TestClusterIsLostAndReturns(t *testing.T) {
	f := newFixture(t)
	far := f.mortalFar()
	cluster := f.joined("mortal", far, func(c *v1alpha1.RemoteCluster) {
		c.Spec.Unreachable.After = &metav1.Duration{Duration: 3 * time.Second}
	})
	suspended := strings.Replace(f.configMapRelease("stopped", "one"), "interval: 1h", "interval: 1h\n  suspend: true", 1)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "base/stopped.yaml": suspended, "base/settings.yaml": settingsOf(f.prefix, "one"),
	})
	f.layer("base", on(cluster))
	f.deployed("base", revision)

	f.must(far.KillComponent(controlplane.APIServer))
	f.clusterSays(cluster, v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable)
	layer := f.state("base", v1alpha1.StateUnknown, "has not answered since")
	if !meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.DeployedCondition) {
		t.Errorf("what is deployed there does not count any more: %+v", layer.Status.Conditions)
	}
	f.eventually("its releases are suspended", func() error { return f.suspended(map[string]bool{"base": true, "stopped": true}) })
	resources := len(layer.Status.Resources)

	f.must(far.StartComponent(f.ctx, controlplane.APIServer))
	layer = f.deployed("base", revision)
	if len(layer.Status.Resources) != resources {
		t.Errorf("it has %d objects, and had %d", len(layer.Status.Resources), resources)
	}
	f.eventually("those that Strata suspended go on", func() error { return f.suspended(map[string]bool{"base": false, "stopped": true}) })
}

// What releases read on a cluster that was away for long arrives as soon after it is back as it
// did before. By themselves its watches would wait for as long as it was away, once more.
func TestChangesArriveAsSoonAfterAnOutage(t *testing.T) {
	f := newFixture(t)
	far := f.mortalFar()
	cluster := f.joined("mortal", far, func(c *v1alpha1.RemoteCluster) {
		c.Spec.Unreachable.After = &metav1.Duration{Duration: 3 * time.Second}
	})
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	f.must(far.client.Create(f.ctx, valuesFile(f.prefix, "there", "data: {there: one}")))
	release := strings.Replace(f.configMapRelease("base", "one"), "  values:", "  valuesFrom: [{kind: ConfigMap, name: there}]\n  values:", 1)
	revision := f.push(map[string]string{"base/release.yaml": release})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	arrives := func(value string) time.Duration {
		t.Helper()
		begun := time.Now()
		f.must(far.client.Update(f.ctx, valuesFile(f.prefix, "there", "data: {there: "+value+"}")))
		f.eventually("the change arrives", func() error {
			data, err := f.configMapOn(far.client, f.prefix, "base")
			if err == nil && data["there"] != value {
				err = fmt.Errorf("it has %v", data)
			}
			return err
		})
		return time.Since(begun)
	}
	before := arrives("two")

	const outage = 45 * time.Second
	f.must(far.KillComponent(controlplane.APIServer))
	f.clusterSays(cluster, v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable)
	f.throughout(outage, "the cluster is away", func() error {
		found := &v1alpha1.RemoteCluster{}
		f.must(stack.client.Get(f.ctx, cluster, found))
		if !meta.IsStatusConditionFalse(found.Status.Conditions, v1alpha1.ReachableCondition) {
			return fmt.Errorf("it says %+v", found.Status.Conditions)
		}
		return nil
	})
	f.must(far.StartComponent(f.ctx, controlplane.APIServer))
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	f.deployed("base", revision)
	after := arrives("three")
	t.Logf("a change arrived after %s, and after the outage after %s", before.Round(10*time.Millisecond), after.Round(10*time.Millisecond))
	if after > before+outage/3 {
		t.Errorf("after the outage a change arrived after %s, and before it after %s", after, before)
	}
}

// suspended tells whether the releases of the fixture are suspended as wanted, by
// the names of their Helm releases.
func (f *fixture) suspended(want map[string]bool) error {
	releases := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)))
	if len(releases.Items) != len(want) {
		return fmt.Errorf("there are %d releases", len(releases.Items))
	}
	for _, release := range releases.Items {
		if release.Spec.Suspend != want[release.Spec.ReleaseName] {
			return fmt.Errorf("%s has suspend %t", release.Spec.ReleaseName, release.Spec.Suspend)
		}
	}
	return nil
}

// A RemoteCluster stays as long as something is installed through it, and says
// what that is.
func TestRemoteClusterIsDeletedLast(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("last", far)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	layer := f.deployed("base", revision)

	f.must(stack.client.Delete(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}))
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonLayersLeft, "AddonsLayer "+layer.Name)
	f.must(stack.client.Delete(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "last"}}))
	f.must(stack.client.Delete(f.ctx, layer))
	f.eventually("both are gone", func() error {
		if err := isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: layer.Name}, &v1alpha1.AddonsLayer{})); err != nil {
			return err
		}
		return isGone(stack.client.Get(f.ctx, cluster, &v1alpha1.RemoteCluster{}))
	})
	_, err := f.configMapOn(far.client, f.prefix, "base")
	if isGone(err) != nil {
		t.Errorf("what was installed is left: %v", err)
	}
	if err := isGone(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "strata-kubeconfig-last"}, &corev1.Secret{})); err != nil {
		t.Errorf("the copy of the kubeconfig: %v", err)
	}
}

// A dead cluster that is given up holds nothing up: nothing asks it for anything,
// and it is told what was left behind.
func TestDeadClusterIsAbandoned(t *testing.T) {
	f := newFixture(t)
	far := f.mortalFar()
	cluster := f.joined("dead", far)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "base/settings.yaml": settingsOf(f.prefix, "one"),
	})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	f.must(far.KillComponent(controlplane.APIServer))

	object := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	f.patch(object, `{"metadata":{"annotations":{"kraan.io/abandon":"true"}}}`)
	f.must(stack.client.Delete(f.ctx, object))
	f.eventually("the RemoteCluster is gone", func() error {
		return isGone(stack.client.Get(f.ctx, cluster, &v1alpha1.RemoteCluster{}))
	})
	releases := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)))
	if len(releases.Items) != 0 {
		t.Errorf("%d releases are left", len(releases.Items))
	}
	f.told("base", v1alpha1.ReasonLeftBehind, "ConfigMap "+f.prefix+"/settings on "+cluster.String())
	f.state("base", v1alpha1.StatePending, "does not exist")
	// What is gone is noted when the layer is looked at again.
	f.eventually("the layer has nothing more there", func() error {
		if status := f.get("base").Status; len(status.Resources) != 0 || status.Digest != "" {
			return fmt.Errorf("it has %+v", status)
		}
		return nil
	})
}

// A cluster behind a cluster behind a cluster: each one's kubeconfig lies on the
// one before, and is followed there.
func TestClustersBehindClusters(t *testing.T) {
	f := newFixture(t)
	outer, inner := f.far(0), f.far(1)
	f.must(outer.CreateNamespace(f.ctx, f.prefix))
	f.must(inner.CreateNamespace(f.ctx, f.prefix+"-tenants"))
	behind := func(name, namespace string) func(*v1alpha1.RemoteCluster) {
		return func(c *v1alpha1.RemoteCluster) {
			c.Spec.KubeConfig.ClusterRef, c.Spec.KubeConfig.SecretRef.Namespace = &v1alpha1.LocalClusterReference{Name: name}, namespace
		}
	}
	third := f.remoteCluster("third", behind("second", f.prefix+"-tenants"))
	f.clusterSays(third, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for RemoteCluster "+f.prefix+"/second")
	// As vcluster writes it: its name, and its key.
	f.remoteCluster("second", behind("first", ""), func(c *v1alpha1.RemoteCluster) { c.Spec.KubeConfig.SecretRef.Name = "vc-second" })
	f.joined("first", outer)
	f.clusterSays(types.NamespacedName{Namespace: f.prefix, Name: "second"}, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending,
		"waits for Secret "+f.prefix+"/vc-second on RemoteCluster first, which does not exist")

	f.must(outer.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "vc-second"}, Data: map[string][]byte{"config": inner.kubeconfig(t)},
	}))
	f.clusterSays(third, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for Secret "+f.prefix+"-tenants/third on RemoteCluster second")
	f.kubeconfigSecret(inner.client, f.prefix+"-tenants", "third", f.tokenOf(outer, "third"))
	f.clusterSays(third, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(third))
	f.deployed("base", revision)

	f.kubeconfigSecret(inner.client, f.prefix+"-tenants", "third", f.tokenOf(outer, "next"))
	f.must(outer.client.Delete(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "third"}}))
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	f.deployed("base", revision)
	if data, err := f.configMapOn(outer.client, f.prefix, "base"); err != nil || data["value"] != "two" {
		t.Errorf("what is installed there: %v, %v", data, err)
	}
}

// Of two RemoteClusters that lead to one API server each has what is its own.
func TestTwoRemoteClustersOfOneEndpoint(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	one, two := f.joined("one", far), f.joined("two", far)
	revision := f.push(map[string]string{"a/release.yaml": f.configMapRelease("a", "one"), "b/release.yaml": f.configMapRelease("b", "one")})
	f.layer("a", on(one))
	f.layer("b", on(two))
	first := f.deployed("a", revision)
	f.deployed("b", revision)

	f.must(stack.client.Delete(f.ctx, first))
	f.must(stack.client.Delete(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "one"}}))
	f.eventually("the first one is gone", func() error { return isGone(stack.client.Get(f.ctx, one, &v1alpha1.RemoteCluster{})) })
	_, err := f.configMapOn(far.client, f.prefix, "a")
	if isGone(err) != nil {
		t.Errorf("what it had there is left: %v", err)
	}
	revision = f.push(map[string]string{"b/release.yaml": f.configMapRelease("b", "two")})
	f.deployed("b", revision)
	if data, err := f.configMapOn(far.client, f.prefix, "b"); err != nil || data["value"] != "two" {
		t.Errorf("what the second one has there: %v, %v", data, err)
	}
}
