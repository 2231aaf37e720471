// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type versionChange func(*v1alpha1.HelmApplicationVersion)

func version(number string, changes ...versionChange) v1alpha1.HelmApplicationVersion {
	v := v1alpha1.HelmApplicationVersion{
		Version: number, ApplicationContent: v1alpha1.ApplicationContent{
			Chart: v1alpha1.ChartSource{Repository: &v1alpha1.ChartRepository{URL: "https://charts.example.com", Chart: "x"}},
		},
	}
	for _, change := range changes {
		change(&v)
	}
	return v
}

func needs(name, versions string) versionChange {
	return func(v *v1alpha1.HelmApplicationVersion) {
		v.DependsOn = append(v.DependsOn, v1alpha1.ApplicationRequirement{Name: name, Range: versions})
	}
}

func recommends(name, versions string) versionChange {
	return func(v *v1alpha1.HelmApplicationVersion) {
		v.Recommends = append(v.Recommends, v1alpha1.ApplicationRequirement{Name: name, Range: versions})
	}
}

func values(raw string) versionChange {
	return func(v *v1alpha1.HelmApplicationVersion) { v.Values = &apiextensionsv1.JSON{Raw: []byte(raw)} }
}

func endsAt(end time.Time) versionChange {
	return func(v *v1alpha1.HelmApplicationVersion) { v.EndOfLife = &metav1.Time{Time: end} }
}

func preview(v *v1alpha1.HelmApplicationVersion)   { v.Preview = true }
func withdrawn(v *v1alpha1.HelmApplicationVersion) { v.Withdrawn = "it loses data" }

func application(name string, versions ...v1alpha1.HelmApplicationVersion) *v1alpha1.HelmApplication {
	return &v1alpha1.HelmApplication{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}, Spec: v1alpha1.HelmApplicationSpec{Versions: versions},
	}
}

// observe looks at the first of some applications.
func observe(apps ...*v1alpha1.HelmApplication) Observation {
	o := Observation{Now: testNow, Application: apps[0], Catalogue: map[string]*v1alpha1.HelmApplication{}}
	for _, app := range apps {
		o.Catalogue[app.Name] = app
	}
	return o
}

func conditionsOf(status v1alpha1.HelmApplicationStatus) string {
	var found []string
	for _, condition := range status.Conditions {
		found = append(found, fmt.Sprintf("%s=%s/%s", condition.Type, condition.Status, condition.Reason))
	}
	return strings.Join(found, " ")
}

func TestLatest(t *testing.T) {
	soon := testNow.Add(time.Hour)
	for name, tc := range map[string]struct {
		versions []v1alpha1.HelmApplicationVersion
		latest   string
		until    time.Time
	}{
		"by number, not by place":      {versions: []v1alpha1.HelmApplicationVersion{version("1.9.0"), version("1.10.0"), version("1.2.0")}, latest: "1.10.0"},
		"a v in front changes nothing": {versions: []v1alpha1.HelmApplicationVersion{version("v2.0.0"), version("1.10.0")}, latest: "v2.0.0"},
		"no preview":                   {versions: []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("2.0.0", preview)}, latest: "1.0.0"},
		"no pre-release":               {versions: []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("2.0.0-rc.1")}, latest: "1.0.0"},
		"none that was withdrawn":      {versions: []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("2.0.0", withdrawn)}, latest: "1.0.0"},
		"none whose life has ended":    {versions: []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("2.0.0", endsAt(testNow))}, latest: "1.0.0"},
		"one whose life ends later":    {versions: []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("2.0.0", endsAt(soon))}, latest: "2.0.0", until: soon},
		"nothing for everybody":        {versions: []v1alpha1.HelmApplicationVersion{version("1.0.0", preview)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observe(application("x", tc.versions...)))
			if d.Status.Latest != tc.latest || !d.Until.Equal(tc.until) {
				t.Errorf("latest %q until %v, want %q until %v", d.Status.Latest, d.Until, tc.latest, tc.until)
			}
			if conditionsOf(d.Status) != "Ready=True/Published" {
				t.Errorf("the conditions are %s", conditionsOf(d.Status))
			}
		})
	}
}

