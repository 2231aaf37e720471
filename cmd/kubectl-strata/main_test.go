// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

const (
	layersPath   = "/apis/kraan.io/v1alpha1/addonslayers"
	clustersPath = "/apis/kraan.io/v1alpha1/remoteclusters"
)

// apiServer is as much of an API server as the plug-in asks for.
type apiServer struct {
	layers   []v1alpha1.AddonsLayer
	clusters []v1alpha1.RemoteCluster
	refuse   int       // answers every request for layers or clusters with this code
	patches  *[]string // what was merged into which layer; nil refuses patches
	events   []string  // what a watch sends before it ends
}

func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name, one := strings.CutPrefix(r.URL.Path, layersPath+"/")
	switch {
	case r.URL.Path == "/version":
		reply(w, http.StatusOK, map[string]string{"gitVersion": "v1.36.3"})
	case strings.HasSuffix(r.URL.Path, "/deployments"):
		refuse(w, http.StatusForbidden)
	case s.refuse != 0:
		refuse(w, s.refuse)
	case strings.Contains(r.URL.Path, "/namespaces/") || strings.HasPrefix(r.URL.Path, clustersPath):
		s.serveClusters(w, r)
	case one && r.Method == http.MethodPatch:
		s.patch(w, r, name)
	case one:
		for _, layer := range s.layers {
			if layer.Name == name {
				reply(w, http.StatusOK, layer)
				return
			}
		}
		refuse(w, http.StatusNotFound)
	case r.URL.Query().Get("watch") != "":
		for _, event := range s.events {
			fmt.Fprintln(w, event)
		}
	default:
		list := v1alpha1.AddonsLayerList{Items: s.layers}
		list.APIVersion, list.Kind, list.ResourceVersion = v1alpha1.GroupVersion.String(), "AddonsLayerList", "7"
		reply(w, http.StatusOK, list)
	}
}

// patch notes what is merged into a layer, and answers with the layer as it was.
func (s apiServer) patch(w http.ResponseWriter, r *http.Request, name string) {
	if s.patches == nil {
		refuse(w, http.StatusForbidden)
		return
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	*s.patches = append(*s.patches, name+" "+string(data))
	reply(w, http.StatusOK, layer(name, v1alpha1.StateDeployed, metav1.ConditionTrue))
}

// serveClusters answers for all namespaces, for one, and for one RemoteCluster.
func (s apiServer) serveClusters(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/kraan.io/v1alpha1"), "/")
	list := v1alpha1.RemoteClusterList{Items: []v1alpha1.RemoteCluster{}}
	list.APIVersion, list.Kind, list.ResourceVersion = v1alpha1.GroupVersion.String(), "RemoteClusterList", "7"
	for _, cluster := range s.clusters {
		switch {
		case len(path) == 2, len(path) == 4 && path[2] == cluster.Namespace:
			list.Items = append(list.Items, cluster)
		case len(path) == 5 && path[2] == cluster.Namespace && path[4] == cluster.Name:
			reply(w, http.StatusOK, cluster)
			return
		}
	}
	switch {
	case len(path) == 5:
		refuse(w, http.StatusNotFound)
	case r.URL.Query().Get("watch") != "":
		for _, event := range s.events {
			fmt.Fprintln(w, event)
		}
	default:
		reply(w, http.StatusOK, list)
	}
}

func reply(w http.ResponseWriter, code int, value any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, code int) {
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
		http.StatusNotFound: metav1.StatusReasonNotFound,
	}[code]
	reply(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: strings.ToLower(http.StatusText(code)),
	})
}

func layer(name string, state v1alpha1.State, ready metav1.ConditionStatus) v1alpha1.AddonsLayer {
	return v1alpha1.AddonsLayer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddonsLayerKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, ResourceVersion: "5"},
		Spec:       v1alpha1.AddonsLayerSpec{Version: "1.0.0"},
		Status: v1alpha1.AddonsLayerStatus{
			State: state, Version: "1.0.0", Revision: "main@sha1:0123456789ab", ObservedGeneration: 1,
			Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: ready, Reason: string(state), Message: "of " + name}},
		},
	}
}

func deployed(name string) v1alpha1.AddonsLayer {
	return layer(name, v1alpha1.StateDeployed, metav1.ConditionTrue)
}

func remoteCluster(namespace, name string, ready metav1.ConditionStatus) v1alpha1.RemoteCluster {
	return v1alpha1.RemoteCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RemoteClusterKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, ResourceVersion: "5"},
		Status: v1alpha1.RemoteClusterStatus{
			ObservedGeneration: 1, Version: "v1.30.1", Layers: v1alpha1.LayerCount{Deployed: 1, Total: 2},
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "Because", Message: "of " + name},
				{Type: v1alpha1.ReachableCondition, Status: ready},
			},
		},
	}
}

