// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/live"
)

// A preview is made once for all who ask the same, and stays as it was made until somebody
// asks for it again. How many are kept has an end.
func TestPreviews(t *testing.T) {
	f := newFixture(t)
	f.put(fmt.Sprintf(layer, "planned", "ApplyPending", "False", ""))
	cluster, _ := f.open(plane.Config())
	made := func(r live.Request) live.Preview {
		t.Helper()
		var p live.Preview
		f.until(cluster, fmt.Sprint(r), func() error {
			if p = cluster.Preview(r); !p.Done {
				return errors.New(p.Says)
			}
			return nil
		})
		return p
	}
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
