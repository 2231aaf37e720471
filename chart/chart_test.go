// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// This test renders the chart with Helm's own library, and holds it
// against config/default, which installs the same without Helm.
package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmreleasev2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	stratachart "github.com/strata-project/strata/chart"
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
				"CustomResourceDefinition addonslayers.kraan.io", "CustomResourceDefinition applicationbundles.kraan.io", "CustomResourceDefinition capabilityclaims.kraan.io", "CustomResourceDefinition capabilityproviders.kraan.io", "CustomResourceDefinition clusterdiscoveries.kraan.io", "CustomResourceDefinition helmapplications.kraan.io",
				"CustomResourceDefinition hostclusters.kraan.io", "CustomResourceDefinition platforms.kraan.io", "CustomResourceDefinition remoteclusters.kraan.io", "Deployment strata",
				"Role strata-leader-election", "Role strata-revisions", "RoleBinding strata-leader-election", "RoleBinding strata-revisions",
				"Service strata-metrics", "ServiceAccount strata",
			},
		},
		{
			name:   "everything",
			reason: "all that is behind values fits together",
			values: everything,
			want: []string{
				"ClusterRole strata", "ClusterRole strata-impersonate", "ClusterRole strata-kinds", "ClusterRole strata-metrics-auth", "ClusterRole strata-metrics-reader",
				"ClusterRole strata-remote-clusters", "ClusterRole strata-view",
				"ClusterRoleBinding strata", "ClusterRoleBinding strata-cluster-admin", "ClusterRoleBinding strata-impersonate", "ClusterRoleBinding strata-kinds", "ClusterRoleBinding strata-metrics-auth", "ClusterRoleBinding strata-remote-clusters",
				"ConfigMap strata-dashboard", "ConfigMap strata-system-extra", "CustomResourceDefinition addonslayers.kraan.io", "CustomResourceDefinition applicationbundles.kraan.io", "CustomResourceDefinition capabilityclaims.kraan.io", "CustomResourceDefinition capabilityproviders.kraan.io", "CustomResourceDefinition clusterdiscoveries.kraan.io", "CustomResourceDefinition helmapplications.kraan.io",
				"CustomResourceDefinition hostclusters.kraan.io", "CustomResourceDefinition platforms.kraan.io", "CustomResourceDefinition remoteclusters.kraan.io", "Deployment strata",
				"NetworkPolicy strata", "NetworkPolicy strata-artifacts", "PodDisruptionBudget strata",
				"PrometheusRule strata", "Role strata-impersonate", "Role strata-impersonate", "Role strata-impersonate", "Role strata-leader-election", "Role strata-revisions",
				"RoleBinding strata-impersonate", "RoleBinding strata-impersonate", "RoleBinding strata-impersonate", "RoleBinding strata-leader-election", "RoleBinding strata-revisions",
				"Service strata-metrics", "ServiceAccount addons", "ServiceMonitor strata",
			},
		},
		{
			name:   "hosts",
			reason: "what keeps HostClusters has a Deployment, an account and rights of its own",
			values: `{crds: {install: false}, rbac: {aggregateToView: false}, metrics: {service: {enabled: false}}, networkPolicy: {enabled: true}, hosts: {enabled: true, allowedCIDRs: [10.0.0.0/8]}}`,
			want: []string{
				"ClusterRole strata", "ClusterRole strata-hosts", "ClusterRole strata-hosts-identity",
				"ClusterRoleBinding strata", "ClusterRoleBinding strata-hosts", "ClusterRoleBinding strata-hosts-identity", "Deployment strata", "Deployment strata-hosts",
				"NetworkPolicy strata", "NetworkPolicy strata-hosts", "Role strata-leader-election", "Role strata-revisions",
				"RoleBinding strata-hosts-leader-election", "RoleBinding strata-leader-election", "RoleBinding strata-revisions", "ServiceAccount strata", "ServiceAccount strata-hosts",
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
metrics: {secure: true, certSecret: metrics-tls, service: {annotations: {a: b}}}
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
			volumes := []string{"artifacts", "tmp"}
			if values != "" {
				volumes = append(volumes, "certs")
			}
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
			var got []string
			for _, volume := range spec.Volumes {
				got = append(got, volume.Name)
			}
			if diff := cmp.Diff(volumes, got); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			if (spec.Volumes[0].EmptyDir == nil) == (spec.Volumes[0].Ephemeral == nil) {
				t.Errorf("the volume of the artifacts is %v, want one source", spec.Volumes[0])
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
		"--metrics-addr=:8080", "--metrics-secure", "--metrics-cert-dir=/certs", "--health-addr=:9440", "--enable-leader-election",
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
		{"a digest of the other image that is none", `{hosts: {image: {digest: latest}}}`, "does not match pattern"},
		{"an address that is no URL", `{notifications: {address: "notification-controller:80"}}`, "does not match pattern"},
		{"a port that is none", `{metrics: {service: {port: 70000}}}`, "maximum"},
		{"a port of other clusters that is none", `{networkPolicy: {remoteClusterPorts: [any]}}`, "want integer"},
		{"a namespace that is none", `{controller: {sourceNamespaces: ["a:b"]}}`, "does not match pattern"},
		{"all rights under lockdown", `{lockdown: true, rbac: {clusterAdmin: true}}`, "lockdown and rbac.clusterAdmin exclude each other"},
		{"lockdown taken back", `{lockdown: true, extraArgs: ["--no-cross-namespace-refs=false"]}`, "lockdown: extraArgs must not have --no-cross-namespace-refs=false"},
		{"lockdown with every host", `{lockdown: true, artifacts: {hosts: ["*"]}}`, "lockdown: artifacts.hosts must not have *"},
		{"lockdown with other hosts", `{lockdown: true, extraArgs: ["--artifact-hosts=*"]}`, "lockdown: extraArgs must not have --artifact-hosts=*"},
		{"lockdown with a hole", `{lockdown: true, extraArgs: [--insecure-kubeconfig-exec]}`, "lockdown: extraArgs must not have --insecure-kubeconfig-exec"},
		{"lockdown with clusters anywhere", `{lockdown: true, remoteClusters: {enabled: true}}`, "lockdown: remoteClusters.allowedRanges must say where other clusters are"},
		{"lockdown with clusters at every address", `{lockdown: true, remoteClusters: {enabled: true, allowedRanges: [10.0.0.0/8, "::/0"]}}`, "lockdown: remoteClusters.allowedRanges must not have ::/0"},
		{"lockdown with more ranges", `{lockdown: true, extraArgs: ["--allowed-cluster-ranges=0.0.0.0/0"]}`, "lockdown: extraArgs must not have --allowed-cluster-ranges=0.0.0.0/0"},
		{"lockdown with more sources", `{lockdown: true, extraArgs: ["--source-namespaces=b"]}`, "lockdown: extraArgs must not have --source-namespaces=b"},
		{"lockdown with hosts of every namespace", `{lockdown: true, hosts: {enabled: true, allowedCIDRs: [10.0.0.0/8]}}`, "lockdown: hosts.namespaces must say whose HostClusters are kept"},
		{"lockdown with hosts of no namespace", `{lockdown: true, hosts: {enabled: true, namespaces: []}}`, "lockdown: hosts.namespaces must say whose HostClusters are kept"},
		{"lockdown with hosts of more namespaces", `{lockdown: true, hosts: {enabled: true, namespaces: [fleet], extraArgs: ["--namespaces=other"]}}`, "lockdown: hosts.extraArgs must not have --namespaces=other"},
		{"lockdown with hosts at every address", `{lockdown: true, hosts: {enabled: true, namespaces: [fleet], allowedCIDRs: [0.0.0.0/0]}}`, "lockdown: hosts.allowedCIDRs must not have 0.0.0.0/0"},
		{"lockdown with hosts in more ranges", `{lockdown: true, hosts: {enabled: true, namespaces: [fleet], extraArgs: ["--allowed-host-ranges=0.0.0.0/0"]}}`, "lockdown: hosts.extraArgs must not have --allowed-host-ranges=0.0.0.0/0"},
		{"lockdown with metrics of hosts for everybody", `{lockdown: true, hosts: {enabled: true, namespaces: [fleet], extraArgs: ["--metrics-secure=false"]}}`, "lockdown: hosts.extraArgs must not have --metrics-secure=false"},
		{"lockdown with metrics for everybody", `{lockdown: true, extraArgs: ["--metrics-secure=false"]}`, "lockdown: extraArgs must not have --metrics-secure=false"},
		{"metrics for those who may by a word", `{metrics: {secure: "yes"}}`, "want boolean"},
		{"a certificate that nobody is shown", `{metrics: {certSecret: metrics-tls}}`, "metrics.certSecret needs metrics.secure"},
		{"a Secret's name that is none", `{metrics: {secure: true, certSecret: "a:b"}}`, "does not match pattern"},
		{"a range without a length", `{remoteClusters: {allowedRanges: [10.20.0.1]}}`, "allowedRanges"},
		{"a name with a space", `{remoteClusters: {allowedHosts: ["a b"]}}`, "allowedHosts"},
		{"a quota that is none", `{hosts: {snapshots: {quota: much}}}`, "does not match pattern"},
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

// What snapshots take is bounded: those of a cluster by the quota, and those on their way to a
// bucket by the folder for temporary files.
func TestSnapshotsOfHostsAreBounded(t *testing.T) {
	objects := index(render(t, `{hosts: {enabled: true, snapshots: {claim: snapshots, quota: 3Gi}, tmpSizeLimit: 30Gi}}`))
	pod := objects["Deployment strata-hosts"].(*appsv1.Deployment).Spec.Template.Spec
	if !slices.Contains(pod.Containers[0].Args, "--snapshot-quota=3Gi") {
		t.Errorf("the controller of hosts has no quota: %q", pod.Containers[0].Args)
	}
	for _, volume := range pod.Volumes {
		if folder := volume.EmptyDir; folder != nil && (folder.SizeLimit == nil || folder.SizeLimit.String() != "30Gi") {
			t.Errorf("volume %s may grow without a limit", volume.Name)
		}
	}
}

// The controller of hosts has an image of its own, of the same release as the controller's,
// wherever values say that images are. Values that would mix two releases are refused.
func TestImageOfHosts(t *testing.T) {
	const first, second = "sha256:1111111111111111111111111111111111111111111111111111111111111111", "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	const other = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
	tree, err := stratachart.Load(stratachart.Release{})
	if err != nil {
		t.Fatal(err)
	}
	released, err := stratachart.Load(stratachart.Release{Version: "1.2.3", Image: "registry.example/strata@" + first, HostsImage: "registry.example/strata-hosts@" + second})
	if err != nil {
		t.Fatal(err)
	}
	const alone, mixed = "image.digest names the image of the controller alone", "image names another image than this release's"
	for _, tc := range []struct {
		reason       string
		chart        *chartv2.Chart
		values, want string
	}{
		{"a release names both", released, `{}`, "registry.example/strata-hosts@" + second},
		{"copies of both keep their digests", released, `{image: {repository: mirror/strata}}`, "mirror/strata-hosts@" + second},
		{"a copy may lie elsewhere", released, `{hosts: {image: {repository: mirror/hosts}}}`, "mirror/hosts@" + second},
		{"a tag is not used beside a digest, as it is with the other image", released, `{image: {tag: v1}, hosts: {image: {tag: v2}}}`, "registry.example/strata-hosts@" + second},
		{"both are named", released, `{image: {digest: "` + other + `"}, hosts: {image: {digest: "` + other + `"}}}`, "registry.example/strata-hosts@" + other},
		{"both are named, the other one by a tag", released, `{image: {digest: "` + other + `"}, hosts: {image: {digest: "", tag: v2}}}`, "registry.example/strata-hosts:v2"},
		{"a tag is that of both", released, `{image: {digest: "", tag: v1}, hosts: {image: {digest: ""}}}`, "registry.example/strata-hosts:v1"},
		{"another digest, and this release's image of hosts", released, `{image: {digest: "` + other + `"}}`, mixed},
		{"a tag, and this release's image of hosts", released, `{image: {digest: "", tag: v1}}`, mixed},
		{"this release's digest, and no image of hosts", released, `{hosts: {image: {digest: ""}}}`, alone},
		{"values of a chart of before, kept by --reuse-values", released, `{image: {digest: "` + other + `"}, hosts: {image: null}}`, alone},
		{"a chart that names no digest", tree, `{image: {repository: mirror/strata}}`, "mirror/strata-hosts:" + tree.Metadata.AppVersion},
		{"a tag", tree, `{image: {tag: v1}}`, "strata-project/strata-hosts:v1"},
		{"a tag of its own", tree, `{image: {tag: v1}, hosts: {image: {tag: v2}}}`, "strata-project/strata-hosts:v2"},
		{"a digest", tree, `{image: {digest: "` + other + `"}}`, alone},
		{"two digests", tree, `{image: {digest: "` + first + `"}, hosts: {image: {digest: "` + second + `"}}}`, "strata-project/strata-hosts@" + second},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			files, err := renderOf(t, tc.chart, `{hosts: {enabled: true}}`, tc.values)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("it is refused with %v, want %s", err, tc.want)
				}
				return
			}
			pod := index(decode(t, "hosts.yaml", files["strata/templates/hosts.yaml"]))["Deployment strata-hosts"].(*appsv1.Deployment).Spec.Template.Spec
			if got := pod.Containers[0].Image; got != tc.want {
				t.Errorf("the image is %s, want %s", got, tc.want)
			}
			if command := pod.Containers[0].Command; command != nil {
				t.Errorf("the image's own program is not run, but %q", command)
			}
		})
	}
	// Without hosts nothing is asked of their image.
	if _, err := renderOf(t, released, `{image: {digest: "`+other+`"}}`); err != nil {
		t.Error(err)
	}
	pod := index(render(t, `{hosts: {enabled: true}, image: {pullPolicy: Always}, imagePullSecrets: [{name: pull}]}`))["Deployment strata-hosts"].(*appsv1.Deployment).Spec.Template.Spec
	if pod.Containers[0].ImagePullPolicy != corev1.PullAlways || !slices.Equal(pod.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "pull"}}) {
		t.Errorf("it is pulled %s with %v", pod.Containers[0].ImagePullPolicy, pod.ImagePullSecrets)
	}
}