// plugin runs a command line without any kubeconfig.
func plugin(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestGet(t *testing.T) {
	both := apiServer{layers: []v1alpha1.AddonsLayer{deployed("mesh"), deployed("base")}}
	held := apiServer{layers: []v1alpha1.AddonsLayer{deployed("base"), layer("apps", v1alpha1.StateHold, metav1.ConditionUnknown)}}
	remote := deployed("base")
	remote.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: "fleet", Name: "prod"}
	away := apiServer{layers: []v1alpha1.AddonsLayer{deployed("home"), remote}}
	checkShown(t, map[string]showCase{
		"all":           {both, "get", 0, []string{"NAME   VERSION", "base   1.0.0", "Deployed", "- ", "main@sha1:01234567 ", "mesh   1.0.0"}, "", "layers are sorted by name"},
		"one":           {both, "get mesh", 0, []string{"NAME", "mesh"}, "", "a layer by its name"},
		"names":         {both, "get -o name", 0, []string{"addonslayer.kraan.io/base\naddonslayer.kraan.io/mesh\n"}, "", "what other commands take"},
		"one as json":   {both, "get mesh -o json", 0, []string{`"kind": "AddonsLayer"`, `"name": "mesh"`}, "", "one layer is itself"},
		"all as json":   {both, "get -o json", 0, []string{`"apiVersion": "v1"`, `"items"`, `"base"`, `"mesh"`, `"kind": "List"`}, "", "several are a list"},
		"all as yaml":   {both, "get -o yaml", 0, []string{"apiVersion: v1", "name: base", "name: mesh"}, "", "several are a list"},
		"wide":          {both, "get -o wide", 0, []string{"PATH", "main@sha1:0123456789ab "}, "", "nothing is shortened"},
		"none":          {apiServer{}, "get", 0, []string{"No layers found."}, "", "a cluster without layers is fine"},
		"held":          {held, "get", 2, []string{"apps", "Hold", "of apps", "base"}, "", "a held layer is blocked"},
		"not the held":  {held, "get base", 0, []string{"base"}, "", "only what is shown counts"},
		"held as json":  {held, "get -o json", 2, []string{"apps"}, "", "the code does not depend on the format"},
		"near":          {both, "get bsae", 1, nil, "there is no layer bsae; did you mean base?", "a suggestion"},
		"far":           {both, "get zzzz", 1, nil, "kubectl strata get lists those there are", "no suggestion is better than a bad one"},
		"some":          {both, "get mesh zzzz", 1, []string{"mesh"}, "there is no layer zzzz", "what there is, is shown"},
		"no CRD":        {apiServer{refuse: 404}, "get", 1, nil, "this cluster has no Strata", "the API server knows no layers"},
		"no CRD, named": {apiServer{refuse: 404}, "get base", 1, nil, "this cluster has no Strata", "a missing kind is no missing layer"},
		"no rights":     {apiServer{refuse: 403}, "get", 1, nil, "ask for the role strata-view", "what to ask for"},
		"unknown user":  {apiServer{refuse: 401}, "get", 1, nil, "log in again", "what to do"},
		"bad format":    {both, "get -o xml", 1, nil, `--output is "xml": it must be wide, json, yaml or name`, "what to write instead"},
		"both":          {both, "get base -l a=b", 1, nil, "give names or --selector, not both", "as kubectl has it"},
		"unknown flag":  {both, "get --every", 1, nil, "unknown flag: --every", "a usage error is an error"},
		"on a cluster":  {away, "get", 0, []string{"CLUSTER", "base", "fleet/prod", "home", "- "}, "", "where each layer belongs"},
		"as json":       {away, "get base -o json", 0, []string{`"cluster"`, `"name": "prod"`, `"namespace": "fleet"`}, "", "the layer says so itself"},
		"clusters":      {both, "get clusters", 1, nil, "there is no layer clusters; kubectl strata clusters shows RemoteClusters", "what was meant has a command of its own"},
	})
}

