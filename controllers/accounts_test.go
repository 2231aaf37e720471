// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
)

// account makes a ServiceAccount of the fixture's namespace with rights there.
func (f *fixture) account(name string, rules ...rbacv1.PolicyRule) types.NamespacedName {
	f.Helper()
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: name}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: name}},
		},
	} {
		f.must(f.client.Create(f.ctx, obj))
	}
	return types.NamespacedName{Namespace: f.namespace, Name: name}
}

// layerAs creates a layer with an account.
func (f *fixture) layerAs(name, account string) {
	f.Helper()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: f.name(name), Labels: map[string]string{"test": f.namespace}},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "addons", Path: "./" + name}, ServiceAccountName: account,
		},
	}
	f.must(f.client.Create(f.ctx, layer))
	f.Cleanup(func() {
		f.cancel()
		f.stopped()
		f.must(f.client.Patch(f.ctx, layer, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, layer)))
	})
}

// newTestAccounts returns accounts whose requests are noted in order.
func newTestAccounts(t *testing.T) (found *informers.Accounts, taken func() []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	var mu sync.Mutex
	var requests []string
	config := plane.Config()
	config.QPS, config.Burst = 500, 500 // as flags set them
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			requests = append(requests, fmt.Sprintf("%s %s as %s", req.Method, req.URL.Path, strings.Join(req.Header.Values("Impersonate-User"), ",")))
			return next.RoundTrip(req)
		})
	})
	mgr, err := ctrl.NewManager(config, managerOptions())
	if err != nil {
		t.Fatal(err)
	}
	found = informers.NewAccounts(mgr, mgr.GetAPIReader())
	taken = func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { requests = nil }()
		return requests
	}
	taken() // the manager's own
	return found, taken
}

// whoami asks the API server whom a client acts for.
func whoami(t *testing.T, c client.Client) authenticationv1.UserInfo {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	info := review.Status.UserInfo
	info.UID, info.Extra = "", nil // those of a token are of the token and its pod
	slices.Sort(info.Groups)
	return info
}

// An account that is impersonated is the one that its own token shows: the same
// user in the same groups, so that a right that is given to all accounts of a
// namespace is one of this account, too.
func TestAccountIsWhoItsTokenIs(t *testing.T) {
	accounts, _ := newTestAccounts(t)
	f := &fixture{T: t, ctx: t.Context(), namespace: fmt.Sprintf("t%d", namespaces.Add(1))}
	f.must(plane.CreateNamespace(f.ctx, f.namespace))
	var err error
	f.client, err = client.New(plane.Config(), client.Options{Scheme: newScheme()})
	f.must(err)
	account := f.account("deployer.v2")
	identity, err := plane.ServiceAccount(f.ctx, account.Namespace, account.Name)
	f.must(err)
	byToken, err := client.New(identity.Config, client.Options{Scheme: newScheme()})
	f.must(err)
	byImpersonation, err := accounts.Client(account)
	f.must(err)
	if diff := cmp.Diff(whoami(t, byToken), whoami(t, byImpersonation)); diff != "" {
		t.Errorf("who acts (-by token +impersonated):\n%s", diff)
	}
}

