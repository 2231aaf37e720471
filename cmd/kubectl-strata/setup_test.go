// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
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
	wanted, err := setup.Build{Version: version}.Wanted()
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
	objects, err := setup.Objects(out)
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
		"CustomResourceDefinition": 9, "ClusterRole": 2, "ClusterRoleBinding": 1, "Role": 2, "RoleBinding": 2, "Deployment": 1, "Service": 1, "ServiceAccount": 1,
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
