// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
	"github.com/strata-project/strata/test/strata"
)

// networkPlugin is what a layer would bring: without it only Pods of the host's network run.
const networkPlugin = `apiVersion: v1
kind: ServiceAccount
metadata: {name: network, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: network}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects: [{kind: ServiceAccount, name: network, namespace: kube-system}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: network, namespace: kube-system}
spec:
  selector: {matchLabels: {app: network}}
  template:
    metadata: {labels: {app: network}}
    spec:
      hostNetwork: true
      serviceAccountName: network
      tolerations: [{operator: Exists}]
      containers: [{name: network, image: "lab/network-plugin:v1"}]
`

// fluxManifests are those of source-controller and helm-controller, as flux install writes
// them, with the rights of an administrator.
func fluxManifests(t *testing.T) string {
	t.Helper()
	dir, err := cache.Dir()
	if err != nil {
		t.Fatal(err)
	}
	text := &strings.Builder{}
	files, err := filepath.Glob(filepath.Join(dir, cache.CRDs, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs of Flux in %s: %v", dir, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(text, "%s\n---\n", data)
	}
	text.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n")
	fmt.Fprintf(text, fluxController, "helm-controller", "", "", "")
	fmt.Fprintf(text, fluxController, "source-controller",
		`, --storage-path=/data, "--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local."`,
		"        volumeMounts: [{name: data, mountPath: /data}]\n", "      volumes: [{name: data, emptyDir: {}}]\n")
	text.WriteString(`---
apiVersion: v1
kind: Service
metadata: {name: source-controller, namespace: flux-system}
spec: {selector: {app: source-controller}, ports: [{name: http, port: 80, targetPort: 9090}]}
`)
	return text.String()
}

// fluxController is a controller of Flux: its name, more arguments, mounts and volumes.
const fluxController = `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: flux-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: flux-system}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: flux-system, labels: {app.kubernetes.io/component: %[1]s}}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: %[1]s
      containers:
      - name: manager
        image: ghcr.io/fluxcd/%[1]s:v1
        args: [--watch-all-namespaces, --log-level=info%[2]s]
        env: [{name: RUNTIME_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
        ports: [{name: healthz, containerPort: 9440}]
        readinessProbe: {httpGet: {path: /readyz, port: healthz}}
%[3]s%[4]s`

// kubectl runs kubectl on the cluster, which must succeed.
func (u *user) kubectl(input string, args ...string) string {
	u.Helper()
	path := filepath.Join(u.dir, "kubeconfig")
	if _, err := os.Stat(path); err != nil {
		text, err := u.command("kubeconfig").Output()
		if err != nil {
			u.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			u.Fatal(err)
		}
	}
	program, err := lab.Program(u.Context(), "kubectl")
	if err != nil {
		u.Fatal(err)
	}
	command := exec.CommandContext(u.Context(), program, append([]string{"--kubeconfig", path}, args...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		u.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// eventually waits until something is so.
func (u *user) eventually(what string, is func(ctx context.Context) error) {
	u.Helper()
	if err := controlplane.WaitFor(u.Context(), 45*time.Second, is); err != nil {
		u.Errorf("%s: %v%s", what, err, u.podLogs())
		u.Error(u.kubectl("", "get", "nodes,pods", "-A"))
		u.Fatal(u.kubectl("", "get", "addonslayers,helmreleases,gitrepositories", "-A"))
	}
}

// podLogs are the ends of what Pods have written.
func (u *user) podLogs() string {
	text := &strings.Builder{}
	for _, host := range u.lab.Hosts() {
		for name, content := range host.Files("/var/lib/lab/*.manager.log", "/var/lib/lab/strata*.log", "/var/lib/lab/kubelet.log") {
			fmt.Fprintf(text, "\n--- %s %s\n%s", host.Name, name, content[max(0, len(content)-2000):])
		}
	}
	return text.String()
}

// serveGit serves a repository to the Pods of a cluster of the lab: at the Service git, which
// the manifest makes, at the address. The repository is served where the lab's hosts reach it.
func (u *user) serveGit(t *testing.T) (repo *controlplane.Repo, manifest, address string) {
	t.Helper()
	server, err := controlplane.NewGitServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if repo, err = server.NewRepo("addons"); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(repo.URL())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", u.lab.IP()+":0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host}), ReadHeaderTimeout: time.Minute}
	go func() { _ = proxy.Serve(listener) }()
	t.Cleanup(func() { _ = proxy.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return repo, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: git, namespace: default}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: git, namespace: default, labels: {kubernetes.io/service-name: git}}
addressType: IPv4
ports: [{name: http, port: %s, protocol: TCP}]
endpoints: [{addresses: [%s]}]
`, port, u.lab.IP()), "http://git.default.svc.cluster.local" + at.Path
}

// addons is the source of layers, at an address.
const addons = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: addons, namespace: flux-system}
spec: {interval: 1m, url: "%s", ref: {branch: main}}
`

// labWithFlux makes hosts that have the programs of Flux and Strata for their Pods.
func labWithFlux(t *testing.T, n int) *lab.Lab {
	t.Helper()
	l := lab.New(t, n)
	program, err := strata.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"strata": program, "source-controller": "", "helm-controller": ""} {
		if err := l.Add(name, path); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// Flux and Strata run as Pods of a cluster that was made of a host, on the network that a
// DaemonSet brings: before that, no Pod of another network runs, and after it a layer of
// git is Deployed. Nothing of Flux runs outside the cluster.
func TestFluxAndStrataRunOnTheHosts(t *testing.T) {
	t.Parallel()
	u := userOf(t, labWithFlux(t, 1))
	u.edit("kubelet: {", "taints: [], kubelet: {")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.kubectl("", "wait", "--for=create", "--timeout=30s", "-n", "kube-system", "serviceaccount/default")
	u.kubectl("apiVersion: v1\nkind: Pod\nmetadata: {name: early, namespace: kube-system}\nspec: {nodeName: cp-0, tolerations: [{operator: Exists}], containers: [{name: a, image: a}]}\n", "apply", "-f", "-")
	u.kubectl("", "wait", "--timeout=30s", "-n", "kube-system", "pod/early", `--for=jsonpath={.status.containerStatuses[0].state.waiting.message}=the network is not ready: no network plug-in has written its configuration`)
	u.kubectl(networkPlugin, "apply", "-f", "-")
	client := u.client()
	u.eventually("the Node is ready", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, condition := range nodes.Items[0].Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%+v", nodes.Items[0].Status.Conditions)
	})
	u.kubectl("", "wait", "--timeout=30s", "-n", "kube-system", "pod/early", "--for=condition=Ready")
	u.kubectl(fluxManifests(t), "apply", "--server-side", "-f", "-")
	for _, name := range []string{"source-controller", "helm-controller"} {
		u.kubectl("", "rollout", "status", "--timeout=60s", "-n", "flux-system", "deployment/"+name)
	}
	repo, service, address := u.serveGit(t)
	u.kubectl(service+"---\n"+fmt.Sprintf(addons, address), "apply", "-f", "-")
	if _, err := repo.Commit("a layer", map[string]string{
		"web/release.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\ndata: {a: b}\n",
	}); err != nil {
		t.Fatal(err)
	}
	u.install(t)
	u.kubectl("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: web}\nspec: {version: 1.0.0, interval: 1m, source: {name: addons, namespace: flux-system, path: ./web}}\n", "apply", "-f", "-")
	u.eventually("the layer is Deployed", func(context.Context) error {
		if said := u.kubectl("", "get", "addonslayer", "web", "-o", "jsonpath={.status.state}"); said != "Deployed" {
			return fmt.Errorf("it is %q", said)
		}
		return nil
	})
	u.kubectl("", "get", "configmap", "web", "-n", "default")
}

// install installs Strata with the plug-in, as people do it.
func (u *user) install(t *testing.T) {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(u.Context(), program, "install", "--yes", "--kubeconfig", filepath.Join(u.dir, "kubeconfig"), "--set", "image.repository=lab/strata,image.tag=v1,rbac.clusterAdmin=true")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s%s", err, out, u.podLogs())
	}
}
