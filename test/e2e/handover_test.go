// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/test/controlplane"
)

// kustomizeController runs Flux's own controller of Kustomizations once, for all tests that
// need it. It ends with the control plane.
var kustomizeController = sync.OnceValue(func() error {
	binary, err := controlplane.Binary("kustomize-controller")
	if err != nil {
		return err
	}
	crds, err := controlplane.Binary(cache.KustomizeCRDs)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := stack.plane.InstallCRDs(ctx, crds); err != nil {
		return err
	}
	identity, err := stack.plane.User("kustomize-controller", "system:masters")
	if err != nil {
		return err
	}
	metrics, _, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	health, _, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	runner, err := controlplane.NewRunner(controlplane.Program{
		Name: "kustomize-controller", Path: binary, Dir: filepath.Join(stack.plane.Dir(), "kustomize"),
		Args: []string{
			"--watch-all-namespaces=true", "--requeue-dependency=2s", "--metrics-addr=" + controlplane.Loopback(metrics), "--health-addr=" + controlplane.Loopback(health),
		},
		Env: []string{"KUBECONFIG=" + identity.Kubeconfig, "RUNTIME_NAMESPACE=" + controlplane.FluxNamespace},
		Healthy: func(ctx context.Context) error {
			return controlplane.Healthy(ctx, "http://"+controlplane.Loopback(health)+"/readyz")
		},
	})
	if err != nil {
		return err
	}
	stack.kustomize = runner
	return runner.Start(ctx)
})

// handOver is a tree of three Kustomizations that Flux runs: the first one applies the
// second, and that one the third.
type handOver struct {
	*fixture
	plugin plugin
	files  map[string]string
	names  []string
}

func newHandOver(t *testing.T) *handOver {
	t.Helper()
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	h := &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("migrator", "cluster-admin"), names: []string{f.name("top"), f.name("middle"), f.name("leaf")}}
	h.files = map[string]string{
		"top/ks.yaml": h.manifest("middle"), "top/settings.yaml": h.settings("top", "one", "two", "three"),
		"middle/ks.yaml": h.manifest("leaf"), "middle/settings.yaml": h.settings("middle", "one", "two", "three"),
		"leaf/settings.yaml": h.settings("leaf", "one", "two", "three"), "leaf/extra.yaml": h.settings("extra", "one"), "leaf/more.yaml": h.settings("more", "one"),
		"leaf/first.yaml":  strings.Replace(f.configMapRelease("first", "one"), ", namespace: "+f.prefix+"}\nspec", "}\nspec", 1),
		"leaf/second.yaml": strings.Replace(f.releaseDependingOn("second", "one", "first"), ", namespace: "+f.prefix+"}\nspec", "}\nspec", 1),
	}
	revision := f.push(h.files)
	top := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal([]byte(h.manifest("top")), &top.Object))
	f.must(stack.client.Create(f.ctx, top))
	f.Cleanup(func() {
		for _, name := range h.names {
			f.letGo(h.object(name))
		}
	})
	h.ready(revision)
	for _, name := range []string{"first", "second"} {
		h.eventually("HelmRelease "+name+" is ready", func() error {
			if ready := meta.FindStatusCondition(h.release(name).Status.Conditions, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue {
				return fmt.Errorf("it is not: %v", ready)
			}
			return nil
		})
	}
	return h
}

