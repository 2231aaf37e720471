// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/strata-project/strata/chart"
	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/terminal"
)

// allowing has a server say that somebody may do everything but some verbs.
func allowing(server *apitest.Server, refused ...string) *apitest.Server {
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			inner.ServeHTTP(w, r)
			return
		}
		review := &authorizationv1.SelfSubjectAccessReview{}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, review)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		review.Status.Allowed = !slices.Contains(refused, review.Spec.ResourceAttributes.Verb)
		reply(w, http.StatusCreated, review)
	})
	return server
}

// installed returns the CRDs and the controller's role as the chart makes them.
func installed(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	wanted, err := wantedOfPlugin()
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	add := func(value any, more string) {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(data, &object.Object); err != nil {
			t.Fatal(err)
		}
		for key, value := range apitest.Parse(t, more)[0].Object {
			object.Object[key] = value
		}
		objects = append(objects, object)
	}
	for _, crd := range wanted.CRDs {
		add(crd, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}]}}`)
	}
	add(map[string]any{"rules": wanted.Rules}, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: strata, labels: {app.kubernetes.io/name: strata}}}`)
	return objects
}

func TestCheckIsGolden(t *testing.T) {
	server := allowing(apitest.New(t, append(installed(t), apitest.Load(t, "testdata/check.yaml")...)...), "patch")
	for name, c := range map[string]struct {
		args   string
		screen terminal.Screen
	}{
		"check.txt":        {"check", terminal.Screen{}},
		"check.json":       {"check -o json", terminal.Screen{}},
		"check-40.txt":     {"check", terminal.Screen{Width: 40}},
		"check-colour.txt": {"check", terminal.Screen{Width: 100, Colour: true}},
		"check-pre.txt":    {"check --pre", terminal.Screen{}},
	} {
		code, out, errOut := commandLine(t, server, c.screen, c.args)
		if code != exitBlocked || errOut != "" {
			t.Errorf("%s: exit code %d: %s", c.args, code, errOut)
		}
		golden(t, name, out)
	}
}

// Whoever may read nothing but layers is told what is not known, and nothing fails
// because of that.
func TestCheckWithFewRights(t *testing.T) {
	server := allowing(apitest.New(t, installed(t)...), "list", "patch")
	for _, resource := range []string{"deployments.apps", "clusterroles.rbac.authorization.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"} {
		server.Refuse[resource] = http.StatusForbidden
	}
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "check")
	if code != exitFine || errOut != "" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	golden(t, "check-few-rights.txt", out)
}

func TestCheckSaysWhatAnEmptyClusterLacks(t *testing.T) {
	server := allowing(apitest.New(t))
	server.Version = "v1.28.1"
	for _, resource := range []string{"helmreleases.helm.toolkit.fluxcd.io", "gitrepositories.source.toolkit.fluxcd.io"} {
		server.Refuse[resource] = http.StatusNotFound
	}
	code, out, _ := commandLine(t, server, terminal.Screen{}, "check")
	if code != exitBlocked {
		t.Errorf("exit code %d: %s", code, out)
	}
	golden(t, "check-empty.txt", out)
}

