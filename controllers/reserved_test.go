// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/repos"
)

// rulesOfRemoteClusters holds what remoteClusters.enabled of the chart adds.
const rulesOfRemoteClusters = "remote-clusters.yaml"

// rulesOfChart reads rules that the chart gives the controller.
func (f *fixture) rulesOfChart(files ...string) (rules []rbacv1.PolicyRule) {
	f.Helper()
	for _, file := range files {
		data, err := os.ReadFile("../chart/files/rbac/" + file)
		f.must(err)
		var of []rbacv1.PolicyRule
		f.must(yaml.UnmarshalStrict(data, &of))
		rules = append(rules, of...)
	}
	return rules
}

// asController returns how the controller reaches the API server as the
// ServiceAccount strata of the test's namespace: with a token, and with the rights
// that the chart gives it, those in further files among them.
func (f *fixture) asController(more ...string) *rest.Config {
	f.Helper()
	own := metav1.ObjectMeta{Namespace: f.namespace, Name: "strata"}
	shared := metav1.ObjectMeta{Name: "strata-" + f.namespace}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "strata"}}
	account := &corev1.ServiceAccount{ObjectMeta: own}
	role := &rbacv1.ClusterRole{ObjectMeta: shared, Rules: f.rulesOfChart(append([]string{"controller.yaml"}, more...)...)}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: shared, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shared.Name}}
	for _, obj := range []client.Object{
		account, role, binding,
		&rbacv1.Role{ObjectMeta: own, Rules: f.rulesOfChart("revisions.yaml")},
		&rbacv1.RoleBinding{ObjectMeta: own, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}},
	} {
		f.must(f.client.Create(f.ctx, obj))
	}
	f.Cleanup(func() {
		f.must(f.client.Delete(f.ctx, binding))
		f.must(f.client.Delete(f.ctx, role))
	})
	token := &authenticationv1.TokenRequest{}
	f.must(f.client.SubResource("token").Create(f.ctx, account, token))
	config := rest.AnonymousClientConfig(plane.Config())
	config.BearerToken = token.Status.Token
	config.QPS, config.Burst = plane.Config().QPS, plane.Config().Burst
	return config
}

// startAsController runs the controllers of layers and of RemoteClusters as the
// chart installs them.
func (f *fixture) startAsController(change func(*layers.Settings), more ...string) {
	f.Helper()
	mgr, reconciler := f.assemble(f.asController(more...), managerOptions(), time.Second)
	var err error
	reconciler.Settings.Account, err = WhoAmI(f.ctx, mgr.GetClient())
	f.must(err)
	change(&reconciler.Settings)
	f.startWithClusters(mgr, reconciler)
}

// everyKind opens all kinds to layers, as rbac.clusterAdmin does.
func everyKind(settings *layers.Settings) {
	settings.LayerKinds = layers.LayerKinds{{Group: "*", Resource: "*"}}
}

// secretIs returns a Secret of the test's namespace.
func (f *fixture) secretIs(name string) *corev1.Secret {
	f.Helper()
	found := &corev1.Secret{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found))
	return found
}

// A layer that lists Strata's own copy of a kubeconfig never writes it, whatever the
// controller may write, and keeps what else it has.
func TestLayerTakesNoCopyOfAKubeconfig(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(everyKind, rulesOfRemoteClusters)
	f.cluster("prod")
	before := f.secretIs("strata-kubeconfig-prod")
	f.publish("main@sha1:1", map[string]string{"evil/a.yaml": f.release("a")})
	f.layer("evil")
	f.ready("a")
	f.deployed("evil", "main@sha1:1")
	f.publish("main@sha1:2", map[string]string{
		"evil/a.yaml": f.release("a"),
		"evil/copy.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: strata-kubeconfig-prod}\nstringData: {value: %q}\n",
			f.namespace, "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: https://elsewhere.example}}]\n"),
	})
	layer := f.reason("evil", v1alpha1.ReasonReservedObject, "evil/copy.yaml:1", "Secret "+f.namespace+"/strata-kubeconfig-prod", "Strata's own copy of a kubeconfig")
	f.settle()
	if now := f.secretIs("strata-kubeconfig-prod"); now.ResourceVersion != before.ResourceVersion || !bytes.Equal(now.Data["value"], before.Data["value"]) {
		t.Fatalf("the copy was written: %+v", now.ManagedFields)
	}
	for _, resource := range layer.Status.Resources {
		if resource.Kind == "Secret" {
			t.Errorf("it is in the layer's inventory: %+v", resource)
		}
	}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "a"}, &helmv2.HelmRelease{}))
}

