// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/strata"
)

// databases is the account of the providers of each team.
const databases = "databases"

// author writes CapabilityProviders, and may do nothing else.
type author struct {
	*team
	as client.Client
}

// newAuthor lets somebody write CapabilityProviders, whose account may write Secrets and
// ConfigMaps of the team's namespace, and members of the team claims.
func newAuthor(m *team) *author {
	m.Helper()
	name := m.namespace + "-author"
	at := metav1.ObjectMeta{Namespace: m.namespace, Name: databases}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"capabilityproviders"}, Verbs: []string{"*"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		},
		&corev1.ServiceAccount{ObjectMeta: at},
		&rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: databases},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: m.namespace, Name: databases}},
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "claims"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"capabilityclaims"}, Verbs: []string{"*"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "claims"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "claims"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: m.namespace}},
		},
	} {
		if err := stack.client.Create(m.ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			m.Fatal(err)
		}
	}
	identity, err := stack.plane.User(name)
	m.must(err)
	as, err := client.New(identity.Config, client.Options{Scheme: stack.client.Scheme()})
	m.must(err)
	return &author{team: m, as: as}
}

func (a *author) within(t *testing.T) *author { return &author{team: a.team.within(t), as: a.as} }

// provider makes a provider of a capability for the team's namespace. TEAM is that, and VICTIM the
// other one's.
func (a *author) provider(name, capability, spec string) {
	a.Helper()
	text := fmt.Sprintf("metadata: {name: TEAM-%s}\nspec:\n  capability: Database/%s\n  allowedNamespaces: {matchLabels: {kubernetes.io/metadata.name: TEAM}}\n%s", name, capability, spec)
	if !strings.Contains(spec, "serviceAccountName:") {
		text += "  namespace: TEAM\n  serviceAccountName: " + databases + "\n"
	}
	made := &v1alpha1.CapabilityProvider{}
	a.must(yaml.UnmarshalStrict([]byte(strings.NewReplacer("TEAM", a.namespace, "VICTIM", victim, "SYSTEM", strata.Namespace).Replace(text)), made))
	a.must(a.as.Create(a.ctx, made))
	a.Cleanup(func() { _ = a.as.Delete(context.Background(), made) })
}

// providerSays waits until a provider says something of its condition Ready.
func (a *author) providerSays(name, word string) {
	a.Helper()
	a.eventually("CapabilityProvider "+name+" says "+word, func() error {
		found := &v1alpha1.CapabilityProvider{}
		a.must(stack.client.Get(a.ctx, types.NamespacedName{Name: a.namespace + "-" + name}, found))
		said := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReadyCondition)
		if said == nil || !strings.Contains(said.Message, word) {
			return fmt.Errorf("it is %+v, with %q", said, found.Status.Problems)
		}
		return nil
	})
}

// claim makes a claim, as a member of the team.
func (m *team) claim(name, capability, spec string) {
	m.Helper()
	claim := &v1alpha1.CapabilityClaim{}
	m.must(yaml.UnmarshalStrict(fmt.Appendf(nil, "metadata: {name: %s, namespace: %s}\nspec:\n  capability: Database/%s\n%s", name, m.namespace, capability, spec), claim))
	m.must(m.as.Create(m.ctx, claim))
	m.Cleanup(func() {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.ConfirmDeletionAnnotation)
		_ = m.as.Patch(context.Background(), claim, client.RawPatch(types.MergePatchType, patch))
		_ = m.as.Delete(context.Background(), claim)
	})
}

// claimSays waits until a claim says something of its condition Ready.
func (m *team) claimSays(name, reason string, words ...string) *v1alpha1.CapabilityClaim {
	m.Helper()
	claim := &v1alpha1.CapabilityClaim{}
	m.eventually("claim "+name+" says "+reason, func() error {
		m.must(stack.client.Get(m.ctx, types.NamespacedName{Namespace: m.namespace, Name: name}, claim))
		said := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ReadyCondition)
		if said == nil || said.Reason != reason {
			return fmt.Errorf("it is %+v", said)
		}
		for _, word := range words {
			if !strings.Contains(said.Message, word) {
				return fmt.Errorf("it is %+v", said)
			}
		}
		return nil
	})
	return claim
}

