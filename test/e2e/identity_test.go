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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/strata"
)

// The accounts that the suite's controller may act as, in any namespace, as its
// chart says; it may act as no other.
const (
	deployer       = "deployer"
	defaultAccount = "layers"
)

// accountsOfTheSuite is the chart's value rbac.impersonate.
var accountsOfTheSuite = []any{map[string]any{"names": []any{deployer, defaultAccount, databases}}}

// newIdentityFixture is a fixture with a second namespace, whose layers are
// taken down by the controller itself, whatever became of their accounts.
func newIdentityFixture(t *testing.T) (f *fixture, elsewhere string) {
	t.Helper()
	f = newFixture(t)
	elsewhere = f.prefix + "-elsewhere"
	f.must(stack.plane.CreateNamespace(f.ctx, elsewhere))
	t.Cleanup(func() {
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}})))
	})
	t.Cleanup(func() {
		list := &v1alpha1.AddonsLayerList{}
		f.must(stack.client.List(f.ctx, list))
		for _, layer := range list.Items {
			if strings.HasPrefix(layer.Name, f.prefix+"-") {
				f.must(client.IgnoreNotFound(f.patchLayer(layer.Name, `{"spec":{"serviceAccountName":null}}`)))
			}
		}
	})
	return f, elsewhere
}

// account makes a ServiceAccount of the fixture's namespace.
func (f *fixture) account(name string) *corev1.ServiceAccount {
	f.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: name}}
	f.must(stack.client.Create(f.ctx, account))
	return account
}

// bind gives a ServiceAccount rights in one namespace, by a Role of a name.
func (f *fixture) bind(role, namespace string, account types.NamespacedName, rules ...rbacv1.PolicyRule) {
	f.Helper()
	at := metav1.ObjectMeta{Namespace: namespace, Name: role}
	f.must(stack.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: at, Rules: rules}))
	f.must(stack.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	}))
}

// accountKey names an account of the fixture's namespace.
func (f *fixture) accountKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: f.prefix, Name: name}
}

func mayOn(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// mayDeploy are all rights that an account needs for releases.
var mayDeploy = mayOn("helm.toolkit.fluxcd.io", "helmreleases", "get", "create", "patch", "delete")

// as names the account of a layer.
func as(account string) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) { layer.Spec.ServiceAccountName = account }
}

func settingsOf(namespace, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\ndata: {value: %q}\n", namespace, value)
}

func lackingRight(account types.NamespacedName, verb, resource, group, namespace string) string {
	return fmt.Sprintf("as ServiceAccount %s: it may not %s resource %q in API group %q in the namespace %q", account, verb, resource, group, namespace)
}

// A layer can do what its account can, and nothing of what the controller could
// besides; a right that is missing is named, and the layer goes on when it is
// given, without anybody touching the layer.
func TestLayerHasTheRightsOfItsAccount(t *testing.T) {
	f, elsewhere := newIdentityFixture(t)
	f.account(deployer)
	account := f.accountKey(deployer)
	f.bind("deployer", f.prefix, account, mayDeploy)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", as(deployer))
	f.deployed("base", revision)
	before := f.footprints()

	revision = f.push(map[string]string{"base/settings.yaml": settingsOf(elsewhere, "one"), "base/release.yaml": f.configMapRelease("base", "two")})
	found := f.reason("base", v1alpha1.ReasonApplyFailed,
		fmt.Sprintf("cannot apply ConfigMap %s/settings (base/settings.yaml) ", elsewhere), lackingRight(account, "create", "configmaps", "", elsewhere))
	if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ReconcilingCondition) || found.Status.State != v1alpha1.StateFailed {
		t.Errorf("the layer does not go on: %+v", found.Status.Conditions)
	}
	f.untouched(before)
	settings := &corev1.ConfigMap{}
	if err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: elsewhere, Name: "settings"}, settings); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("the controller's own rights were used: %v", err)
	}

	f.bind("writer", elsewhere, account, mayOn("", "configmaps", "get", "create", "patch"))
	f.deployed("base", revision)
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: elsewhere, Name: "settings"}, settings))

	// What has left the layer is marked, and stays as long as it may not go.
	revision = f.remove("base/settings.yaml")
	f.reason("base", v1alpha1.ReasonPruneFailed, "cannot remove ConfigMap", lackingRight(account, "delete", "configmaps", "", elsewhere))
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: elsewhere, Name: "settings"}, settings))
	f.bind("remover", elsewhere, account, mayOn("", "configmaps", "delete"))
	f.deployed("base", revision)
	if err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: elsewhere, Name: "settings"}, settings); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap is left: %v", err)
	}

	f.deleteLayer("base")
	f.layerGone("base")
	f.uninstalled("base")
}

