// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

func TestRolesAreNarrow(t *testing.T) {
	for _, rule := range rulesOf(render(t, "")) {
		for _, word := range slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups, rule.NonResourceURLs) {
			if strings.Contains(word, "*") {
				t.Errorf("rule %v has a wildcard", rule)
			}
		}
		for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection", "approve"} {
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("rule %v may %s", rule, verb)
			}
		}
		for _, resource := range rule.Resources {
			switch resource {
			case "secrets", "configmaps", "serviceaccounts", "serviceaccounts/token", "pods", "pods/exec", "roles", "clusterroles", "rolebindings", "clusterrolebindings":
				if !ownSecrets(rule) && !ownConfigMaps(rule) {
					t.Errorf("rule %v reaches %s", rule, resource)
				}
			case "addonslayers/status", "addonslayers/finalizers", "helmapplications", "helmapplications/status",
				"applicationbundles/status", "platforms", "platforms/status", "platforms/finalizers", "remoteclusters/status", "clusterdiscoveries", "clusterdiscoveries/status",
				"capabilityproviders", "capabilityproviders/status", "capabilityclaims/status",
				"customresourcedefinitions":
				if slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "create") {
					t.Errorf("rule %v makes or deletes %s", rule, resource)
				}
			case "helmcharts": // those that Flux leaves behind go
				if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb == "create" || verb == "patch" || verb == "update" }) {
					t.Errorf("rule %v writes %s", rule, resource)
				}
			}
		}
	}
}

// ownSecrets tells the one rule about Secrets that there is: those of revisions,
// by a Role of the controller's own namespace, which can neither list nor change
// them.
func ownSecrets(rule rbacv1.PolicyRule) bool {
	return cmp.Equal(rule, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "delete"}})
}

// ownConfigMaps tells the one rule about ConfigMaps: the inputs of Platforms may be
// read in the controller's own namespace.
func ownConfigMaps(rule rbacv1.PolicyRule) bool {
	return cmp.Equal(rule, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}})
}

func TestSecretsAreOfTheOwnNamespaceAlone(t *testing.T) {
	for _, obj := range render(t, "") {
		role, isCluster := obj.(*rbacv1.ClusterRole)
		if isCluster && (slices.ContainsFunc(role.Rules, ownSecrets) || slices.ContainsFunc(role.Rules, ownConfigMaps)) {
			t.Errorf("ClusterRole %s reaches the Secrets or ConfigMaps of all namespaces", role.Name)
		}
	}
}

func TestKindsGetRulesOfTheirOwn(t *testing.T) {
	rendered := render(t, `{rbac: {kinds: [
		{apiGroup: "", resources: [configmaps, services]},
		{apiGroup: cert-manager.io, resources: [clusterissuers], verbs: [get, list]}]}}`)
	role := named[*rbacv1.ClusterRole](t, rendered, "strata-kinds")
	want := []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"configmaps", "services"},
			Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"},
		},
		{APIGroups: []string{"cert-manager.io"}, Resources: []string{"clusterissuers"}, Verbs: []string{"get", "list"}},
	}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("rules of rbac.kinds (-want +got):\n%s", diff)
	}
	binding := named[*rbacv1.ClusterRoleBinding](t, rendered, "strata-kinds")
	if binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != "strata" || binding.Subjects[0].Namespace != releaseNamespace {
		t.Errorf("binding %v does not give %s to the controller", binding, role.Name)
	}
}

// What layers may hold is what rbac.kinds lets the controller write, and not what
// remoteClusters lets it write for itself.
func TestLayerKindsAreThoseOfTheValues(t *testing.T) {
	for values, want := range map[string]string{
		"":                                  "--layer-kinds=",
		`{remoteClusters: {enabled: true}}`: "--layer-kinds=",
		`{rbac: {kinds: [{apiGroup: "", resources: [configmaps, services]}, {apiGroup: cert-manager.io, resources: [issuers]}]}}`: "--layer-kinds=configmaps,services,issuers.cert-manager.io",
		`{rbac: {kinds: [{apiGroup: apps, resources: [deployments], verbs: [get, list, watch]}]}}`:                                "--layer-kinds=",
		`{rbac: {clusterAdmin: true}}`: "--layer-kinds=*",
		`{rbac: {create: false}}`:      "",
		`{rbac: {create: false, kinds: [{apiGroup: "", resources: [configmaps]}]}}`: "--layer-kinds=configmaps",
	} {
		got := ""
		for _, arg := range only[*appsv1.Deployment](t, render(t, values)).Spec.Template.Spec.Containers[0].Args {
			if strings.HasPrefix(arg, "--layer-kinds") {
				got = arg
			}
		}
		if got != want {
			t.Errorf("with the values %q the argument is %q, want %q", values, got, want)
		}
	}
}

