// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/hostile"
	"github.com/strata-project/strata/test/hostile/root"
	"github.com/strata-project/strata/test/strata"
)

// writers is the account of a team that may write everything in its namespace.
const writers = "writers"

// stolen is what no tenant is to get.
const stolen = "stolen-if-you-read-this"

// writer makes the account that may write everything in the team's namespace.
func (m *team) writer() {
	m.Helper()
	at := metav1.ObjectMeta{Namespace: m.namespace, Name: writers}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: at},
		&rbacv1.RoleBinding{
			ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: m.namespace, Name: writers}},
		},
	} {
		m.must(client.IgnoreAlreadyExists(stack.client.Create(m.ctx, obj)))
	}
}

// layerSays waits until a layer says of its condition Ready what it is to say.
func (m *team) layerSays(name, word string) {
	m.Helper()
	m.eventually("layer "+name+" says "+word, func() error {
		if said := ready(m.get(name)); !strings.Contains(said.Message, word) {
			return fmt.Errorf("it says %s: %s", said.Reason, said.Message)
		}
		return nil
	})
}

// Whoever writes directories, Secrets and claims of a namespace writes nothing that is kept for somebody, says nothing in Strata's name, and tells no
// Secret by a name; with an account that may write everything in that namespace, too.
func TestTenantTakesNothingThatIsKept(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "kept"), join(t, victim, "kept")
	evil.writer()
	author := newAuthor(evil)
	author.provider("kept", "kept", "  passwords: [{name: app}]\n  publishes: [{key: password, value: \"${passwords.app}\"}]\n")
	evil.claim("db", "kept", "")
	evil.claimSays("db", v1alpha1.ReasonBound)
	evil.hostCluster("attic", root.NewHost(t))
	evil.hostClusterSays("attic", "1 host is healthy")
	cluster := hostile.Start()
	t.Cleanup(cluster.Close)
	kubeconfig, err := cluster.Kubeconfig()
	evil.must(err)
	evil.cluster("kept", kubeconfig)
	for _, name := range []string{"token"} {
		evil.must(evil.as.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}, StringData: map[string]string{"token": stolen}}))
	}
	object := func(kind, name string, more ...string) map[string]string {
		version := map[string]string{"Lease": "coordination.k8s.io/v1", "ControllerRevision": "apps/v1", "Deployment": "apps/v1"}[kind]
		if version == "" {
			version = "v1"
		}
		return map[string]string{"a.yaml": fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %q, namespace: %s%s}\n", version, kind, name, tenant, strings.Join(more, ""))}
	}
	told := func(l *v1alpha1.AddonsLayer) {
		l.Spec.PostBuild = &v1alpha1.PostBuild{SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "Secret", Name: "token"}}}
	}
	attacks := map[string]struct {
		files  map[string]string
		change func(*v1alpha1.AddonsLayer)
		says   string
	}{
		"hosts":      {files: object("Secret", "attic-kubeconfig"), says: "what Strata has made for a HostCluster"},
		"passwords":  {files: object("Secret", "db-passwords"), says: "what Strata has made for a CapabilityClaim"},
		"binding":    {files: object("Secret", "db-binding"), says: "what Strata has made for a CapabilityClaim"},
		"kubeconfig": {files: object("Secret", "kept"), says: "what a RemoteCluster has its kubeconfig from"},
		"copy":       {files: object("Secret", "strata-copy-kept-x"), says: "a copy that Strata makes"},
		"kept":       {files: object("Secret", "strata-kubeconfig-kept"), says: "Strata's own copy of a kubeconfig"},
		"helm":       {files: object("Secret", "sh.helm.release.v1.gateway.v1"), says: "what Helm keeps of a release"},
		"word":       {files: object("Secret", "word", ", labels: {kraan.io/cluster: kept}"), says: "what Strata has made for a RemoteCluster"},
		"name":       {files: object("ConfigMap", "a-${token}"), change: told, says: "--no-secrets-in-names"},
	}
	files := map[string]string{}
	for name, attack := range attacks {
		for file, text := range attack.files {
			files[name+"/"+file] = text
		}
	}
	files["words/a.yaml"] = object("ConfigMap", "words", ", labels: {kraan.io/claim: db, kraan.io/plugin: x}, annotations: {kraan.io/hub: x, kraan.io/decided: x, kraan.io/comes-later: x}")["a.yaml"]
	_, err = evil.repo.Commit("attack", files)
	evil.must(err)
	layers := map[string]string{}
	for name, attack := range attacks {
		layers[name] = evil.layer("kept", name, func(l *v1alpha1.AddonsLayer) {
			l.Spec.ServiceAccountName = writers
			if attack.change != nil {
				attack.change(l)
			}
		})
	}
	evil.layer("kept", "words", func(l *v1alpha1.AddonsLayer) { l.Spec.ServiceAccountName = writers })
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) { evil.within(t).layerSays(layers[name], attack.says) })
	}
	evil.eventually("what a directory says in Strata's name is taken off", func() error {
		found := &corev1.ConfigMap{}
		if err := stack.client.Get(t.Context(), types.NamespacedName{Namespace: tenant, Name: "words"}, found); err != nil {
			return err
		}
		for key := range found.Labels {
			if strings.HasPrefix(key, "kraan.io/") && key != v1alpha1.LayerLabel {
				t.Errorf("it has the label %s", key)
			}
		}
		for _, key := range []string{"kraan.io/hub", "kraan.io/decided", "kraan.io/comes-later"} {
			if _, has := found.Annotations[key]; has {
				t.Errorf("it has the annotation %s", key)
			}
		}
		return nil
	})
	evil.tellsNothing()
	commit, err := good.repo.Commit("one", map[string]string{"base/release.yaml": good.release("kept", "one")})
	good.must(err)
	good.deploys(good.layer("kept", "base"), commit)
}

