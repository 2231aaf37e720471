// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// This test renders the chart with Helm's own library, and holds it
// against config/default, which installs the same without Helm.
package chart_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmreleasev2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
)

const (
	releaseName      = "strata"
	releaseNamespace = "strata-system"
)

// decoder refuses fields that the types do not have, and fields written twice.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, sourcev1.AddToScheme,
		helmreleasev2.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// object is what all of the typed objects are.
type object interface {
	runtime.Object
	metav1.Object
}

func TestRendersStrictlyValidObjects(t *testing.T) {
	cases := []struct {
		name   string
		reason string
		values string
		want   []string
	}{
		{
			name:   "defaults",
			reason: "an installation without values has what the controller needs, and no more",
			want: []string{
				"ClusterRole strata", "ClusterRole strata-view", "ClusterRoleBinding strata",
				"CustomResourceDefinition addonslayers.kraan.io", "CustomResourceDefinition applicationbundles.kraan.io", "CustomResourceDefinition helmapplications.kraan.io",
				"CustomResourceDefinition platforms.kraan.io", "CustomResourceDefinition remoteclusters.kraan.io", "Deployment strata",
				"Role strata-leader-election", "Role strata-revisions", "RoleBinding strata-leader-election", "RoleBinding strata-revisions",
				"Service strata-metrics", "ServiceAccount strata",
			},
		},
		{
			name:   "everything",
			reason: "all that is behind values fits together",
			values: everything,
			want: []string{
				"ClusterRole strata", "ClusterRole strata-impersonate", "ClusterRole strata-kinds",
				"ClusterRole strata-remote-clusters", "ClusterRole strata-view",
				"ClusterRoleBinding strata", "ClusterRoleBinding strata-cluster-admin", "ClusterRoleBinding strata-impersonate", "ClusterRoleBinding strata-kinds", "ClusterRoleBinding strata-remote-clusters",
				"ConfigMap strata-dashboard", "ConfigMap strata-system-extra", "CustomResourceDefinition addonslayers.kraan.io", "CustomResourceDefinition applicationbundles.kraan.io", "CustomResourceDefinition helmapplications.kraan.io",
				"CustomResourceDefinition platforms.kraan.io", "CustomResourceDefinition remoteclusters.kraan.io", "Deployment strata",
				"NetworkPolicy strata", "NetworkPolicy strata-artifacts", "PodDisruptionBudget strata",
				"PrometheusRule strata", "Role strata-impersonate", "Role strata-impersonate", "Role strata-impersonate", "Role strata-leader-election", "Role strata-revisions",
				"RoleBinding strata-impersonate", "RoleBinding strata-impersonate", "RoleBinding strata-impersonate", "RoleBinding strata-leader-election", "RoleBinding strata-revisions",
				"Service strata-metrics", "ServiceAccount addons", "ServiceMonitor strata",
			},
		},
		{
			name:   "nothing",
			reason: "a platform that makes CRDs and roles itself gets the Deployment alone",
			values: `{crds: {install: false}, rbac: {create: false}, serviceAccount: {create: false}, metrics: {service: {enabled: false}}}`,
			want:   []string{"Deployment strata"},
		},
		{
			name:   "other name",
			reason: "no name is written out in a template",
			values: `{fullnameOverride: layers, rbac: {aggregateToView: false}, crds: {install: false}}`,
			want: []string{
				"ClusterRole layers", "ClusterRoleBinding layers", "Deployment layers", "Role layers-leader-election",
				"Role layers-revisions", "RoleBinding layers-leader-election", "RoleBinding layers-revisions", "Service layers-metrics", "ServiceAccount layers",
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, obj := range render(t, tc.values) {
				got = append(got, kindOf(obj)+" "+obj.GetName())
				checkMetadata(t, obj)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// everything switches on all that the chart can make, and sets each value that
// goes somewhere else than into a condition.
const everything = `
replicas: 2
image: {repository: mirror/strata, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
imagePullSecrets: [{name: pull}]
controller:
  syncPeriod: 5m
  concurrent: 4
  maxPrunePercent: 0
  watchLabelSelector: shard in (a, b)
  defaultServiceAccount: layers
  noCrossNamespaceRefs: true
  sourceNamespaces: [team-a, team-b]
  requireServiceAccount: true
  logLevel: debug
  logEncoding: console
  kubeAPI: {qps: 100.5, burst: 400}
extraArgs: [--artifact-max-size=10]
notifications: {address: "http://notification-controller.flux-system.svc.cluster.local./"}
env: [{name: A, value: b}]
envFrom: [{configMapRef: {name: more}}]
artifacts:
  cacheSize: 1048576
  maxSize: 2048
  hosts: [source-controller.gotk-system.svc, "files.example:8080"]
  volume: {ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
proxy: {httpProxy: "http://proxy:3128", httpsProxy: "http://proxy:3128", noProxy: internal.example}
serviceAccount: {name: addons, annotations: {a: b}}
rbac:
  kinds:
  - {apiGroup: "", resources: [configmaps, serviceaccounts]}
  - {apiGroup: apps, resources: [deployments], verbs: [get, list, watch]}
  impersonate: [{names: [deployer]}]
  clusterAdmin: true
commonLabels: {team: platform}
annotations: {a: b}
podLabels: {c: d}
podAnnotations: {e: f}
strategy: {type: Recreate}
priorityClassName: system-cluster-critical
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
remoteClusters: {enabled: true, allowedRanges: [10.20.0.0/16, "fd00::/8"], allowedHosts: ["*.clusters.example"]}
podDisruptionBudget: {enabled: true, minAvailable: 50%}
metrics: {service: {annotations: {a: b}}}
serviceMonitor: {enabled: true, scrapeTimeout: 10s, labels: {release: prometheus}, relabelings: [{action: keep}], metricRelabelings: [{action: drop}]}
prometheusRule: {enabled: true, labels: {release: prometheus}, absentFor: 1.5h, clusterUnreachableFor: 1h30m, clusterNotReadyFor: 2h, credentialsEndWithin: 0.5h, alertLabels: {team: platform}, extraRules: [{alert: More, expr: "1"}]}
dashboard: {enabled: true, labels: {board: yes-please}, annotations: {grafana_folder: Flux}}
networkPolicy:
  enabled: true
  metricsFrom: [{namespaceSelector: {matchLabels: {a: b}}}]
  remoteClusterPorts: [8443]
  extraEgress: [{ports: [{port: 3128}]}]
  allowArtifacts: {enabled: true}
extraObjects:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Namespace }}-extra"}}
`

func TestPodRunsWithoutPrivileges(t *testing.T) {
	for name, values := range map[string]string{"defaults": "", "everything": everything} {
		t.Run(name, func(t *testing.T) {
			spec := only[*appsv1.Deployment](t, render(t, values)).Spec.Template.Spec
			container := spec.Containers[0]
			want := &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(bool),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				ReadOnlyRootFilesystem:   ptr(true),
			}
			if diff := cmp.Diff(want, container.SecurityContext); diff != "" {
				t.Errorf("security context of the container (-want +got):\n%s", diff)
			}
			wantPod := &corev1.PodSecurityContext{
				RunAsNonRoot:   ptr(true),
				RunAsUser:      ptr(int64(65532)),
				RunAsGroup:     ptr(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
			if diff := cmp.Diff(wantPod, spec.SecurityContext); diff != "" {
				t.Errorf("security context of the pod (-want +got):\n%s", diff)
			}
			if len(spec.Volumes) != 2 || (spec.Volumes[0].EmptyDir == nil) == (spec.Volumes[0].Ephemeral == nil) {
				t.Errorf("volumes are %v, want one source for the artifacts, and one for /tmp", spec.Volumes)
			}
			if spec.HostNetwork || spec.HostPID || spec.HostIPC {
				t.Error("the pod shares a namespace with its node")
			}
			if !slices.Contains(container.Args, "--enable-leader-election") {
				t.Errorf("args %q do not ask for leader election", container.Args)
			}
			for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
				if probe.HTTPGet == nil || probe.HTTPGet.Port.String() != "health" {
					t.Errorf("probe %v does not ask the health port", probe)
				}
			}
		})
	}
}

func TestArgsComeFromValues(t *testing.T) {
	container := only[*appsv1.Deployment](t, render(t, everything)).Spec.Template.Spec.Containers[0]
	want := []string{
		"--metrics-addr=:8080", "--health-addr=:9440", "--enable-leader-election",
		"--leader-election-namespace=$(RUNTIME_NAMESPACE)", "--artifact-cache-dir=/data",
		"--artifact-cache-size=1048576", "--artifact-max-size=2048",
		"--artifact-hosts=source-controller.gotk-system.svc,files.example:8080", "--sync-period=5m", "--concurrent=4",
		"--max-prune-percent=0", "--log-level=debug", "--log-encoding=console",
		"--watch-label-selector=shard in (a, b)", "--default-service-account=layers", "--no-cross-namespace-refs", "--source-namespaces=team-a,team-b", "--require-service-account", "--kube-api-qps=100.5", "--kube-api-burst=400",
		"--allowed-cluster-ranges=10.20.0.0/16,fd00::/8", "--allowed-cluster-hosts=*.clusters.example",
		"--layer-kinds=*",
		"--events-addr=http://notification-controller.flux-system.svc.cluster.local./", "--artifact-max-size=10",
	}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	if got, want := container.Image, "mirror/strata@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"; got != want {
		t.Errorf("image is %s, want %s", got, want)
	}
	index := slices.IndexFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == "NO_PROXY" })
	if index < 0 {
		t.Fatal("a proxy without NO_PROXY catches what goes to the API server")
	}
	if got, want := container.Env[index].Value, "$(KUBERNETES_SERVICE_HOST),.svc,.cluster.local,.cluster.local.,internal.example"; got != want {
		t.Errorf("NO_PROXY is %s, want %s", got, want)
	}
}

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
				"applicationbundles/status", "platforms", "platforms/status", "platforms/finalizers", "remoteclusters/status",
				"customresourcedefinitions", "helmcharts":
				if slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "create") {
					t.Errorf("rule %v makes or deletes %s", rule, resource)
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
	objects := render(t, `{rbac: {kinds: [
		{apiGroup: "", resources: [configmaps, services]},
		{apiGroup: cert-manager.io, resources: [clusterissuers], verbs: [get, list]}]}}`)
	role := named[*rbacv1.ClusterRole](t, objects, "strata-kinds")
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
	binding := named[*rbacv1.ClusterRoleBinding](t, objects, "strata-kinds")
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
			id := dependents.ID{Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
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
	objects := render(t, `{remoteClusters: {enabled: true}}`)
	all := []string{"get", "list", "watch", "create", "patch", "update", "delete"}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: all},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}},
		{APIGroups: []string{"kraan.io"}, Resources: []string{"remoteclusters"}, Verbs: all}, // of bundles
	}
	if diff := cmp.Diff(want, named[*rbacv1.ClusterRole](t, objects, "strata-remote-clusters").Rules); diff != "" {
		t.Errorf("rules of remoteClusters (-want +got):\n%s", diff)
	}
	binding := named[*rbacv1.ClusterRoleBinding](t, objects, "strata-remote-clusters")
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

