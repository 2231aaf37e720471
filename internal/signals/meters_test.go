// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/repos"
)

func TestMetersCountWhatWasDone(t *testing.T) {
	m := NewMeters()
	did := func(verb dependents.Verb, change func(*dependents.Result)) dependents.Result {
		result := dependents.Result{Changed: true, Action: dependents.Action{Verb: verb}}
		if change != nil {
			change(&result)
		}
		return result
	}
	m.Did("base", []dependents.Result{
		did(dependents.VerbWrite, nil),
		did(dependents.VerbWrite, func(r *dependents.Result) { r.Action.Correction = true }),
		did(dependents.VerbWrite, func(r *dependents.Result) { r.Action.Correction, r.Changed = true, false }),
		did(dependents.VerbWrite, func(r *dependents.Result) { r.Action.From = []string{"apps"} }),
		did(dependents.VerbAdopt, nil), did(dependents.VerbMark, nil), did(dependents.VerbRelease, nil),
		did(dependents.VerbDelete, nil), did(dependents.VerbDelete, nil),
		did(dependents.VerbDelete, func(r *dependents.Result) { r.Err = errors.New("refused") }),
		did(dependents.VerbAdopt, func(r *dependents.Result) { r.Outdated = true }),
	})
	m.Did("quiet", nil)
	const want = `
# HELP strata_layer_adoptions_total How many objects the layer has taken over.
# TYPE strata_layer_adoptions_total counter
strata_layer_adoptions_total{layer="base"} 2
strata_layer_adoptions_total{layer="quiet"} 0
# HELP strata_layer_drift_corrections_total How many times an object of the layer was restored after somebody else had changed or deleted it.
# TYPE strata_layer_drift_corrections_total counter
strata_layer_drift_corrections_total{layer="base"} 1
strata_layer_drift_corrections_total{layer="quiet"} 0
# HELP strata_layer_prunes_total How many objects were removed because the layer no longer lists them, or is deleted.
# TYPE strata_layer_prunes_total counter
strata_layer_prunes_total{layer="base"} 2
strata_layer_prunes_total{layer="quiet"} 0
`
	names := []string{"strata_layer_adoptions_total", "strata_layer_drift_corrections_total", "strata_layer_prunes_total"}
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	m.Looked("base", time.Now())
	m.Forget("quiet")
	m.Forget("base")
	if left := seriesLeft(m); left > 0 {
		t.Errorf("%d series are left of layers that are gone", left)
	}
	var none *Meters
	none.Did("base", nil)
	none.Looked("base", time.Now())
	none.Reported(&v1alpha1.AddonsLayer{}, v1alpha1.AddonsLayerStatus{}, time.Now())
	none.Forget("base")
}

func TestRollOutDurations(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	attempt := &v1alpha1.Attempt{Version: "2", Digest: "b", StartTime: metav1.NewTime(noon)}
	status := func(state v1alpha1.State, version, digest string) v1alpha1.AddonsLayerStatus {
		return v1alpha1.AddonsLayerStatus{State: state, Version: version, Digest: digest, Attempt: attempt}
	}
	goesBack := status("Applying", "1", "a")
	goesBack.Attempt = &v1alpha1.Attempt{Version: "1", Digest: "a", StartTime: metav1.NewTime(noon.Add(10 * time.Second))}
	goesBack.Rollback = &v1alpha1.Rollback{To: "1", Version: "2", Digest: "b"}
	tests := map[string]struct {
		reason        string
		before, after v1alpha1.AddonsLayerStatus
		at            time.Duration
		want          string
	}{
		"another content":    {"a roll-out ends when it is deployed", status("Applying", "1", "a"), status("Deployed", "2", "b"), 90 * time.Second, "deployed 90"},
		"the first":          {"so does the first one", status("Applying", "", ""), status("Deployed", "2", "b"), time.Second, "deployed 1"},
		"another version":    {"the same directory at another version is one", status("Applying", "1", "b"), status("Deployed", "2", "b"), time.Second, "deployed 1"},
		"drift":              {"what was restored was not rolled out", status("Applying", "2", "b"), status("Deployed", "2", "b"), time.Hour, ""},
		"settled":            {"nothing has happened", status("Deployed", "2", "b"), status("Deployed", "2", "b"), time.Hour, ""},
		"failed":             {"the deadline has passed", status("Applying", "1", "a"), status("Failed", "1", "a"), 5 * time.Minute, "failed 300"},
		"still failed":       {"it has failed once", status("Failed", "1", "a"), status("Failed", "1", "a"), time.Hour, ""},
		"heals":              {"late is deployed all the same", status("Failed", "1", "a"), status("Deployed", "2", "b"), time.Hour, "deployed 3600"},
		"degraded":           {"what is deployed has broken later", status("Deployed", "2", "b"), status("Failed", "2", "b"), time.Hour, ""},
		"went back":          {"what runs is not what was attempted", status("Applying", "3", "c"), status("Deployed", "1", "a"), time.Hour, ""},
		"taken back":         {"it has failed, though its layer is not Failed", status("Applying", "1", "a"), goesBack, 10 * time.Second, "failed 10"},
		"goes on going back": {"it has failed once", goesBack, goesBack, time.Hour, ""},
		"asked to go back":   {"what was deployed has not failed", status("Deployed", "2", "b"), goesBack, time.Hour, ""},
		"clock goes back":    {"no duration is below nothing", status("Applying", "1", "a"), status("Deployed", "2", "b"), -time.Hour, "deployed 0"},
		"nothing attempted":  {"Kraan's status has no attempt", v1alpha1.AddonsLayerStatus{}, v1alpha1.AddonsLayerStatus{State: "Deployed", Digest: "b"}, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := NewMeters()
			m.Reported(&v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base"}, Status: test.after}, test.before, noon.Add(test.at))
			if got := durations(t, m); got != test.want {
				t.Errorf("%s: measured %q, want %q", test.reason, got, test.want)
			}
		})
	}
}

