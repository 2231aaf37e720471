// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// webhook keeps what notification-controller posts, by path.
type webhook struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string][]eventv1.Event
}

func (f *fixture) webhook() *webhook {
	f.Helper()
	w := &webhook{got: map[string][]eventv1.Event{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		event := eventv1.Event{}
		if err := json.NewDecoder(request.Body).Decode(&event); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got[request.URL.Path] = append(w.got[request.URL.Path], event)
	}))
	f.Cleanup(w.Close)
	return w
}

// events returns what was posted to a path so far.
func (w *webhook) events(path string) []eventv1.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got[path])
}

// listens makes the Provider and the Alert of the documentation in a namespace;
// the address is all that is another one.
func (f *fixture) listens(namespace, address string) {
	f.Helper()
	kinds := map[string]int{}
	for _, manifest := range f.page("signals.md") {
		if !strings.Contains(manifest, "notification.toolkit.fluxcd.io/") {
			continue
		}
		obj := f.manifest(strings.ReplaceAll(strings.ReplaceAll(manifest, "flux-system", namespace), "https://hooks.example.com/layers", address))
		kinds[obj.GetKind()]++
		// The API server serves a changed definition a little later.
		f.eventually("the API server takes the page's "+obj.GetKind(), func() error { return stack.client.Create(f.ctx, obj) })
	}
	if diff := cmp.Diff(map[string]int{"Provider": 1, "Alert": 1}, kinds); diff != "" {
		f.Fatalf("manifests of the page (-want +got):\n%s", diff)
	}
}

// arrives waits until the webhook has an event of a layer with a reason.
func (f *fixture) arrives(w *webhook, path, layer, reason string) eventv1.Event {
	f.Helper()
	var found eventv1.Event
	f.eventually(fmt.Sprintf("the webhook is told %s of layer %s", reason, layer), func() error {
		var reasons []string
		for _, event := range w.events(path) {
			if event.InvolvedObject.Name == f.name(layer) && event.Reason == reason {
				found = event
				return nil
			}
			reasons = append(reasons, event.InvolvedObject.Name+" "+event.Reason)
		}
		return fmt.Errorf("it was told %q", reasons)
	})
	return found
}

// says checks what an event that has arrived says.
func (f *fixture) says(event eventv1.Event, severity, message string, metadata map[string]string) {
	f.Helper()
	object := event.InvolvedObject
	if object.Kind != v1alpha1.AddonsLayerKind || object.APIVersion != v1alpha1.GroupVersion.String() || object.Namespace != f.prefix {
		f.Errorf("%s is about %+v", event.Reason, object)
	}
	if event.Severity != severity || !strings.Contains(event.Message, message) || event.ReportingController != "strata" || event.Timestamp.IsZero() {
		f.Errorf("%s is %+v, want severity %s and the words %q", event.Reason, event, severity, message)
	}
	if diff := cmp.Diff(metadata, event.Metadata); diff != "" {
		f.Errorf("metadata of %s (-want +got):\n%s", event.Reason, diff)
	}
}

// A webhook is told by the real notification-controller that a layer has failed
// and that it has healed, and nothing of layers of another namespace's source.
func TestNotificationsReachAWebhook(t *testing.T) {
	f := newFixture(t)
	if stack.plane.EventsURL() == "" {
		t.Skip("needs the address of a notification-controller")
	}
	hook := f.webhook()
	other := f.prefix + "-other"
	f.must(stack.plane.CreateNamespace(f.ctx, other))
	t.Cleanup(func() {
		_ = stack.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}})
	})
	f.listens(f.prefix, hook.URL+"/ours")
	f.listens(other, hook.URL+"/theirs")
	broken := f.push(map[string]string{
		"apps/release.yaml":   strings.Replace(f.configMapRelease("apps", "x"), "  values: {", "  values: {fail: it is meant to fail, ", 1),
		"theirs/release.yaml": f.configMapRelease("theirs", "x"),
	})
	f.must(stack.client.Create(f.ctx, &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "addons"},
		Spec: sourcev1.GitRepositorySpec{
			URL: f.repo.URL(), Interval: metav1.Duration{Duration: time.Hour},
			Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}))
	f.layer("theirs", func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Namespace = other })
	f.arrives(hook, "/theirs", "theirs", v1alpha1.ReasonDeployed)

	f.layer("apps", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: 5 * time.Second} })
	failed := f.state("apps", v1alpha1.StateFailed)
	f.says(f.arrives(hook, "/ours", "apps", v1alpha1.ReasonTimeout), eventv1.EventSeverityError, "not deployed within 5s: HelmRelease "+f.prefix+"/apps",
		map[string]string{"revision": broken, "version": "1.0.0", "state": "Failed"})
	if reason := condition(failed, v1alpha1.ReadyCondition).Reason; reason != v1alpha1.ReasonTimeout {
		t.Errorf("the layer itself gives the reason %s", reason)
	}
	healed := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "x")})
	f.deployed("apps", healed)
	f.says(f.arrives(hook, "/ours", "apps", v1alpha1.ReasonDeployed), eventv1.EventSeverityInfo, healed,
		map[string]string{"revision": healed, "version": "1.0.0", "state": "Deployed"})

	for path, layer := range map[string]string{"/ours": "apps", "/theirs": "theirs"} {
		for _, event := range hook.events(path) {
			if event.InvolvedObject.Name != f.name(layer) {
				t.Errorf("%s was told of %s: %s", path, event.InvolvedObject.Name, event.Reason)
			}
		}
	}
}

