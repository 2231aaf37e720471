// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/objects"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// decode adds the objects of a text of YAML, and those of lists in it.
func decode(into []*unstructured.Unstructured, text string) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return into, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(data) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("it holds what is no object of Kubernetes: %w", err)
		}
		if !object.IsList() {
			into = append(into, object)
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			if one, is := item.(*unstructured.Unstructured); is {
				into = append(into, one)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}

// sorted returns objects by their IDs.
func sorted(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	slices.SortStableFunc(objs, func(a, b *unstructured.Unstructured) int {
		return objects.IDOf(a).Compare(objects.IDOf(b))
	})
	return objs
}

// scopes tells which kinds are in namespaces.
type scopes struct {
	ask  func(schema.GroupKind) (namespaced, known bool)
	crds map[schema.GroupKind]bool
}

func scopesOf(ask func(schema.GroupKind) (namespaced, known bool), lists ...[]*unstructured.Unstructured) scopes {
	s := scopes{ask: ask, crds: map[schema.GroupKind]bool{}}
	for _, objects := range lists {
		for _, object := range objects {
			if object.GroupVersionKind().GroupKind() != crdKind {
				continue
			}
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
			s.crds[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
		}
	}
	return s
}

// place gives objects that are in a namespace, and do not say in which, that of the
// release, as Helm does, takes a namespace from those that are in none, and sorts
// them. Objects of unknown kinds stay as they are.
func (s scopes) place(objs []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	for _, object := range objs {
		namespaced, known := s.of(object)
		switch {
		case known && !namespaced:
			object.SetNamespace("")
		case known && object.GetNamespace() == "":
			object.SetNamespace(namespace)
		}
	}
	return sorted(objs)
}

// scoping is held by whoever asks kustomize for what it knows of kinds, which it keeps in
// a variable of its package, and reads when it is asked first.
var scoping sync.Mutex

func (s scopes) of(object *unstructured.Unstructured) (namespaced, known bool) {
	gvk := object.GroupVersionKind()
	scoping.Lock()
	namespaced, known = openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: object.GetAPIVersion(), Kind: gvk.Kind})
	scoping.Unlock()
	if known {
		return namespaced, true
	}
	if namespaced, known := s.crds[gvk.GroupKind()]; known {
		return namespaced, true
	}
	if s.ask != nil {
		return s.ask(gvk.GroupKind())
	}
	return false, false
}

// versionsOf returns the API versions that a CRD has served, as group/version and
// group/version/Kind.
func versionsOf(crd *unstructured.Unstructured) []string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var found []string
	for _, each := range versions {
		version, is := each.(map[string]any)
		if name, isText := version["name"].(string); is && isText && version["served"] == true {
			found = append(found, group+"/"+name, group+"/"+name+"/"+kind)
		}
	}
	return found
}

// addLabels sets labels of an object.
func addLabels(object *unstructured.Unstructured, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	all := object.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	object.SetLabels(all)
}
