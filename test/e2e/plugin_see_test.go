// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// deploymentRelease returns the manifest of a HelmRelease of a Deployment. One that
// is stuck has Pods for which there is no node.
func (f *fixture) deploymentRelease(name string, stuck bool) string {
	selector, timeout := "{}", "5m"
	if stuck {
		selector, timeout = "{disk: none-has-it}", "20s"
	}
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  timeout: %s
  chart:
    spec: {chart: deployment, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %s}}
  values: {nodeSelector: %s}
`, name, f.prefix, timeout, f.prefix, selector)
}

// fluxView makes a role by which Flux's objects may be viewed, and returns its name.
// Flux's own manifests aggregate one to view; here that would give the users of all
// tests a right that some of them must lack.
func (f *fixture) fluxView() string {
	f.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: f.prefix + "-flux-view"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"helm.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
	f.must(stack.client.Create(f.ctx, role))
	f.Cleanup(func() { _ = stack.client.Delete(f.ctx, role) })
	return role.Name
}

// What stands two layers up because of a Pod that no node takes is told by its name,
// to who may only view.
func TestThePluginNamesTheRootCause(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	revision := f.push(map[string]string{
		"base/release.yaml": f.deploymentRelease("base", false),
		"mesh/release.yaml": f.deploymentRelease("mesh", true),
		"mid/release.yaml":  f.configMapRelease("mid", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	f.layer("base")
	f.layer("mesh", f.dependsOn("base"))
	f.layer("mid", f.dependsOn("mesh@>=1.0 <2"))
	f.layer("apps", f.dependsOn("mid@1.0.0"))
	f.deployed("base", revision)
	base, mesh, mid, apps := f.name("base"), f.name("mesh"), f.name("mid"), f.name("apps")
	viewer := plugin{fixture: f, path: path}.of("viewer", "view", f.fluxView())

	viewer.expect(2, []string{
		apps + " <- " + mid + " <- " + mesh + " <- HelmRelease " + f.prefix + "/mesh <- Pod " + f.prefix + "/mesh-",
		"Unschedulable", "0/1 nodes are available", "Helm says: ", "because of " + mesh + ", this waits: 2 layers (" + apps + ", " + mid + "), 2 releases, on this cluster",
		"try: kubectl --namespace " + f.prefix + " describe pod mesh-",
	}, "why", apps)
	viewer.expect(2, []string{`"kind": "ReplicaSet"`, `"reason": "FailedScheduling"`}, "why", apps, "-o", "json")
	viewer.expect(0, []string{base + " is deployed", "others rely on it: 3 layers"}, "why", base)

	viewer.expect(0, []string{
		base + "@1.0.0 Deployed 1/1 ready", "comes from GitRepository " + f.prefix + "/addons ./base ok " + revision,
		"HelmRelease " + f.prefix + "/base 1.0.0 Ready", "Deployment " + f.prefix + "/base Ready",
	}, "tree", base, "--objects")
	viewer.expect(2, []string{
		"needs " + mid + "@1.0.0 closed", "needs " + mesh + "@>=1.0 <2 closed", "needs " + base + " ok 1.0.0 Deployed", "HelmRelease " + f.prefix + "/apps NotDeployed",
	}, "tree", apps, "--depth", "3")

	viewer.expect(0, []string{
		"Deployment " + f.prefix + "/mesh -> HelmRelease " + f.prefix + "/mesh 1.0.0 -> AddonsLayer " + mesh + "@1.0.0",
		"./mesh/release.yaml of GitRepository " + f.prefix + "/addons",
	}, "owner", "deploy/mesh", "-n", f.prefix)
	pods := &corev1.PodList{}
	f.must(stack.client.List(f.ctx, pods))
	for _, pod := range pods.Items {
		if pod.Namespace == f.prefix && strings.HasPrefix(pod.Name, "base-") {
			viewer.expect(0, []string{"Pod " + f.prefix + "/" + pod.Name + " -> ReplicaSet ", " -> Deployment " + f.prefix + "/base -> HelmRelease "}, "owner", "pod", pod.Name, "--namespace", f.prefix)
		}
	}
	viewer.expect(2, []string{"no layer has it"}, "owner", "namespace/default")
	viewer.expect(1, []string{"the cluster has no kind widgetry"}, "owner", "widgetry/x")

	viewer.expect(0, []string{
		"AGE TYPE OBJECT REASON COUNT MESSAGE", "AddonsLayer " + base, "HelmRelease " + f.prefix + "/base", "HelmChart " + f.prefix + "/", "ReplicaSet " + f.prefix + "/base-", "Pod " + f.prefix + "/base-",
	}, "events", base)
	viewer.expect(0, []string{"Pod " + f.prefix + "/mesh-", "FailedScheduling"}, "events", mesh, "--types", "Warning")
	for _, args := range [][]string{{"tree", apps, "--depth", "3"}, {"tree", mesh, "--objects"}, {"why", apps}, {"events", mesh}, {"owner", "deploy/mesh", "-n", f.prefix}} {
		_, output := viewer.run(args...)
		t.Logf("kubectl strata %s\n%s", strings.Join(args, " "), output)
	}

	// Whoever may view less is told what is missing, and sees the rest.
	less := plugin{fixture: f, path: path}.of("less", "strata-view")
	less.expect(2, []string{"you may not list ", "helmreleases.helm.toolkit.fluxcd.io", apps + " <- " + mid + " <- " + mesh + " <- HelmRelease " + f.prefix + "/mesh"}, "why", apps)
	less.expect(0, []string{"you may not list", "HelmRelease " + f.prefix + "/base Ready"}, "tree", base, "--objects")
	less.expect(1, []string{"get, list and watch on events"}, "events", base)
	less.expect(1, []string{"your rights do not suffice"}, "owner", "deploy/mesh", "-n", f.prefix)
}

// What Helm says of a chart that cannot be rendered is the root cause, and events are
// told as they happen.
func TestThePluginTellsEventsAsTheyHappen(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.push(map[string]string{"base/release.yaml": f.rejecting("base", "it is meant to fail")})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: 5 * time.Second} })
	base := f.name("base")
	viewer := plugin{fixture: f, path: path}.of("viewer", "view", f.fluxView())
	viewer.expect(2, []string{base + " <- HelmRelease " + f.prefix + "/base", "it is meant to fail", "try: kubectl strata events " + base}, "why", base)

	watching := viewer.command("events", base, "--watch", "--types", "Warning,Normal")
	out, err := watching.StdoutPipe()
	f.must(err)
	f.must(watching.Start())
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	f.line(lines, "InstallFailed")
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/hold":"looking around"}}}`)
	f.line(lines, "looking around")
	f.must(watching.Process.Signal(os.Interrupt))
	for range lines {
		continue // until it has ended
	}
	if err := watching.Wait(); err != nil {
		t.Errorf("an interrupted watch ended with %v", err)
	}
	viewer.expect(2, []string{base + " Hold", "try: kubectl strata resume " + base}, "why", base)
}