func TestClusters(t *testing.T) {
	well := apiServer{clusters: []v1alpha1.RemoteCluster{remoteCluster("fleet", "prod", "True"), remoteCluster("fleet", "dev", "True"), remoteCluster("edge", "prod", "True")}}
	lost := apiServer{clusters: []v1alpha1.RemoteCluster{remoteCluster("fleet", "prod", "True"), remoteCluster("fleet", "away", "False")}}
	checkShown(t, map[string]showCase{
		"all":             {well, "clusters", 0, []string{"NAME ", "READY ", "REACHABLE ", "VERSION ", "LAYERS ", "EXPIRES ", "LAST SEEN", "edge/prod ", "True", "v1.30.1 ", "1/2 ", "now", "fleet/dev ", "fleet/prod "}, "", "sorted by namespace and name"},
		"singular":        {well, "cluster fleet/dev", 0, []string{"fleet/dev "}, "", "some say so"},
		"of a namespace":  {well, "clusters -n edge", 0, []string{"NAME", "edge/prod "}, "", "for who may see no others"},
		"one":             {well, "clusters fleet/prod", 0, []string{"NAME", "fleet/prod "}, "", "by its name"},
		"one of -n":       {well, "clusters prod -n fleet", 0, []string{"fleet/prod "}, "", "as kubectl has it"},
		"a name twice":    {well, "clusters prod", 0, []string{"edge/prod", "fleet/prod"}, "", "nobody has said which"},
		"twice asked for": {well, "clusters dev fleet/dev dev -o name", 0, []string{"remotecluster.kraan.io/dev\n"}, "", "once is enough"},
		"one as json":     {well, "clusters dev -o json", 0, []string{`"kind": "RemoteCluster"`, `"name": "dev"`, `"status"`}, "", "one cluster is itself"},
		"two as json":     {well, "clusters prod -o json", 0, []string{`"items"`, `"edge"`, `"fleet"`, `"kind": "List"`}, "", "several are a list"},
		"all as yaml":     {well, "clusters -o yaml", 0, []string{"apiVersion: v1", "kind: RemoteCluster", "kind: List"}, "", "several are a list"},
		"wide":            {well, "clusters -o wide", 0, []string{"ENDPOINT", "SECRET", "REASON", "AGE", "Because"}, "", "nothing is left out"},
		"none":            {apiServer{}, "clusters", 0, []string{"No RemoteClusters found."}, "", "not everybody has some"},
		"lost":            {lost, "clusters", 2, []string{"fleet/away ", "False", "never", "of away", "fleet/prod "}, "", "a cluster that is not ready"},
		"not the lost":    {lost, "clusters fleet/prod", 0, []string{"fleet/prod "}, "", "only what is shown counts"},
		"near":            {well, "clusters fleet/prd", 1, nil, "there is no RemoteCluster fleet/prd; did you mean fleet/prod", "a suggestion"},
		"near anywhere":   {well, "clusters prd", 1, nil, "there is no RemoteCluster prd; did you mean prod?", "each name once"},
		"far":             {well, "clusters a/zzzz", 1, nil, "kubectl strata clusters lists those there are", "no suggestion is better than a bad one"},
		"far anywhere":    {well, "clusters zzzz", 1, nil, "there is no RemoteCluster zzzz", "it is in no namespace"},
		"some":            {well, "clusters dev zzzz", 1, []string{"fleet/dev"}, "there is no RemoteCluster zzzz", "what there is, is shown"},
		"two namespaces":  {well, "clusters fleet/dev -n edge", 1, nil, "fleet/dev is not in the namespace edge", "both cannot be meant"},
		"no CRD":          {apiServer{refuse: 404}, "clusters", 1, nil, "this cluster has no Strata that knows RemoteClusters", "the API server knows none"},
		"no CRD, named":   {apiServer{refuse: 404}, "clusters a/b", 1, nil, "this cluster has no Strata that knows RemoteClusters", "a missing kind is no missing cluster"},
		"no rights":       {apiServer{refuse: 403}, "clusters", 1, nil, "get, list and watch on remoteclusters.kraan.io", "what to ask for"},
		"bad format":      {well, "clusters -o xml", 1, nil, `--output is "xml"`, "what to write instead"},
		"both":            {well, "clusters dev -l a=b", 1, nil, "give names or --selector, not both", "as kubectl has it"},
	})
}

// showCase is one command line, and what becomes of it.
type showCase struct {
	server apiServer
	args   string
	code   int
	out    []string // in this order
	errOut string
	reason string
}

func checkShown(t *testing.T, cases map[string]showCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.server)
			defer server.Close()
			code, out, errOut := plugin(t, append(strings.Fields(c.args), "--server", server.URL)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, c.reason)
			}
			rest := out
			for _, want := range c.out {
				var found bool
				if _, rest, found = strings.Cut(rest, want); !found {
					t.Errorf("%s: the output lacks %q in its place:\n%s", c.reason, want, out)
				}
			}
			if !strings.Contains(errOut, c.errOut) || (c.errOut == "") != (errOut == "") {
				t.Errorf("%s: the error is %q, want %q", c.reason, errOut, c.errOut)
			}
			if strings.Contains(out+errOut, "\x1b") {
				t.Errorf("there are escape sequences in what goes into a pipe: %q", out+errOut)
			}
		})
	}
}

