// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/test/browser"
)

// pageAddress is what kubectl strata ui prints.
var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+#act=\w+`)

// ui starts kubectl strata ui, which ends with the test, and returns the address that
// opens the page.
func (p plugin) ui(args ...string) string {
	p.Helper()
	return startUI(p, p.path, p.kubeconfig, args...)
}

func startUI(t testing.TB, path, kubeconfig string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(context.Background(), path, append([]string{"ui", "--open=false"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address := pageAddress.FindString(lines.Text()); address != "" {
			return address
		}
	}
	t.Fatal("kubectl strata ui has printed no address")
	return ""
}

// labelled has a layer be of the test's team.
func (f *fixture) labelled(layer *v1alpha1.AddonsLayer) {
	if layer.Labels == nil {
		layer.Labels = map[string]string{}
	}
	layer.Labels["team"] = f.prefix
}

// pool makes a node that takes Pods of the test alone, and returns what cordons it, or takes
// it back into use.
func (f *fixture) pool() (cordon func(bool)) {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: f.prefix + "-node", Labels: map[string]string{"pool": f.prefix}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	node.Spec.Taints = []corev1.Taint{{Key: "pool", Value: f.prefix, Effect: corev1.TaintEffectNoSchedule}}
	f.must(stack.client.Create(f.ctx, node))
	f.Cleanup(func() { _ = stack.client.Delete(f.ctx, node) })
	return func(unschedulable bool) {
		f.Helper()
		f.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable))
	}
}

// pooled returns a HelmRelease with a Deployment whose Pods go to the pool of the test.
func (f *fixture) pooled(name string) string {
	f.Helper()
	return strings.Replace(f.deploymentRelease(name, false), "{nodeSelector: {}}",
		fmt.Sprintf("{nodeSelector: {pool: %s}, tolerations: [{key: pool, value: %s, effect: NoSchedule}]}", f.prefix, f.prefix), 1)
}

