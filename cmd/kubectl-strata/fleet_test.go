// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/terminal"
)

// fleetAt returns the objects of testdata/fleet.yaml with the layers that its
// Platform makes: it asks for one version after the other, each until nothing more
// happens by itself.
func fleetAt(t *testing.T, change func(*v1alpha1.Platform), versions ...string) []*unstructured.Unstructured {
	t.Helper()
	objects := apitest.Load(t, "testdata/fleet.yaml")
	s, err := snapshot.New(noon, objects...)
	if err != nil {
		t.Fatal(err)
	}
	o := platforms.Observation{
		Namespace: "strata-system", Platform: s.Platforms[0], Bundles: s.Bundles, Version: "v1.36.3",
		Catalogue: map[string]*v1alpha1.HelmApplication{}, Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{},
	}
	for _, app := range s.Applications {
		o.Catalogue[app.Name] = app
	}
	for _, cluster := range s.Clusters {
		o.Clusters[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}] = cluster
	}
	layers := map[string]*v1alpha1.AddonsLayer{}
	for n, version := range versions {
		last := n == len(versions)-1
		o.Platform.Spec.Bundle.Version = version
		// What was long ago has soaked.
		o.Now = noon.Add(time.Duration(n+1-len(versions))*24*time.Hour - 20*time.Minute)
		for range 10 {
			decision := platforms.Decide(o)
			o.Platform.Status = decision.Status
			o.Platform.Status.ObservedGeneration = o.Platform.Generation
			for _, layer := range decision.Write {
				layer = layer.DeepCopy()
				layer.ResourceVersion, layer.Generation, layer.CreationTimestamp = "1", 1, metav1.NewTime(o.Now)
				layer.Status = v1alpha1.AddonsLayerStatus{
					ObservedGeneration: 1, State: v1alpha1.StateDeployed, Version: layer.Spec.Version, Revision: layer.Spec.Version, StateSince: metav1.NewTime(o.Now),
				}
				layers[layer.Name] = layer
			}
			for _, layer := range decision.Delete {
				delete(layers, layer.Name)
			}
			o.Layers = nil
			for _, layer := range layers {
				o.Layers = append(o.Layers, layer)
			}
			if !last {
				o.Now = o.Now.Add(2 * time.Hour)
			}
		}
	}
	if change != nil {
		change(o.Platform)
	}
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == v1alpha1.PlatformKind })
	objects = append(objects, asObject(t, o.Platform, v1alpha1.PlatformKind))
	for _, layer := range layers {
		objects = append(objects, asObject(t, layer, v1alpha1.AddonsLayerKind))
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return objects
}

func asObject(t *testing.T, typed any, kind string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return object
}

