// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

var (
	gitRepositories  = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	helmRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "helmrepositories"}
	helmReleases     = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
	widgets          = schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "widgets"}
)

// startForTest starts a control plane that ends with the test.
func startForTest(t *testing.T, opts Options) *ControlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	opts.Log = t.Output()
	c, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopForTest(t, c) })
	return c
}

// stopForTest stops the control plane and checks that nothing of it is left
// but the logs of a test that failed.
func stopForTest(t *testing.T, c *ControlPlane) {
	t.Helper()
	if t.Failed() {
		c.Keep()
		t.Logf("the logs are in %s", c.Dir())
	}
	pids := c.PIDs()
	if err := c.Stop(); err != nil {
		t.Errorf("Stop(): %v", err)
	}
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s still runs as process %d after Stop: %v", name, pid, err)
		}
	}
	if left := c.PIDs(); len(left) != 0 {
		t.Errorf("PIDs() after Stop: %v", left)
	}
}

func dynamicClient(t *testing.T, c *ControlPlane) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func create(t *testing.T, c *ControlPlane, resource schema.GroupVersionResource, kind, name string, spec map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(),
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       spec,
	}}
	if _, err := dynamicClient(t, c).Resource(resource).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("cannot create %s %s: %v", kind, name, err)
	}
}

func createRelease(t *testing.T, c *ControlPlane, name, chart, version string, values map[string]any) {
	t.Helper()
	create(t, c, helmReleases, "HelmRelease", name, map[string]any{
		"interval": "1h",
		"values":   values,
		"chart": map[string]any{"spec": map[string]any{
			"chart":     chart,
			"version":   version,
			"sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"},
		}},
	})
}

// waitReady waits for an object's condition Ready and returns the object.
func waitReady(t *testing.T, c *ControlPlane, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	var object *unstructured.Unstructured
	client := dynamicClient(t, c).Resource(resource).Namespace(namespace)
	if err := WaitFor(t.Context(), time.Minute, func(ctx context.Context) (err error) {
		if object, err = client.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return wantCondition(object, "Ready")
	}); err != nil {
		t.Fatalf("%s %s: %v", resource.Resource, name, err)
	}
	return object
}

