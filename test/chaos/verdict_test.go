// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// at returns a moment some seconds after noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// perfect returns a world whose release base-1 was changed once, and a history
// in which all went as it should.
func perfect() (*world, history) {
	w := &world{Lives: map[string]*life{}}
	w.Layers = []*layer{{Name: "base", Settings: "c0", Releases: map[string]content{}}}
	one, two := content{"configmap", "1.0.0", "c0"}, content{"configmap", "1.0.0", "c1"}
	w.set(w.Layers[0], "base-1", one)
	w.set(w.Layers[0], "base-1", two)
	w.Lives["gone"] = &life{Contents: []content{one}, Removed: at(30)}
	h := history{
		facts: facts{
			Layers: map[string]v1alpha1.AddonsLayer{"base": {
				ObjectMeta: metav1.ObjectMeta{Generation: 1},
				Status:     v1alpha1.AddonsLayerStatus{State: v1alpha1.StateDeployed, ObservedGeneration: 1, Version: "1.0.0", Revision: "r"},
			}},
			Releases: map[string]helmv2.HelmRelease{"base-1": released(two)},
			Helm: map[string][]revision{"base-1": {
				{Number: 1, Status: "superseded", Content: one, Made: at(0), First: at(0)}, {Number: 2, Status: "deployed", Content: two, Made: at(10), First: at(0)},
			}},
			Made: map[string]string{"base-1": "c1"},
			Settings: map[string]corev1.ConfigMap{"settings-base": {
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LayerLabel: "base"}}, Data: map[string]string{"value": "c0"},
			}},
		},
		seen: map[string]sight{
			"HelmRelease base-1": {UIDs: []string{"a"}, Contents: map[int64]content{1: one, 2: two}}, "ConfigMap base-1": {UIDs: []string{"b"}},
			"ConfigMap settings-base":             {UIDs: []string{"e"}},
			"Secret sh.helm.release.v1.base-1.v1": {UIDs: []string{"c"}, Statuses: []string{"deployed", "superseded"}},
			"HelmRelease gone":                    {UIDs: []string{"d"}, Contents: map[int64]content{1: one}, Deleted: at(31)},
		},
	}
	return w, h
}

func released(c content) helmv2.HelmRelease {
	values, _ := json.Marshal(c.values())
	release := helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "base-1", Generation: 2, Labels: map[string]string{v1alpha1.LayerLabel: "base"}}}
	release.Spec.Chart = &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{Chart: c.Chart, Version: c.Version}}
	release.Spec.Values = &apiextensionsv1.JSON{Raw: values}
	release.Status.ObservedGeneration = 2
	release.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
	return release
}

