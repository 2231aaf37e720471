// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
)

var (
	deployed = summary.Row{Name: "base", Version: "1.0.0", State: "Deployed", Ready: "2/2"}
	waiting  = summary.Row{Name: "apps", Version: "1.0.0", State: "ApplyPending", Ready: "0/2", Why: "waits for base@1.0.0", Blocked: true}
	stale    = summary.Row{Name: "apps", Version: "1.1.0", State: "Deployed", Why: "not looked at yet", Blocked: true}
)

func TestAllDeployed(t *testing.T) {
	for _, c := range []struct {
		rows   []summary.Row
		want   bool
		reason string
	}{
		{nil, false, "nothing has been seen yet"},
		{[]summary.Row{deployed}, true, "all are"},
		{[]summary.Row{deployed, waiting}, false, "one waits"},
		{[]summary.Row{deployed, stale}, false, "the status of one is of an earlier generation"},
	} {
		if got := allDeployed(c.rows); got != c.want {
			t.Errorf("allDeployed is %t: %s", got, c.reason)
		}
	}
}

func TestNotDeployedNamesTheLayersAndTheirMessages(t *testing.T) {
	got := notDeployed(errors.New("not all layers are deployed after 5m0s"), []summary.Row{deployed, waiting}).Error()
	want := "not all layers are deployed after 5m0s\n  apps is ApplyPending: waits for base@1.0.0"
	if got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

// A Platform is in the table as a layer is, and the demo ends when it is ready too.
func TestPlatformRow(t *testing.T) {
	platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: "edge", Generation: 2}}
	platform.Status = v1alpha1.PlatformStatus{
		ObservedGeneration: 1, Version: "1.0.0", Clusters: v1alpha1.ClusterCount{Total: 2, Ready: 1},
		Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInstalled}},
	}
	stale := summary.Row{Name: "edge", Version: "1.0.0", State: "-", Ready: "1/2", Why: "not looked at yet", Blocked: true}
	if diff := cmp.Diff(stale, platformRow(platform)); diff != "" {
		t.Errorf("of an earlier generation (-want +got):\n%s", diff)
	}
	platform.Status.ObservedGeneration = 2
	if rows := []summary.Row{platformRow(platform), deployed}; !allDeployed(rows) {
		t.Errorf("a ready platform is not deployed: %+v", rows)
	}
	platform.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonWaiting, Message: "1 of 2 clusters waiting"}
	rows := []summary.Row{platformRow(platform), deployed}
	if allDeployed(rows) {
		t.Errorf("a waiting platform is deployed: %+v", rows)
	}
	if got, want := notDeployed(errors.New("late"), rows).Error(), "late\n  edge is Waiting: 1 of 2 clusters waiting"; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

func TestTheFleetIsADemoOfItsOwn(t *testing.T) {
	t.Setenv("DEMO_FLEET", "1")
	t.Setenv("DEMO_REMOTE", "")
	if s, err := parse(nil); err != nil || !s.fleet {
		t.Errorf("DEMO_FLEET=1 says %+v: %v", s, err)
	}
	t.Setenv("DEMO_REMOTE", "1")
	if _, err := parse(nil); err == nil || !strings.Contains(err.Error(), "--fleet and --remote") {
		t.Errorf("the fleet and the remote cluster go together: %v", err)
	}
}

func TestTheCurrentClusterIsAskedForByName(t *testing.T) {
	for _, variable := range []string{"DEMO_FLEET", "DEMO_REMOTE"} {
		t.Setenv(variable, "")
	}
	for value, want := range map[string]struct {
		current bool
		words   string
	}{
		"": {}, "current": {current: true}, "kind": {words: `--cluster is "kind": want current`},
	} {
		t.Setenv("DEMO_CLUSTER", value)
		s, err := parse(nil)
		if s.current != want.current || (err == nil) != (want.words == "") || err != nil && !strings.Contains(err.Error(), want.words) {
			t.Errorf("DEMO_CLUSTER=%s says %+v: %v", value, s, err)
		}
	}
	t.Setenv("DEMO_CLUSTER", "current")
	if _, err := parse([]string{"--fleet"}); err == nil || !strings.Contains(err.Error(), "goes with neither") {
		t.Errorf("the current cluster and the fleet go together: %v", err)
	}
}

// What the cluster has already is not the demo's to delete.
func TestTheDemoOwnsWhatItMakes(t *testing.T) {
	noKind := &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("AddonsLayer").GroupKind()}
	for reason, test := range map[string]struct {
		there []string
		list  error
		want  []string
		words string
	}{
		"an empty cluster":       {list: noKind, want: []string{"strata-system", "flux-system"}},
		"somebody's namespaces":  {there: []string{"strata-system", "flux-system"}, list: noKind},
		"one of them":            {there: []string{"flux-system"}, list: noKind, want: []string{"strata-system"}},
		"a cluster with Strata":  {words: "has AddonsLayers already"},
		"a cluster that is away": {list: errors.New("no route"), words: "cannot look for Strata in the cluster of context kind: no route"},
	} {
		scheme := runtime.NewScheme()
		if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return test.list
			},
		})
		for _, name := range test.there {
			builder = builder.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		d := &demo{context: "kind"}
		err := d.mayUse(t.Context(), builder.Build())
		if (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %q", reason, err, test.words)
		}
		if !slices.Equal(d.ownNamespaces, test.want) {
			t.Errorf("%s: it would delete %v, want %v", reason, d.ownNamespaces, test.want)
		}
	}
}

func TestServicePath(t *testing.T) {
	for address, want := range map[string]string{
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/a/b/c%2F.tar.gz": "/api/v1/namespaces/flux-system/services/http:source-controller:80/proxy/gitrepository/a/b/c%2F.tar.gz",
		"http://maker.a.svc:9090/x": "/api/v1/namespaces/a/services/http:maker:9090/proxy/x",
		"http://example.com/x":      "",
		"http://10.0.0.1/x":         "",
	} {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := servicePath(parsed); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is at %q, %v, want %q", address, got, err, want)
		}
	}
}

// What goes into a pipe has a line for each change and no escape sequences.
func TestAPipeGetsALineForEachChange(t *testing.T) {
	var out strings.Builder
	v := newView(&out)
	v.show([]summary.Row{deployed, waiting}, time.Second)
	later := waiting
	later.Since = "5s"
	v.show([]summary.Row{deployed, later}, 5*time.Second)
	done := waiting
	done.State, done.Why, done.Blocked = "Deployed", "", false
	v.show([]summary.Row{deployed, done}, 6*time.Second)
	want := `   1.0s  base       1.0.0    Deployed      2/2
   1.0s  apps       1.0.0    ApplyPending  0/2   waits for base@1.0.0
   6.0s  apps       1.0.0    Deployed      0/2
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCopyWithURL(t *testing.T) {
	dir := t.TempDir()
	tree := fstest.MapFS{"addons/base/charts.yaml": {Data: []byte("url: http://charts.example.invalid/\n")}}
	if err := copyWithURL(dir, tree, "http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "addons", "base", "charts.yaml"))
	if err != nil || string(content) != "url: http://127.0.0.1:1/\n" {
		t.Errorf("the copy is %q: %v", content, err)
	}
}

// The placeholder is what the examples really have.
func TestTheExamplesHaveThePlaceholder(t *testing.T) {
	for _, file := range []string{"platform/addons/bootstrap/charts.yaml", "fleet/catalogue.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "examples", filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(content), placeholder) {
			t.Errorf("%s lacks %s: %v", file, placeholder, err)
		}
	}
}
