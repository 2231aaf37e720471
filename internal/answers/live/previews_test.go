// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/preview"
)

// A preview is made once for all who ask the same, and stays as it was made until somebody
// asks for it again. How many are kept has an end.
func TestPreviews(t *testing.T) {
	f := newFixture(t)
	f.put(fmt.Sprintf(layer, "planned", "ApplyPending", "False", ""))
	cluster, _ := f.open(plane.Config())
	made := func(r live.Request) live.Preview { t.Helper(); return f.made(cluster, r) }
	first := made(live.Request{Of: live.OfSources, Only: "planned"})
	if first.Err != nil || first.Plan == nil || len(first.Plan.Blocked) != 1 || first.Plan.Blocked[0].Layer != "planned" {
		t.Fatalf("it comes to %+v, %v", first.Plan, first.Err)
	}
	if again := made(live.Request{Of: live.OfSources, Only: "planned"}); again.At != first.At {
		t.Error("it is made anew although nobody has asked for that")
	}
	if p := made(live.Request{Of: live.OfDrift, Only: "planned"}); p.Err != nil || len(p.Drift) != 1 {
		t.Errorf("the comparison comes to %+v, %v", p.Drift, p.Err)
	}
	for of, want := range map[live.Request]string{
		{Of: live.OfGit, Revision: "main"}:               "no repository is known",
		{Of: live.OfFolder}:                              "no repository is known",
		{Of: live.OfPlatform, Platform: "nowhere"}:       "there is no platform nowhere",
		{Of: live.OfRollback, Layer: "nowhere", To: "1"}: "there is no layer nowhere",
	} {
		if p := made(of); p.Err == nil || !strings.Contains(p.Err.Error(), want) {
			t.Errorf("%v: %v, want %s", of, p.Err, want)
		}
	}
	for i := range 12 {
		made(live.Request{Of: live.OfSources, Only: "planned", Again: fmt.Sprint(i)})
	}
	if again := made(live.Request{Of: live.OfSources, Only: "planned"}); !again.At.After(first.At) {
		t.Error("a preview that was forgotten is still there")
	}
}

// made returns what a request comes to once it is made.
func (f *fixture) made(cluster *live.Cluster, r live.Request) live.Preview {
	f.Helper()
	var p live.Preview
	f.until(cluster, fmt.Sprint(r), func() error {
		if p = cluster.Preview(r); !p.Done {
			return errors.New(p.Says)
		}
		return nil
	})
	return p
}