func TestFleetIsGolden(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		args     string
		width    int
		code     int
	}{
		"app-list":            {[]string{"1.0.0"}, "app list", 0, 0},
		"app-list-wide":       {[]string{"1.0.0"}, "app list -o wide", 0, 0},
		"app-list-40":         {[]string{"1.0.0"}, "app list", 40, 0},
		"app-list-outdated":   {[]string{"1.0.0", "1.1.0"}, "app list --outdated", 0, 2},
		"app-list-eol":        {[]string{"1.0.0", "1.1.0"}, "app list --eol 90d", 0, 2},
		"app-list-name":       {[]string{"1.0.0"}, "app list -o name", 0, 0},
		"app-list.json":       {[]string{"1.0.0"}, "app list --outdated -o json", 0, 2},
		"app-get":             {[]string{"1.0.0"}, "app get gateway", 0, 0},
		"bundle-list":         {[]string{"1.0.0"}, "bundle list", 0, 0},
		"bundle-get":          {[]string{"1.0.0"}, "bundle get base@1.0.0", 0, 0},
		"bundle-get-40":       {[]string{"1.0.0"}, "bundle get base-1.0.0", 40, 0},
		"bundle-get-gone":     {[]string{"1.0.0"}, "bundle get base-0.9.0", 0, 2},
		"bundle-get.yaml":     {[]string{"1.0.0"}, "bundle get base-1.1.0 -o yaml", 0, 0},
		"bundle-paths":        {[]string{"1.0.0"}, "bundle paths base", 0, 2},
		"bundle-paths-range":  {[]string{"1.0.0"}, "bundle paths base --from 1.0.0 --to 1.2.0 --kubernetes 1.37", 0, 2},
		"bundle-paths-from":   {[]string{"1.0.0"}, "bundle paths base --from 1.0.0", 0, 0},
		"bundle-paths.json":   {[]string{"1.0.0"}, "bundle paths base --from 1.0.0 --to 1.2.0 -o json", 0, 0},
		"bundle-diff":         {[]string{"1.0.0"}, "bundle diff base@1.0.0 base@1.1.0", 0, 2},
		"bundle-diff.md":      {[]string{"1.0.0"}, "bundle diff base@1.0.0 base@1.1.0 -o markdown", 0, 2},
		"bundle-diff-none":    {[]string{"1.0.0"}, "bundle diff base@1.0.0 base-1.0.0", 0, 0},
		"platform-list":       {[]string{"1.0.0"}, "platform list", 0, 0},
		"platform-list-waits": {[]string{"1.0.0", "1.1.0"}, "platform list", 0, 0},
		"platform-get":        {[]string{"1.0.0", "1.1.0"}, "platform get edge --clusters", 0, 0},
		"platform-get-40":     {[]string{"1.0.0", "1.1.0"}, "platform get edge --clusters", 40, 0},
		"platform-get.json":   {[]string{"1.0.0", "1.1.0"}, "platform get edge -o json", 0, 0},
		"platform-plan":       {[]string{"1.0.0"}, "platform plan edge --version 1.1.0", 0, 2},
		"platform-plan-40":    {[]string{"1.0.0"}, "platform plan edge --version 1.1.0", 40, 2},
		"platform-plan-none":  {[]string{"1.0.0"}, "platform plan edge", 0, 0},
		"platform-plan-hops":  {[]string{"1.0.0"}, "platform plan edge --version 1.2.0", 0, 2},
		"platform-plan-at":    {[]string{"1.0.0", "1.1.0"}, "platform plan edge --at 2026-12-02T12:00:00Z", 0, 0},
		"platform-plan.json":  {[]string{"1.0.0"}, "platform plan edge --version 1.1.0 -o json", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			objects := fleetAt(t, nil, c.versions...)
			server := apitest.New(t, objects...)
			code, out, errOut := commandLine(t, server, terminal.Screen{Width: c.width}, c.args)
			slices.Reverse(objects)
			if _, again, _ := commandLine(t, apitest.New(t, objects...), terminal.Screen{Width: c.width}, c.args); again != out {
				t.Errorf("the order of objects matters:\n%s\n%s", out, again)
			}
			if code != c.code || errOut != "" {
				t.Errorf("exit code %d: %s", code, errOut)
			}
			if !strings.Contains(name, ".") {
				name += ".txt"
			}
			if strings.Contains(out, "do-not-show") {
				t.Errorf("it shows what may be secret:\n%s", out)
			}
			for _, line := range strings.Split(out, "\n") {
				if c.width > 0 && len([]rune(line)) > c.width {
					t.Errorf("a line has %d columns: %s", len([]rune(line)), line)
				}
			}
			golden(t, name, out)
			if writes := server.Writes(); len(writes) > 0 {
				t.Errorf("it writes %v", writes)
			}
			lists := map[string]int{}
			for _, request := range server.Requests() {
				path, _, _ := strings.Cut(request, "?")
				lists[path]++
				if lists[path] > 1 {
					t.Errorf("%s is asked for %d times", path, lists[path])
				}
			}
		})
	}
}

func TestApprove(t *testing.T) {
	server := apitest.New(t, fleetAt(t, nil, "1.0.0", "1.1.0")...)
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "platform approve edge --stage production --reason tested")
	want := "stage production of platform edge is approved for version 1.1.0: fleet/south, fleet/west\nit begins when that is done: stage canary\n"
	if code != 0 || out != want {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	writes := server.Writes()
	writes = slices.DeleteFunc(writes, func(write string) bool { return strings.Contains(write, "selfsubjectreviews") }) // it changes nothing
	if len(writes) != 1 || !strings.Contains(writes[0], `"kraan.io/approve":"production@1.0.0,production@1.1.0"`) || !strings.Contains(writes[0], `"kraan.io/approve-reason":"{\"production@1.1.0\":\"tested\"}"`) || !strings.Contains(writes[0], `"resourceVersion":"1"`) {
		t.Errorf("it writes %v", writes)
	}
	for args, words := range map[string]string{
		"platform approve edge --stage production":                "nothing of stage production waits for approval",
		"platform approve edge --stage canary":                    "stage canary of platform edge needs no approval",
		"platform approve edge --stage prodution":                 "has no stage prodution; did you mean production?",
		"platform approve edge --stage x":                         "has no stage x; it has canary, production",
		"platform approve edges --stage production":               "there is no Platform edges; did you mean edge?",
		"platform approve edge":                                   "--stage is missing",
		"platform approve edge --stage production --output table": "--output is",
	} {
		if code, out, errOut := commandLine(t, server, terminal.Screen{}, args); code != 1 || !strings.Contains(errOut, words) {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errOut)
		}
	}
	if got := server.Writes(); len(got) != 1 {
		t.Errorf("what is refused writes %v", got[1:])
	}
}

