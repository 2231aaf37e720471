// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// accountOn makes an account of a cluster, in the namespace of the fixture, unless
// that exists, and gives it rights there or everywhere, by a Role or a ClusterRole.
func (f *fixture) accountOn(far *farCluster, account, kind string, rules ...rbacv1.PolicyRule) {
	f.Helper()
	f.must(client.IgnoreAlreadyExists(far.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.prefix}})))
	f.must(client.IgnoreAlreadyExists(far.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: account}})))
	at := metav1.ObjectMeta{GenerateName: f.prefix + "-" + account + "-"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.prefix, Name: account}}
	if kind == "Role" {
		at.Namespace = f.prefix
		role := &rbacv1.Role{ObjectMeta: at, Rules: rules}
		f.must(far.client.Create(f.ctx, role))
		ref.Name = role.Name
		f.must(far.client.Create(f.ctx, &rbacv1.RoleBinding{ObjectMeta: at, RoleRef: ref, Subjects: subjects}))
		return
	}
	role := &rbacv1.ClusterRole{ObjectMeta: at, Rules: rules}
	f.must(far.client.Create(f.ctx, role))
	ref.Name = role.Name
	f.must(far.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: at, RoleRef: ref, Subjects: subjects}))
}

// kubeconfigAs returns a kubeconfig with a token of an account of a cluster.
func (f *fixture) kubeconfigAs(far *farCluster, account string) []byte {
	f.Helper()
	identity, err := far.ServiceAccount(f.ctx, f.prefix, account)
	f.must(err)
	return kubeconfigOf(f.T, identity.Config)
}

// tokenOf returns a kubeconfig with a token of an account of a cluster, which is
// an administrator there.
func (f *fixture) tokenOf(far *farCluster, account string) []byte {
	f.Helper()
	f.accountOn(far, account, "ClusterRole", mayOn("*", "*", "*"), rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}})
	return f.kubeconfigAs(far, account)
}

// takenBack changes the ConfigMap settings of a cluster by hand, and waits until it
// has its value again.
func (f *fixture) takenBack(far *farCluster, value string) {
	f.Helper()
	f.must(far.client.Patch(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "settings"}},
		client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"by hand"}}`))))
	f.eventually("what somebody has changed there is taken back", func() error {
		data, err := f.configMapOn(far.client, f.prefix, "settings")
		if err == nil && data["value"] != value {
			err = fmt.Errorf("it is %v", data)
		}
		return err
	})
}

// When a token is replaced by another one and the first does not count any more,
// nothing is missed: not a commit, and not what somebody changes there.
func TestTokenIsRotated(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.kubeconfigSecret(stack.client, f.prefix, "rotated", f.tokenOf(far, "first"))
	cluster := f.remoteCluster("rotated")
	found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	if found.Status.CredentialsExpire == nil {
		t.Error("it is not said when the token ends")
	}
	f.clusterSays(cluster, v1alpha1.CredentialsExpiringCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsValid, "the credentials end at")
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "base/settings.yaml": settingsOf(f.prefix, "one"),
	})
	f.layer("base", on(cluster))
	f.deployed("base", revision)

	f.kubeconfigSecret(stack.client, f.prefix, "rotated", f.tokenOf(far, "second"))
	f.must(far.client.Delete(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "first"}}))
	revision = f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "two"), "base/settings.yaml": settingsOf(f.prefix, "two"),
	})
	f.deployed("base", revision)
	f.takenBack(far, "two")
}

// A client certificate is replaced before it ends, and nothing is missed: the
// first one ends and has no rights any more, and what follows goes by the second.
func TestCertificateIsRotated(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	certificate := func(user string, life time.Duration) []byte {
		identity, err := far.Certificate(f.prefix+"-"+user, life, f.prefix+"-"+user+"s")
		f.must(err)
		f.must(far.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: f.prefix + "-" + user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: f.prefix + "-" + user + "s"}},
		}))
		return kubeconfigOf(t, identity.Config)
	}
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	const short = 40 * time.Second
	began := time.Now()
	f.kubeconfigSecret(stack.client, f.prefix, "rotated", certificate("first", short))
	cluster := f.remoteCluster("rotated")
	f.clusterSays(cluster, v1alpha1.CredentialsExpiringCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsValid)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one"), "base/settings.yaml": settingsOf(f.prefix, "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	f.kubeconfigSecret(stack.client, f.prefix, "rotated", certificate("second", time.Hour))
	f.must(far.client.Delete(f.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.prefix + "-first"}}))
	f.eventually("the first certificate has ended, and the cluster answers", func() error {
		found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
		if ends := found.Status.CredentialsExpire; time.Since(began) < short || ends == nil || time.Until(ends.Time) < short {
			return fmt.Errorf("its credentials end at %v", ends)
		}
		return nil
	})
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two"), "base/settings.yaml": settingsOf(f.prefix, "two")})
	f.deployed("base", revision)
	f.takenBack(far, "two")
}