// durations returns the results and sums of all roll-outs.
func durations(t *testing.T, m *Meters) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.rollOuts)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			found = append(found, fmt.Sprintf("%s %g", metric.GetLabel()[1].GetValue(), metric.GetHistogram().GetSampleSum()))
		}
	}
	return strings.Join(found, ", ")
}

func TestFetchMeter(t *testing.T) {
	m := NewFetchMeter()
	m.Fetched(1000, nil)
	m.Fetched(24, nil)
	m.Fetched(0, fmt.Errorf("cannot fetch: %w", repos.ErrNotFound))
	m.Fetched(0, fmt.Errorf("cannot fetch: %w", &directories.ContentError{Message: "wrong digest"}))
	m.Fetched(0, errors.New("connection refused"))
	m.Fetched(0, context.DeadlineExceeded)
	const want = `
# HELP strata_artifact_fetched_bytes_total How many bytes the artifacts had that were fetched.
# TYPE strata_artifact_fetched_bytes_total counter
strata_artifact_fetched_bytes_total 1024
# HELP strata_artifact_fetches_total How many artifacts of sources were fetched, by result.
# TYPE strata_artifact_fetches_total counter
strata_artifact_fetches_total{result="error"} 2
strata_artifact_fetches_total{result="not_found"} 1
strata_artifact_fetches_total{result="refused"} 1
strata_artifact_fetches_total{result="success"} 2
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestWriteMeter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/taken"):
			w.WriteHeader(http.StatusConflict)
		case strings.HasSuffix(r.URL.Path, "/refused"):
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	m := NewWriteMeter()
	client := &http.Client{Transport: m.Wrap(http.DefaultTransport)}
	for _, line := range []string{
		"GET /api/v1/namespaces",
		"PATCH /apis/kraan.io/v1alpha1/addonslayers/base/status",
		"PATCH /apis/kraan.io/v1alpha1/addonslayers/apps/status",
		"PATCH /apis/kraan.io/v1alpha1/addonslayers/taken",
		"POST /apis/helm.toolkit.fluxcd.io/v2/namespaces/a/helmreleases",
		"PATCH-apply /apis/helm.toolkit.fluxcd.io/v2/namespaces/a/helmreleases/b",
		"PATCH-apply /apis/helm.toolkit.fluxcd.io/v2/namespaces/a/helmreleases/b?dryRun=All",
		"DELETE /apis/helm.toolkit.fluxcd.io/v2/namespaces/a/helmreleases/refused",
		"POST /api/v1/namespaces",
		"PATCH /api/v1/namespaces/a",
		"PUT /api/v1/namespaces/a/finalize",
		"POST /api/v1/namespaces/a/configmaps",
		"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/strata",
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		"POST /version", "POST /api", "POST /apis/kraan.io",
	} {
		method, path, _ := strings.Cut(line, " ")
		method, apply := strings.CutSuffix(method, "-apply")
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/merge-patch+json")
		if apply {
			request.Header.Set("Content-Type", "application/apply-patch+yaml")
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	server.Close()
	response, err := client.Post(server.URL+"/api/v1/namespaces/a/configmaps", "", http.NoBody)
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a server that is closed: %v", err)
	}
	const want = `
# HELP strata_api_writes_total How many writes were sent to the API server, by verb, resource and result.
# TYPE strata_api_writes_total counter
strata_api_writes_total{resource="addonslayers.kraan.io",result="conflict",verb="patch"} 1
strata_api_writes_total{resource="addonslayers.kraan.io/status",result="success",verb="patch"} 2
strata_api_writes_total{resource="configmaps",result="error",verb="create"} 1
strata_api_writes_total{resource="configmaps",result="success",verb="create"} 1
strata_api_writes_total{resource="helmreleases.helm.toolkit.fluxcd.io",result="error",verb="delete"} 1
strata_api_writes_total{resource="helmreleases.helm.toolkit.fluxcd.io",result="success",verb="apply"} 1
strata_api_writes_total{resource="helmreleases.helm.toolkit.fluxcd.io",result="success",verb="create"} 1
strata_api_writes_total{resource="leases.coordination.k8s.io",result="success",verb="update"} 1
strata_api_writes_total{resource="namespaces",result="success",verb="create"} 1
strata_api_writes_total{resource="namespaces",result="success",verb="patch"} 1
strata_api_writes_total{resource="namespaces/finalize",result="success",verb="update"} 1
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// seriesLeft counts the series but for those of kinds, which always stand.
func seriesLeft(m *Meters) int {
	return testutil.CollectAndCount(m) - testutil.CollectAndCount(m.foreign)
}

// Statuses that do not count are counted by their kind, from zero on.
func TestForeignStatusesAreCounted(t *testing.T) {
	m := NewMeters()
	m.ForeignStatus(v1alpha1.PlatformKind)
	const want = `
# HELP strata_foreign_statuses_total How many statuses of Strata's objects did not count because something else than the controller had written them, by their kind.
# TYPE strata_foreign_statuses_total counter
strata_foreign_statuses_total{kind="AddonsLayer"} 0
strata_foreign_statuses_total{kind="ApplicationBundle"} 0
strata_foreign_statuses_total{kind="HelmApplication"} 0
strata_foreign_statuses_total{kind="Platform"} 1
strata_foreign_statuses_total{kind="RemoteCluster"} 0
`
	if err := testutil.CollectAndCompare(m.foreign, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	var none *Meters
	none.ForeignStatus(v1alpha1.PlatformKind)
}