// An object that somebody else made is adopted only by an account that could
// have changed it anyway.
func TestAccountAdoptsOnlyWhatItMayChange(t *testing.T) {
	f, elsewhere := newIdentityFixture(t)
	f.account(deployer)
	account := f.accountKey(deployer)
	f.bind("reader", elsewhere, account, mayOn("", "configmaps", "get", "create"))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "settings"}, Data: map[string]string{"value": "theirs"}}
	f.must(stack.client.Create(f.ctx, settings))
	version := settings.ResourceVersion
	revision := f.push(map[string]string{"base/settings.yaml": settingsOf(elsewhere, "ours")})
	f.layer("base", as(deployer))
	f.reason("base", v1alpha1.ReasonApplyFailed, lackingRight(account, "patch", "configmaps", "", elsewhere))
	f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(settings), settings))
	if settings.ResourceVersion != version || settings.Labels[v1alpha1.LayerLabel] != "" {
		t.Errorf("the ConfigMap was changed: %+v", settings)
	}
	f.bind("writer", elsewhere, account, mayOn("", "configmaps", "patch"))
	f.deployed("base", revision)
}

// An account that does not exist does nothing, although RBAC gives rights to
// its name; one that is deleted does not let its layer be deleted.
func TestLayerOfAMissingAccountWaitsForIt(t *testing.T) {
	f, _ := newIdentityFixture(t)
	account := f.accountKey(deployer)
	f.bind("deployer", f.prefix, account, mayDeploy)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", as(deployer))
	f.reason("base", v1alpha1.ReasonServiceAccountNotFound, fmt.Sprintf("as ServiceAccount %s: that account does not exist", account))
	if !f.absent(&helmv2.HelmRelease{}, "base") {
		t.Fatal("the release was applied by nobody")
	}
	made := f.account(deployer)
	f.deployed("base", revision)
	uid := f.release("base").UID

	f.must(stack.client.Delete(f.ctx, made))
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonPruneFailed, "cannot remove HelmRelease", fmt.Sprintf("as ServiceAccount %s: that account does not exist", account))
	f.throughout(2*time.Second, "the layer and its release stay", func() error {
		layer := &v1alpha1.AddonsLayer{}
		if err := stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, layer); err != nil {
			return err
		}
		if release := f.release("base"); release.UID != uid || !release.DeletionTimestamp.IsZero() {
			return fmt.Errorf("the release is %+v", release.ObjectMeta)
		}
		return nil
	})
	f.account(deployer)
	f.layerGone("base")
	f.uninstalled("base")
}

// A layer whose account has lost its rights is not let go: it says which right
// is missing. Another account takes over at once.
func TestDeletionAsAnAccountWithoutRights(t *testing.T) {
	f, _ := newIdentityFixture(t)
	f.account(deployer)
	f.account(defaultAccount)
	f.bind("deployer", f.prefix, f.accountKey(deployer), mayDeploy)
	f.bind("successor", f.prefix, f.accountKey(defaultAccount), mayDeploy)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", as(deployer))
	f.deployed("base", revision)
	f.must(stack.client.Delete(f.ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "deployer"}}))
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonPruneFailed, "cannot remove HelmRelease",
		lackingRight(f.accountKey(deployer), "patch", "helmreleases", "helm.toolkit.fluxcd.io", f.prefix))
	f.edit("base", `{"spec":{"serviceAccountName":"`+defaultAccount+`"}}`)
	f.layerGone("base")
	f.uninstalled("base")
}