// manifest returns a Kustomization of the fixture.
func (h *handOver) manifest(name string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  path: ./%s
  prune: true
  targetNamespace: %[2]s
  sourceRef: {kind: GitRepository, name: addons}
  postBuild: {substitute: {who: everybody}}
`, h.name(name), h.prefix, name)
}

// settings returns a ConfigMap with some keys.
func (h *handOver) settings(name string, keys ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n"
	for _, key := range keys {
		text += "  " + key + ": ${who}\n"
	}
	return text
}

func (h *handOver) object(name string) *unstructured.Unstructured {
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
	of.SetNamespace(h.prefix)
	of.SetName(name)
	return of
}

// ready waits until Flux has applied a revision with each Kustomization.
func (h *handOver) ready(revision string) {
	h.Helper()
	for _, name := range h.names {
		h.eventually("Kustomization "+name+" is ready", func() error {
			live := h.object(name)
			if err := stack.client.Get(h.ctx, types.NamespacedName{Namespace: h.prefix, Name: name}, live); err != nil {
				return err
			}
			applied, _, _ := unstructured.NestedString(live.Object, "status", "lastAppliedRevision")
			conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
			for _, each := range conditions {
				if c, _ := each.(map[string]any); c["type"] == "Ready" && c["status"] == "True" && applied == revision {
					return nil
				}
			}
			return fmt.Errorf("it is at %s: %v", applied, conditions)
		})
	}
}

// gone waits until there is none of the Kustomizations.
func (h *handOver) gone() {
	h.Helper()
	for _, name := range h.names {
		h.eventually("Kustomization "+name+" is gone", func() error {
			err := stack.client.Get(h.ctx, types.NamespacedName{Namespace: h.prefix, Name: name}, h.object(name))
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
	}
}

// state says of every object what must stay, by its name: UID, generation where there is
// one, what it holds, and when that was applied; and who has it, by labels and the managers that apply it.
func (h *handOver) state() (stays, owners map[string]string) {
	h.Helper()
	stays, owners = map[string]string{}, map[string]string{}
	for kind, names := range map[schema.GroupVersionKind][]string{
		{Version: "v1", Kind: "ConfigMap"}:                                    {"top", "middle", "leaf", "extra", "more"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}: {"first", "second"},
	} {
		for _, name := range names {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(kind)
			if err := stack.client.Get(h.ctx, types.NamespacedName{Namespace: h.prefix, Name: name}, live); err != nil {
				stays[name] = err.Error()
				continue
			}
			spec, _, _ := unstructured.NestedMap(live.Object, "spec")
			var appliers []string
			var applied []metav1.Time
			for _, entry := range live.GetManagedFields() {
				if entry.Operation == metav1.ManagedFieldsOperationApply {
					appliers, applied = append(appliers, entry.Manager), append(applied, *entry.Time)
				}
			}
			// An apply that has found something to write has another time.
			stays[name] = fmt.Sprint(live.GetUID(), live.GetGeneration(), live.Object["data"], spec, applied)
			labels := live.GetLabels()
			owners[name] = fmt.Sprintf("%v layer %s Kustomization %s", appliers, labels[v1alpha1.LayerLabel], labels["kustomize.toolkit.fluxcd.io/name"])
		}
	}
	return stays, owners
}

// histories counts the revisions of Helm.
func (h *handOver) histories() int {
	return len(h.helmHistory("first")) + len(h.helmHistory("second"))
}

// ownRights says to import flux that kustomize-controller applies with its own rights:
// it is a process here, and no Deployment shows its flags.
const ownRights = "--default-service-account="

// A tree of Kustomizations is handed over in place, by a command that is killed again and
// again, and given back in the same way. Nothing is installed, upgraded or changed, and
// whoever has the objects removes what leaves git.
func TestKustomizationsAreHandedOverAndBack(t *testing.T) {
	h := newHandOver(t)
	stays, _ := h.state()
	if h.histories() != 2 {
		t.Fatalf("Helm has %d revisions", h.histories())
	}
	code, text := h.plugin.run(append([]string{"import", "flux", ownRights, "--take-over"}, h.names...)...)
	if code != 0 || !strings.Contains(text, "Nothing was changed. Add --yes") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if code, text := h.plugin.run("import", "flux", ownRights, "--take-over", h.names[1], "--yes"); code != 1 || !strings.Contains(text, "would wait for layer "+h.names[0]+", which is not there") {
		t.Errorf("a child before its parent: exit code %d: %s", code, text)
	}

	h.interrupted(append([]string{"import", "flux", ownRights, "--yes", "--take-over"}, h.names...)...)
	h.gone()
	got, owners := h.state()
	if diff := cmp.Diff(stays, got); diff != "" || h.histories() != 2 {
		t.Errorf("Helm has %d revisions, -before +after:\n%s", h.histories(), diff)
	}
	for name, owner := range owners {
		if want := "[strata] layer " + h.layerOf(name) + " Kustomization "; owner != want {
			t.Errorf("%s is of %q, want %q", name, owner, want)
		}
	}

	// What leaves git goes.
	h.edit("leaf", `{"spec":{"orphanGrace":"1s"}}`)
	h.files["leaf/settings.yaml"] = h.settings("leaf", "one", "two")
	maps.DeleteFunc(h.files, func(name, _ string) bool { return name == "leaf/extra.yaml" })
	h.remove("leaf/extra.yaml")
	revision := h.push(h.files)
	for _, name := range []string{"top", "middle", "leaf"} {
		h.deployed(name, revision)
	}
	h.keysOf("leaf", "one", "two")

	// And back, with one that is left out first.
	if code, text := h.plugin.run("import", "flux", "--undo", h.names[0], "--yes"); code == 0 || !strings.Contains(text, "depends on "+h.names[0]+": name it, too") {
		t.Errorf("what others depend on: exit code %d: %s", code, text)
	}
	stays, _ = h.state()
	h.interrupted(append([]string{"import", "flux", "--yes", "--undo"}, h.names...)...)
	h.ready(revision)
	got, owners = h.state()
	if diff := cmp.Diff(stays, got); diff != "" || h.histories() != 2 {
		t.Errorf("Helm has %d revisions, -before +after:\n%s", h.histories(), diff)
	}
	for name, owner := range owners {
		if want := "[kustomize-controller] layer  Kustomization " + h.layerOf(name); owner != want {
			t.Errorf("%s is of %q, want %q", name, owner, want)
		}
	}
	for _, name := range []string{"top", "middle", "leaf"} {
		if err := stack.client.Get(h.ctx, types.NamespacedName{Name: h.name(name)}, &v1alpha1.AddonsLayer{}); !apierrors.IsNotFound(err) {
			t.Errorf("layer %s is there: %v", name, err)
		}
	}
	h.files["leaf/settings.yaml"] = h.settings("leaf", "one")
	h.remove("leaf/more.yaml")
	delete(h.files, "leaf/more.yaml")
	h.ready(h.push(h.files))
	h.keysOf("leaf", "one")
	h.eventually("what left git is removed", func() error {
		if h.configMap("more") != nil {
			return fmt.Errorf("more is there")
		}
		return nil
	})
}

// What something that goes on applies comes back when it is deleted: it stays suspended
// until nothing makes it again.
func TestKustomizationThatComesBackStaysSuspended(t *testing.T) {
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	h := &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("migrator", "cluster-admin"), names: []string{f.name("wrap"), f.name("inner")}}
	wrap := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal([]byte(h.manifest("wrap")), &wrap.Object))
	revision := f.push(map[string]string{"wrap/ks.yaml": h.manifest("inner"), "inner/settings.yaml": h.settings("settings", "one")})
	f.must(stack.client.Create(f.ctx, wrap))
	f.Cleanup(func() {
		for _, name := range h.names {
			f.letGo(h.object(name))
		}
	})
	h.ready(revision)

	h.plugin.expect(2, []string{"take Kustomization " + f.prefix + "/" + h.names[1] + " out of git"}, "import", "flux", ownRights, "--take-over", h.names[1], "--yes")
	f.deployed("inner", revision)
	if live := h.object(h.names[1]); stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: h.names[1]}, live) != nil || !objects.IsSuspended(live) {
		t.Error("it is not suspended")
	}
	h.plugin.expect(2, []string{"is suspended.", "take Kustomization " + f.prefix + "/" + h.names[0] + " out of git"}, "import", "flux", ownRights, "--take-over", h.names[0], "--yes")
	h.plugin.expect(0, []string{"layer " + h.names[1] + " is deployed"}, "import", "flux", ownRights, "--take-over", h.names[1], "--yes")
	h.plugin.expect(0, []string{"has its objects again"}, "import", "flux", "--undo", h.names[1], h.names[0], "--yes")
	h.ready(revision)
	h.keysOf("settings", "one")
}

// layerOf returns the layer, and the Kustomization, that has an object.
func (h *handOver) layerOf(object string) string {
	switch object {
	case "top", "middle":
		return h.name(object)
	default:
		return h.name("leaf")
	}
}

// keysOf waits until a ConfigMap has some keys alone.
func (h *handOver) keysOf(name string, keys ...string) {
	h.Helper()
	want := map[string]string{}
	for _, key := range keys {
		want[key] = "everybody"
	}
	h.eventually("ConfigMap "+name+" has its keys", func() error {
		if diff := cmp.Diff(want, h.configMap(name)); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
}

// interrupted runs a command that is killed after ever longer times, until it ends by
// itself.
func (h *handOver) interrupted(args ...string) {
	h.Helper()
	for limit := 400 * time.Millisecond; ; limit += 400 * time.Millisecond {
		ctx, cancel := context.WithTimeout(h.ctx, limit)
		command := exec.CommandContext(ctx, h.plugin.path, args...)
		command.Env = h.plugin.command().Env
		text, err := command.CombinedOutput()
		killed := ctx.Err() != nil
		cancel()
		if err == nil {
			h.Logf("it ended by itself within %s", limit)
			return
		}
		if !killed {
			h.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, text)
		}
	}
}
