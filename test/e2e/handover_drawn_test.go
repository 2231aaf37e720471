// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// drawnKustomizations are handed over together, and parents of them may apply others.
const (
	drawnKustomizations = 50
	parents             = 8
)

// drawKustomizations draws a tree of Kustomizations, each with ConfigMaps of its own: files,
// and the names, those that apply others first. It returns the first of all. The same seed gives the same ones.
func (h *handOver) drawKustomizations(seed uint64) (top *unstructured.Unstructured) {
	r := rand.New(rand.NewPCG(seed, 0))
	is := func(percent int) bool { return r.IntN(100) < percent }
	h.files = map[string]string{}
	children := map[int][]string{}
	for i := range drawnKustomizations {
		short := fmt.Sprintf("k%d", i)
		name := h.name(short)
		spec := map[string]any{
			"interval": "1h", "path": "./" + short, "prune": true, "targetNamespace": h.prefix, "wait": is(30),
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"},
		}
		parent := 0
		if i > 0 {
			parent = r.IntN(min(i, parents))
			// A brother comes first, which waits for none of its own.
			if before := children[parent]; len(before) > 0 && is(25) {
				spec["dependsOn"] = []any{map[string]any{"name": before[r.IntN(len(before))]}}
			}
			children[parent] = append(children[parent], name)
		}
		if is(50) {
			spec["postBuild"] = map[string]any{"substitute": map[string]any{"who": short}}
		}
		if i >= parents && is(30) {
			spec["nameSuffix"] = "-post" // others would be of another name
		}
		if is(30) {
			spec["commonMetadata"] = map[string]any{"labels": map[string]any{"team": "shop"}}
		}
		if is(30) {
			spec["patches"] = []any{map[string]any{
				"target": map[string]any{"kind": "ConfigMap"}, "patch": "- {op: add, path: /data/patched, value: 'yes'}\n",
			}}
		}
		for _, each := range []string{"one", "two"}[:1+r.IntN(2)] {
			h.files[short+"/"+each+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + short + "-" + each + "}\ndata: {of: '${who:=nobody}', size: '" + strconv.Itoa(r.IntN(9)) + "'}\n"
		}
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"name": name, "namespace": h.prefix}, "spec": spec,
		})
		h.must(err)
		h.names = append(h.names, name)
		if i > 0 {
			h.files[fmt.Sprintf("k%d/%s.yaml", parent, short)] = string(text)
			continue
		}
		top = &unstructured.Unstructured{}
		h.must(yaml.Unmarshal(text, &top.Object))
	}
	return top
}

// configMaps says of each ConfigMap of the namespace what must stay (UID, generation and what
// it holds), when that was applied, and who has it.
func (h *handOver) configMaps() (stays, times, owners map[string]string) {
	h.Helper()
	stays, times, owners = map[string]string{}, map[string]string{}, map[string]string{}
	list := &corev1.ConfigMapList{}
	h.must(stack.client.List(h.ctx, list, client.InNamespace(h.prefix)))
	for i := range list.Items {
		live := &list.Items[i]
		if live.Name == "kube-root-ca.crt" {
			continue
		}
		var appliers []string
		var applied []metav1.Time
		for _, entry := range live.GetManagedFields() {
			if entry.Operation == metav1.ManagedFieldsOperationApply {
				appliers, applied = append(appliers, entry.Manager), append(applied, *entry.Time)
			}
		}
		stays[live.Name] = fmt.Sprint(live.UID, live.Generation, live.Data)
		times[live.Name] = fmt.Sprint(applied)
		owners[live.Name] = fmt.Sprintf("%v layer %s Kustomization %s", appliers, live.Labels[v1alpha1.LayerLabel], live.Labels["kustomize.toolkit.fluxcd.io/name"])
	}
	return stays, times, owners
}

// A tree of fifty Kustomizations that is drawn is handed over by one command, and given back:
// each object stays what it is, and has one owner.
func TestDrawnKustomizationsAreHandedOverAndBack(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("STRATA_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STRATA_SEED: %v", err)
		}
	}
	t.Logf("STRATA_SEED=%d", seed)
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	h := &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("migrator", "cluster-admin")}
	top := h.drawKustomizations(seed)
	revision := f.push(h.files)
	f.must(stack.client.Create(f.ctx, top))
	f.Cleanup(func() {
		for _, name := range h.names {
			f.letGo(h.object(name))
		}
	})
	h.ready(revision)
	stays, times, before := h.configMaps()
	if len(stays) < drawnKustomizations {
		t.Fatalf("there are %d ConfigMaps", len(stays))
	}

	began := time.Now()
	if code, text := h.plugin.run(append([]string{"import", "flux", ownRights, "--yes", "--take-over"}, h.names...)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	h.Logf("%d Kustomizations with %d ConfigMaps were handed over in %s", len(h.names), len(stays), time.Since(began))
	h.gone()
	for _, name := range h.names {
		h.deployed(strings.TrimPrefix(name, h.prefix+"-"), revision)
	}
	got, applied, owners := h.configMaps()
	if diff := cmp.Diff(stays, got); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if diff := cmp.Diff(times, applied); diff != "" {
		t.Errorf("an apply has found something to write: -before +after:\n%s", diff)
	}
	for name, owner := range owners {
		short, _, _ := strings.Cut(name, "-")
		if want := "[strata] layer " + h.name(short) + " Kustomization "; owner != want {
			t.Errorf("%s is of %q, want %q", name, owner, want)
		}
	}

	began = time.Now()
	if code, text := h.plugin.run(append([]string{"import", "flux", "--yes", "--undo"}, h.names...)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	h.Logf("they were given back in %s", time.Since(began))
	h.ready(revision)
	got, _, owners = h.configMaps()
	if diff := cmp.Diff(stays, got); diff != "" {
		t.Errorf("-before +back:\n%s", diff)
	}
	if diff := cmp.Diff(before, owners); diff != "" {
		t.Errorf("whose the objects are: -before +back:\n%s", diff)
	}
}