// An inventory that names the copy brings about nothing, also where the copy has the
// layer's own label: neither a look nor the deletion of the layer.
func TestForgedInventoryTakesNoCopyOfAKubeconfig(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(everyKind, rulesOfRemoteClusters)
	f.cluster("prod")
	f.publish("main@sha1:1", map[string]string{"evil/a.yaml": f.release("a")})
	f.layer("evil")
	f.ready("a")
	f.deployed("evil", "main@sha1:1")
	copied := f.secretIs("strata-kubeconfig-prod")
	f.must(f.client.Patch(f.ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kraan/layer":"`+f.name("evil")+`"}}}`))))
	layer := f.get("evil")
	forged := layer.DeepCopy()
	forged.Status.Resources = append(forged.Status.Resources, v1alpha1.Resource{
		Kind: "Secret", Namespace: f.namespace, Name: "strata-kubeconfig-prod", Status: "Orphaned", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	})
	f.must(f.client.Status().Patch(f.ctx, forged, client.MergeFrom(layer)))
	f.eventually("the layer forgets it", func() error {
		for _, resource := range f.get("evil").Status.Resources {
			if resource.Kind == "Secret" {
				return fmt.Errorf("it has %+v", resource)
			}
		}
		return nil
	})
	if now := f.secretIs("strata-kubeconfig-prod"); now.UID != copied.UID || now.DeletionTimestamp != nil || now.Labels[v1alpha1.OrphanedLabel] != "" {
		t.Errorf("the copy is %+v", now.ObjectMeta)
	}
}

// What the controller may write for RemoteClusters is not what layers may write.
func TestLayerHoldsNoKindsOfTheController(t *testing.T) {
	none := func(s *layers.Settings) { s.LayerKinds = layers.LayerKinds{} }
	const token = "kubernetes.io/service-account-token"
	for name, tc := range map[string]struct {
		settings func(*layers.Settings)
		kind     string
		reason   string
		words    string
	}{
		"a Secret":                      {none, "Opaque", v1alpha1.ReasonApplyFailed, "rbac.kinds"},
		"a token where kinds are open":  {everyKind, token, v1alpha1.ReasonReservedObject, "a token of a ServiceAccount"},
		"a token where none are listed": {none, token, v1alpha1.ReasonReservedObject, "a token of a ServiceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newBareFixture(t)
			f.startAsController(tc.settings, rulesOfRemoteClusters)
			f.publish("main@sha1:1", map[string]string{"base/extra.yaml": fmt.Sprintf(
				"apiVersion: v1\nkind: Secret\ntype: %s\nmetadata: {namespace: %s, name: extra}\n", tc.kind, f.namespace)})
			f.layer("base")
			f.reason("base", tc.reason, "base/extra.yaml:1", tc.words)
			err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "extra"}, &corev1.Secret{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("it was made, or %v", err)
			}
		})
	}
}