func TestSchemaRefusesMistakes(t *testing.T) {
	cases := []struct{ reason, values, want string }{
		{"a value that does not exist", `{replica: 2}`, "'replica' not allowed"},
		{"one that does not exist further down", `{controller: {syncPeriode: 1m}}`, "'syncPeriode' not allowed"},
		{"a string for a number", `{replicas: "2"}`, "want integer"},
		{"a string for a list", `{extraArgs: --x}`, "want array"},
		{"a string for a boolean", `{rbac: {clusterAdmin: "no"}}`, "want boolean"},
		{"a duration without a unit", `{controller: {syncPeriod: "60"}}`, "does not match pattern"},
		{"more than all", `{controller: {maxPrunePercent: 101}}`, "maximum"},
		{"a level that no logger has", `{controller: {logLevel: loud}}`, "must be one of"},
		{"a kind without its group", `{rbac: {kinds: [{resources: [configmaps]}]}}`, "apiGroup"},
		{"a wildcard", `{rbac: {kinds: [{apiGroup: "", resources: ["*"]}]}}`, "does not match pattern"},
		{"an account that is none", `{controller: {defaultServiceAccount: "a:b"}}`, "does not match pattern"},
		{"all accounts of the cluster", `{rbac: {impersonate: [{}]}}`, "missing propert"},
		{"no accounts at all", `{rbac: {impersonate: [{names: []}]}}`, "minItems"},
		{"an argument that is none", `{extraArgs: [verbose]}`, "does not match pattern"},
		{"a digest that is none", `{image: {digest: latest}}`, "does not match pattern"},
		{"an address that is no URL", `{notifications: {address: "notification-controller:80"}}`, "does not match pattern"},
		{"a port that is none", `{metrics: {service: {port: 70000}}}`, "maximum"},
		{"a port of other clusters that is none", `{networkPolicy: {remoteClusterPorts: [any]}}`, "want integer"},
		{"a namespace that is none", `{controller: {sourceNamespaces: ["a:b"]}}`, "does not match pattern"},
		{"all rights under lockdown", `{lockdown: true, rbac: {clusterAdmin: true}}`, "lockdown and rbac.clusterAdmin exclude each other"},
		{"lockdown taken back", `{lockdown: true, extraArgs: ["--no-cross-namespace-refs=false"]}`, "lockdown: extraArgs must not have --no-cross-namespace-refs=false"},
		{"lockdown with every host", `{lockdown: true, artifacts: {hosts: ["*"]}}`, "lockdown: artifacts.hosts must not have *"},
		{"lockdown with other hosts", `{lockdown: true, extraArgs: ["--artifact-hosts=*"]}`, "lockdown: extraArgs must not have --artifact-hosts=*"},
		{"lockdown with a hole", `{lockdown: true, extraArgs: [--insecure-kubeconfig-exec]}`, "lockdown: extraArgs must not have --insecure-kubeconfig-exec"},
		{"a range without a length", `{remoteClusters: {allowedRanges: [10.20.0.1]}}`, "allowedRanges"},
		{"a name with a space", `{remoteClusters: {allowedHosts: ["a b"]}}`, "allowedHosts"},
		{"other clusters by a word", `{remoteClusters: {enabled: "yes"}}`, "want boolean"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := renderChart(t, tc.values)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s gives the error %v, want one with %q", tc.values, err, tc.want)
			}
		})
	}
}

