// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // exports what every controller measures
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/strata-project/strata/internal/hostkeeper"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/signals"
)

// dashboardFile is the dashboard that the chart ships.
const dashboardFile = "files/dashboards/strata.json"

// panel is what matters of a panel of a dashboard.
type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr  string `json:"expr"`
		RefID string `json:"refId"`
	} `json:"targets"`
}

type dashboard struct {
	UID, Title string
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

func TestDashboardIsWhole(t *testing.T) {
	board := readDashboard(t)
	if board.UID == "" || board.Title == "" || len(board.Panels) < 10 {
		t.Errorf("dashboard %q, %q has %d panels", board.UID, board.Title, len(board.Panels))
	}
	ids := map[int]string{}
	for i, p := range board.Panels {
		if other, ok := ids[p.ID]; ok || p.ID == 0 {
			t.Errorf("panel %q has the id %d, and so has %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		if p.Title == "" || (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("panel %d, %q of type %s, has %d queries", p.ID, p.Title, p.Type, len(p.Targets))
		}
		if g := p.GridPos; g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("panel %q is at %v", p.Title, g)
		}
		for _, other := range board.Panels[:i] {
			if a, b := p.GridPos, other.GridPos; a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q lie upon each other", p.Title, other.Title)
			}
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] {
				t.Errorf("panel %q has two queries %s", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
	}
}

func TestDashboardIsInItsConfigMap(t *testing.T) {
	want, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	found := named[*corev1.ConfigMap](t, render(t, `{dashboard: {enabled: true}}`), "strata-dashboard")
	if diff := cmp.Diff(strings.TrimSpace(string(want)), found.Data["strata.json"]); diff != "" {
		t.Errorf("dashboard (-file +ConfigMap):\n%s", diff)
	}
	if found.Labels["grafana_dashboard"] != "1" {
		t.Errorf("labels %v are none that Grafana's sidecar looks for", found.Labels)
	}
	found = named[*corev1.ConfigMap](t, render(t, everything), "strata-dashboard")
	if found.Labels["board"] != "yes-please" || found.Annotations["grafana_folder"] != "Flux" {
		t.Errorf("labels %v and annotations %v are not those of the values", found.Labels, found.Annotations)
	}
}

// Whatever is asked for is there to be asked: a query of a metric or a label
// that nobody exports is empty, and an alert on it never fires.
func TestQueriesAskForWhatIsExported(t *testing.T) {
	queries := map[string]string{}
	for _, rule := range alerts(t) {
		queries["alert "+rule.Alert] = rule.Expr
	}
	board := readDashboard(t)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries["panel "+p.Title+", query "+target.RefID] = target.Expr
		}
	}
	for _, variable := range board.Templating.List {
		if variable.Definition != "" {
			queries["variable "+variable.Name] = variable.Definition
		}
	}
	exported := exports(t)
	asked := map[string]bool{}
	for place, query := range queries {
		names, labels := read(query)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric: %s", place, query)
		}
		// Prometheus adds these to what it scrapes, and le to histograms.
		known := []string{"job", "namespace", "le"}
		for _, name := range names {
			base := family(name, exported)
			asked[base] = true
			if own, ok := exported[base]; ok {
				known = append(known, own...)
			} else if !foreign(name) {
				t.Errorf("%s asks for %s, which nobody exports", place, name)
			}
		}
		if foreign(names[0]) {
			continue
		}
		for _, label := range labels {
			if !slices.Contains(known, label) {
				t.Errorf("%s asks for the label %s, which %q do not have", place, label, names)
			}
		}
	}
	for name := range exported {
		// Kraan's condition says what strata_layer_state says better.
		if !asked[name] && name != "reconcile_condition" {
			t.Errorf("neither a panel nor an alert shows %s", name)
		}
	}
}

func TestSignalsListsEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/signals.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z_, ]*)\\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = regexp.MustCompile(`[a-z_]+`).FindAllString(row[2], -1)
	}
	if diff := cmp.Diff(exports(t), listed); diff != "" {
		t.Errorf("metrics and their labels (-exported +listed in docs/signals.md):\n%s", diff)
	}
}

// exports returns what the controller exports of its own, with its labels.
func exports(t *testing.T) map[string][]string {
	t.Helper()
	sender, err := signals.NewSender(signals.SenderOptions{URL: "http://localhost/"})
	if err != nil {
		t.Fatal(err)
	}
	collectors := []prometheus.Collector{
		signals.NewLayerMetrics(nil, ""), signals.NewClusterMetrics(nil), signals.NewPlatformMetrics(nil), hostkeeper.NewMetrics(nil), signals.NewMeters(), looks.Meter(), signals.NewFetchMeter(), signals.NewWriteMeter(), sender,
	}
	// A Desc has no way to ask for these but its text.
	form := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	found := map[string][]string{}
	for _, collector := range collectors {
		descriptions := make(chan *prometheus.Desc, 100)
		collector.Describe(descriptions)
		close(descriptions)
		for description := range descriptions {
			match := form.FindStringSubmatch(description.String())
			if match == nil {
				t.Fatalf("cannot read %s", description)
			}
			found[match[1]] = regexp.MustCompile(`[a-z_]+`).FindAllString(match[2], -1)
		}
	}
	if len(found) < 10 {
		t.Fatalf("the controller exports only %v", slices.Sorted(maps.Keys(found)))
	}
	return found
}

// family returns the metric that a series belongs to: a histogram has three.
func family(name string, exported map[string][]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && exported[base] != nil {
			return base
		}
	}
	return name
}

// foreign tells whether a metric is Prometheus' own, or one that
// controller-runtime has registered: it refuses another of that name.
func foreign(name string) bool {
	if name == "up" {
		return true
	}
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "Not what it is called."})
	if err := metrics.Registry.Register(other); err != nil {
		return true
	}
	metrics.Registry.Unregister(other)
	return false
}

var (
	quoted     = regexp.MustCompile(`"[^"]*"`)
	inBrackets = regexp.MustCompile(`\[[^\]]*\]`)
	selectors  = regexp.MustCompile(`\{[^}]*\}`)
	groupings  = regexp.MustCompile(`\b(by|on|without|ignoring)\s*\(([^)]*)\)`)
	ofVariable = regexp.MustCompile(`label_values\(([a-z_]+), ([a-z_]+)\)`)
	words      = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*(\s*\()?`)
)

// read returns the names of metrics and of labels in a query. The queries here
// have no strings with quotes or braces in them.
func read(query string) (names, labels []string) {
	if match := ofVariable.FindStringSubmatch(query); match != nil {
		return match[1:2], match[2:]
	}
	query = inBrackets.ReplaceAllString(quoted.ReplaceAllString(query, ""), "")
	for _, selector := range selectors.FindAllString(query, -1) {
		labels = append(labels, words.FindAllString(selector, -1)...)
	}
	query = selectors.ReplaceAllString(query, "")
	for _, grouping := range groupings.FindAllStringSubmatch(query, -1) {
		labels = append(labels, words.FindAllString(grouping[2], -1)...)
	}
	query = groupings.ReplaceAllString(query, "")
	for _, word := range words.FindAllString(query, -1) {
		if !strings.HasSuffix(word, "(") && !slices.Contains([]string{"and", "or", "unless"}, word) {
			names = append(names, word)
		}
	}
	return names, labels
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board dashboard
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	return board
}
