// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/test/controlplane"
)

// far is the other cluster, which starts with the first test that needs it.
var far struct {
	sync.Mutex
	plane *controlplane.ControlPlane
}

func stopFar() error {
	far.Lock()
	defer far.Unlock()
	if far.plane == nil {
		return nil
	}
	return far.plane.Stop()
}

// deaf tells nobody what is seen of the objects of layers: there are none.
var deaf = informers.Wiring{
	Watch:       func(source.Source) error { return nil },
	Handle:      func(string, schema.GroupKind) handler.EventHandler { return handler.Funcs{} },
	Passes:      func(string, schema.GroupKind) predicate.Predicate { return predicate.Funcs{} },
	Definitions: func(*informers.Kinds) handler.EventHandler { return handler.Funcs{} },
}

// onFar has the keeper connected to another cluster, the RemoteCluster edge of the claims'
// namespace. There the account of the providers may do what it likes in a namespace of the name
// of the claims', and another one of the name of its own is somebody else's.
func (f *fixture) onFar() client.Client {
	f.Helper()
	far.Lock()
	defer far.Unlock()
	if far.plane == nil {
		var err error
		far.plane, err = controlplane.Start(context.Background(), controlplane.Options{With: controlplane.APIOnly()})
		f.must(err)
	}
	made, err := client.New(far.plane.Config(), client.Options{Scheme: f.scheme})
	f.must(err)
	for _, namespace := range []string{f.shop, f.system} {
		f.must(far.plane.CreateNamespace(f.ctx, namespace))
	}
	f.create("apiVersion: kraan.io/v1alpha1\nkind: RemoteCluster\nmetadata: {name: edge, namespace: SHOP}\nspec: {kubeConfig: {secretRef: {name: edge}}}\n")
	f.elsewhere = true
	return made
}

// welcome makes the account of the providers on the other cluster.
func (f *fixture) welcome(on client.Client) {
	f.Helper()
	account := metav1.ObjectMeta{Namespace: f.system, Name: "databases"}
	f.must(on.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: account}))
	at := metav1.ObjectMeta{Namespace: f.shop, Name: "databases"}
	f.must(on.Create(f.ctx, &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}},
	}}))
	f.must(on.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.system, Name: "databases"}},
	}))
}

// connect connects the keeper to the other cluster, anew where the kubeconfig has another
// comment than before.
func (f *fixture) connect(comment string) {
	f.Helper()
	f.connectAs(f.edge(), comment)
}

// connectAs is as connect, for a RemoteCluster of any name.
func (f *fixture) connectAs(cluster, comment string) {
	f.Helper()
	data, err := os.ReadFile(far.plane.Kubeconfig())
	f.must(err)
	access, err := kubeconfig.Parse(append(data, comment...), kubeconfig.Allow{Files: true})
	f.must(err)
	access.Config.Wrap(f.wrap)
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(cancel)
	connected, err := f.remotes.Connect(ctx, cluster, access, reach.Allowed{Ranges: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	f.must(err)
	f.must(connected.AskIdentity(ctx, time.Now()))
	connected.Gate.Judge(clusters.Verdict{Open: true}, clusters.Answer{}, time.Now())
	f.remotes.See(cluster)
}

func (f *fixture) edge() string { return f.shop + "/edge" }

// reached says whether the RemoteCluster is, as its own controller would.
func (f *fixture) reached(err error) {
	f.Helper()
	f.remotes.Get(f.edge()).SetError(err)
	status := metav1.ConditionTrue
	if err != nil {
		status = metav1.ConditionFalse
	}
	cluster := &v1alpha1.RemoteCluster{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: "edge"}, cluster))
	cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: "Test", LastTransitionTime: metav1.Now()}}
	f.must(f.client.Status().Update(f.ctx, cluster))
}

