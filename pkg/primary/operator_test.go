// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/reads"
)

// operators is where the example is.
const operators = "../../examples/operator"

// operator is the example's program, built once.
var operator = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "strata-operator-")
	if err != nil {
		return "", err
	}
	built := filepath.Join(dir, "operator")
	reads.AddPrograms(operators, ".")
	out, err := exec.Command("go", "build", "-C", operators, "-trimpath", "-o", built, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return built, nil
})

// runOperator runs the example as its own account, with the rights of its ClusterRole alone, until
// the function that it returns kills it.
func (f *fixture) runOperator() (kill func()) {
	f.Helper()
	program, err := operator()
	f.must(err)
	f.Cleanup(func() { f.must(os.RemoveAll(filepath.Dir(program))) })
	loaded, err := clientcmd.LoadFromFile(plane.Kubeconfig())
	f.must(err)
	for _, user := range loaded.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + f.namespace + ":websites"
	}
	as := filepath.Join(f.TempDir(), "kubeconfig")
	f.must(clientcmd.WriteToFile(*loaded, as))
	var said bytes.Buffer
	process := exec.Command(program)
	process.Env = append(os.Environ(), "KUBECONFIG="+as)
	process.Stdout, process.Stderr = &said, &said
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	f.must(process.Start())
	kill = sync.OnceFunc(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if f.Failed() {
			f.Logf("the operator has said: %s", said.String())
		}
	})
	f.Cleanup(kill)
	return kill
}

// site reads a Website.
func (f *fixture) site(name string) *unstructured.Unstructured {
	f.Helper()
	site := &unstructured.Unstructured{}
	site.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"})
	f.must(f.client.Get(f.ctx, f.key(name), site))
	return site
}

// siteSays waits until a Website says something of its condition Ready.
func (f *fixture) siteSays(name, reason string, words ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%s says %s %q", name, reason, words), func() error {
		site := f.site(name)
		list, _, _ := unstructured.NestedSlice(site.Object, "status", "conditions")
		for _, item := range list {
			of, _ := item.(map[string]any)
			if of["type"] != "Ready" || of["reason"] != reason || of["observedGeneration"] != site.GetGeneration() {
				continue
			}
			message, _ := of["message"].(string)
			for _, word := range words {
				if !strings.Contains(message, word) {
					return fmt.Errorf("it says %s", message)
				}
			}
			return nil
		}
		return fmt.Errorf("it says %v", list)
	})
}

// The operator of docs/engine.md, as a program with its own rights on a real API server: it
// makes what a website wants in order, says what it waits for, takes back what others change,
// and leaves what is not its own; killed in between, it goes on.
func TestExampleOperator(t *testing.T) {
	f := newFixture(t)
	role := &rbacv1.ClusterRole{}
	file, err := os.ReadFile(filepath.Join(operators, "website.yaml"))
	f.must(err)
	_, text, _ := bytes.Cut(file, []byte("\n---\n"))
	f.must(yaml.Unmarshal(text, role))
	f.must(f.client.Create(f.ctx, role))
	f.Cleanup(func() { _ = f.client.Delete(t.Context(), role) })
	f.must(f.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "websites"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "websites"}},
	}))
	site := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Website", "metadata": map[string]any{"name": "home", "namespace": f.namespace},
		"spec": map[string]any{"page": "", "certificate": "tls"},
	}}
	f.must(f.client.Create(f.ctx, site))
	change := func(patch string) {
		t.Helper()
		f.must(f.client.Patch(f.ctx, f.site("home"), client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	kill := f.runOperator()
	f.siteSays("home", "Invalid", "spec.page: a website without a page has nothing to say")

	t.Log("the servers come before the service, which waits for them")
	change(`{"spec":{"page":"hello"}}`)
	f.siteSays("home", "Progressing", "Deployment "+f.namespace+"/home")
	servers := &appsv1.Deployment{}
	f.eventually("the servers are there", func() error { return f.client.Get(f.ctx, f.key("home"), servers) })
	if *servers.Spec.Replicas != 1 {
		t.Errorf("there are %d servers", *servers.Spec.Replicas)
	}
	if err := f.client.Get(f.ctx, f.key("home"), &corev1.Service{}); err == nil {
		t.Error("the service is there before its servers")
	}
	f.available(servers)
	f.siteSays("home", "Progressing", "Secret "+f.namespace+"/tls does not exist yet")
	f.must(f.client.Get(f.ctx, f.key("home"), &corev1.Service{}))

	t.Log("somebody makes the certificate")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "tls"}}
	f.must(f.client.Create(f.ctx, secret))
	f.siteSays("home", "Ready")
	if url, _, _ := unstructured.NestedString(f.site("home").Object, "status", "url"); url != "http://home."+f.namespace+".svc" {
		t.Errorf("the site is at %q", url)
	}

	f.eventually("an event tells of it", func() error {
		told := &corev1.EventList{}
		f.must(f.client.List(f.ctx, told, client.InNamespace(f.namespace)))
		for _, each := range told.Items {
			if each.InvolvedObject.Kind == "Website" && each.Reason == "Ready" && each.Type == corev1.EventTypeNormal {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(told.Items))
	})

	t.Log("what others change is taken back, also by one that was killed")
	kill()
	pages := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "home"}}
	f.must(f.client.Patch(f.ctx, pages, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"index.html":"defaced"}}`))))
	kill = f.runOperator()
	f.eventually("the page is back", func() error {
		f.must(f.client.Get(f.ctx, f.key("home"), pages))
		if pages.Data["index.html"] != "hello" {
			return fmt.Errorf("it says %s", pages.Data["index.html"])
		}
		return nil
	})

	t.Log("with the website all goes but what is somebody else's")
	f.must(f.client.Delete(f.ctx, f.site("home")))
	f.gone(&appsv1.Deployment{}, "home")
	f.gone(&corev1.Service{}, "home")
	f.gone(&corev1.ConfigMap{}, "home")
	f.gone(site, "home")
	f.must(f.client.Get(f.ctx, f.key("tls"), secret))
	kill()
	if lines := f.lines(filepath.Join(operators, "main.go")); lines > 150 {
		t.Errorf("the operator has %d lines", lines)
	}
}

// available says, as the controller of Deployments would, that the servers are up.
func (f *fixture) available(servers *appsv1.Deployment) {
	f.Helper()
	patched := servers.DeepCopy()
	patched.Status = appsv1.DeploymentStatus{
		ObservedGeneration: servers.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	f.must(f.client.Status().Patch(f.ctx, patched, client.MergeFrom(servers)))
}

func (f *fixture) lines(file string) int {
	f.Helper()
	text, err := os.ReadFile(file)
	f.must(err)
	if len(text) == 0 {
		f.must(errors.New("the file is empty"))
	}
	return bytes.Count(text, []byte("\n"))
}