// Shells are told names by kubectl, which asks the same binary under another name.
func TestThePluginCompletes(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "x")})
	f.layer("base")
	f.state("base", v1alpha1.StateDeployed)
	viewer := plugin{fixture: f, path: path}.of("viewer", "view")
	f.must(os.Symlink(path, filepath.Join(filepath.Dir(path), "kubectl_complete-strata")))
	f.must(os.Symlink(path, filepath.Join(filepath.Dir(path), "flux-strata")))
	kubectl, err := controlplane.Binary("kubectl")
	f.must(err)
	for _, words := range [][]string{{"why", f.name("b")}, {"rollback", f.name("base"), "--to", ""}, {"tree", "--output", "y"}} {
		byKubectl := viewer.command(append([]string{"__complete", "strata"}, words...)...)
		byKubectl.Path = kubectl
		begun := time.Now()
		output, err := byKubectl.CombinedOutput()
		f.must(err)
		want := map[string]string{"why": f.name("base") + "\tDeployed 1.0.0", "rollback": "1\t1.0.0 Deployed", "tree": "yaml"}[words[0]]
		if !strings.Contains(string(output), want) {
			t.Errorf("%q is completed with %s", words, output)
		}
		t.Logf("kubectl __complete strata %s (%s)\n%s", strings.Join(words, " "), time.Since(begun), output)
	}
	flux := viewer.command("get", f.name("bsae"))
	flux.Path = filepath.Join(filepath.Dir(path), "flux-strata")
	flux.Args[0] = flux.Path
	if output, _ := flux.CombinedOutput(); !strings.HasPrefix(string(output), "flux strata: there is no layer") {
		t.Errorf("flux strata says %s", output)
	}
	script := viewer.command("completion", "bash")
	text, err := script.Output()
	if err != nil || !strings.Contains(string(text), "__start_kubectl-strata") {
		t.Errorf("a script of %d bytes: %v", len(text), err)
	}
}
