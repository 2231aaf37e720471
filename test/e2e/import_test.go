// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/strata-project/strata/api/v1alpha1"
)

// helmInstall installs a chart of the stack's repository as people do, with Helm
// alone.
func (f *fixture) helmInstall(name, chart, version string, values map[string]any) {
	f.Helper()
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, fmt.Sprintf("%s/%s-%s.tgz", stack.charts.URL(), chart, version), nil)
	f.must(err)
	response, err := http.DefaultClient.Do(request)
	f.must(err)
	defer func() { _ = response.Body.Close() }()
	loaded, err := loader.LoadArchive(response.Body)
	f.must(err)
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig := stack.plane.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &f.prefix
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil)))
	f.must(config.Init(flags, f.prefix, "secret"))
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy = name, f.prefix, kube.HookOnlyStrategy
	_, err = install.RunWithContext(f.ctx, loaded, values)
	f.must(err)
}

// identities says of objects that charts have made which ones they are, and what
// they hold.
func (f *fixture) identities(names ...string) map[string]string {
	f.Helper()
	found := map[string]string{}
	for _, name := range names {
		for kind, obj := range map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}} {
			if f.absent(obj, name) {
				continue
			}
			text := fmt.Sprintf("%s %s", obj.GetUID(), obj.GetCreationTimestamp().Time)
			if data, is := obj.(*corev1.ConfigMap); is {
				text += fmt.Sprint(data.Data)
			}
			found[kind+" "+name] = text
		}
	}
	return found
}

// folder returns the files of a folder, below a name.
func (f *fixture) folder(path, below string) map[string]string {
	f.Helper()
	files := map[string]string{}
	f.must(filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		relative, _ := filepath.Rel(path, name)
		files[filepath.ToSlash(filepath.Join(below, relative))] = string(text)
		return err
	}))
	return files
}

func (f *fixture) kubectlApply(args ...string) {
	f.Helper()
	if output, err := f.kubectl(append([]string{"apply"}, args...)...).CombinedOutput(); err != nil {
		f.Fatalf("kubectl apply %v: %v\n%s", args, err, output)
	}
}

// What Helm alone has installed becomes a layer, and no object notices.
func TestImportHelmInstallsNothingAgain(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.helmInstall("settings", "configmap", "1.0.0", map[string]any{"data": map[string]any{"value": "one", "password": "hunter2", "small": int64(42)}})
	f.helmInstall("web", "podinfo", "5.0.0", map[string]any{"message": "on"})
	f.helmInstall("numbers", "configmap", "1.0.0", map[string]any{"data": map[string]any{"million": int64(1000000)}})
	before := f.identities("settings", "web", "numbers")
	if len(before) != 4 {
		t.Fatalf("Helm has made %v", before)
	}

	into, secrets := filepath.Join(t.TempDir(), "addons"), filepath.Join(t.TempDir(), "secrets")
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	args := []string{"import", "helm", "-n", f.prefix, "--into", into, "--layer", f.name("imported"), "--source", f.prefix + "/addons", "--secrets-into", secrets}
	code, output := admin.run(args...)
	t.Logf("exit code %d\n%s", code, output)
	if code != 2 || !contains(output, "3 of 3 releases would be adopted", "look at data.million of "+f.prefix+"/numbers") {
		t.Fatalf("exit code %d", code)
	}
	files := f.folder(into, "addons")
	for name, text := range files {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s holds a password", name)
		}
	}
	numbers := "addons/" + f.name("imported") + "/" + f.prefix + "/helmrelease-numbers.yaml"
	if !strings.Contains(files[numbers], "million: 1000000\n") {
		t.Errorf("%s is %s", numbers, files[numbers])
	}

	revision := f.push(files)
	f.kubectlApply("--recursive", "-f", secrets)
	f.kubectlApply("-f", filepath.Join(into, "layers.yaml"))
	f.deployed("imported", revision)
	after := f.identities("settings", "web", "numbers")
	t.Logf("numbers was %s and is %s", before["ConfigMap numbers"], after["ConfigMap numbers"])
	delete(before, "ConfigMap numbers")
	delete(after, "ConfigMap numbers")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	for _, name := range []string{"settings", "web"} {
		history := f.helmHistory(name)
		if len(history) != 2 || history[0].status != "superseded" || history[1].status != "deployed" {
			t.Errorf("Helm's history of %s is %v", name, history)
		}
	}
	if code, output := admin.run(args...); code != 0 || !contains(output, "layer "+f.name("imported")+" has it", "0 of 3 releases would be adopted") {
		t.Errorf("once more: exit code %d: %s", code, output)
	}

	viewer := plugin{fixture: f, path: path}.of("viewer", "view")
	if code, output := viewer.run("import", "helm", "-n", f.prefix, "--dry-run"); code != 1 || !contains(output, "you may not list HelmReleases, so it cannot be known") {
		t.Errorf("somebody who may not see HelmReleases: exit code %d: %s", code, output)
	}
}