// reasons counts what events say of a layer, by reason.
func (f *fixture) reasons(layer string) map[string]int {
	f.Helper()
	reasons := map[string]int{}
	for event, count := range f.events() {
		if event.layer == f.name(layer) {
			reasons[event.reason] += count
		}
	}
	return reasons
}

// exactly waits until events of these reasons tell of a layer, beside those
// before, and checks that no other one follows.
func (f *fixture) exactly(layer, what string, before map[string]int, more ...string) map[string]int {
	f.Helper()
	want := maps.Clone(before)
	for _, reason := range more {
		want[reason]++
	}
	check := func() error {
		if diff := cmp.Diff(want, f.reasons(layer)); diff != "" {
			return fmt.Errorf("reasons of events (-want +got):\n%s", diff)
		}
		return nil
	}
	f.within(promptly, what, check)
	f.throughout(3*time.Second, what+", and nothing else", check)
	return want
}

// A settled layer has no events, however often it is looked at, and a change
// has its own.
func TestEventsTellOfChangesOnly(t *testing.T) {
	f := newFixture(t)
	configMap := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: one}\n", name, f.prefix)
	}
	f.layer("base")
	f.state("base", v1alpha1.StatePending)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "base/kept.yaml": configMap("kept"), "base/old.yaml": configMap("old"),
	})
	f.deployed("base", revision)
	f.told("base", "Deployed", revision)
	settled := f.reasons("base")

	for i := range 3 {
		request := fmt.Sprintf("request %d", i)
		f.edit("base", fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, request))
		f.eventually("the request is handled", func() error {
			if handled := f.get("base").Status.LastHandledReconcileAt; handled != request {
				return fmt.Errorf("%q was handled last", handled)
			}
			return nil
		})
		f.deployed("base", f.push(map[string]string{"README.md": request + "\n"}))
	}
	settled = f.exactly("base", "a settled layer is quiet", settled)

	f.deployed("base", f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")}))
	settled = f.exactly("base", "another content is told", settled, "Applying", "Deployed")

	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "kept"}}, `{"data":{"value":"edited"}}`)
	settled = f.exactly("base", "a correction is told", settled, v1alpha1.ReasonDriftCorrected, "Applying", "Deployed")

	f.deployed("base", f.remove("base/old.yaml"))
	f.exactly("base", "an orphan is told", settled, v1alpha1.ReasonOrphaned, "Pruning", v1alpha1.ReasonPruned, "Deployed")
}

// series are the suite's controller's series of a layer, by their name and
// their other labels.
func (f *fixture) series(layer string) map[string]float64 {
	f.Helper()
	// A layer's name is in the label name of Kraan's metrics, and in the label
	// layer of the others.
	return f.scrape(regexp.MustCompile(`(?:\b(?:layer|name)="` + regexp.QuoteMeta(f.name(layer)) + `"),?`))
}

// scrape returns the series that have a label, by their name and their other
// labels.
func (f *fixture) scrape(label *regexp.Regexp) map[string]float64 {
	f.Helper()
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, stack.controller.MetricsURL, http.NoBody)
	f.must(err)
	response, err := http.DefaultClient.Do(request)
	f.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	f.must(err)
	found := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if !label.MatchString(line) {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		f.must(err)
		name := label.ReplaceAllString(line[:at], "")
		found[strings.TrimSuffix(strings.Replace(name, ",}", "}", 1), "{}")] = value
	}
	return found
}