// lockdown is one switch: all that it stands for is set, whatever else is said.
func TestLockdown(t *testing.T) {
	objects := render(t, `{lockdown: true, controller: {noCrossNamespaceRefs: false, requireServiceAccount: false}, networkPolicy: {enabled: false}}`)
	args := only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--no-cross-namespace-refs", "--require-service-account"} {
		if !slices.Contains(args, want) {
			t.Errorf("the controller's arguments lack %s: %q", want, args)
		}
	}
	only[*networkingv1.NetworkPolicy](t, objects)
}

func TestServiceMonitorNeedsTheService(t *testing.T) {
	_, err := renderChart(t, `{serviceMonitor: {enabled: true}, metrics: {service: {enabled: false}}}`)
	if err == nil || !strings.Contains(err.Error(), "needs metrics.service.enabled") {
		t.Errorf("error is %v, want one that names the value that is missing", err)
	}
}

func TestAlertsKeepTheirPlaceholders(t *testing.T) {
	text, err := sigsyaml.Marshal(index(render(t, everything))["PrometheusRule strata"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"{{ $labels.layer }}", "for: 5400s", `strata_layer_state{state="Failed"}`, `job="strata-metrics",namespace="strata-system"`, "team: platform", "alert: More",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the rule has no %s:\n%s", want, text)
		}
	}
}

