// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// planned is as much of a plan as is compared.
type planned struct {
	Actions []struct {
		Wave    int
		Layer   string
		Action  string
		Object  struct{ Kind, Namespace, Name string }
		Changes []struct {
			Verb   string
			Object struct{ Kind, Name string }
			Fields []struct {
				Path     string
				From, To any
			}
		}
		Unknown string
	}
	Blocked []struct{ Layer, Verdict, Reason, Message string }
	Notes   []string
}

// planner is a user who may look at layers and at what Flux has, and at nothing
// else.
func (p plugin) planner() plugin {
	p.Helper()
	return p.of("planner", "view", p.fluxView())
}

// plan runs the plug-in for the layers of the test, and returns what it says as
// lines, and whole.
func (p plugin) plan(want int, args ...string) ([]string, planned) {
	p.Helper()
	args = append([]string{"plan", "-o", "json"}, args...)
	cmd := p.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		p.Fatalf("kubectl strata %s: %v: %s%s", strings.Join(args, " "), err, output, stderr.String())
	}
	var found planned
	p.must(json.Unmarshal(output, &found))
	var lines []string
	for _, action := range found.Actions {
		lines = append(lines, fmt.Sprintf("%d %s %s %s/%s", action.Wave, strings.TrimPrefix(action.Layer, p.prefix+"-"), action.Action, action.Object.Kind, action.Object.Name))
	}
	return lines, found
}

// write writes files below a folder.
func (f *fixture) write(dir string, files map[string]string) {
	f.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		f.must(os.MkdirAll(filepath.Dir(path), 0o755))
		f.must(os.WriteFile(path, []byte(text), 0o644))
	}
}

// What a plan says of a folder is what happens when that is committed, and what it
// does not name stays as it was.
func TestThePluginPlansWhatHappens(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	before := map[string]string{
		"base/one.yaml": f.configMapRelease("one", "a"), "base/two.yaml": f.configMapRelease("two", "a"), "base/three.yaml": f.configMapRelease("three", "a"),
		"apps/shop.yaml": f.configMapRelease("shop", "a"),
	}
	revision := f.push(before)
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.deployed("base", revision)
	f.deployed("apps", revision)
	base, apps := f.name("base"), f.name("apps")
	user := plugin{fixture: f, path: path}.planner()
	both := []string{base, apps}
	source := []string{"--source", f.prefix + "/addons"}

	folder := t.TempDir()
	f.write(folder, before)
	if lines, found := user.plan(0, slices.Concat(both, source, []string{"--from-dir", folder})...); len(lines)+len(found.Blocked) > 0 {
		t.Errorf("what is deployed would change something: %q, %+v", lines, found.Blocked)
	}

	// What source-controller leaves out is not planned.
	after := map[string]string{
		"base/one.yaml": f.configMapRelease("one", "b"), "base/four.yaml": f.configMapRelease("four", "a"), "apps/shop.yaml": f.configMapRelease("shop", "b"),
		"base/.sourceignore": "draft*.yaml\n", "base/drafts.yaml": f.configMapRelease("draft", "a"),
	}
	f.write(folder, after)
	f.must(os.Remove(filepath.Join(folder, "base", "two.yaml")))
	lines, found := user.plan(2, slices.Concat(both, source, []string{"--from-dir", folder})...)
	want := []string{
		"1 base install HelmRelease/four", "1 base change HelmRelease/one", "2 base prune HelmRelease/two", "3 apps change HelmRelease/shop",
	}
	if !slices.Equal(lines, want) || len(found.Blocked) > 0 {
		t.Fatalf("the plan is %q, %+v, want %q", lines, found.Blocked, want)
	}
	for _, action := range found.Actions {
		if action.Unknown != "" || len(action.Changes) != 1 || action.Changes[0].Object.Kind != "ConfigMap" {
			t.Errorf("what becomes of the objects of %s is %+v %s", action.Object.Name, action.Changes, action.Unknown)
		}
		if action.Action != "change" {
			continue
		}
		if fields := action.Changes[0].Fields; len(fields) != 1 || fields[0].From != "a" || fields[0].To != "b" {
			t.Errorf("the fields of %s that change are %+v", action.Object.Name, fields)
		}
	}

	generations := map[string]int64{}
	for _, name := range []string{"one", "two", "three", "shop"} {
		generations[name] = f.release(name).Generation
	}
	_, err = f.repo.Remove("remove", "base/two.yaml")
	f.must(err)
	revision = f.push(after)
	f.deployed("base", revision)
	f.deployed("apps", revision)
	f.uninstalled("two")
	f.uninstalled("draft")
	for name, changes := range map[string]int64{"one": 1, "three": 0, "shop": 1} {
		if got := f.release(name).Generation; got != generations[name]+changes {
			t.Errorf("release %s was written %d times, the plan has %d", name, got-generations[name], changes)
		}
	}
	f.release("four")
	if lines, _ := user.plan(0, both...); len(lines) > 0 {
		t.Errorf("once it has happened the sources would still change something: %q", lines)
	}
}