// Names that come out of a status reach nothing but what Strata has kept of that very
// layer, also where everything about the names fits.
func TestForgedStatusRemovesNothingOfOthers(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(func(*layers.Settings) {})
	name := "sh.helm.release.v1." + f.namespace
	const digest = "x:v1"
	foreign := []string{name + ".v1", repos.RevisionName(name, digest)}
	for _, of := range foreign {
		f.must(f.client.Create(f.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: of, Labels: map[string]string{"owner": "helm"}}, Type: "helm.sh/release.v1",
		}))
	}
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	layer := &v1alpha1.AddonsLayer{}
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) { l.Name, layer = name, l })
	f.ready("a")
	read := func() *v1alpha1.AddonsLayer {
		found := &v1alpha1.AddonsLayer{}
		f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(layer), found))
		return found
	}
	f.eventually("the layer is deployed", func() error {
		if state := read().Status.State; state != v1alpha1.StateDeployed {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	f.eventually("the status is forged", func() error {
		found := read()
		forged := found.DeepCopy()
		forged.Status.History = append(forged.Status.History, v1alpha1.HistoryEntry{
			ID: "99", Result: v1alpha1.ResultDeployed, Version: "1.0.0", Digest: digest, Kept: true,
			Started: metav1.NewTime(time.Now().Add(-time.Hour)), Duration: metav1.Duration{Duration: time.Second},
		})
		return f.client.Status().Patch(f.ctx, forged, client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{}))
	})
	f.eventually("the layer wants no such revision", func() error {
		for _, entry := range read().Status.History {
			if entry.Digest == digest && entry.Kept {
				return fmt.Errorf("it has %+v", entry)
			}
		}
		return nil
	})
	for _, of := range foreign {
		f.secretIs(of)
	}
}

// The controller knows as whom it acts, and no layer acts as that.
func TestLayerDoesNotActAsTheController(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(func(s *layers.Settings) { s.ReservedAccounts = accounts.OfFlux })
	f.publish("main@sha1:1", map[string]string{"own/a.yaml": f.release("a"), "flux/b.yaml": f.release("b")})
	f.layerAs("own", "strata")
	f.layerAs("flux", "helm-controller")
	f.reason("own", v1alpha1.ReasonInvalidSpec, "ServiceAccount "+f.namespace+"/strata is the controller's own")
	f.reason("flux", v1alpha1.ReasonInvalidSpec, "ServiceAccount "+f.namespace+"/helm-controller is reserved")
}

// The Secret that a RemoteCluster has its kubeconfig from is nobody's, and no layer
// takes it.
func TestLayerTakesNoKubeConfigOfARemoteCluster(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(everyKind, rulesOfRemoteClusters)
	f.cluster("prod")
	before := f.secretIs("prod")
	f.publish("main@sha1:1", map[string]string{"evil/access.yaml": fmt.Sprintf(
		"apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: prod}\nstringData: {value: elsewhere}\n", f.namespace)})
	f.layer("evil")
	f.reason("evil", v1alpha1.ReasonReservedObject, "evil/access.yaml:1", "what a RemoteCluster has its kubeconfig from")
	if now := f.secretIs("prod"); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written: %+v", now.ManagedFields)
	}
}

// A copy that somebody has changed is written again from what it is a copy of, and,
// where that has gone, from what the controller knows.
func TestChangedCopyOfAKubeconfigIsPutRight(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(everyKind, rulesOfRemoteClusters)
	f.cluster("prod")
	before := f.secretIs("strata-kubeconfig-prod")
	source := f.secretIs("prod")
	for _, when := range []string{"with its source", "without its source"} {
		if when == "without its source" {
			f.must(f.client.Delete(f.ctx, source))
			f.eventually("it is seen that the Secret has gone", func() error {
				ready := meta.FindStatusCondition(f.clusterStatus("prod").Conditions, v1alpha1.ReadyCondition)
				if ready == nil || ready.Reason != v1alpha1.ReasonCredentialsSourceGone {
					return fmt.Errorf("it is %+v", ready)
				}
				return nil
			})
		}
		changed := f.secretIs("strata-kubeconfig-prod")
		changed.Data["value"] = bytes.ReplaceAll(before.Data["value"], []byte("127.0.0.1"), []byte("127.0.0.2"))
		f.must(f.client.Update(f.ctx, changed))
		f.eventually("the copy is put right "+when, func() error {
			if now := f.secretIs("strata-kubeconfig-prod"); !bytes.Equal(now.Data["value"], before.Data["value"]) {
				return fmt.Errorf("it is changed")
			}
			return nil
		})
	}
}

// A layer that has adopted the Namespace of RemoteClusters does not delete it.
func TestLayerDeletesNoNamespaceOfOthers(t *testing.T) {
	f := newBareFixture(t)
	f.startAsController(everyKind, rulesOfRemoteClusters)
	f.cluster("prod")
	f.publish("main@sha1:1", map[string]string{
		"base/a.yaml":         f.release("a"),
		"base/namespace.yaml": fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, annotations: {kraan.io/prune: enabled}}\n", f.namespace),
	})
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	f.publish("main@sha1:2", map[string]string{"base/a.yaml": f.release("a")})
	f.deployed("base", "main@sha1:2")
	found := &corev1.Namespace{}
	// The status says what becomes of it before it is done.
	f.eventually("the Namespace is let go", func() error {
		f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.namespace}, found))
		if found.DeletionTimestamp == nil && found.Labels[v1alpha1.LayerLabel] != "" {
			return fmt.Errorf("it has the labels %v", found.Labels)
		}
		return nil
	})
	if found.DeletionTimestamp != nil {
		t.Errorf("the Namespace is %+v", found.ObjectMeta)
	}
}