// The chart in the plug-in is the chart of the tree.
func TestTheChartInThePluginRendersAsOnDisk(t *testing.T) {
	inside, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := loader.LoadDir("../../chart")
	if err != nil {
		t.Fatal(err)
	}
	var rendered []string
	for _, loaded := range []any{inside, onDisk} {
		install := action.NewInstall(action.NewConfiguration())
		install.ReleaseName, install.Namespace, install.DryRunStrategy = "strata", "strata-system", action.DryRunClient
		install.KubeVersion = &common.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
		release, err := install.Run(loaded, map[string]any{
			"remoteClusters": map[string]any{"enabled": true}, "dashboard": map[string]any{"enabled": true}, "prometheusRule": map[string]any{"enabled": true},
		})
		if err != nil {
			t.Fatal(err)
		}
		rendered = append(rendered, release.(*releasev1.Release).Manifest)
	}
	if diff := cmp.Diff(rendered[1], rendered[0]); diff != "" {
		t.Errorf("-on disk +in the plug-in:\n%s", diff)
	}
	err = filepath.WalkDir("../../chart", func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel("../../chart", path)
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "testdata") {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got, err := chart.Files.ReadFile(filepath.ToSlash(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not in the plug-in as it is on disk: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestInstallPrintsWhatItWouldApply(t *testing.T) {
	server := allowing(apitest.New(t, apitest.Load(t, "testdata/check.yaml")...))
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("replicas: 2\nimage: {repository: mirror/strata}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "install --dry-run --set replicas=3 -n elsewhere -f "+values)
	if code != exitFine || !strings.Contains(errOut, "kraan-controller") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	objects, err := objectsOf(out)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		if object.GetKind() == "Deployment" {
			replicas, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
			if object.GetNamespace() != "elsewhere" || fmt.Sprint(replicas) != "3" || !strings.Contains(out, "mirror/strata:") {
				t.Errorf("%v", object)
			}
		}
	}
	if want := map[string]int{
		"CustomResourceDefinition": 6, "ClusterRole": 2, "ClusterRoleBinding": 1, "Role": 2, "RoleBinding": 2, "Deployment": 1, "Service": 1, "ServiceAccount": 1,
	}; !cmp.Equal(want, kinds) {
		t.Errorf("%v", cmp.Diff(want, kinds))
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("a dry run has written %q", writes)
	}
}

func TestInstallEndsBeforeAnythingIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		args    string
		refused []string
		kraan   bool
		code    int
		words   string
	}{
		"Kraan runs":      {"install", nil, true, exitBlocked, "two controllers must never work on the same layers"},
		"no rights":       {"install --set image.repository=mirror/strata", []string{"create"}, false, exitError, "nothing was done, for you lack rights in the namespace strata-system or in the cluster: create clusterrolebindings.rbac.authorization.k8s.io, "},
		"no such file":    {"install -f nothing.yaml", nil, false, exitError, "cannot read the values"},
		"no such value":   {"install --set image.repository=mirror/strata --set nonsense=1", nil, false, exitError, "nonsense"},
		"no image":        {"install", nil, false, exitError, "give --set image.repository=HOST/PATH"},
		"no registry":     {"install --version 0.1.0", nil, false, exitError, "--version needs --chart"},
		"no address":      {"install --version 0.1.0 --chart https://charts.example", nil, false, exitError, "must be oci://HOST/PATH"},
		"no value at all": {"install --set replicas", nil, false, exitError, "cannot understand --set replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := apitest.Load(t, "testdata/check.yaml")
			objects[1].Object["status"] = map[string]any{"readyReplicas": int64(1)}
			if !c.kraan {
				objects = objects[:3]
			}
			server := allowing(apitest.New(t, objects...), c.refused...)
			code, out, errOut := commandLine(t, server, terminal.Screen{}, c.args)
			if code != c.code || out != "" || !strings.Contains(errOut, c.words) {
				t.Errorf("exit code %d: %s%s", code, out, errOut)
			}
			if writes := server.Writes(); len(writes) > 0 {
				t.Errorf("it has written %q", writes)
			}
		})
	}
}

func TestNothingOlderIsInstalledUnasked(t *testing.T) {
	loaded, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	newer := *loaded
	metadata := *loaded.Metadata
	newer.Metadata, metadata.Version = &metadata, "99.0.0"
	last := &releasev1.Release{Chart: &newer, Info: &releasev1.Info{Status: "deployed"}}
	i := &installation{tool: &tool{&console.Console{}}, namespace: "strata-system"}
	if err := i.mayReplace(last, loaded); err == nil || !strings.Contains(err.Error(), "version 99.0.0 of Strata is installed, which is newer") {
		t.Errorf("%v", err)
	}
	i.downgrade = true
	if err := i.mayReplace(last, loaded); err != nil {
		t.Error(err)
	}
	last.Info.Status = "pending-upgrade"
	if err := i.mayReplace(last, loaded); err == nil || !strings.Contains(err.Error(), "helm rollback") {
		t.Errorf("%v", err)
	}
}

func TestSame(t *testing.T) {
	loaded, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	release := func(status releasecommon.Status, values map[string]any) *releasev1.Release {
		return &releasev1.Release{Chart: loaded, Manifest: "a", Config: values, Info: &releasev1.Info{Status: status}}
	}
	last := release("deployed", map[string]any{"replicas": 2.0})
	for name, c := range map[string]struct {
		last, next *releasev1.Release
		want       bool
	}{
		"nothing installed":   {nil, release("", nil), false},
		"a number from --set": {last, release("", map[string]any{"replicas": int64(2)}), true},
		"another number":      {last, release("", map[string]any{"replicas": int64(3)}), false},
		"no values":           {release("deployed", nil), release("", map[string]any{}), true},
		"one that has failed": {release("failed", nil), release("", nil), false},
		"another manifest":    {release("deployed", nil), &releasev1.Release{Chart: loaded, Manifest: "b"}, false},
	} {
		if got := same(c.last, c.next); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWantedOfChart(t *testing.T) {
	wanted, err := wantedOfPlugin()
	if err != nil || len(wanted.CRDs) != 6 || len(wanted.Rules) < 10 || wanted.Kubernetes != ">=1.29.0" {
		t.Errorf("%v: %d CRDs, %d rules, Kubernetes %s", err, len(wanted.CRDs), len(wanted.Rules), wanted.Kubernetes)
	}
	if got := checks.Failed(nil); got {
		t.Error("nothing has failed")
	}
}