// tellsNothing fails the test where a status of a layer or an event has what a Secret holds.
func (m *team) tellsNothing() {
	m.Helper()
	layers, events := &v1alpha1.AddonsLayerList{}, &corev1.EventList{}
	m.must(stack.client.List(m.ctx, layers))
	m.must(stack.client.List(m.ctx, events))
	if said := fmt.Sprintf("%+v %+v", layers.Items, events.Items); strings.Contains(said, stolen) {
		m.Errorf("a Secret is told: %s", said[max(0, strings.Index(said, stolen)-300):strings.Index(said, stolen)])
	}
}

// An operator who may write each status of Strata's kinds, a tenant who writes the Secrets of a
// claim, and whoever may write records beside the controller, have nothing started, let go or
// bound by that.
func TestForgedStatusesRecordsAndPasswords(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "forged"), join(t, victim, "forged")
	newAuthor(good).provider("forged", "forged", "  passwords: [{name: app}]\n"+
		"  objects: [{id: data, holdsData: true, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${claim.name}-data\"}}}]\n"+
		"  publishes: [{key: password, value: \"${passwords.app}\"}, {key: is, value: good}]\n")
	good.claim("forged", "forged", "")
	good.claimSays("forged", v1alpha1.ReasonBound)
	good.hostCluster("forged", root.NewHost(t))
	good.hostClusterSays("forged", "1 host is healthy")
	commit, err := good.repo.Commit("one", map[string]string{"base/release.yaml": good.release("forged", "one")})
	good.must(err)
	layer := good.layer("forged", "base")
	good.deploys(layer, commit)
	claim := good.claimSays("forged", v1alpha1.ReasonBound)
	binding := &corev1.Secret{}
	at := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: victim, Name: name} }
	good.must(stack.client.Get(t.Context(), at("forged-binding"), binding))
	before := binding.Data["password"]

	// The tenant may not; the operator may.
	operator := evil.operator()
	forgeries := []struct {
		of     client.Object
		status string
	}{
		{&v1alpha1.CapabilityProvider{ObjectMeta: metav1.ObjectMeta{Name: victim + "-forged"}}, `{"plugin":{"image":"oci://evil.example/x","digest":"sha256:` + strings.Repeat("b", 64) + `"}}`},
		{&v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "forged"}}, `{"provider":"evil","version":"9","objects":[],"rotation":99}`},
		{&v1alpha1.HostCluster{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "forged"}}, `{"id":"team-b/evil/0a1b2c3d","version":"v1.1.1","etcd":"0/9"}`},
		{&v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: layer}}, `{"history":[{"id":"9; rm -rf","revision":"main@sha1:forged","digest":"x","result":"Deployed","deployedAt":"2026-01-01T00:00:00Z"}],"resources":[]}`},
	}
	for _, forgery := range forgeries {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+forgery.status+`}`))
		if err := evil.as.Status().Patch(t.Context(), forgery.of.DeepCopyObject().(client.Object), patch); !apierrors.IsForbidden(err) {
			t.Errorf("a tenant writes the status of a %T: %v", forgery.of, err)
		}
		if err := operator.Status().Patch(t.Context(), forgery.of, patch); err != nil && !apierrors.IsInvalid(err) {
			t.Errorf("%T: %v", forgery.of, err)
		}
		if err := operator.Patch(t.Context(), forgery.of, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"look":"again"}}}`))); !apierrors.IsForbidden(err) {
			t.Errorf("an operator writes a %T: %v", forgery.of, err)
		}
		good.must(stack.client.Patch(t.Context(), forgery.of, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"look":"again"}}}`))))
	}

	// A record that is newer than the controller's own.
	record := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: strata.Namespace, Name: fmt.Sprintf("claim.%s.99", claim.UID), Labels: map[string]string{v1alpha1.ClaimLabel: string(claim.UID)},
		},
		Revision: 99,
	}
	own := &appsv1.ControllerRevisionList{}
	good.must(stack.client.List(t.Context(), own, client.InNamespace(strata.Namespace), client.MatchingLabels(record.Labels)))
	if len(own.Items) == 0 {
		t.Fatal("the claim has no record")
	}
	record.Data = runtime.RawExtension{Raw: bytes.ReplaceAll(own.Items[0].Data.Raw, []byte(`"good"`), []byte(`"evil"`))}
	record.Annotations = own.Items[0].Annotations
	if err := evil.as.Create(t.Context(), record.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant writes a record: %v", err)
	}
	good.must(stack.client.Create(t.Context(), record))
	t.Cleanup(func() { _ = stack.client.Delete(context.Background(), record) })

	// What the plug-in of a database would be given.
	passwords := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "forged-passwords"}}
	good.must(good.as.Patch(t.Context(), passwords, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"app":"'; DROP ROLE app; --\n\u0000\"x"}}`))))
	good.claimSays("forged", v1alpha1.ReasonInvalidPasswords, "kubectl patch secret -n "+victim+" forged-passwords")

	good.looks("forged", "after the forgeries")
	good.deploys(layer, commit)
	good.must(stack.client.Get(t.Context(), at("forged-binding"), binding))
	if !bytes.Equal(binding.Data["password"], before) || string(binding.Data["is"]) != "good" {
		t.Errorf("the binding is %q", binding.Data)
	}
	for name, there := range map[string]client.Object{"forged-data": &corev1.ConfigMap{}, "forged": &helmv2.HelmRelease{}, "forged-kubeconfig": &corev1.Secret{}} {
		good.must(stack.client.Get(t.Context(), at(name), there))
		if !there.GetDeletionTimestamp().IsZero() {
			t.Errorf("%s is let go", name)
		}
	}
	started := &appsv1.DeploymentList{}
	good.must(stack.client.List(t.Context(), started, client.HasLabels{v1alpha1.PluginLabel}))
	if len(started.Items) > 0 {
		t.Errorf("a status has %s started", started.Items[0].Name)
	}
}

// operator is somebody who may write each status of Strata's kinds, and nothing else.
func (m *team) operator() client.Client {
	m.Helper()
	const name = "operator-of-statuses"
	m.must(stack.client.Create(m.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*/status"}, Verbs: []string{"get", "patch", "update"}},
	}}))
	m.must(stack.client.Create(m.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}))
	identity, err := stack.plane.User(name)
	m.must(err)
	as, err := client.New(identity.Config, client.Options{Scheme: stack.client.Scheme()})
	m.must(err)
	return as
}