// A client costs no request, and one of a second account asks for nothing that
// the first one has found out.
func TestAccountsShareWhatTheyKnow(t *testing.T) {
	accounts, taken := newTestAccounts(t)
	read := func(name string) {
		t.Helper()
		c, err := accounts.Client(types.NamespacedName{Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s may read ConfigMaps: %v", name, err)
		}
	}
	read("first")
	taken()
	read("second")
	want := []string{"GET /api/v1/namespaces/default/configmaps/a as system:serviceaccount:default:second"}
	if diff := cmp.Diff(want, taken()); diff != "" {
		t.Errorf("requests of the second account (-want +got):\n%s", diff)
	}
}

// Clients are kept, so many of them and no more.
func TestAccountsAreBounded(t *testing.T) {
	accounts, taken := newTestAccounts(t)
	of := func(i int) client.Client {
		t.Helper()
		c, err := accounts.Client(types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("a%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := of(0)
	if of(0) != first {
		t.Error("the client is made twice")
	}
	for i := range 2 * informers.MaxAccounts {
		of(i)
		of(0)
	}
	if of(0) != first {
		t.Error("the client that was used all the time was dropped")
	}
	if kept := accounts.Kept(); kept != informers.MaxAccounts {
		t.Errorf("%d clients are kept, want %d", kept, informers.MaxAccounts)
	}
	if requests := taken(); len(requests) > 0 {
		t.Errorf("making clients costs requests: %v", requests)
	}
}

// No name gets as far as a header that is not the name of an account.
func TestAccountsRefuseWhatIsNone(t *testing.T) {
	accounts, taken := newTestAccounts(t)
	for account, want := range map[types.NamespacedName]string{
		{}:                                      `"" is no namespace`,
		{Name: "a"}:                             `"" is no namespace`,
		{Namespace: "default"}:                  `"" is no name of a ServiceAccount`,
		{Namespace: "kube-system:x", Name: "a"}: `"kube-system:x" is no namespace`,
		{Namespace: "default", Name: "a:b"}:     `"a:b" is no name of a ServiceAccount`,
		{Namespace: "default", Name: "a/b"}:     `"a/b" is no name of a ServiceAccount`,
		{Namespace: "default", Name: "a\r\nImpersonate-Group: system:masters"}: "is no name of a ServiceAccount",
	} {
		if _, err := accounts.Client(account); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a client for %q: %v, want %q", account, err, want)
		}
	}
	if requests := taken(); len(requests) > 0 {
		t.Errorf("they cost requests: %v", requests)
	}
}

// The controller of this test may do everything; the layer can do no more than
// its account, and says what that lacks.
func TestLayerActsAsItsAccount(t *testing.T) {
	f := newFixture(t, nil)
	rights := rbacv1.PolicyRule{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}, Verbs: []string{"get", "create", "patch"}}
	f.account("deployer", rights)
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("ingress")})
	f.layerAs("base", "deployer")
	f.ready("ingress")
	f.deployed("base", "main@sha1:1")

	f.publish("main@sha1:2", map[string]string{
		"base/release.yaml":  f.release("ingress"),
		"base/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: " + f.namespace + ", name: settings}\n",
	})
	f.explains("base", v1alpha1.StateFailed, v1alpha1.ReasonApplyFailed, fmt.Sprintf(
		`cannot apply ConfigMap %s/settings (base/settings.yaml) as ServiceAccount %s/deployer: it may not create resource "configmaps" in API group "" in the namespace %q`,
		f.namespace, f.namespace, f.namespace))
	f.must(f.client.Delete(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "deployer"}}))
	f.explains("base", v1alpha1.StateFailed, v1alpha1.ReasonServiceAccountNotFound, fmt.Sprintf("as ServiceAccount %s/deployer: that account does not exist", f.namespace))
}

// explains waits until a layer gives a reason and a message.
func (f *fixture) explains(layer string, state v1alpha1.State, reason, message string) {
	f.Helper()
	f.eventually(fmt.Sprintf("layer %s gives the reason %s", layer, reason), func() error {
		status := f.get(layer).Status
		for _, condition := range status.Conditions {
			if condition.Type == v1alpha1.ReadyCondition && status.State == state && condition.Reason == reason && strings.Contains(condition.Message, message) {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", status.State, status.Conditions)
	})
}

// Acting as an account costs one question more for each plan that is carried
// out, and nothing while nothing is to be done.
func TestCostOfAnAccount(t *testing.T) {
	f := newSerialFixture(t, nil)
	f.account("deployer", rbacv1.PolicyRule{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}, Verbs: []string{"get", "create", "patch"}})
	files := map[string]string{"base/a.yaml": f.release("a"), "base/b.yaml": f.release("b")}
	f.publish("main@sha1:1", files)
	f.layerAs("base", "deployer")
	f.ready("a")
	f.ready("b")
	f.deployed("base", "main@sha1:1")
	f.settle()
	questions := func() int {
		requests, _ := f.taken()
		count := 0
		for _, request := range requests {
			if strings.HasSuffix(request.what, "/serviceaccounts/deployer") {
				count++
			}
		}
		return count
	}
	if got := questions(); got != 1 {
		t.Errorf("%d questions for the account while two releases were written together, want 1", got)
	}
	f.publish("main@sha1:2", files)
	f.deployed("base", "main@sha1:2")
	f.settle()
	if got := questions(); got != 0 {
		t.Errorf("%d questions for the account while nothing was written", got)
	}
}

// An account that there is not is an error of its own.
func TestAccountThatIsMissing(t *testing.T) {
	accounts, _ := newTestAccounts(t)
	key := types.NamespacedName{Namespace: "default", Name: "missing"}
	if err := accounts.Check(t.Context(), key); err == nil || err.Error() != "there is no ServiceAccount default/missing" {
		t.Errorf("the error is %v", err)
	}
}

// The source of a layer that may not use it is not read, for whichever layer
// wants to know what it lists: there is no client here to read it with.
func TestRefusedSourceIsNotRead(t *testing.T) {
	settings := layers.Settings{Namespace: "strata-system", NoCrossNamespaceRefs: true}
	refused := &v1alpha1.AddonsLayer{Spec: v1alpha1.AddonsLayerSpec{Source: v1alpha1.SourceSpec{Name: "addons", Namespace: "team-a", Path: "./base"}}}
	r := &AddonsLayerReconciler{Process: &Process{Settings: settings}}
	o := &observer{
		r: r, reads: &reader{from: r},
		Observation: &layers.Observation{Settings: settings, Layer: refused},
	}
	if err := o.observeDirectory(t.Context()); err != nil || o.Source != nil || o.Directory != nil {
		t.Errorf("its own look: error %v, source %v, directory %v", err, o.Source, o.Directory)
	}
	if found := o.contentOf(t.Context(), refused); found != nil {
		t.Errorf("another layer's look: content %v", found)
	}
}