func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		apps []*v1alpha1.HelmApplication
		want []string
	}{
		"nothing": {apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("db", ">=1 <2"), recommends("mail", ""))), application("db", version("v1.4.0")), application("mail", version("0.1.0"))}},
		"unknown": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("db", "")), version("2.0.0", recommends("mail", "^1")))},
			want: []string{"version 1.0.0: dependsOn: there is no HelmApplication db", "version 2.0.0: recommends: there is no HelmApplication mail"},
		},
		"no range": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("db", "newest"))), application("db", version("1.0.0"))},
			want: []string{`version 1.0.0: dependsOn: db: "newest" is no range of versions such as >=1.2 <2 or ^1.4`},
		},
		"no version in the range": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("db", "^3"))), application("db", version("2.0.0"), version("3.0.0", withdrawn), version("3.1.0", preview))},
			want: []string{"version 1.0.0: dependsOn: HelmApplication db has no version in ^3 that may be chosen, it has 2.0.0, 3.0.0 (withdrawn), 3.1.0 (a preview)"},
		},
		"no range of Kubernetes": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", func(v *v1alpha1.HelmApplicationVersion) { v.KubeVersion = "new" }))},
			want: []string{`version 1.0.0: kubeVersion: "new" is neither a version such as 1.30 nor a range such as >=1.30 <2`},
		},
		"withdrawn versions do not matter": {apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("db", ""), withdrawn))}},
		"itself": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("shop", "")))},
			want: []string{"version 1.0.0: it needs itself: shop -> shop"},
		},
		"a loop": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0"), version("2.0.0", needs("db", ""))), application("db", version("1.0.0", needs("disk", ""))), application("disk", version("1.0.0", needs("shop", "")))},
			want: []string{"version 2.0.0: it needs itself: shop -> db -> disk -> shop"},
		},
		"a loop that another version avoids": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("2.0.0", needs("db", ""))), application("db", version("1.0.0", needs("shop", "")), version("1.1.0"))},
		},
		"a loop that a range leaves": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("2.0.0", needs("db", "<1.1"))), application("db", version("1.0.0", needs("shop", "")), version("1.1.0"))},
			want: []string{"version 2.0.0: it needs itself: shop -> db -> shop"},
		},
		"a loop of others": {
			apps: []*v1alpha1.HelmApplication{application("shop", version("1.0.0", needs("db", ""))), application("db", version("1.0.0", needs("disk", ""))), application("disk", version("1.0.0", needs("db", "")))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observe(tc.apps...))
			if diff := cmp.Diff(tc.want, d.Status.Problems); diff != "" {
				t.Errorf("the problems (-want +got):\n%s", diff)
			}
			want := "Ready=True/Published"
			if len(tc.want) > 0 {
				want = "Ready=False/Problems Stalled=True/Problems"
			}
			if conditionsOf(d.Status) != want {
				t.Errorf("the conditions are %s, want %s", conditionsOf(d.Status), want)
			}
		})
	}
}

// However much is wrong, a status stays small.
func TestProblemsAreBounded(t *testing.T) {
	var versions []v1alpha1.HelmApplicationVersion
	for i := range 30 {
		versions = append(versions, version(fmt.Sprintf("1.%d.0", i), needs("gone", "")))
	}
	problems := Decide(observe(application("x", versions...))).Status.Problems
	if len(problems) != 10 || problems[9] != "and 21 more" {
		t.Errorf("there are %d problems, the last one %q", len(problems), problems[len(problems)-1])
	}
}

// What was published stays what it is, whatever the API server could not see.
func TestPublishedContent(t *testing.T) {
	publish := func(versions ...v1alpha1.HelmApplicationVersion) *v1alpha1.HelmApplication {
		app := application("x", versions...)
		app.Status = Decide(observe(app)).Status
		return app
	}
	for name, tc := range map[string]struct {
		was, is []v1alpha1.HelmApplicationVersion
		changed bool
		latest  string
	}{
		"the same, written otherwise": {
			was: []v1alpha1.HelmApplicationVersion{version("1.0.0", values(`{"a": 1, "b": {"c": 2}}`))},
			is:  []v1alpha1.HelmApplicationVersion{version("v1.0.0", values(`{"b":{"c":2},"a":1}`))}, latest: "v1.0.0",
		},
		"what may change": {
			was: []v1alpha1.HelmApplicationVersion{version("1.0.0", preview)},
			is:  []v1alpha1.HelmApplicationVersion{version("1.0.0", endsAt(testNow.Add(time.Hour)))}, latest: "1.0.0",
		},
		"values": {
			was: []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("1.1.0", values(`{"a": 1}`))},
			is:  []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("1.1.0", values(`{"a": 2}`))}, changed: true, latest: "1.0.0",
		},
		"numbers that only look alike": {
			was: []v1alpha1.HelmApplicationVersion{version("1.0.0", values(`{"a": 9007199254740993}`))},
			is:  []v1alpha1.HelmApplicationVersion{version("1.0.0", values(`{"a": 9007199254740992}`))}, changed: true,
		},
		"another version": {
			was: []v1alpha1.HelmApplicationVersion{version("1.0.0")},
			is:  []v1alpha1.HelmApplicationVersion{version("1.0.0"), version("1.1.0", values(`{"a": 2}`))}, latest: "1.1.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := publish(tc.was...)
			app.Spec.Versions = tc.is
			status := Decide(observe(app)).Status
			want := "Ready=True/Published"
			if tc.changed {
				want = "Ready=False/ContentChanged Stalled=True/ContentChanged"
			}
			if conditionsOf(status) != want || status.Latest != tc.latest {
				t.Errorf("the conditions are %s and the latest version is %q, want %s and %q", conditionsOf(status), status.Latest, want, tc.latest)
			}
			app.Status, app.Spec.Versions = status, tc.was
			if status := Decide(observe(app)).Status; conditionsOf(status) != "Ready=True/Published" {
				t.Errorf("put back, the conditions are %s", conditionsOf(status))
			}
		})
	}
}

// A version that was removed does not come back as something else.
func TestRemovedVersionsAreRemembered(t *testing.T) {
	app := application("x", version("1.0.0", values(`{"a": 1}`)), version("2.0.0"))
	for _, versions := range [][]v1alpha1.HelmApplicationVersion{
		app.Spec.Versions, {version("2.0.0")}, {version("2.0.0"), version("1.0.0", values(`{"a": 2}`))},
	} {
		app.Spec.Versions = versions
		app.Status = Decide(observe(app)).Status
	}
	if conditionsOf(app.Status) != "Ready=False/ContentChanged Stalled=True/ContentChanged" {
		t.Errorf("the conditions are %s", conditionsOf(app.Status))
	}
	if want := "version 1.0.0 was published with other content: put that back, and publish a new version"; !slices.Equal(app.Status.Problems, []string{want}) {
		t.Errorf("the problems are %q", app.Status.Problems)
	}
}
