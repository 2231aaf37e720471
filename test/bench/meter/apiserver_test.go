// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/controlplane"
)

const namespace = "default"

// TestRequestsOfAUser asks a real API server as two users and counts one.
func TestRequestsOfAUser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	ctx := t.Context()
	dir := t.TempDir()
	user := ServiceAccountUser(namespace, "measured")
	args, err := AuditArgs(dir, user)
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		With: controlplane.APIOnly(),
		Args: map[controlplane.Component][]string{controlplane.APIServer: args},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	measured := serviceAccount(t, plane, "measured")
	other := serviceAccount(t, plane, "other")
	log := OpenAuditLog(dir)

	begin := waitFor(t, log, user, 0)
	if _, err := measured.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	before := waitFor(t, log, user, 1)
	if got := before.Since(begin, user); got.Verb("list") != 1 {
		t.Errorf("before the window: %+v", got)
	}
	earliest := time.Now().Add(-2 * time.Second)
	use(t, measured)
	if _, err := other.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}

	after := waitFor(t, log, user, 11)
	want := report.NewRequests([]report.RequestCount{
		{Verb: "create", Resource: "configmaps", Count: 1},
		{Verb: "delete", Resource: "configmaps", Count: 1},
		{Verb: "get", Resource: "/apis", Count: 1},
		{Verb: "get", Resource: "configmaps", Count: 3},
		{Verb: "patch", Resource: "namespaces/status", Count: 1},
		{Verb: "watch", Resource: "configmaps", Count: 1},
	}, 1, 1)
	if diff := cmp.Diff(want, after.Since(before, user)); diff != "" {
		t.Errorf("requests of the window:\n%s", diff)
	}
	if last := after.Last(user); last.Before(earliest) || last.After(time.Now().Add(2*time.Second)) {
		t.Errorf("the last request was at %s, and it is %s", last, time.Now())
	}
	if got := after.Since(Requests{}, ServiceAccountUser(namespace, "other")); len(got.Counts) != 0 {
		t.Errorf("a user that is not measured was logged: %+v", got)
	}
}

// use makes one request of every sort, and a watch that ends.
func use(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	maps := client.CoreV1().ConfigMaps(namespace)
	watching, err := maps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := maps.Get(ctx, "m", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := maps.Delete(ctx, "m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	watching.Stop()
	if _, err := client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte("{}"), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/apis").Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
}

// waitFor reads the log until the user has made so many requests: one is
// logged a moment after its answer was sent.
func waitFor(t *testing.T, log *AuditLog, user string, want int) Requests {
	t.Helper()
	var found Requests
	begin := Requests{}
	if err := controlplane.WaitFor(t.Context(), 30*time.Second, func(context.Context) error {
		var err error
		if found, err = log.Requests(); err != nil {
			return err
		}
		made := found.Since(begin, user)
		total := made.Reads() + made.Writes() + made.Watches() + made.Leases + made.Version
		if total < want {
			return fmt.Errorf("%d requests are logged, want %d", total, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// serviceAccount returns a client of a new ServiceAccount that may do
// everything.
func serviceAccount(t *testing.T, plane *controlplane.ControlPlane, name string) kubernetes.Interface {
	t.Helper()
	admin, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: name}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	identity, err := plane.ServiceAccount(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(identity.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