// The page shows how layers get on while they do, names the Pod that no node takes once
// that is cordoned, says what the plug-in says, and is used by the keyboard alone.
func TestThePageFollowsTheCluster(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	base, mesh, apps := f.name("base"), f.name("mesh"), f.name("apps")
	viewer := plugin{fixture: f, path: path}.of("viewer", "view", f.fluxView())
	address := viewer.ui("-l", "team="+f.prefix)
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "0 clusters, no layers")
	tab.Says(".empty", "There are no layers yet")

	revision := f.push(map[string]string{
		"base/release.yaml": f.pooled("base"),
		"mesh/release.yaml": f.pooled("mesh"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	cordon := f.pool()
	f.layer("base", f.labelled)
	f.layer("apps", f.labelled, f.dependsOn("mesh"))
	node := func(name string) string { return fmt.Sprintf("[data-layer=%q]", name) }
	tab.Says(node(apps), "ApplyPending")
	f.deployed("base", revision)
	tab.Says(node(base)+".Well", "Deployed 1/1")
	cordon(true)
	f.layer("mesh", f.labelled, f.dependsOn("base"))
	// The Pod is named while the layer's own time is not over yet.
	tab.Says("h1", "1 waits for "+mesh+"; "+mesh+" waits: Pod mesh-")
	tab.Says("h1", "cannot be scheduled")
	tab.Until("document.title.startsWith('!') || document.title.startsWith('✕')")
	tab.Until("document.getElementById('icon').href.match(/icon-(waiting|failed)/)")
	tab.Until(`document.querySelectorAll(".edge.lit").length === 1`)

	// By the keyboard alone: from layer to layer, and to one by its name.
	tab.Until(fmt.Sprintf("(document.querySelector(%q).focus(), document.activeElement.dataset.layer === %q)", node(base), base))
	tab.Press(browser.Right)
	tab.Until(fmt.Sprintf("document.activeElement.dataset.layer === %q", mesh))
	tab.Press(browser.Enter)
	tab.Says(".panel h2", mesh)
	tab.Says(".chain", "FailedScheduling")
	tab.Says(".line", "FailedScheduling")
	tab.Says(".line", "AddonsLayer "+mesh)
	tab.Press(browser.Escape)
	tab.Until("!document.querySelector('.panel')")
	tab.Press("/")
	tab.Until("document.activeElement.matches('.palette input')")
	tab.Press(apps)
	tab.Says("[role=option][aria-selected=true]", apps)
	tab.Press(browser.Enter)
	tab.Says(".panel h2", apps)
	tab.Says(".chain .end", "nodes are available")
	tab.Until(fmt.Sprintf("location.pathname === '/layers/%s'", apps))
	tab.Accessible("a layer that waits")

	// What the page was sent is what the plug-in says.
	f.eventually("page and plug-in say the same", func() error {
		var shown, said why.Answer
		text := browser.Value[string](tab, fmt.Sprintf(`(async () => {
			const reader = (await fetch("/stream?layer=%s")).body.getReader();
			let text = "";
			while (!text.includes("\n\n")) text += new TextDecoder().decode((await reader.read()).value);
			reader.cancel();
			return JSON.stringify(JSON.parse(text.slice("data: ".length, text.indexOf("\n\n"))).set.layer.why);
		})()`, apps))
		_, output := viewer.run("why", apps, "-o", "json")
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(output), &said); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		if diff := cmp.Diff(said, shown); diff != "" {
			return fmt.Errorf("they differ, -plug-in +page:\n%s", diff)
		}
		return nil
	})

	f.eventually("page and plug-in have the same verdict", func() error {
		_, output := viewer.run("status", "-l", "team="+f.prefix, "-o", "json")
		var said verdict.Verdict
		if err := json.Unmarshal([]byte(output), &said); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		if shown := browser.Value[string](tab, "document.querySelector('h1').textContent"); shown != said.Sentence || said.Layers != 3 {
			return fmt.Errorf("the page says %q, and the plug-in of %d layers %q", shown, said.Layers, said.Sentence)
		}
		return nil
	})

	f.hold("apps")
	tab.Says(node(apps), "Hold")
	tab.Says(".panel .facts", "Hold")
	tab.Says(".panel .commands", "kubectl strata resume "+apps)
	tab.Press(browser.Escape)
	f.resume("apps")
	tab.Says(node(apps), "ApplyPending")
	cordon(false)
	tab.Says(node(apps)+".Well", "Deployed 1/1")
	tab.Says("h1", "3 layers: 3 deployed")
	tab.Until("document.title.startsWith('✓')")
	tab.Until(fmt.Sprintf("(document.querySelector(%q).click(), true)", node(base)))
	tab.Says(".line .deployment", "deployment 1")
	tab.Says(".line .deployment", revision)
	// What Helm has made is shown with its state, as it is now.
	tab.Says(".panel .tree details li:has(.icon.Well)", "Deployment "+f.prefix+"/base")
	cordon(true)
	f.must(stack.client.DeleteAllOf(f.ctx, &corev1.Pod{}, client.InNamespace(f.prefix), client.MatchingLabels{"app.kubernetes.io/instance": "base"}))
	tab.Says(".panel .tree details[open] li:has(.icon.Moving)", "InProgress")
	cordon(false)
	tab.Says(".panel .tree details li:has(.icon.Well)", "Deployment "+f.prefix+"/base")
}

// Whoever may not see something is told that, and is shown nothing of it.
func TestThePageShowsWhatItsUserMaySee(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.push(map[string]string{"secret/release.yaml": f.deploymentRelease("secret", true)})
	f.layer("secret", f.labelled)
	nobody := plugin{fixture: f, path: path}.of("nobody").ui("-l", "team="+f.prefix)
	tab := browser.Open(t)
	tab.Go(nobody)
	tab.Says("h1", "you may not list")
	tab.Says("h1", "addonslayers.kraan.io")
	if text := browser.Value[string](tab, "document.body.innerText"); regexp.MustCompile(f.name("secret")).MatchString(text) {
		t.Errorf("what may not be seen is shown:\n%s", text)
	}

	// Layers alone, and nothing of what they are made of.
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: f.prefix + "-layers"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"kraan.io"}, Resources: []string{"addonslayers"}, Verbs: []string{"get", "list", "watch"}}},
	}
	f.must(stack.client.Create(f.ctx, role))
	f.Cleanup(func() { _ = stack.client.Delete(f.ctx, role) })
	tab.Go(plugin{fixture: f, path: path}.of("some", role.Name).ui("-l", "team="+f.prefix))
	tab.Says("h1", "1 cluster, 1 layer: ")
	tab.Says("h1", "not counted, because you may not list them: ")
	tab.Says("h1", "helmreleases.helm.toolkit.fluxcd.io")
	tab.Says(".node", "secret")
	tab.Until("!document.querySelector('h1').textContent.includes('Pod')")
	tab.Click(fmt.Sprintf("[data-layer=%q]", f.name("secret")))
	tab.Says(".panel .tree", "HelmRelease")
	tab.Until("!document.querySelector('.panel .tree').textContent.includes('1.0.0')")

	// In one namespace HelmReleases may be listed: that of the layer is opened, and those of
	// others stay closed. The plug-in opens it in the same way.
	owner := plugin{fixture: f, path: path}.of("owner", role.Name)
	releases := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "releases"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}, Verbs: []string{"get", "list", "watch"}}},
	}
	f.must(stack.client.Create(f.ctx, releases))
	f.must(stack.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "releases"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "releases"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.prefix + "-owner"}},
	}))
	tab.Go(owner.ui("-l", "team="+f.prefix))
	tab.Says("h1", "helmreleases.helm.toolkit.fluxcd.io")
	tab.Click(fmt.Sprintf("[data-layer=%q]", f.name("secret")))
	tab.Says(".panel .tree", "1.0.0")
	owner.expect(2, []string{"HelmRelease " + f.prefix + "/secret 1.0.0"}, "tree", f.name("secret"))
	tab.Go("about:blank") // The tab outlives what serves the page.
}