// Everything that the chart makes for the controller, and that is not a kind of its
// own, is known to the controller by its name, so that no layer writes it.
func TestWhatTheChartMakesIsReserved(t *testing.T) {
	settings := layers.Settings{Namespace: releaseNamespace}
	for _, values := range []string{"", everything} {
		for _, obj := range render(t, values) {
			kind := obj.GetObjectKind().GroupVersionKind()
			if _, isExtra := obj.(*corev1.Secret); isExtra || kind.Kind == "CustomResourceDefinition" || obj.GetLabels()["app.kubernetes.io/part-of"] != "strata" {
				continue
			}
			id := objects.ID{Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
			account := settings
			if id.Kind == "ServiceAccount" {
				account.Account = id.Key() // as the API server says
			}
			if account.Reserved(id, nil) == "" {
				t.Errorf("a layer may write %s", id)
			}
		}
	}
}

func TestImpersonationIsNarrow(t *testing.T) {
	rule := func(names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: names, Verbs: []string{"get", "impersonate"}}
	}
	cases := []struct {
		reason, values string
		want           map[string][]rbacv1.PolicyRule
	}{
		{"nobody by default", ``, map[string][]rbacv1.PolicyRule{}},
		{
			"entries of one namespace are one role, there and nowhere else", `{rbac: {impersonate: [{namespace: team-a, names: [x]}, {namespace: team-b}, {namespace: team-a, names: [v, w]}]}}`,
			map[string][]rbacv1.PolicyRule{"team-a": {rule("x"), rule("v", "w")}, "team-b": {rule()}},
		},
		{"without a namespace only some names, everywhere", `{rbac: {impersonate: [{names: [x]}]}}`, map[string][]rbacv1.PolicyRule{"": {rule("x")}}},
		{
			"the default account may be in the namespace of each source", `{controller: {defaultServiceAccount: layers}, rbac: {impersonate: [{names: [x]}]}}`,
			map[string][]rbacv1.PolicyRule{"": {rule("x"), rule("layers")}},
		},
		{
			"where all sources are in the controller's namespace, so is the default account", `{controller: {defaultServiceAccount: layers, noCrossNamespaceRefs: true}}`,
			map[string][]rbacv1.PolicyRule{releaseNamespace: {rule("layers")}},
		},
		{
			"and where some namespaces are open, in those, too", `{controller: {defaultServiceAccount: layers, noCrossNamespaceRefs: true, sourceNamespaces: [team-a]}}`,
			map[string][]rbacv1.PolicyRule{releaseNamespace: {rule("layers")}, "team-a": {rule("layers")}},
		},
		{
			"lockdown never gives the account of a name in all namespaces", `{lockdown: true, controller: {defaultServiceAccount: layers}}`,
			map[string][]rbacv1.PolicyRule{releaseNamespace: {rule("layers")}},
		},
		{"roles are somebody else's", `{controller: {defaultServiceAccount: layers}, rbac: {create: false}}`, map[string][]rbacv1.PolicyRule{}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			got := map[string][]rbacv1.PolicyRule{}
			for _, obj := range render(t, tc.values) {
				if obj.GetName() != "strata-impersonate" {
					continue
				}
				switch obj := obj.(type) {
				case *rbacv1.Role:
					got[obj.Namespace] = obj.Rules
				case *rbacv1.ClusterRole:
					got[""] = obj.Rules
				case *rbacv1.RoleBinding:
					if obj.RoleRef.Kind != "Role" || obj.Subjects[0].Name != "strata" || obj.Subjects[0].Namespace != releaseNamespace {
						t.Errorf("%v does not give the role to the controller", obj)
					}
				case *rbacv1.ClusterRoleBinding:
					if obj.RoleRef.Kind != "ClusterRole" || obj.Subjects[0].Name != "strata" || obj.Subjects[0].Namespace != releaseNamespace {
						t.Errorf("%v does not give the role to the controller", obj)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules by namespace (-want +got):\n%s", diff)
			}
		})
	}
}

// What releases have made is read where it is asked for, and nothing of it is written.
func TestHealthWatchIsOptIn(t *testing.T) {
	isOfIt := func(obj object) bool { return obj.GetName() == "strata-health-watch" }
	for _, values := range []string{"", `{healthWatch: {enabled: true}, rbac: {create: false}}`} {
		if slices.ContainsFunc(render(t, values), isOfIt) {
			t.Errorf("with values %q the controller reads all Deployments", values)
		}
	}
	rendered := render(t, `{healthWatch: {enabled: true}}`)
	want := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: []string{"get", "list", "watch"}}}
	if diff := cmp.Diff(want, named[*rbacv1.ClusterRole](t, rendered, "strata-health-watch").Rules); diff != "" {
		t.Errorf("rules of healthWatch (-want +got):\n%s", diff)
	}
	if binding := named[*rbacv1.ClusterRoleBinding](t, rendered, "strata-health-watch"); binding.RoleRef.Name != "strata-health-watch" || binding.Subjects[0].Name != "strata" {
		t.Errorf("binding %v does not give the role to the controller", binding)
	}
}