func TestNetworkPolicyLetsProbesAndArtifactsThrough(t *testing.T) {
	policy := named[*networkingv1.NetworkPolicy](t, render(t, everything), "strata")
	var ports []string
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String())
		}
	}
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String())
		}
	}
	want := []string{"health", "http-metrics", "53", "53", "443", "6443", "80", "9090", "8443", "3128"}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Errorf("open ports (-want +got):\n%s", diff)
	}
	if got := named[*networkingv1.NetworkPolicy](t, render(t, everything), "strata-artifacts").Namespace; got != "flux-system" {
		t.Errorf("the policy that opens source-controller is in %s, want flux-system", got)
	}
	budget := only[*policyv1.PodDisruptionBudget](t, render(t, everything)).Spec
	if budget.MinAvailable.String() != "50%" || budget.MaxUnavailable != nil {
		t.Errorf("disruption budget is %v, want minAvailable 50%% alone", budget)
	}
}

// The API server of another cluster may be anywhere, and be known only later: what
// the policy leaves open is not to be guessed from the ports of this one.
func TestNetworkPolicyLetsOtherClustersThrough(t *testing.T) {
	tcp := corev1.ProtocolTCP
	open := []networkingv1.NetworkPolicyPort{{Protocol: &tcp}}
	for _, test := range []struct {
		reason, values string
		want           []networkingv1.NetworkPolicyPort
	}{
		{"there are no other clusters", `{networkPolicy: {enabled: true, remoteClusterPorts: [8443]}}`, nil},
		{"all ports where none is named", `{networkPolicy: {enabled: true}, remoteClusters: {enabled: true}}`, open},
		{
			"those that are named", `{networkPolicy: {enabled: true, remoteClusterPorts: [8443]}, remoteClusters: {enabled: true}}`,
			[]networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: ptr(intstr.FromInt32(8443))}},
		},
	} {
		egress := named[*networkingv1.NetworkPolicy](t, render(t, test.values), "strata").Spec.Egress
		var got []networkingv1.NetworkPolicyPort
		for _, rule := range egress[2:] { // those before are of names, and of this cluster
			if len(rule.To) > 0 {
				t.Errorf("%s: a rule opens %v alone", test.reason, rule.To)
			}
			got = append(got, rule.Ports...)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: ports (-want +got):\n%s", test.reason, diff)
		}
	}
}

