// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const settings = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  colour: {{ .Values.colour | default "grey" | quote }}
  namespace: {{ .Release.Namespace }}
  action: {{ if .Release.IsInstall }}install{{ else }}upgrade{{ end }} {{ .Release.Revision }}
`

func TestRenderFromAnHTTPRepository(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	for _, version := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "0.9.0"} {
		if err := server.AddFiles(chartFiles("settings", version, settings, nil)); err != nil {
			t.Fatal(err)
		}
	}
	w := world{}.add(t, repository(server.URL()))
	r := renderer(t, Options{})
	for _, c := range []struct{ reason, version, want string }{
		{"a version that is named", "1.2.0", "1.2.0"},
		{"the newest of a range, by numbers and not by letters", "1.x", "1.10.0"},
		{"below", "<1.0.0", "0.9.0"},
		{"the newest of all, without pre-releases", "", "1.10.0"},
		{"any is the newest of all", "*", "1.10.0"},
		{"a range that has pre-releases", ">=2.0.0-0", "2.0.0-rc.1"},
	} {
		got, err := r.Render(t.Context(), Request{Release: release(t, "settings", c.version, ""), Find: w.find})
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		if got.Version != c.want || got.Chart != "settings" || got.AppVersion != c.want+"-app" {
			t.Errorf("%s: got %s %s (%s), want %s", c.reason, got.Chart, got.Version, got.AppVersion, c.want)
		}
	}
	_, err := r.Render(t.Context(), Request{Release: release(t, "settings", "3.x", ""), Find: w.find})
	wantProblem(t, err, ChartNotFound, "HelmRepository flux-system/charts", "settings", `"3.x"`)
	_, err = r.Render(t.Context(), Request{Release: release(t, "other", "1.x", ""), Find: w.find})
	wantProblem(t, err, ChartNotFound, "no chart other")
	_, err = r.Render(t.Context(), Request{Release: release(t, "settings", "one", ""), Find: w.find})
	wantProblem(t, err, ChartNotFound, "neither a version nor a range")
}

func TestWhatARenderingHolds(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddFiles(chartFiles("settings", "1.0.0", settings, nil)); err != nil {
		t.Fatal(err)
	}
	w := world{}.add(t, repository(server.URL()))
	got, err := renderer(t, Options{}).Render(t.Context(), Request{
		Release: release(t, "settings", "1.0.0", "  targetNamespace: shop\n  values: {colour: blue}\n"), Find: w.find, Revision: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Release != "shop-web" || got.Namespace != "shop" {
		t.Errorf("got release %s in %s", got.Release, got.Namespace)
	}
	want := `apiVersion: v1
data:
  action: upgrade 4
  chart: settings-1.0.0
  colour: blue
  namespace: shop
kind: ConfigMap
metadata:
  labels:
    helm.toolkit.fluxcd.io/name: web
    helm.toolkit.fluxcd.io/namespace: apps
  name: shop-web-settings
  namespace: shop
`
	if diff := cmp.Diff(want, text(t, got.Objects)); diff != "" {
		t.Error(diff)
	}
}

func TestAnIndexIsFetchedOnceAndAChartOnceOverRuns(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddFiles(chartFiles("settings", "1.0.0", settings, nil)); err != nil {
		t.Fatal(err)
	}
	w := world{}.add(t, repository(server.URL()))
	seen, dir := &served{}, t.TempDir()
	for run := range 2 {
		r := renderer(t, Options{Dir: dir, Transport: seen})
		for range 3 {
			if _, err := r.Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: w.find}); err != nil {
				t.Fatal(err)
			}
		}
		if got := seen.count("index.yaml"); got != run+1 {
			t.Errorf("run %d: the index was fetched %d times", run, got)
		}
	}
	if got := seen.count(".tgz"); got != 1 {
		t.Errorf("the chart was fetched %d times", got)
	}
}

func TestARepositoryThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		answer func(*http.Request) *http.Response
		parts  []string
	}{
		{"it is away", nil, []string{"http://127.0.0.1:1/index.yaml", "refused"}},
		{"it wants credentials", func(*http.Request) *http.Response { return answer(401, "") }, []string{"401", "credentials"}},
		{"it is something else", func(*http.Request) *http.Response { return answer(200, "<html>") }, []string{"index"}},
		{"its index is no index", func(*http.Request) *http.Response { return answer(200, "{}") }, []string{"no index"}},
		{"its index is too large", func(*http.Request) *http.Response { return answer(200, strings.Repeat("#", 1<<10)) }, []string{"larger"}},
	} {
		w := world{}.add(t, repository("http://user:pass@127.0.0.1:1"))
		seen := &served{answer: c.answer}
		r := renderer(t, Options{Transport: seen, Timeout: 5 * time.Second})
		r.limits.index = 1 << 9
		for range 2 {
			_, err := r.Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: w.find})
			wantProblem(t, err, ChartUnavailable, c.parts...)
			if strings.Contains(err.Error(), "pass") {
				t.Errorf("%s: a password is in %v", c.reason, err)
			}
		}
		if got := seen.count("index.yaml"); got != 1 {
			t.Errorf("%s: it was asked %d times", c.reason, got)
		}
	}
}

func TestAChartThatIsNotWhatTheIndexSays(t *testing.T) {
	t.Parallel()
	server := chartServer(t)
	if err := server.AddFiles(chartFiles("settings", "1.0.0", settings, nil)); err != nil {
		t.Fatal(err)
	}
	w := world{}.add(t, repository(server.URL()))
	for _, c := range []struct {
		reason, body string
		code         int
		part         string
	}{
		{"another content", "changed", 200, "digest"},
		{"it is not there", "", 404, "404"},
	} {
		seen := &served{answer: func(request *http.Request) *http.Response {
			if strings.HasSuffix(request.URL.Path, ".tgz") {
				return answer(c.code, c.body)
			}
			return nil
		}}
		_, err := renderer(t, Options{Transport: seen}).Render(t.Context(), Request{Release: release(t, "settings", "1.x", ""), Find: w.find})
		wantProblem(t, err, ChartUnavailable, c.part, "settings 1.0.0")
	}
}