// waitRevision waits for the artifact of a commit. Being ready says less: Flux
// writes the conditions before it writes the rest of the status.
func waitRevision(t *testing.T, c *ControlPlane, want string) {
	t.Helper()
	client := dynamicClient(t, c).Resource(gitRepositories).Namespace(namespace)
	if err := WaitFor(t.Context(), time.Minute, func(ctx context.Context) error {
		object, err := client.Get(ctx, "platform", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got, _, err := unstructured.NestedString(object.Object, "status", "artifact", "revision")
		if err == nil && got != want {
			err = fmt.Errorf("GitRepository revision: got %q, want %q", got, want)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// The whole path is real: a commit becomes an artifact, a chart becomes a
// release, a Deployment gets ready pods, and restarts in between are survived.
func TestEverything(t *testing.T) {
	t.Parallel()
	c := startForTest(t, Options{})
	gitServer, err := NewGitServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gitServer.Close() })
	repo, err := gitServer.NewRepo("platform")
	if err != nil {
		t.Fatal(err)
	}
	sha, err := repo.Commit("Begin", map[string]string{"layers/base/namespace.yaml": "kind: Namespace\n"})
	if err != nil {
		t.Fatal(err)
	}
	chartServer, err := NewChartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chartServer.Close() })
	for _, name := range []string{"podinfo", "configmap", "deployment", "crd", "widget"} {
		if err := chartServer.AddBuiltin(name, "5.0.0", "6.0.0"); err != nil {
			t.Fatal(err)
		}
	}

	create(t, c, gitRepositories, "GitRepository", "platform", map[string]any{
		"interval": "1h",
		"url":      repo.URL(),
		"ref":      map[string]any{"branch": Branch},
	})
	create(t, c, helmRepositories, "HelmRepository", "charts", map[string]any{
		"interval": "1h",
		"url":      chartServer.URL(),
	})
	waitReady(t, c, helmRepositories, "charts")
	createRelease(t, c, "web", "podinfo", "5.0.0", nil)
	createRelease(t, c, "workload", "deployment", "6.0.0", map[string]any{"replicas": int64(2)})
	createRelease(t, c, "definitions", "crd", "5.x", nil)

	waitRevision(t, c, Branch+"@sha1:"+sha)
	for _, name := range []string{"web", "workload", "definitions"} {
		waitReady(t, c, helmReleases, name)
	}
	client := kubernetes.NewForConfigOrDie(c.Config())
	configMap, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := configMap.Data["version"]; got != "5.0.0" {
		t.Errorf("ConfigMap of podinfo 5.0.0 says version %q", got)
	}
	deployment, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "workload", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := deployment.Status.ReadyReplicas; got != 2 {
		t.Errorf("ready replicas: got %d, want 2", got)
	}

	createRelease(t, c, "thing", "widget", "6.0.0", nil)
	waitReady(t, c, helmReleases, "thing")
	if _, err := dynamicClient(t, c).Resource(widgets).Namespace(namespace).Get(t.Context(), "thing", metav1.GetOptions{}); err != nil {
		t.Errorf("Widget of the release: %v", err)
	}

	for _, name := range []Component{HelmController, APIServer, SourceController} {
		before := c.PIDs()[name]
		if err := c.KillComponent(name); err != nil {
			t.Fatal(err)
		}
		if _, running := c.PIDs()[name]; running {
			t.Errorf("%s runs after KillComponent", name)
		}
		if err := c.StartComponent(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if after := c.PIDs()[name]; after == 0 || after == before {
			t.Errorf("%s: process %d before the restart, %d after it", name, before, after)
		}
	}
	if err := c.StopComponent(SourceController); err != nil {
		t.Fatal(err)
	}
	if err := c.StartComponent(t.Context(), SourceController); err != nil {
		t.Fatal(err)
	}
	createRelease(t, c, "late", "configmap", "6.0.0", map[string]any{"data": map[string]any{"key": "value"}})
	waitReady(t, c, helmReleases, "late")
	if got := len(c.PIDs()); got != 8 {
		t.Errorf("components that run after the restarts: got %v, want all 8", c.PIDs())
	}
	takesEvents(t, c)
	stopForTest(t, c)
}

// takesEvents posts an event that nobody has asked to be told of.
func takesEvents(t *testing.T, c *ControlPlane) {
	t.Helper()
	response, err := http.Post(c.EventsURL(), "application/json", strings.NewReader(`{"involvedObject":{"kind":"Test","name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusAccepted {
		t.Errorf("notification-controller answers %s, want 202", response.Status)
	}
}

func TestAPIServerOnly(t *testing.T) {
	t.Parallel()
	c := startForTest(t, Options{With: APIOnly()})
	if got := len(c.PIDs()); got != 2 {
		t.Errorf("components that run: got %v, want etcd and kube-apiserver", c.PIDs())
	}
	if err := c.StopComponent(Scheduler); err == nil || !strings.Contains(err.Error(), "component kube-scheduler is not part of this control plane") {
		t.Errorf("StopComponent of a component that was not started: %v", err)
	}
	if log, err := os.ReadFile(c.Logs(APIServer)); err != nil || len(log) == 0 {
		t.Errorf("log of kube-apiserver: %d bytes, %v", len(log), err)
	}
	client := kubernetes.NewForConfigOrDie(c.Config())
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, "v1.") || version.Minor == "" {
		t.Errorf("server version: got %+v", version)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
	}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Errorf("pod without a ServiceAccount: %v", err)
	}
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	c := startForTest(t, Options{With: APIOnly()})
	client := kubernetes.NewForConfigOrDie(c.Config())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"},
		{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "readers"},
	} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "reader-"},
			Subjects:   []rbacv1.Subject{subject},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-view"},
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := c.ServiceAccount(t.Context(), namespace, "reader")
	if err != nil {
		t.Fatal(err)
	}
	jane, err := c.User("jane@example.dev", "readers")
	if err != nil {
		t.Fatal(err)
	}
	for name, identity := range map[string]Identity{"ServiceAccount": reader, "User": jane} {
		fromFile, err := clientcmd.BuildConfigFromFlags("", identity.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range []*kubernetes.Clientset{
			kubernetes.NewForConfigOrDie(identity.Config),
			kubernetes.NewForConfigOrDie(fromFile),
		} {
			// The authorizer learns of the bindings a moment after they exist.
			if err := WaitFor(t.Context(), 30*time.Second, func(ctx context.Context) error {
				_, err := config.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
				return err
			}); err != nil {
				t.Errorf("%s may not read: %v", name, err)
			}
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "forbidden"}}
			_, err := config.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s writes: got %v, want forbidden", name, err)
			}
		}
	}
	if _, err := c.ServiceAccount(t.Context(), namespace, "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("identity of a ServiceAccount that does not exist: got %v, want not found", err)
	}
}

// An existing cluster has the same surface, but nothing to start or stop.
func TestFromKubeconfig(t *testing.T) {
	t.Parallel()
	c := startForTest(t, Options{With: APIOnly(), FluxCRDs: true})
	existing, err := FromKubeconfig(t.Context(), c.Kubeconfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if existing.Managed() {
		t.Error("an existing cluster is managed")
	}
	if err := existing.CreateNamespace(t.Context(), "existing"); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"StopComponent":  existing.StopComponent(HelmController),
		"KillComponent":  existing.KillComponent(HelmController),
		"StartComponent": existing.StartComponent(t.Context(), HelmController),
	} {
		if !errors.Is(err, ErrNotManaged) {
			t.Errorf("%s: got %v, want ErrNotManaged", name, err)
		}
	}
	if err := existing.Stop(); err != nil {
		t.Error(err)
	}
	if got := len(c.PIDs()); got != 2 {
		t.Errorf("Stop of an existing cluster stopped it: %v", c.PIDs())
	}
}

func TestFromKubeconfigWithoutFlux(t *testing.T) {
	t.Parallel()
	c := startForTest(t, Options{With: APIOnly()})
	_, err := FromKubeconfig(t.Context(), c.Kubeconfig(), nil)
	if !errors.Is(err, ErrNoFlux) {
		t.Errorf("cluster without Flux: got %v", err)
	}
}

// Where somebody has a part of Flux, it is neither used nor taken for none.
func TestPartOfFluxIsNotNone(t *testing.T) {
	group := func(name, version string) metav1.APIGroup {
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: name + "/" + version}}}
	}
	source, helm := group("source.toolkit.fluxcd.io", "v1"), group("helm.toolkit.fluxcd.io", "v2")
	for reason, test := range map[string]struct {
		served []metav1.APIGroup
		none   bool
		words  string
	}{
		"all":         {served: []metav1.APIGroup{source, helm}},
		"none":        {served: []metav1.APIGroup{group("apps", "v1")}, none: true, words: "has no Flux"},
		"sources":     {served: []metav1.APIGroup{source}, words: "serves source.toolkit.fluxcd.io and not helm.toolkit.fluxcd.io/v2"},
		"another":     {served: []metav1.APIGroup{group("kustomize.toolkit.fluxcd.io", "v1")}, words: "not source.toolkit.fluxcd.io/v1, helm.toolkit.fluxcd.io/v2"},
		"old version": {served: []metav1.APIGroup{source, group("helm.toolkit.fluxcd.io", "v2beta1")}, words: "and not helm.toolkit.fluxcd.io/v2"},
	} {
		err := hasFlux(test.served)
		if (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) || errors.Is(err, ErrNoFlux) != test.none {
			t.Errorf("%s: %v, want %q", reason, err, test.words)
		}
	}
}

// A start that fails names the cause and leaves nothing behind.
func TestStartFails(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{
		Dir:  dir + "/control",
		With: APIOnly(),
		Args: map[Component][]string{APIServer: {"--no-such-flag"}},
	})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("Start with a wrong flag: got %v", err)
	}
	if err := assertNoProcess(dir); err != nil {
		t.Error(err)
	}
}

// assertNoProcess looks for a process whose command line names dir.
func assertNoProcess(dir string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // only Linux lists processes there
	}
	for _, entry := range entries {
		command, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && strings.Contains(string(command), dir) {
			return fmt.Errorf("process %s is left: %q", entry.Name(), command)
		}
	}
	return nil
}
