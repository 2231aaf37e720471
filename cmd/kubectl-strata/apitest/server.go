// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apitest is an API server for tests of what the plug-in writes: it holds
// any objects, and answers discovery, lists, gets and simple writes. What a real
// API server decides, such as validation and rights, is tested on a real one.
package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Server is an API server. Change its fields before the first request only.
type Server struct {
	*httptest.Server
	// Version is what /version says.
	Version string
	// Refuse holds resources, such as pods or helmreleases.helm.toolkit.fluxcd.io,
	// with the code that every request for them is answered with.
	Refuse map[string]int
	// Watch is what a watch of a resource sends before it ends, one JSON event each.
	Watch map[string][]string

	mu       sync.Mutex
	kinds    map[schema.GroupVersionResource]kind
	objects  map[schema.GroupVersionResource][]*unstructured.Unstructured
	requests []string
	writes   []string
}

type kind struct {
	name       string
	namespaced bool
}

// known are the kinds that are served also where there are no objects of them.
var known = []struct {
	group, version, kind string
	namespaced           bool
}{
	{"", "v1", "Namespace", false},
	{"", "v1", "Pod", true},
	{"", "v1", "Event", true},
	{"", "v1", "Secret", true},
	{"", "v1", "ConfigMap", true},
	{"", "v1", "Service", true},
	{"", "v1", "ServiceAccount", true},
	{"apps", "v1", "Deployment", true},
	{"apps", "v1", "ReplicaSet", true},
	{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", false},
	{"kraan.io", "v1alpha1", "AddonsLayer", false},
	{"kraan.io", "v1alpha1", "RemoteCluster", true},
	{"kraan.io", "v1alpha1", "HelmApplication", false},
	{"kraan.io", "v1alpha1", "ApplicationBundle", false},
	{"kraan.io", "v1alpha1", "Platform", false},
	{"kraan.io", "v1alpha1", "ClusterDiscovery", true},
	{"kraan.io", "v1alpha1", "HostCluster", true},
	{"kraan.io", "v1alpha1", "CapabilityProvider", false},
	{"kraan.io", "v1alpha1", "CapabilityClaim", true},
	{"helm.toolkit.fluxcd.io", "v2", "HelmRelease", true},
	{"source.toolkit.fluxcd.io", "v1", "GitRepository", true},
	{"source.toolkit.fluxcd.io", "v1", "OCIRepository", true},
	{"source.toolkit.fluxcd.io", "v1", "Bucket", true},
	{"source.toolkit.fluxcd.io", "v1", "ExternalArtifact", true},
	{"source.toolkit.fluxcd.io", "v1", "HelmRepository", true},
	{"source.toolkit.fluxcd.io", "v1", "HelmChart", true},
}

// New starts a server that holds objects, and ends it with the test.
func New(t testing.TB, objects ...*unstructured.Unstructured) *Server {
	t.Helper()
	s := &Server{
		Version: "v1.36.3", Refuse: map[string]int{}, Watch: map[string][]string{},
		kinds: map[schema.GroupVersionResource]kind{}, objects: map[schema.GroupVersionResource][]*unstructured.Unstructured{},
	}
	for _, each := range known {
		gvk := schema.GroupVersionKind{Group: each.group, Version: each.version, Kind: each.kind}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		s.kinds[resource] = kind{each.kind, each.namespaced}
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		if _, is := s.kinds[resource]; !is {
			s.kinds[resource] = kind{object.GetKind(), object.GetNamespace() != ""}
		}
		s.objects[resource] = append(s.objects[resource], object.DeepCopy())
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Load reads the objects of YAML files.
func Load(t testing.TB, files ...string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, name := range files {
		text, err := os.ReadFile(name) //nolint:gosec // a test names its own files
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, Parse(t, string(text))...)
	}
	return found
}

// Parse reads the objects of a text of YAML.
func Parse(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatalf("%v in\n%s", err, text)
		case object.Object != nil:
			found = append(found, object)
		}
	}
}