// The layers that Kraan has left are written as Strata wants them, and what was
// said of their releases comes true.
func TestImportKraanSaysWhatTakingOverDoes(t *testing.T) {
	f := newSerialFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.must(stack.controller.Stop(30 * time.Second))
	stopped := true
	start := func() {
		if stopped {
			stopped = false
			f.must(stack.controller.Start(f.ctx))
		}
	}
	defer start()
	files := map[string]string{
		"base/one.yaml": asKraanWrites(f.configMapRelease("one", "one")), "base/two.yaml": asKraanWrites(f.configMapRelease("two", "new")),
		"apps/three.yaml": asKraanWrites(f.configMapRelease("three", "three")),
	}
	revision := f.push(files)
	f.kraanLayer("base", orphanGrace(2*time.Second))
	f.kraanLayer("apps", f.dependsOn("base@1.0.0"))
	f.installedByKraan("base", files["base/one.yaml"], asKraanWrites(f.configMapRelease("two", "old")), f.configMapRelease("left", "left"))
	f.installedByKraan("apps", files["apps/three.yaml"])
	f.kraanStatus("base", revision, "left", "one", "two")
	f.kraanStatus("apps", revision, "three")
	before := f.identities("one", "two", "three")

	checkout, into := t.TempDir(), filepath.Join(t.TempDir(), "layers")
	for name, text := range files {
		f.must(os.MkdirAll(filepath.Join(checkout, filepath.Dir(name)), 0o750))
		f.must(os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600))
	}
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	code, output := admin.run("import", "kraan", f.name("base"), f.name("apps"), "--into", into, "--repository-dir", f.prefix+"/addons="+checkout)
	t.Logf("exit code %d\n%s", code, output)
	flat := strings.Join(strings.Fields(output), " ")
	for _, want := range []string{
		"/one configmap 1.0.0 adopt base/one.yaml nothing changes", "/two configmap 1.0.0 upgrade base/two.yaml git has something else in spec.values",
		"/left configmap 1.0.0 prune - no layer lists it", "/three configmap 1.0.0 adopt apps/three.yaml nothing changes", "2 of 4 releases would change",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if code != 2 {
		t.Errorf("exit code %d", code)
	}
	if code, output := admin.run("import", "kraan", f.name("apps"), "--dry-run", "--repository-dir", checkout); code != 0 || !contains(output, "Nothing would be installed again: 1 release") {
		t.Errorf("exit code %d: %s", code, output)
	}

	f.kubectlApply("-f", into)
	start()
	f.takenOver("base", revision)
	f.takenOver("apps", revision)
	for name, revisions := range map[string]int{"one": 1, "two": 2, "three": 1, "left": 0} {
		if history := f.helmHistory(name); len(history) != revisions {
			t.Errorf("Helm's history of %s is %v", name, history)
		}
	}
	if !f.absent(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{}}, "left") {
		t.Error("what no layer lists is there")
	}
	after := f.identities("one", "two", "three")
	for key, was := range before {
		uid, _, _ := strings.Cut(was, " ")
		if now, _, _ := strings.Cut(after[key], " "); now != uid {
			t.Errorf("%s was created again: %s, before %s", key, after[key], was)
		}
	}
	if got := f.get("base"); got.Generation != 1 || got.Labels[v1alpha1.LayerLabel] != "" {
		t.Errorf("applying what was written has changed the layer: generation %d", got.Generation)
	}
}