// Whoever writes a CapabilityProvider, and its plug-in, has nothing made but what the account that
// it names may make, where the claim is; takes nothing over that is somebody else's; acts as
// neither the controller nor Flux; and holds up no plug-in but their own.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "provider"), join(t, victim, "provider")
	author := newAuthor(evil)
	newAuthor(good).provider("honest", "naughty", good.plugged())
	good.claim("honest", "naughty", "  provider: team-a-honest\n")
	for _, precious := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "precious"}, StringData: map[string]string{"app": "precious"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "taken"}, StringData: map[string]string{"app": "precious"}},
	} {
		evil.must(stack.client.Create(t.Context(), precious))
	}
	digest := providerstest.Naughty(t, stack.plugins)
	const naughty = "  plugin: {digest: DIGEST, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]}\n"
	secret := func(name string) string {
		return "  objects: [{id: s, template: {apiVersion: v1, kind: Secret, metadata: {name: " + name + "}, stringData: {app: evil}}}]\n"
	}
	attacks := map[string]struct {
		provider, parameters string
		reason, says         string
	}{
		"reads":   {provider: "  publishes: [{key: password, secretKeyRef: {name: precious, namespace: VICTIM, key: app}}]\n", reason: v1alpha1.ReasonAccessDenied, says: "is neither an object of the claim nor owned by one"},
		"writes":  {provider: "  objects: [{id: m, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: planted-by-provider, namespace: VICTIM}}}]\n", reason: v1alpha1.ReasonObjectFailed, says: "it may not create resource \"configmaps\""},
		"layers":  {provider: "  objects: [{id: l, template: {apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, metadata: {name: evil}, spec: {}}}]\n", reason: v1alpha1.ReasonNoProvider, says: "has mistakes in its specification"},
		"leaks":   {provider: "  passwords: [{name: app}]\n  objects: [{id: m, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: leak}, data: {p: \"${passwords.app}\"}}}]\n", reason: v1alpha1.ReasonNoProvider, says: "has mistakes in its specification"},
		"takes":   {provider: secret("taken"), reason: v1alpha1.ReasonObjectFailed, says: "somebody else's"},
		"itself":  {provider: "  namespace: SYSTEM\n  serviceAccountName: strata\n" + secret("as-itself"), reason: v1alpha1.ReasonAccessDenied, says: "is the controller's own"},
		"flux":    {provider: "  namespace: flux-system\n  serviceAccountName: helm-controller\n" + secret("as-flux"), reason: v1alpha1.ReasonAccessDenied, says: "--source-namespaces"},
		"system":  {provider: "  namespace: kube-system\n  serviceAccountName: default\n" + secret("as-system"), reason: v1alpha1.ReasonAccessDenied, says: "--source-namespaces"},
		"words":   {provider: "  objects: [{id: s, template: {apiVersion: v1, kind: Secret, metadata: {name: words, labels: {kraan.io/cluster: prod, kraan.io/host-cluster: edge, kraan.io/layer: team-a-x}, annotations: {kraan.io/share-with: \"*\"}}}}]\n", reason: v1alpha1.ReasonObjectFailed, says: "is what Strata has made for a RemoteCluster, and is left alone"},
		"copies":  {provider: secret("strata-kubeconfig-prod"), reason: v1alpha1.ReasonObjectFailed, says: "is Strata's own copy of a kubeconfig, and is left alone"},
		"tokens":  {provider: "  objects: [{id: s, template: {apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: token-by-provider, annotations: {kubernetes.io/service-account.name: layers}}}}]\n", reason: v1alpha1.ReasonObjectFailed, says: "is a token of a ServiceAccount"},
		"foreign": {provider: naughty, parameters: "do: named, name: precious, namespace: " + victim, reason: v1alpha1.ReasonInvalidPlan, says: "is in the namespace " + victim + ", and not in " + tenant},
		"kinds":   {provider: naughty, parameters: "do: kind", reason: v1alpha1.ReasonInvalidPlan, says: "which spec.plugin.kinds does not have"},
		"paths":   {provider: naughty, parameters: "do: named, name: ../precious", reason: v1alpha1.ReasonInvalidPlan, says: "is no name"},
		"floods":  {provider: naughty, parameters: "do: flood", reason: v1alpha1.ReasonPluginFailed, says: "answers with more than 4 MiB"},
		"exits":   {provider: naughty, parameters: "do: exit", reason: v1alpha1.ReasonPluginFailed, says: "has ended"},
		"memory":  {provider: naughty, parameters: "do: memory", reason: v1alpha1.ReasonPluginFailed, says: "has ended"},
		"talks":   {provider: naughty, parameters: "do: log", reason: v1alpha1.ReasonBound, says: ""},
		"hangs":   {provider: naughty, parameters: "do: hang"},
	}
	for name, attack := range attacks {
		capability := name
		if strings.Contains(attack.provider, "DIGEST") {
			capability = "naughty"
		}
		author.provider(name, capability, strings.ReplaceAll(attack.provider, "DIGEST", digest))
		evil.claim(name, capability, "  provider: team-b-"+name+"\n  parameters: {"+attack.parameters+"}\n")
	}
	good.claimSays("honest", v1alpha1.ReasonBound)
	for name, attack := range attacks {
		if attack.reason != "" {
			t.Run(name, func(t *testing.T) { evil.within(t).claimSays(name, attack.reason, attack.says) })
		}
	}
	good.claim("after", "naughty", "  provider: team-a-honest\n")
	good.claimSays("after", v1alpha1.ReasonBound)
	for _, key := range []types.NamespacedName{{Namespace: victim, Name: "precious"}, {Namespace: tenant, Name: "taken"}} {
		found := &corev1.Secret{}
		evil.must(stack.client.Get(t.Context(), key, found))
		if string(found.Data["app"]) != "precious" {
			t.Errorf("Secret %s has %q", key, found.Data)
		}
	}
	if err := stack.client.Get(t.Context(), types.NamespacedName{Namespace: victim, Name: "planted-by-provider"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a ConfigMap in %s: %v", victim, err)
	}
	checkMemory(t)
}