// counts waits until series of a layer have their values.
func (f *fixture) counts(layer string, want map[string]float64) {
	f.Helper()
	f.has("the metrics of layer "+layer, func() map[string]float64 { return f.series(layer) }, want)
}

// has waits until some series have their values.
func (f *fixture) has(what string, series func() map[string]float64, want map[string]float64) {
	f.Helper()
	f.within(promptly, what, func() error {
		got := series()
		for name, value := range want {
			if found, ok := got[name]; !ok || found != value {
				return fmt.Errorf("%s is %v (%v), want %v, among %v", name, found, ok, value, got)
			}
		}
		return nil
	})
}

const (
	rolledOut   = `strata_layer_rollout_duration_seconds_count{result="deployed"}`
	notRolled   = `strata_layer_rollout_duration_seconds_count{result="failed"}`
	corrections = "strata_layer_drift_corrections_total"
	prunes      = "strata_layer_prunes_total"
	adoptions   = "strata_layer_adoptions_total"
)

// Whatever happens to a layer is counted once, with its state and since when,
// and nothing of it is left when the layer is gone.
func TestMetricsCountWhatHappened(t *testing.T) {
	f := newFixture(t)
	configMap := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: one}\n", name, f.prefix)
	}
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: 10 * time.Second} })
	f.layer("apps")
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "base/kept.yaml": configMap("kept"), "base/old.yaml": configMap("old"),
		"base/moves.yaml": configMap("moves"), "apps/own.yaml": configMap("own"),
	})
	f.deployed("base", revision)
	f.deployed("apps", revision)
	f.counts("base", map[string]float64{
		rolledOut: 1, corrections: 0, prunes: 0, adoptions: 0,
		`strata_layer_state{state="Deployed"}`: 1, "strata_layer_ready": 1, "strata_layer_stalled": 0,
		`strata_layer_reason{reason="Deployed"}`: 1, `strata_layer_resources{status="Deployed"}`: 4,
		"strata_layer_state_since_timestamp_seconds": float64(f.get("base").Status.StateSince.Unix()),
		kraansCondition("Deployed", "True"):          1, kraansCondition("Failed", "False"): 1,
	})

	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "kept"}}, `{"data":{"value":"edited"}}`)
	f.counts("base", map[string]float64{rolledOut: 1, corrections: 1, prunes: 0, adoptions: 0})

	revision = f.remove("base/old.yaml")
	f.deployed("base", revision)
	f.counts("base", map[string]float64{rolledOut: 2, corrections: 1, prunes: 1, adoptions: 0, `strata_layer_resources{status="Deployed"}`: 3})

	revision = f.rewrite(map[string]string{"base/moves.yaml": "", "apps/moves.yaml": configMap("moves")})
	f.deployed("base", revision)
	f.deployed("apps", revision)
	f.counts("base", map[string]float64{rolledOut: 3, corrections: 1, prunes: 1, adoptions: 0})
	f.counts("apps", map[string]float64{rolledOut: 2, corrections: 0, prunes: 0, adoptions: 1})

	f.push(map[string]string{"base/release.yaml": strings.Replace(f.configMapRelease("base", "one"), "  values: {", "  values: {fail: it is meant to fail, ", 1)})
	since := f.state("base", v1alpha1.StateFailed).Status.StateSince
	f.counts("base", map[string]float64{
		rolledOut: 3, notRolled: 1, corrections: 1, prunes: 1, adoptions: 0,
		`strata_layer_state{state="Failed"}`: 1, "strata_layer_ready": 0, `strata_layer_reason{reason="Timeout"}`: 1,
		"strata_layer_state_since_timestamp_seconds": float64(since.Unix()), kraansCondition("Failed", "True"): 1,
	})
	if _, found := f.series("base")[`strata_layer_state{state="Deployed"}`]; found {
		t.Error("a layer that has failed is in its former state too")
	}

	f.deleteLayer("base")
	f.layerGone("base")
	f.within(promptly, "nothing is left of a layer that is gone", func() error {
		if left := f.series("base"); len(left) > 0 {
			return fmt.Errorf("there is %v", left)
		}
		return nil
	})
	f.counts("apps", map[string]float64{rolledOut: 2, prunes: 0, adoptions: 1})
}

// kraansCondition names a series of Kraan's metric.
func kraansCondition(kind, status string) string {
	return fmt.Sprintf(`reconcile_condition{kind="AddonsLayer.kraan.io",namespace="",status=%q,type=%q}`, status, kind)
}