// names returns the Secrets and ConfigMaps of claims, in order.
func (f *fixture) names(on client.Client) []string {
	f.Helper()
	var found []string
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}} {
		f.must(on.List(f.ctx, list, client.InNamespace(f.shop), client.HasLabels{v1alpha1.ClaimLabel}))
		switch list := list.(type) {
		case *corev1.SecretList:
			for _, one := range list.Items {
				found = append(found, one.Name)
			}
		case *corev1.ConfigMapList:
			for _, one := range list.Items {
				found = append(found, one.Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

func (f *fixture) has(where string, on client.Client, want ...string) {
	f.Helper()
	f.eventually(where+" there is what should be", func() error {
		if got := f.names(on); !slices.Equal(got, want) {
			return fmt.Errorf("there is %v, and not %v", got, want)
		}
		return nil
	})
}

// elsewhere is a claim of an application of the other cluster.
const elsewhere = "  cluster: edge\n  clusterNamespace: SHOP\n  clusterBinding: db\n"

// A claim of an application on another cluster has its objects there, made by the account of
// its provider there, which are kept as they should be over every connection; its passwords and
// its binding are here, and one more binding is there. While the cluster is away all stays.
func TestObjectsElsewhere(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.provider("a", instance)
	f.start(0)
	claim := f.claims("db", elsewhere)
	f.says("db", v1alpha1.ReasonServiceAccountNotFound, "on RemoteCluster "+f.edge()+": ", f.system+"/databases")
	f.has("there", there)
	f.welcome(there)
	f.annotate(claim, "look", "again")
	f.says("db", v1alpha1.ReasonBound)
	f.has("here", f.client, "db-binding", "db-passwords")
	f.has("there", there, "db", "db-server", "db-users")
	copied := &corev1.Secret{}
	f.must(there.Get(f.ctx, f.key("db"), copied))
	if binding := f.secret("db-binding"); len(binding.Data["uri"]) == 0 || !bytes.Equal(copied.Data["uri"], binding.Data["uri"]) {
		t.Error("workloads there have another binding than the release")
	}
	for _, known := range f.get("db").Status.Objects {
		if isHere := known.ID == "binding" || known.ID == "passwords"; isHere != (known.Cluster == "") {
			t.Errorf("%s is said to be on %q", known.ID, known.Cluster)
		}
	}
	f.settled()

	lose := func(name string) {
		t.Helper()
		f.must(there.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.shop, Name: name}}))
	}
	lose("db-server")
	f.has("there", there, "db", "db-server", "db-users")
	f.connect("# another")
	f.settled()
	lose("db-server")
	f.has("there", there, "db", "db-server", "db-users")

	f.reached(nil)
	f.reached(errors.New("it is dark"))
	f.says("db", v1alpha1.ReasonClusterUnreachable, "RemoteCluster "+f.edge()+": the cluster does not answer: it is dark")
	lose("db-server")
	f.settled()
	f.has("there", there, "db", "db-users")
	f.has("here", f.client, "db-binding", "db-passwords")
	f.reached(nil)
	f.says("db", v1alpha1.ReasonBound)
	f.has("there", there, "db", "db-server", "db-users")
	f.settled()
	f.annotate(claim, "look", "once more")
	if asked := f.settled(); len(asked) > 0 {
		t.Errorf("a claim that is served asks for %v", asked)
	}

	f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.has("here", f.client)
	f.has("there", there)
}

// Whoever claims gets nothing of the other cluster but what the provider's account there may
// make: what is somebody else's is neither read nor overwritten, and a namespace where the
// account has no rights stays as it is.
func TestHostileClaimsElsewhere(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.welcome(there)
	precious := map[string]string{"app": "precious"}
	for _, name := range []string{"taken-users", "taken"} {
		f.must(there.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.shop, Name: name}, StringData: precious}))
	}
	f.provider("a", instance)
	f.provider("reads", `
  parameters: {schema: {type: object, properties: {secret: {type: string}}}}
  publishes: [{key: password, secretKeyRef: {name: "${parameters.secret}", key: app}}]
`)
	f.start(0)
	named := func(provider string) string { return "  provider: SHOP-" + provider + "\n  cluster: edge\n" }
	for _, each := range []struct{ claim, spec, reason, words string }{
		{"taken", named("a"), v1alpha1.ReasonObjectFailed, "Secret " + f.shop + "/taken-users on " + f.edge() + " is there already, and somebody else's, and is left alone"},
		{"named", named("a") + "  clusterBinding: taken\n", v1alpha1.ReasonObjectFailed, "Secret " + f.shop + "/taken on " + f.edge() + " is there already, and somebody else's"},
		{"foreign", named("a") + "  clusterNamespace: SYSTEM\n", v1alpha1.ReasonObjectFailed, "as ServiceAccount " + f.system + "/databases"},
		{"reads", named("reads") + "  parameters: {secret: taken}\n", v1alpha1.ReasonAccessDenied, "is neither an object of the claim nor owned by one"},
		{"none", "  provider: SHOP-a\n  cluster: other\n", v1alpha1.ReasonClusterNotFound, "RemoteCluster " + f.shop + "/other does not exist"},
		{"name", "  provider: SHOP-a\n  cluster: ../SYSTEM/edge\n", v1alpha1.ReasonClusterNotFound, "does not exist"},
	} {
		f.claims(each.claim, each.spec)
		f.says(each.claim, each.reason, each.words)
	}
	for _, name := range []string{"taken-users", "taken"} {
		secret := &corev1.Secret{}
		f.must(there.Get(f.ctx, f.key(name), secret))
		if string(secret.Data["app"]) != "precious" || len(secret.Data) != 1 || len(secret.Labels) > 0 {
			t.Errorf("%s is %v with %v", name, secret.Labels, secret.Data)
		}
	}
	secrets := &corev1.SecretList{}
	f.must(there.List(f.ctx, secrets, client.InNamespace(f.system)))
	if len(secrets.Items) > 0 {
		t.Errorf("there is %s where the account has no rights", secrets.Items[0].Name)
	}
}