func TestGetWithoutACluster(t *testing.T) {
	if code, _, errOut := plugin(t, "get"); code != exitError || !strings.Contains(errOut, "no cluster is configured") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	server := httptest.NewServer(apiServer{})
	server.Close()
	code, _, errOut := plugin(t, "get", "--server", server.URL)
	if code != exitError || !strings.Contains(errOut, "cannot reach the cluster at "+server.URL) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestWatchShowsWhatChanges(t *testing.T) {
	event := func(kind string, layer v1alpha1.AddonsLayer) string {
		text, err := json.Marshal(map[string]any{"type": kind, "object": layer})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	same, failed := deployed("base"), layer("base", v1alpha1.StateFailed, metav1.ConditionFalse)
	same.ResourceVersion, failed.ResourceVersion = "8", "9"
	other, gone := deployed("mesh"), deployed("mesh")
	other.ResourceVersion, gone.ResourceVersion = "10", "11"
	expired := `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`
	server := httptest.NewServer(apiServer{
		layers: []v1alpha1.AddonsLayer{deployed("base")},
		events: []string{
			event("MODIFIED", same), event("MODIFIED", failed), event("ADDED", other), event("DELETED", gone), expired,
		},
	})
	defer server.Close()
	code, out, errOut := plugin(t, "get", "--watch", "--server", server.URL)
	var states []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		fields := strings.Fields(line)
		states = append(states, fields[0]+" "+fields[2])
	}
	if got, want := strings.Join(states, ", "), "base Deployed, base Failed, mesh Deployed, mesh Deleted"; got != want {
		t.Errorf("the watch shows %s, want %s", got, want)
	}
	if code != exitError || !strings.Contains(errOut, "too old") {
		t.Errorf("a watch that the server ends has exit code %d: %s", code, errOut)
	}
}

func TestWatchShowsClusters(t *testing.T) {
	event := func(kind string, cluster v1alpha1.RemoteCluster) string {
		text, err := json.Marshal(map[string]any{"type": kind, "object": cluster})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	at := func(namespace string, ready metav1.ConditionStatus, version string) v1alpha1.RemoteCluster {
		cluster := remoteCluster(namespace, "prod", ready)
		cluster.ResourceVersion = version
		return cluster
	}
	server := httptest.NewServer(apiServer{
		clusters: []v1alpha1.RemoteCluster{at("fleet", "True", "5")},
		events: []string{
			event("MODIFIED", at("fleet", "True", "8")), event("MODIFIED", at("fleet", "False", "9")),
			event("ADDED", at("edge", "True", "10")), event("DELETED", at("fleet", "False", "11")),
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`,
		},
	})
	defer server.Close()
	for args, want := range map[string]string{
		"clusters --watch":            "fleet/prod True, fleet/prod False, edge/prod True, fleet/prod Deleted",
		"clusters fleet/prod --watch": "fleet/prod True, fleet/prod False, fleet/prod Deleted",
		"clusters prod --watch":       "fleet/prod True, fleet/prod False, edge/prod True, fleet/prod Deleted",
	} {
		_, out, _ := plugin(t, append(strings.Fields(args), "--server", server.URL)...)
		var rows []string
		for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
			fields := strings.Fields(line)
			rows = append(rows, fields[0]+" "+fields[1])
		}
		if got := strings.Join(rows, ", "); got != want {
			t.Errorf("%s shows %s, want %s", args, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	server := httptest.NewServer(apiServer{})
	defer server.Close()
	for args, want := range map[string]string{
		"version --client":                          "plug-in     dev\n",
		"version --client -o name":                  "dev\n",
		"version --client -o yaml":                  "client: dev\n",
		"version --server " + server.URL:            "kubernetes  v1.36.3\n",
		"version --server " + server.URL + " ":      "controller  unknown: you may not list Deployments\n",
		"version -o json --server " + server.URL:    `"kubernetes": "v1.36.3"`,
		"version --client --server http://no.where": "plug-in     dev\n",
	} {
		if code, out, errOut := plugin(t, strings.Fields(args)...); code != exitFine || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %q lacks %q: %s", args, code, out, want, errOut)
		}
	}
	if code, _, errOut := plugin(t, "version"); code != exitError || !strings.Contains(errOut, "--client") {
		t.Errorf("without a cluster, the exit code is %d: %s", code, errOut)
	}
}

func TestHelpNamesThePlugin(t *testing.T) {
	lines := []string{"", "--help"}
	for _, command := range shown(newCommand(newTool(io.Discard, io.Discard))) {
		lines = append(lines, command.Name()+" --help")
	}
	for _, args := range lines {
		code, out, errOut := plugin(t, strings.Fields(args)...)
		if code != exitFine || !strings.Contains(out, "  kubectl strata ") || strings.Contains(out, "\n  strata") {
			t.Errorf("%q: exit code %d: %s%s", args, code, out, errOut)
		}
	}
}