func TestApproveOfAHeldPlatform(t *testing.T) {
	server := apitest.New(t, fleetAt(t, func(p *v1alpha1.Platform) { p.Spec.Hold = true }, "1.0.0", "1.1.0")...)
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "platform approve edge --stage production"); code != 1 || !strings.Contains(errOut, "is held") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if code, out, _ := commandLine(t, server, terminal.Screen{}, "platform list"); code != 2 || !strings.Contains(out, "edge") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestFleetMistakes(t *testing.T) {
	server := apitest.New(t, fleetAt(t, nil, "1.0.0")...)
	for args, words := range map[string]string{
		"app get gatway":                             "there is no HelmApplication gatway; did you mean gateway?",
		"app list --eol soon":                        "--eol: \"soon\" is no time such as 90d",
		"bundle get base@1.0.1":                      "there is no ApplicationBundle base@1.0.1; did you mean base@1.0.0",
		"bundle paths bases":                         "did you mean base?",
		"bundle paths base --from x":                 "--from is \"x\"",
		"bundle paths base --to 9.0.0":               "there is no version 9.0.0 of family base; there are 1.2.0, 1.1.0, 1.0.0, 0.9.0",
		"bundle diff base@1.0.0 other":               "there is no ApplicationBundle other",
		"platform get egde":                          "did you mean edge?",
		"platform plan edge --at tomorrow":           "--at is \"tomorrow\"",
		"platform plan edge --version 1.1.0 -o wide": "--output is",
	} {
		if code, out, errOut := commandLine(t, server, terminal.Screen{}, args); code != 1 || !strings.Contains(errOut, words) {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errOut)
		}
	}
}

func TestFleetWithoutRights(t *testing.T) {
	server := apitest.New(t, fleetAt(t, nil, "1.0.0")...)
	server.Refuse["addonslayers.kraan.io"], server.Refuse["remoteclusters.kraan.io"] = 403, 403
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "app list")
	if code != 0 || !strings.Contains(errOut, "you may not list addonslayers.kraan.io, remoteclusters.kraan.io, so where") || !strings.Contains(out, "gateway") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if _, out, _ := commandLine(t, server, terminal.Screen{}, "platform plan edge"); !strings.Contains(out, "Not read:") {
		t.Errorf("what the plan lacks is not said: %s", out)
	}
	server.Refuse["helmapplications.kraan.io"], server.Refuse["platforms.kraan.io"] = 404, 403
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "app list"); code != 1 || !strings.Contains(errOut, "no Strata that knows HelmApplications") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "platform list"); code != 1 || !strings.Contains(errOut, "strata-view") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// What others have written does not move the cursor.
func TestFleetIsSafeOnTerminals(t *testing.T) {
	objects := fleetAt(t, nil, "1.0.0")
	for _, object := range objects {
		if object.GetKind() == v1alpha1.HelmApplicationKind {
			_ = unstructured.SetNestedField(object.Object, "evil \x1b[2J\r\nnext", "spec", "description")
		}
		if object.GetKind() == v1alpha1.ApplicationBundleKind {
			_ = unstructured.SetNestedField(object.Object, "evil \x1b[2J|\r\nnext", "spec", "withdrawn")
		}
	}
	server := apitest.New(t, objects...)
	for _, args := range []string{"app list", "app get gateway", "bundle list", "bundle get base-1.0.0", "bundle paths base", "platform get edge", "platform plan edge"} {
		if _, out, errOut := commandLine(t, server, terminal.Screen{}, args); strings.ContainsAny(out+errOut, "\x1b\r") {
			t.Errorf("%s: %q", args, out)
		}
	}
}

// Two hundred Platforms' worth of layers are read with one list for each kind.
func TestFleetOfMany(t *testing.T) {
	objects := fleetAt(t, nil, "1.0.0")
	for i := range 200 {
		objects = append(objects, apitest.Parse(t, fmt.Sprintf("{apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, metadata: {name: l%d}, spec: {version: 1.0.0}}", i))...)
	}
	server := apitest.New(t, objects...)
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "app list"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if got := len(server.Requests()); got > 6 {
		t.Errorf("it asks %d times", got)
	}
}

// terminalOf returns a screen of so many columns.
func terminalOf(width int) terminal.Screen { return terminal.Screen{Width: width} }
