// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Where a Kustomization is that only one of both has.
const (
	InRepository = "repository"
	OnCluster    = "cluster"
)

// Difference is a Kustomization that a repository and a cluster do not have alike.
type Difference struct {
	Of types.NamespacedName
	// Only says which of both has it, InRepository or OnCluster; empty where both do.
	Only string
	// File of the repository that it stands in; empty where only the cluster has it.
	File string
	// Fields below spec that differ, sorted; empty where one of both does not have it.
	Fields []string
}

// Comparison is what a cluster has of the Kustomizations that were found in a repository.
type Comparison struct {
	// Same counts those that both have alike, and those that were handed over to layers.
	Same int
	// Differences are sorted by name.
	Differences []Difference
}

// Compare compares what was found in a repository with what a cluster has. What was handed
// over to a layer is gone from the cluster, and is no difference.
func Compare(found, live []Found, handed map[types.NamespacedName]string) Comparison {
	var c Comparison
	there := map[types.NamespacedName]Found{}
	for _, each := range live {
		there[each.key()] = each
	}
	for _, each := range found {
		other, both := there[each.key()]
		delete(there, each.key())
		if !both {
			if handed[each.key()] == "" {
				c.Differences = append(c.Differences, Difference{Of: each.key(), Only: InRepository, File: each.File})
			} else {
				c.Same++
			}
			continue
		}
		if fields := fieldsThatDiffer(each, other); len(fields) > 0 {
			c.Differences = append(c.Differences, Difference{Of: each.key(), File: each.File, Fields: fields})
		} else {
			c.Same++
		}
	}
	for key := range there {
		c.Differences = append(c.Differences, Difference{Of: key, Only: OnCluster})
	}
	slices.SortFunc(c.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Of.Namespace, b.Of.Namespace), strings.Compare(a.Of.Name, b.Of.Name))
	})
	return c
}

// fieldsThatDiffer names the fields below spec in which two differ. What applies Flux itself
// is told of by where it begins: the rest is made by a tool.
func fieldsThatDiffer(a, b Found) []string {
	left, right := fieldsOf(a.Kustomization), fieldsOf(b.Kustomization)
	var fields []string
	for name := range left {
		if !reflect.DeepEqual(left[name], right[name]) {
			fields = append(fields, name)
		}
	}
	for name := range right {
		if _, both := left[name]; !both {
			fields = append(fields, name)
		}
	}
	if isBootstrap(a) {
		fields = slices.DeleteFunc(fields, func(name string) bool { return name != "path" && name != "sourceRef" })
	}
	slices.Sort(fields)
	return fields
}

// fieldsOf returns the fields below spec that say something, each in one way of writing it.
func fieldsOf(k *kustomizev1.Kustomization) map[string]any {
	spec := k.Spec
	spec.Path = layerPath(spec.Path)
	spec.SourceRef.Namespace = cmp.Or(spec.SourceRef.Namespace, k.Namespace)
	spec.SourceRef.APIVersion = ""
	fields := map[string]any{}
	text, _ := json.Marshal(spec) // it was read from JSON
	_ = json.Unmarshal(text, &fields)
	maps.DeleteFunc(fields, func(_ string, value any) bool {
		switch value := value.(type) {
		case bool:
			return !value
		case string:
			return value == ""
		case []any:
			return len(value) == 0
		case map[string]any:
			return len(value) == 0
		default:
			return value == nil
		}
	})
	return fields
}