// A claim of another cluster may have the instance of a claim here, with a binding for workloads
// there; of which cluster it is, and which namespace, never changes.
func TestSharedElsewhere(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.welcome(there)
	f.provider("a", instance)
	f.start(0)
	f.claims("lender", "")
	f.says("lender", v1alpha1.ReasonBound)
	claim := f.claims("db", "  boundTo: {name: lender}\n"+elsewhere)
	f.says("db", v1alpha1.ReasonBound, "by the instance of CapabilityClaim "+f.shop+"/lender")
	f.has("there", there, "db")
	copied := &corev1.Secret{}
	f.must(there.Get(f.ctx, f.key("db"), copied))
	if !bytes.Equal(copied.Data["uri"], f.secret("lender-binding").Data["uri"]) {
		t.Error("workloads there have another address than the claim here")
	}
	for patch, want := range map[string]string{
		`{"spec":{"cluster":"other"}}`:            "cluster cannot change: make another claim",
		`{"spec":{"cluster":null}}`:               "cluster cannot change: make another claim",
		`{"spec":{"clusterNamespace":"default"}}`: "clusterNamespace cannot change: make another claim",
	} {
		if err := f.client.Patch(f.ctx, claim, client.RawPatch(types.MergePatchType, []byte(patch))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %s it says %v", patch, err)
		}
	}
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.has("there", there)
}

// A cluster that has gone takes no claim with it, and keeps none: what is there is left behind.
func TestClusterOfAClaimGoes(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.welcome(there)
	f.provider("a", instance)
	f.start(0)
	claim := f.claims("db", elsewhere)
	f.says("db", v1alpha1.ReasonBound)
	f.must(f.client.Delete(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.shop, Name: "edge"}}))
	f.says("db", v1alpha1.ReasonClusterNotFound)
	f.has("here", f.client, "db-binding", "db-passwords")
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.has("here", f.client)
	f.has("there", there, "db", "db-server", "db-users")
}

// A provider has its objects where its placement says, whatever cluster is claimed from, and
// the binding for workloads is on theirs.
func TestPlacementOfObjects(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.welcome(there)
	f.grant(f.system, "configmaps", "secrets")
	one := "  objects: [{id: server, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${claim.name}-${claim.namespace}-of\", namespace: SHOP}}}]\n"
	f.provider("home", "  placement: Home\n"+one)
	f.provider("far", "  namespace: SYSTEM\n  placement: Cluster\n  cluster: edge\n"+one)
	f.start(0)
	f.claims("afar", "  provider: SHOP-home\n"+elsewhere)
	f.says("afar", v1alpha1.ReasonBound)
	f.has("here", f.client, "afar-binding", "afar-"+f.shop+"-of")
	f.has("there", there, "db")
	f.claims("near", "  provider: SHOP-far\n")
	f.says("near", v1alpha1.ReasonClusterNotFound, "RemoteCluster "+f.system+"/edge does not exist")
	f.connectAs(f.system+"/edge", "")
	f.create("apiVersion: kraan.io/v1alpha1\nkind: RemoteCluster\nmetadata: {name: edge, namespace: SYSTEM}\nspec: {kubeConfig: {secretRef: {name: edge}}}\n")
	f.says("near", v1alpha1.ReasonBound)
	f.has("there", there, "db", "near-"+f.shop+"-of")
}

// A controller that dies of any write on either cluster leaves nothing that its successor does
// not find.
func TestKilledAtEveryWriteElsewhere(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.welcome(there)
	f.provider("a", instance)
	for at := 1; ; at++ {
		name := fmt.Sprintf("db%d", at)
		claim := f.claims(name, strings.Replace(elsewhere, "clusterBinding: db", "clusterBinding: "+name, 1))
		made := f.dies(at, func() {}, name+" is served", func() error { return f.isReady(name) })
		f.has("there", there, name, name+"-server", name+"-users")
		f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
		f.must(f.client.Delete(f.ctx, claim))
		gone := f.dies(at, func() {}, name+" is gone", func() error {
			err := f.client.Get(f.ctx, f.key(name), &v1alpha1.CapabilityClaim{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		if left := append(f.names(there), f.names(f.client)...); len(left) > 0 {
			t.Errorf("write %d: %v is left", at, left)
		}
		if !made && !gone {
			if at < 8 {
				t.Errorf("it has made %d writes, fewer than there are objects", at)
			}
			return
		}
	}
}