// Under lockdown the controller of hosts reads the Secrets of the namespaces that were named,
// and of no other one: it has no ClusterRoleBinding for them.
func TestLockdownOfHosts(t *testing.T) {
	objects := index(render(t, `{lockdown: true, hosts: {enabled: true, namespaces: [fleet], allowedCIDRs: [10.0.0.0/8]}}`))
	if objects["ClusterRoleBinding strata-hosts"] != nil {
		t.Error("the controller of hosts has its rights in every namespace")
	}
	bound, is := objects["RoleBinding strata-hosts"].(*rbacv1.RoleBinding)
	if !is || bound.Namespace != "fleet" {
		t.Errorf("the controller of hosts has no rights in its namespace: %+v", bound)
	}
	// Without hosts lockdown asks for none of their values.
	render(t, `{lockdown: true, hosts: {enabled: false, allowedCIDRs: [0.0.0.0/0]}}`)
}

// lockdown is one switch: all that it stands for is set, whatever else is said.
func TestLockdown(t *testing.T) {
	objects := render(t, `{lockdown: true, controller: {noCrossNamespaceRefs: false, requireServiceAccount: false}, metrics: {secure: false}, networkPolicy: {enabled: false}}`)
	args := only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--no-cross-namespace-refs", "--require-service-account", "--no-secrets-in-names", "--metrics-secure"} {
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

// kubectl apply -k config/samples gives these; what is in them is checked by lint's
// own tests.
func TestSamplesAreListed(t *testing.T) {
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