// The chart's rights let the controller act as the accounts that it was given
// and as no other. A Role in the account's namespace is all that is missing.
func TestControllerActsAsNobodyElse(t *testing.T) {
	f, _ := newIdentityFixture(t)
	f.account("stranger")
	account := f.accountKey("stranger")
	f.bind("deployer", f.prefix, account, mayDeploy)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", as("stranger"))
	f.reason("base", v1alpha1.ReasonImpersonationDenied,
		fmt.Sprintf("as ServiceAccount %s: the controller may not impersonate that account; add it to rbac.impersonate of the chart", account))
	if !f.absent(&helmv2.HelmRelease{}, "base") {
		t.Fatal("the release was applied all the same")
	}
	f.bind("impersonate", f.prefix, types.NamespacedName{Namespace: strata.Namespace, Name: "strata"}, mayOn("", "serviceaccounts", "impersonate"))
	f.deployed("base", revision)
}

// --default-service-account is the account of layers that name none.
func TestDefaultServiceAccount(t *testing.T) {
	f, elsewhere := newIdentityFixture(t)
	f.account(defaultAccount)
	f.account(deployer)
	f.bind("layers", f.prefix, f.accountKey(defaultAccount), mayDeploy)
	f.bind("deployer", elsewhere, f.accountKey(deployer), mayOn("", "configmaps", "get", "create", "patch", "delete"))
	controller := f.controller(testedBinary, "--default-service-account", defaultAccount)
	f.must(controller.Start(f.ctx))
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "loose/settings.yaml": settingsOf(elsewhere, "one"),
	})
	f.layer("base", f.own)
	f.layer("loose", f.own)
	f.deployed("base", revision)
	f.reason("loose", v1alpha1.ReasonApplyFailed, lackingRight(f.accountKey(defaultAccount), "create", "configmaps", "", elsewhere))
	f.edit("loose", `{"spec":{"serviceAccountName":"`+deployer+`"}}`)
	f.deployed("loose", revision)
}

// --no-cross-namespace-refs keeps layers to the sources of the controller's own
// namespace, and their objects to references within theirs.
func TestNoCrossNamespaceRefs(t *testing.T) {
	f, elsewhere := newIdentityFixture(t)
	controller := f.controller(testedBinary, "--no-cross-namespace-refs", "--runtime-namespace", f.prefix)
	f.must(controller.Start(f.ctx))
	foreign := strings.Replace(f.configMapRelease("base", "one"), "name: charts, namespace: "+f.prefix, "name: charts, namespace: "+elsewhere, 1)
	f.push(map[string]string{"base/release.yaml": foreign, "stolen/release.yaml": f.configMapRelease("stolen", "one")})

	f.layer("stolen", f.own, func(layer *v1alpha1.AddonsLayer) { layer.Spec.Source.Namespace = elsewhere })
	found := f.reason("stolen", v1alpha1.ReasonAccessDenied, fmt.Sprintf("spec.source.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces", elsewhere, f.prefix))
	if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.StalledCondition) {
		t.Errorf("only the author can mend it, and it is not Stalled: %+v", found.Status.Conditions)
	}
	f.layer("base", f.own)
	f.reason("base", v1alpha1.ReasonAccessDenied, "base/release.yaml:1: spec.chart.spec.sourceRef.namespace: HelmRelease "+f.prefix+"/base refers to the namespace "+elsewhere)
	if !f.absent(&helmv2.HelmRelease{}, "base") {
		t.Error("the release was applied")
	}

	f.edit("stolen", `{"spec":{"source":{"namespace":null}}}`)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.deployed("base", revision)
	f.deployed("stolen", revision)
}