// Each case spoils what was perfect, and must be found by its words.
func TestVerdictFindsWhatIsWrong(t *testing.T) {
	change := func(f func(*helmv2.HelmRelease)) func(*world, *history) {
		return func(_ *world, h *history) {
			release := h.Releases["base-1"]
			f(&release)
			h.Releases["base-1"] = release
		}
	}
	third := func(r revision, faults ...fault) func(*world, *history) {
		return func(_ *world, h *history) {
			r.Number, r.First = 3, at(0)
			h.Helm["base-1"][1].Status = "superseded"
			h.Helm["base-1"] = append(h.Helm["base-1"], r)
			h.faults = faults
		}
	}
	two := content{"configmap", "1.0.0", "c1"}
	// Before its last content the release had another chart, and Helm has one
	// revision between the two that no commit says, with the values of the last.
	halfway := func(version string, ends bool) func(*world, *history) {
		return func(w *world, h *history) {
			before := content{"configmap", "2.0.0", "c0"}
			w.Lives["base-1"].Contents[0] = before
			revisions := h.Helm["base-1"]
			revisions[0].Content = before
			between := revision{Number: 2, First: at(0), Made: at(9), Status: "superseded", Content: content{"configmap", version, "c1"}}
			last := revisions[1]
			last.Number = 3
			h.Helm["base-1"] = []revision{revisions[0], between, last}
			if !ends {
				h.Helm["base-1"] = h.Helm["base-1"][:2]
			}
			s := h.seen["HelmRelease base-1"]
			s.Contents[1] = before
		}
	}
	killed := func(name string, from, to int) fault { return fault{Victim: name, Begin: at(from), End: at(to)} }
	spot := func(key string, f func(*sight)) func(*world, *history) {
		return func(_ *world, h *history) {
			s := h.seen[key]
			f(&s)
			h.seen[key] = s
		}
	}
	for name, tc := range map[string]struct {
		spoil func(*world, *history)
		want  string
	}{
		"nothing":                    {func(*world, *history) {}, ""},
		"layer of another revision":  {func(_ *world, h *history) { l := h.Layers["base"]; l.Status.Revision = "q"; h.Layers["base"] = l }, `of revision "q"`},
		"layer not there":            {func(_ *world, h *history) { delete(h.Layers, "base") }, "layer base is"},
		"release not there":          {func(_ *world, h *history) { delete(h.Releases, "base-1") }, "does not exist"},
		"release of another layer":   {change(func(r *helmv2.HelmRelease) { r.Labels = map[string]string{v1alpha1.LayerLabel: "x"} }), "its labels are"},
		"release marked":             {change(func(r *helmv2.HelmRelease) { r.Labels[v1alpha1.OrphanedLabel] = "x" }), "its labels are"},
		"release suspended":          {change(func(r *helmv2.HelmRelease) { r.Spec.Suspend = true }), "suspended"},
		"release of an old content":  {change(func(r *helmv2.HelmRelease) { r.Spec.Values.Raw = []byte(`{"data":{"value":"c0"}}`) }), "it holds"},
		"release with more values":   {change(func(r *helmv2.HelmRelease) { r.Spec.Values.Raw = []byte(`{"data":{"value":"c1"},"x":1}`) }), "it holds"},
		"release not ready":          {change(func(r *helmv2.HelmRelease) { r.Status.ObservedGeneration = 1 }), "not Ready"},
		"object of an old content":   {func(_ *world, h *history) { h.Made["base-1"] = "c0" }, "what the chart made"},
		"settings of another layer":  {func(w *world, _ *history) { w.Layers[0].Settings = "c2" }, "want layer base and c2"},
		"settings left":              {func(_ *world, h *history) { h.Settings["settings-x"] = corev1.ConfigMap{} }, "ConfigMap settings-x is left"},
		"settings made again":        {spot("ConfigMap settings-base", func(s *sight) { s.UIDs = []string{"e", "z"} }), "made 2 times"},
		"orphan":                     {func(_ *world, h *history) { h.Releases["gone"] = helmv2.HelmRelease{} }, "HelmRelease gone is left"},
		"not uninstalled":            {func(_ *world, h *history) { h.Helm["gone"] = []revision{{Number: 1}} }, "Helm release gone is left"},
		"object left":                {func(_ *world, h *history) { h.Made["gone"] = "c0" }, "object gone is left"},
		"release never seen":         {func(_ *world, h *history) { delete(h.seen, "HelmRelease base-1") }, "never seen"},
		"release made again":         {spot("HelmRelease base-1", func(s *sight) { s.UIDs = []string{"a", "z"} }), "made 2 times"},
		"object made again":          {spot("ConfigMap base-1", func(s *sight) { s.UIDs = []string{"b", "z"} }), "made 2 times"},
		"release deleted":            {spot("HelmRelease base-1", func(s *sight) { s.Deleted = at(20) }), "deleted although"},
		"uninstalled":                {spot("Secret sh.helm.release.v1.base-1.v1", func(s *sight) { s.Statuses = []string{"uninstalling"} }), "uninstalling"},
		"removed too early":          {spot("HelmRelease gone", func(s *sight) { s.Deleted = at(29) }), "deleted although"},
		"written back and forth":     {spot("HelmRelease base-1", func(s *sight) { s.Contents[3], s.Contents[4] = s.Contents[1], s.Contents[2] }), "goes back"},
		"written without change":     {spot("HelmRelease base-1", func(s *sight) { s.Contents[3] = s.Contents[2] }), "hold the same"},
		"written by somebody":        {spot("HelmRelease base-1", func(s *sight) { s.Contents[3] = content{Value: "x"} }), "no commit says"},
		"written too often":          {spot("HelmRelease base-1", func(s *sight) { s.Contents = map[int64]content{1: s.Contents[1], 3: s.Contents[2]} }), "written 3 times for 2"},
		"installed again":            {func(_ *world, h *history) { h.Helm["base-1"][1].First = at(9) }, "installed anew"},
		"history cut off":            {func(_ *world, h *history) { h.Helm["base-1"] = h.Helm["base-1"][1:] }, "where 1 should be"},
		"upgraded without change":    {third(revision{Status: "deployed", Content: two, Made: at(20)}), "nothing that Helm needs was killed"},
		"upgraded after Strata died": {third(revision{Status: "deployed", Content: two, Made: at(20)}, killed(strataProgram, 11, 19), killed(sourceProgram, 11, 19)), "nothing that Helm needs was killed"},
		"upgraded after a kill":      {third(revision{Status: "deployed", Content: two, Made: at(20)}, killed(helmProgram, 12, 14)), "excused"},
		"upgraded long after a kill": {third(revision{Status: "deployed", Content: two, Made: at(20)}, killed(helmProgram, 2, 4)), "nothing that Helm needs was killed"},
		"went back":                  {third(revision{Status: "deployed", Content: content{"configmap", "1.0.0", "c0"}, Made: at(20)}), "goes back"},
		"new values, old chart":      {halfway("2.0.0", true), "excused"},
		"and nothing after it":       {halfway("2.0.0", false), "no commit says"},
		"new values, another chart":  {halfway("3.0.0", true), "no commit says"},
		"failed for no reason":       {func(_ *world, h *history) { h.Helm["base-1"][0].Status = "failed" }, "is failed, and nothing"},
		"failed for a reason": {func(_ *world, h *history) {
			h.Helm["base-1"][0].Status = "failed"
			h.faults = []fault{killed(apiProgram, 5, 7)}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := perfect()
			tc.spoil(w, &h)
			problems := w.wrong(h.facts, "r")
			lived, excused := w.lived(h)
			text := strings.Join(append(problems, lived...), "\n")
			for _, line := range excused {
				text += fmt.Sprintln("excused:", line)
			}
			if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) {
				t.Errorf("want %q, got:\n%s", tc.want, text)
			}
			if tc.want == "excused" && (len(problems)+len(lived) > 0 || len(excused) != 1) {
				t.Errorf("want one revision to be excused, got:\n%s", text)
			}
		})
	}
}