// Requests returns the requests that came, as METHOD path?query.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Writes returns what was written, as METHOD path body.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		reply(w, http.StatusOK, map[string]string{"gitVersion": s.Version})
	case r.URL.Path == "/api":
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		reply(w, http.StatusOK, s.groups())
	case r.URL.Path == "/openapi/v3":
		reply(w, http.StatusOK, map[string]any{"paths": map[string]any{}})
	case parts[0] == "api" && len(parts) == 2:
		reply(w, http.StatusOK, s.resources(schema.GroupVersion{Version: parts[1]}))
	case parts[0] == "apis" && len(parts) == 3:
		reply(w, http.StatusOK, s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]}))
	case parts[0] == "api" && len(parts) > 2:
		s.serveObjects(w, r, schema.GroupVersion{Version: parts[1]}, parts[2:])
	case parts[0] == "apis" && len(parts) > 3:
		s.serveObjects(w, r, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:])
	default:
		refuse(w, http.StatusNotFound, r.URL.Path)
	}
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
	seen := map[schema.GroupVersion]bool{}
	for resource := range s.kinds {
		if gv := resource.GroupVersion(); gv.Group != "" && !seen[gv] {
			seen[gv] = true
			version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
	}
	slices.SortFunc(list.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *Server) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: gv.String()}
	for resource, k := range s.kinds {
		if resource.GroupVersion() == gv && s.Refuse[resource.GroupResource().String()] != http.StatusNotFound {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: resource.Resource, SingularName: strings.ToLower(k.name), Kind: k.name, Namespaced: k.namespaced,
				Verbs: metav1.Verbs{"get", "list", "watch", "create", "patch", "update", "delete"},
			})
		}
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// serveObjects answers for [namespaces/NS/]resource[/name[/subresource]].
func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, parts []string) {
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	resource := gv.WithResource(parts[0])
	if code := s.Refuse[resource.GroupResource().String()]; code != 0 {
		refuse(w, code, resource.Resource)
		return
	}
	if _, is := s.kinds[resource]; !is {
		refuse(w, http.StatusNotFound, resource.Resource)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, resource.Resource)
		return
	}
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	}
	switch {
	case len(parts) == 1 && r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		for _, event := range s.Watch[resource.GroupResource().String()] {
			fmt.Fprintln(w, event)
		}
	case len(parts) == 1 && r.Method == http.MethodGet:
		s.list(w, r, resource, namespace)
	case len(parts) == 1 && r.Method == http.MethodPost:
		s.put(w, resource, namespace, "", body)
	case len(parts) == 1:
		refuse(w, http.StatusMethodNotAllowed, resource.Resource)
	default:
		s.one(w, r, resource, namespace, parts[1], body)
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, resource schema.GroupVersionResource, namespace string) {
	wanted, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, resource.Resource)
		return
	}
	where, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, resource.Resource)
		return
	}
	items := []any{}
	for _, object := range s.objects[resource] {
		if (namespace == "" || object.GetNamespace() == namespace) && wanted.Matches(labels.Set(object.GetLabels())) && where.Matches(fieldsOf(object)) {
			items = append(items, object.Object)
		}
	}
	reply(w, http.StatusOK, map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": s.kinds[resource].name + "List",
		"metadata": map[string]any{"resourceVersion": "7"}, "items": items,
	})
}

// fieldsOf returns what a field selector may ask for.
func fieldsOf(object *unstructured.Unstructured) fields.Set {
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, field := range []string{"kind", "namespace", "name", "uid"} {
		set["involvedObject."+field], _, _ = unstructured.NestedString(object.Object, "involvedObject", field)
	}
	set["type"], _, _ = unstructured.NestedString(object.Object, "type")
	return set
}

func (s *Server) one(w http.ResponseWriter, r *http.Request, resource schema.GroupVersionResource, namespace, name string, body []byte) {
	at := slices.IndexFunc(s.objects[resource], func(object *unstructured.Unstructured) bool {
		return object.GetNamespace() == namespace && object.GetName() == name
	})
	apply := r.Method == http.MethodPatch && strings.Contains(r.Header.Get("Content-Type"), "apply")
	switch {
	case r.Method == http.MethodPut, apply:
		s.put(w, resource, namespace, name, body)
	case at < 0:
		refuse(w, http.StatusNotFound, resource.Resource+" "+name)
	case r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
		reply(w, http.StatusOK, map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": s.objects[resource][at].Object["metadata"],
		})
	case r.Method == http.MethodGet:
		reply(w, http.StatusOK, s.objects[resource][at].Object)
	case r.Method == http.MethodDelete:
		s.objects[resource] = slices.Delete(s.objects[resource], at, at+1)
		reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	case r.Method == http.MethodPatch:
		var change map[string]any
		if err := json.Unmarshal(body, &change); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		merge(s.objects[resource][at].Object, change)
		reply(w, http.StatusOK, s.objects[resource][at].Object)
	}
}

// merge is a JSON merge patch.
func merge(into, change map[string]any) {
	for key, value := range change {
		inner, is := value.(map[string]any)
		has, was := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case is && was:
			merge(has, inner)
		default:
			into[key] = value
		}
	}
}

// put stores an object, in the place of one of that name where there is one.
func (s *Server) put(w http.ResponseWriter, resource schema.GroupVersionResource, namespace, name string, body []byte) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(body, &object.Object); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if name != "" {
		object.SetName(name)
	}
	object.SetNamespace(namespace)
	s.objects[resource] = slices.DeleteFunc(s.objects[resource], func(other *unstructured.Unstructured) bool {
		return other.GetNamespace() == namespace && other.GetName() == object.GetName()
	})
	s.objects[resource] = append(s.objects[resource], object)
	reply(w, http.StatusOK, object.Object)
}

func reply(w http.ResponseWriter, code int, value any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client will tell
}

func refuse(w http.ResponseWriter, code int, what string) {
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
		http.StatusNotFound: metav1.StatusReasonNotFound,
	}[code]
	reply(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Reason:   reason,
		Code:     int32(code), //nolint:gosec // HTTP codes are small
		Message:  what + " " + strings.ToLower(http.StatusText(code)),
	})
}