// Where other clusters must be, the network is open to no more than that.
func TestNetworkPolicyEndsWhereOtherClustersEnd(t *testing.T) {
	egress := named[*networkingv1.NetworkPolicy](t, render(t, everything), "strata").Spec.Egress
	want := []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "10.20.0.0/16"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "fd00::/8"}},
	}
	if diff := cmp.Diff(want, egress[2].To); diff != "" {
		t.Errorf("where the controller may go for other clusters (-want +got):\n%s", diff)
	}
}

func TestCRDsAreThoseOfConfig(t *testing.T) {
	files, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in config/crd/bases: %v", err)
	}
	want := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, file := range files {
		for _, obj := range decodeFile(t, file) {
			want[obj.GetName()] = obj.(*apiextensionsv1.CustomResourceDefinition).Spec
		}
	}
	for _, tc := range []struct {
		values string
		policy string
	}{{"", "keep"}, {`{crds: {keep: false}}`, ""}} {
		got := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
		for _, obj := range render(t, tc.values) {
			if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
				got[crd.Name] = crd.Spec
				if policy := crd.Annotations["helm.sh/resource-policy"]; policy != tc.policy {
					t.Errorf("with values %q the resource policy of %s is %q, want %q", tc.values, crd.Name, policy, tc.policy)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("CRDs of config and chart (-config +chart):\n%s", diff)
		}
	}
}

func TestConfigDefaultInstallsTheSame(t *testing.T) {
	chart := index(render(t, ""))
	config := index(build(t, "../config/default"))
	delete(config, "Namespace strata-system")
	if diff := cmp.Diff(keys(chart), keys(config)); diff != "" {
		t.Fatalf("objects (-chart +config):\n%s", diff)
	}
	for name := range chart {
		if diff := cmp.Diff(essence(chart[name]), essence(config[name])); diff != "" {
			t.Errorf("%s (-chart +config):\n%s", name, diff)
		}
	}
}

func TestSamplesAreValid(t *testing.T) {
	got := keys(index(build(t, "../config/samples")))
	want := []string{"AddonsLayer base", "AddonsLayer bootstrap", "GitRepository addons"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

func TestReadmeListsEveryValue(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", parse(t, string(text))) {
		if !bytes.Contains(readme, []byte("| `"+path+"` |")) {
			t.Errorf("README.md has no row for the value %s", path)
		}
	}
}

// leaves returns the paths of all values; a section that is empty is one.
func leaves(prefix string, values map[string]any) []string {
	var paths []string
	for key, value := range values {
		path := strings.TrimPrefix(prefix+"."+key, ".")
		section, ok := value.(map[string]any)
		if !ok || len(section) == 0 || slices.Contains(opaque, path) {
			paths = append(paths, path)
			continue
		}
		paths = append(paths, leaves(path, section)...)
	}
	slices.Sort(paths)
	return paths
}

// opaque are values that are Kubernetes' own structures.
var opaque = []string{
	"resources", "podSecurityContext", "securityContext", "livenessProbe", "readinessProbe", "nodeSelector",
	"networkPolicy.allowArtifacts.podLabels", "dashboard.labels",
}

func render(t *testing.T, values string) []object {
	t.Helper()
	files, err := renderChart(t, values)
	if err != nil {
		t.Fatalf("cannot render: %v\nvalues: %s", err, values)
	}
	var objects []object
	for _, name := range keys(files) {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, decode(t, name, files[name])...)
		}
	}
	return objects
}

