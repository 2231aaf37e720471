// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// The plug-in draws the layers that there are, and what is wrong with them.
func TestThePluginDraws(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "apps/release.yaml": f.configMapRelease("apps", "one"),
	})
	f.layer("base")
	f.layer("apps", f.dependsOn("base@>=1.0 <2", "gone"))
	f.deployed("base", revision)
	f.state("apps", v1alpha1.StateApplyPending)
	base, apps, gone := f.name("base"), f.name("apps"), f.name("gone")

	viewer := plugin{fixture: f, path: path}.of("viewer", "strata-view")
	viewer.expect(0, []string{
		"flowchart LR", base + "<br/>1.0.0<br/>Deployed 1/1", apps + "<br/>1.0.0<br/>ApplyPending", gone + "<br/>missing",
		`n2 -->|"#62;#61;1.0 #60;2"| n1`, `n3 -.->|"(missing)"| n1`,
	}, "graph", base, apps, "-o", "mermaid")
	viewer.expect(0, []string{"<title>" + apps + ", 1.0.0, ApplyPending", "there is no layer " + gone}, "graph", apps, "-o", "svg")
	code, output := viewer.run("graph", base)
	if code != 0 || !contains(output, "digraph", `label="`+base+`\n1.0.0\nDeployed 1/1"`) {
		t.Errorf("exit code %d: %s", code, output)
	}
	viewer.expect(1, []string{"there is no layer " + base + "s; did you mean " + base}, "graph", base+"s")
}

// A stack that is well is found well, but for what a test runs beside the cluster;
// whoever may read little is told what is not known.
func TestThePluginChecks(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	admin.expect(0, []string{
		"ok Kubernetes is v1.", "warn source-controller: its kinds are served, and there is no Deployment of it",
		"warn helm-controller: its kinds are served, and there is no Deployment of it",
	}, "check", "--pre")
	code, output := admin.run("check")
	if !contains(output, "ok    CRDs: all 9 are there", "ok    the controller's ClusterRoles have all rights", "ok    you may do what all commands need", strata.Namespace+"/strata of version") {
		t.Errorf("exit code %d: %s", code, output)
	}
	code, output = plugin{fixture: f, path: path}.of("nobody").run("check", "--pre")
	if code != 0 || !contains(output, "ok    Kubernetes is v1.", "whether it runs is not known", `cannot list resource "deployments"`) {
		t.Errorf("exit code %d: %s", code, output)
	}
}

// The plug-in installs Strata into a cluster with Flux's kinds and nothing else, and
// notices that there is nothing to do, what it lacks rights for, and what is older.
func TestThePluginInstalls(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	plane, err := controlplane.Start(f.ctx, controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true})
	f.must(err)
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	there, err := client.New(plane.Config(), client.Options{Scheme: stack.client.Scheme()})
	f.must(err)
	admin := plugin{fixture: f, path: path, kubeconfig: plane.Kubeconfig()}
	nobody, err := plane.User("nobody")
	f.must(err)
	writer, err := plane.User("writer")
	f.must(err)

	// Whoever lacks rights is told which, before anything is written.
	few := plugin{fixture: f, path: path, kubeconfig: nobody.Kubeconfig}
	few.expect(1, []string{"nothing was done, for you lack rights", "create customresourcedefinitions.apiextensions.k8s.io", "create secrets"}, "install", "--set", "image.repository=registry.example/strata")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps", "apiextensions.k8s.io", "rbac.authorization.k8s.io"}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	}}}
	f.must(there.Create(f.ctx, role))
	f.must(there.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "writer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "writer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "writer"}},
	}))
	plugin{fixture: f, path: path, kubeconfig: writer.Kubeconfig}.expect(1, []string{"you may not grant the controller what you may not do yourself"}, "install", "--set", "image.repository=registry.example/strata")
	namespace := &corev1.Namespace{}
	if err := there.Get(f.ctx, client.ObjectKey{Name: "strata-system"}, namespace); !apierrors.IsNotFound(err) {
		t.Errorf("something was written: %v", err)
	}

	code, output := admin.run("install", "--set", "replicas=2", "--set", "image.repository=registry.example/strata")
	if code != 0 || !contains(output, "Strata 0.", "is installed in the namespace strata-system") {
		t.Fatalf("exit code %d: %s", code, output)
	}
	deployment, crd := &appsv1.Deployment{}, &apiextensionsv1.CustomResourceDefinition{}
	f.must(there.Get(f.ctx, client.ObjectKey{Namespace: "strata-system", Name: "strata"}, deployment))
	f.must(there.Get(f.ctx, client.ObjectKey{Name: "strata"}, role))
	for _, name := range []string{"addonslayers", "remoteclusters", "helmapplications", "applicationbundles", "platforms", "clusterdiscoveries"} {
		f.must(there.Get(f.ctx, client.ObjectKey{Name: name + ".kraan.io"}, crd))
	}
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *deployment.Spec.Replicas)
	}
	admin.expect(0, []string{"nothing has changed", "(revision 1)"}, "install")
	admin.expect(0, []string{"nothing has changed", "(revision 1)"}, "install", "--set", "replicas=2")

	// A CRD and a role in which somebody has removed something are brought up to date
	// where that is asked for.
	f.must(there.Get(f.ctx, client.ObjectKey{Name: "addonslayers.kraan.io"}, crd))
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	delete(spec.Properties, "rollback")
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	f.must(there.Update(f.ctx, crd))
	role.Rules = role.Rules[1:]
	f.must(there.Update(f.ctx, role))
	code, output = admin.run("check")
	if code != 2 || !contains(output, "addonslayers.kraan.io is older than the plug-in: it lacks spec.rollback", "do not let it ", "strata-system/strata of version", "is not ready") {
		t.Errorf("exit code %d: %s", code, output)
	}
	admin.expect(1, []string{"give --take-ownership", "conflict with", ".rules"}, "install")
	code, output = admin.run("install", "--set", "controller.concurrent=5", "--take-ownership")
	if code != 0 || !contains(output, "is changed in the namespace strata-system") {
		t.Errorf("exit code %d: %s", code, output)
	}
	f.must(there.Get(f.ctx, client.ObjectKey{Namespace: "strata-system", Name: "strata"}, deployment))
	args := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args, " ")
	if *deployment.Spec.Replicas != 2 || !strings.Contains(args, "--concurrent=5") {
		t.Errorf("the values have not been added: %d replicas, %s", *deployment.Spec.Replicas, args)
	}
	code, output = admin.run("check")
	if code != 2 || !contains(output, "ok    CRDs: all 9 are there", "ok    the controller's ClusterRoles have all rights") {
		t.Errorf("exit code %d: %s", code, output)
	}
}