// A plan says what would be refused, and who waits, before anything is merged.
func TestThePluginPlansWhatIsRefused(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	files := map[string]string{"base/one.yaml": f.configMapRelease("one", "a"), "apps/shop.yaml": f.configMapRelease("shop", "a")}
	revision := f.push(files)
	f.layer("base")
	f.layer("apps", f.dependsOn("base@>=1.0 <2"))
	f.deployed("base", revision)
	f.deployed("apps", revision)
	user := plugin{fixture: f, path: path}.planner()
	args := []string{f.name("base"), f.name("apps"), "--source", f.prefix + "/addons", "--from-dir"}

	layer := func(version string) string {
		spec, err := json.Marshal(v1alpha1.AddonsLayerSpec{
			Version: version, Source: v1alpha1.SourceSpec{Name: "addons", Namespace: f.prefix, Path: "./base"},
			Interval: &metav1.Duration{Duration: 3600_000_000_000}, OrphanGrace: &metav1.Duration{Duration: 1_000_000_000},
		})
		f.must(err)
		return fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: %s}\nspec: %s\n", f.name("base"), spec)
	}
	for name, c := range map[string]struct {
		files   map[string]string
		actions []string
		verdict string
	}{
		"a version that dependants do not allow": {map[string]string{"layers.yaml": layer("2.0.0"), "base/one.yaml": f.configMapRelease("one", "b")}, nil, "base refuse WouldBreakDependants"},
		"an object of another layer":             {map[string]string{"base/shop.yaml": f.configMapRelease("shop", "a")}, nil, "base refuse OwnershipConflict"},
		"a file that is broken":                  {map[string]string{"base/one.yaml": "kind: [\n"}, nil, "base fail InvalidManifest"},
		"a chart that there is not":              {map[string]string{"base/one.yaml": strings.Replace(f.configMapRelease("one", "a"), "1.0.0", "9.9.9", 1)}, []string{"1 base upgrade HelmRelease/one"}, "base fail ReleaseFailed"},
		"a version that dependants allow":        {map[string]string{"layers.yaml": layer("1.9.0"), "base/one.yaml": f.configMapRelease("one", "b")}, []string{"1 base change HelmRelease/one"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			f.write(folder, files)
			f.write(folder, c.files)
			lines, found := user.plan(2, append(slices.Clone(args), folder)...)
			if !slices.Equal(lines, c.actions) {
				t.Errorf("the plan is %q, want %q", lines, c.actions)
			}
			verdict := ""
			for _, blocked := range found.Blocked {
				if blocked.Layer == f.name("base") {
					verdict = "base " + blocked.Verdict + " " + blocked.Reason
				}
			}
			if verdict != c.verdict {
				t.Errorf("the verdict is %q, want %q: %+v", verdict, c.verdict, found.Blocked)
			}
		})
	}
	if f.get("base").Status.Version != "1.0.0" || f.get("base").Status.Revision != revision {
		t.Error("planning has changed something")
	}
	plugin{fixture: f, path: path}.of("nobody", "view").expect(1, []string{"without HelmReleases there is no plan"}, "plan", f.name("base"))
}

// What somebody has changed by hand is shown, whoever made the object, and what
// going back would do.
func TestThePluginShowsDriftAndTheWayBack(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	first := f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "a"), "base/two.yaml": f.configMapRelease("two", "a")})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = true })
	f.deployed("base", first)
	second := f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "b")})
	f.deployed("base", second)
	base := f.name("base")
	user := plugin{fixture: f, path: path}.planner()
	user.expect(0, []string{"What could be compared is as it is wanted."}, "diff", base)

	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "one"}}, `{"data":{"value":"by hand"}}`)
	f.must(stack.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "two"}}))
	user.expect(2, []string{
		"layer " + base + ": 2 objects differ", "~ ConfigMap " + f.prefix + "/one data.value: b -> by hand (release " + f.prefix + "/one)",
		"- ConfigMap " + f.prefix + "/two is missing (release " + f.prefix + "/two)",
	}, "diff", base)

	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	admin.expect(2, []string{
		"Plan of going back to deployment 1 of layer " + base + ", version 1.0.0 of revision " + first, "change HelmRelease " + f.prefix + "/one", "data.value: b -> a", "1 to change.",
	}, "rollback", base, "--to", "1", "--plan")
	if got := f.get("base"); got.Status.Revision != second || got.Annotations[v1alpha1.RollbackToAnnotation] != "" {
		t.Errorf("planning to go back has changed something: %s %v", got.Status.Revision, got.Annotations)
	}
	// A user who may not read what the cluster keeps is told so where the source no longer
	// has it either.
	code, output := user.run("rollback", base, "--to", "1", "--plan")
	if code != 2 || !strings.Contains(output, "1 to change.") && !strings.Contains(output, "you may not get Secret") {
		t.Errorf("exit code %d: %s", code, output)
	}
}