// The metadata of all Secrets are reached where capabilities are served, and nothing of it is
// written.
func TestCapabilitiesAreOptIn(t *testing.T) {
	isOfThem := func(obj object) bool { return obj.GetName() == "strata-capabilities" }
	for _, values := range []string{"", `{capabilities: {enabled: true}, rbac: {create: false}}`} {
		if slices.ContainsFunc(render(t, values), isOfThem) {
			t.Errorf("with values %q the controller reaches all Secrets", values)
		}
	}
	rendered := render(t, `{capabilities: {enabled: true}}`)
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}}
	if diff := cmp.Diff(want, named[*rbacv1.ClusterRole](t, rendered, "strata-capabilities").Rules); diff != "" {
		t.Errorf("rules of capabilities (-want +got):\n%s", diff)
	}
	if binding := named[*rbacv1.ClusterRoleBinding](t, rendered, "strata-capabilities"); binding.RoleRef.Name != "strata-capabilities" || binding.Subjects[0].Name != "strata" {
		t.Errorf("binding %v does not give the role to the controller", binding)
	}
}

// Secrets and ConfigMaps of all namespaces are reached where it is asked for, and
// nowhere else. What the controller does with RemoteClusters it may do anyway, so
// that one without those rights can say what it lacks.
func TestRemoteClustersAreOptIn(t *testing.T) {
	isOfThem := func(obj object) bool { return obj.GetName() == "strata-remote-clusters" }
	for _, values := range []string{"", `{remoteClusters: {enabled: true}, rbac: {create: false}}`} {
		if slices.ContainsFunc(render(t, values), isOfThem) {
			t.Errorf("with values %q the controller reaches all Secrets", values)
		}
	}
	rendered := render(t, `{remoteClusters: {enabled: true}}`)
	all := []string{"get", "list", "watch", "create", "patch", "update", "delete"}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: all},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}},
		{APIGroups: []string{"kraan.io"}, Resources: []string{"remoteclusters"}, Verbs: all}, // of bundles
		{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"get", "list", "watch"}},
	}
	if diff := cmp.Diff(want, named[*rbacv1.ClusterRole](t, rendered, "strata-remote-clusters").Rules); diff != "" {
		t.Errorf("rules of remoteClusters (-want +got):\n%s", diff)
	}
	binding := named[*rbacv1.ClusterRoleBinding](t, rendered, "strata-remote-clusters")
	if binding.RoleRef.Name != "strata-remote-clusters" || binding.Subjects[0].Name != "strata" || binding.Subjects[0].Namespace != releaseNamespace {
		t.Errorf("binding %v does not give the role to the controller", binding)
	}
	verbs := map[string][]string{}
	for _, rule := range named[*rbacv1.ClusterRole](t, render(t, ""), "strata").Rules {
		for _, resource := range rule.Resources {
			if strings.HasPrefix(resource, "remoteclusters") {
				verbs[resource] = rule.Verbs
			}
		}
	}
	wantVerbs := map[string][]string{"remoteclusters": {"get", "list", "watch", "patch", "update"}, "remoteclusters/status": {"get", "patch", "update"}}
	if diff := cmp.Diff(wantVerbs, verbs); diff != "" {
		t.Errorf("what the controller may do with RemoteClusters (-want +got):\n%s", diff)
	}
}

func TestClusterAdminIsOptIn(t *testing.T) {
	bound := func(values string) bool {
		return slices.ContainsFunc(render(t, values), func(obj object) bool {
			binding, ok := obj.(*rbacv1.ClusterRoleBinding)
			return ok && binding.RoleRef.Name == "cluster-admin"
		})
	}
	if bound("") {
		t.Error("the controller is cluster-admin by default")
	}
	if !bound(`{rbac: {clusterAdmin: true}}`) {
		t.Error("rbac.clusterAdmin binds nothing")
	}
}