func renderChart(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(".")
	if err != nil {
		t.Fatalf("cannot load the chart: %v", err)
	}
	options := common.ReleaseOptions{Name: releaseName, Namespace: releaseNamespace, IsInstall: true, Revision: 1}
	all, err := util.ToRenderValues(chart, parse(t, values), options, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// build is what kustomize makes of a directory.
func build(t *testing.T, dir string) []object {
	t.Helper()
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("cannot build %s: %v", dir, err)
	}
	text, err := result.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, dir, string(text))
}

func decodeFile(t *testing.T, file string) []object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, file, string(text))
}

// decode reads documents strictly; only kinds of Prometheus have no types here.
func decode(t *testing.T, name, text string) []object {
	t.Helper()
	var objects []object
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw := parse(t, string(document))
		if len(raw) == 0 {
			continue
		}
		untyped := &unstructured.Unstructured{Object: raw}
		if untyped.GroupVersionKind().Group == "monitoring.coreos.com" {
			objects = append(objects, untyped)
			continue
		}
		obj, gvk, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, document)
			continue
		}
		obj.GetObjectKind().SetGroupVersionKind(*gvk)
		objects = append(objects, obj.(object))
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := sigsyaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return values
}

func checkMetadata(t *testing.T, obj object) {
	t.Helper()
	if len(obj.GetName()) > 63 {
		t.Errorf("the name %s is longer than a label's value", obj.GetName())
	}
	if strings.HasSuffix(obj.GetName(), "-extra") {
		return // whoever writes it says all of it
	}
	clusterWide := strings.HasPrefix(kindOf(obj), "Cluster") || kindOf(obj) == "CustomResourceDefinition"
	if (obj.GetNamespace() == "") != clusterWide {
		t.Errorf("%s %s has the namespace %q", kindOf(obj), obj.GetName(), obj.GetNamespace())
	}
	if obj.GetLabels()["app.kubernetes.io/instance"] != releaseName {
		t.Errorf("%s %s has the labels %v", kindOf(obj), obj.GetName(), obj.GetLabels())
	}
}

// essence is what an object does, without what tells who made it.
func essence(obj object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	accessor, err := meta.Accessor(&unstructured.Unstructured{Object: content})
	if err != nil {
		panic(err)
	}
	labels := map[string]string{}
	for key, value := range accessor.GetLabels() {
		if !strings.HasPrefix(key, "app.kubernetes.io/") && key != "helm.sh/chart" {
			labels[key] = value
		}
	}
	accessor.SetLabels(labels)
	annotations := accessor.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	accessor.SetAnnotations(annotations)
	return content
}

func rulesOf(objects []object) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, obj := range objects {
		switch role := obj.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, role.Rules...)
		case *rbacv1.Role:
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func named[T object](t *testing.T, objects []object, name string) T {
	t.Helper()
	for _, obj := range objects {
		if typed, ok := obj.(T); ok && obj.GetName() == name {
			return typed
		}
	}
	var none T
	t.Fatalf("there is no %T %s", none, name)
	return none
}

func only[T object](t *testing.T, objects []object) T {
	t.Helper()
	var found []T
	for _, obj := range objects {
		if typed, ok := obj.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d of %T, want one", len(found), found)
	}
	return found[0]
}

func index(objects []object) map[string]object {
	byName := map[string]object{}
	for _, obj := range objects {
		name := fmt.Sprintf("%s %s", kindOf(obj), obj.GetName())
		byName[name] = obj
	}
	return byName
}

func keys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func kindOf(obj runtime.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind
}

func ptr[T any](value T) *T {
	return &value
}