// What one source holds cannot be fetched, which is named, and is no reason to say nothing of
// the layers of others.
func TestPreviewsGoOnWithoutASource(t *testing.T) {
	f := newFixture(t)
	f.put(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {namespace: default, name: away}
spec: {url: "https://git.invalid/away", interval: 1h}
status:
  observedGeneration: 1
  artifact: {url: "http://127.0.0.1:1/away.tar.gz", path: away.tar.gz, revision: main@sha1:1, digest: "sha256:` + strings.Repeat("0", 64) + `", lastUpdateTime: "2026-01-01T00:00:00Z"}
  conditions: [{type: Ready, status: "True", reason: Succeeded, message: stored, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`)
	f.put(fmt.Sprintf(layer, "beside", "ApplyPending", "False", ""))
	f.put(strings.Replace(fmt.Sprintf(layer, "far", "Deployed", "True", ""), "{name: addons,", "{namespace: default, name: away,", 1))
	cluster, _ := f.open(plane.Config())
	const says = "GitRepository default/away cannot be fetched, so that its layers are taken to stay as they are: "
	for _, only := range []string{"beside", ""} {
		p := f.made(cluster, live.Request{Of: live.OfSources, Only: only})
		if p.Err != nil || p.Plan == nil || !slices.ContainsFunc(p.Plan.Blocked, func(l preview.Layer) bool { return l.Layer == "beside" }) {
			t.Errorf("only %q: it comes to %+v, %v", only, p.Plan, p.Err)
		} else if !slices.ContainsFunc(p.Plan.Notes, func(note string) bool { return strings.HasPrefix(note, says) }) {
			t.Errorf("only %q: the source is not named: %q", only, p.Plan.Notes)
		}
	}
	if p := f.made(cluster, live.Request{Of: live.OfSources, Only: "far"}); p.Err == nil || !strings.Contains(p.Err.Error(), "cannot fetch what GitRepository default/away holds") {
		t.Errorf("its own layer comes to %+v, %v", p.Plan, p.Err)
	}
}

// A revision is unpacked into a temporary folder, which is gone however its preview ends.
func TestPreviewsLeaveNoFiles(t *testing.T) {
	temp, folder := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	f := newFixture(t)
	repository, err := git.PlainInit(folder, false)
	f.must(err)
	tree, err := repository.Worktree()
	f.must(err)
	f.must(os.WriteFile(filepath.Join(folder, "README.md"), []byte("nothing\n"), 0o600))
	_, err = tree.Add("README.md")
	f.must(err)
	_, err = tree.Commit("change", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@b.c", When: time.Unix(0, 0)}})
	f.must(err)
	left := func(what string) {
		t.Helper()
		if found, err := filepath.Glob(filepath.Join(temp, "kubectl-strata-*")); err != nil || len(found) > 0 {
			t.Errorf("%s: left are %q, %v", what, found, err)
		}
	}
	f.put(fmt.Sprintf(layer, "unpacked", "ApplyPending", "False", ""))
	failing, _ := f.open(plane.Config(), func(o *live.Options) { o.Repository, o.Source = folder, "nowhere" })
	if p := f.made(failing, live.Request{Of: live.OfGit, Revision: "master"}); p.Err == nil || !strings.Contains(p.Err.Error(), "no layer has the source nowhere") {
		t.Errorf("it comes to %+v, %v", p.Plan, p.Err)
	}
	left("a source that is not there")
	ended, _ := f.open(plane.Config(), func(o *live.Options) { o.Repository = folder })
	f.until(ended, "a preview that is made", func() error {
		if p := ended.Preview(live.Request{Of: live.OfGit, Revision: "master"}); p.Says != "reads the cluster" && !p.Done {
			return errors.New(p.Says)
		}
		return nil
	})
	ended.Close()
	left("the end of the page")
}

// A Platform is observed with the ConfigMaps that it takes inputs from: each is watched by
// its name, and what may not be read is named.
func TestObservedPlatform(t *testing.T) {
	f := newFixture(t)
	platform := &v1alpha1.Platform{}
	platform.Name = "observed"
	platform.Spec = v1alpha1.PlatformSpec{Bundle: &v1alpha1.PlatformBundle{Family: "f"}, InputsFrom: []v1alpha1.InputsReference{{Namespace: "default", Name: "inputs"}}}
	inputs := func(value string) {
		f.put("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: inputs}\ndata: {region: " + value + "}\n")
	}
	inputs("eu")
	f.put("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: others}\ndata: {region: us}\n")
	cluster, _ := f.open(plane.Config())
	seen := func(what string, holds func(data map[string]string, missing []string) bool) {
		t.Helper()
		f.until(cluster, what, func() error {
			s := cluster.Snapshot()
			o, missing := cluster.Observe(s, platform, s.Now)
			data := o.ConfigMaps[types.NamespacedName{Namespace: "default", Name: "inputs"}]
			if !holds(data, missing) || o.Version == "" || len(o.ConfigMaps) > 1 {
				return fmt.Errorf("it is %v, without %v, of version %s", o.ConfigMaps, missing, o.Version)
			}
			return nil
		})
	}
	seen("the inputs", func(data map[string]string, missing []string) bool {
		return data["region"] == "eu" && len(missing) == 0
	})
	client := f.admin.Resource(resources["ConfigMap"]).Namespace("default")
	found, err := client.Get(t.Context(), "inputs", metav1.GetOptions{})
	f.must(err)
	found.Object["data"] = map[string]any{"region": "ap"}
	_, err = client.Update(t.Context(), found, metav1.UpdateOptions{})
	f.must(err)
	seen("other inputs", func(data map[string]string, _ []string) bool { return data["region"] == "ap" })

	user, err := plane.User("live-somebody")
	f.must(err)
	denied, _ := f.open(user.Config)
	f.until(denied, "what may not be read", func() error {
		s := denied.Snapshot()
		o, missing := denied.Observe(s, platform, time.Now())
		if !slices.ContainsFunc(missing, func(text string) bool {
			return strings.HasPrefix(text, "ConfigMap default/inputs: ") && strings.Contains(text, "forbidden")
		}) || len(o.ConfigMaps) > 0 {
			return fmt.Errorf("missing are %q", missing)
		}
		return nil
	})
}
