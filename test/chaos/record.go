// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/strata-project/strata/test/controlplane"
)

// watched are the kinds that the recorder watches.
var watched = map[string]schema.GroupVersionResource{
	"HelmRelease": {Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"},
	"ConfigMap":   {Version: "v1", Resource: "configmaps"},
	"Deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"Secret":      {Version: "v1", Resource: "secrets"},
}

// sight is what was seen of one object over time.
type sight struct {
	// UIDs in the order in which they were seen; one where the object is the
	// same from its first moment on.
	UIDs []string
	// Contents by generation; of HelmReleases alone.
	Contents map[int64]content
	// Statuses are Helm's words for a revision, in the order in which they
	// were seen; of its Secrets alone.
	Statuses []string
	// Deleted is when its deletion was first seen.
	Deleted time.Time
}

// recorder watches the namespace and goes on where a watch breaks off. Its
// methods are safe for concurrent use.
type recorder struct {
	mu   sync.Mutex
	seen map[string]*sight // by kind and name
}

// record begins to watch, until the context ends.
func record(ctx context.Context, plane *controlplane.ControlPlane) (*recorder, error) {
	client, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		return nil, err
	}
	r := &recorder{seen: map[string]*sight{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	for kind, resource := range watched {
		if _, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { r.note(kind, obj, false) },
			UpdateFunc: func(_, obj any) { r.note(kind, obj, false) },
			DeleteFunc: func(obj any) {
				if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = unknown.Obj
				}
				r.note(kind, obj, true)
			},
		}); err != nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return r, nil
}

func (r *recorder) note(kind string, value any, gone bool) {
	obj, ok := value.(*unstructured.Unstructured)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := kind + " " + obj.GetName()
	s := r.seen[key]
	if s == nil {
		s = &sight{Contents: map[int64]content{}}
		r.seen[key] = s
	}
	if uid := string(obj.GetUID()); !slices.Contains(s.UIDs, uid) {
		s.UIDs = append(s.UIDs, uid)
	}
	if (gone || obj.GetDeletionTimestamp() != nil) && s.Deleted.IsZero() {
		s.Deleted = time.Now()
	}
	switch kind {
	case "HelmRelease":
		if obj.GetDeletionTimestamp() == nil { // which is a generation, too
			s.Contents[obj.GetGeneration()] = contentOf(obj)
		}
	case "Secret":
		if status := obj.GetLabels()["status"]; status != "" && !slices.Contains(s.Statuses, status) {
			s.Statuses = append(s.Statuses, status)
		}
	}
}

// all returns a copy of what was seen.
func (r *recorder) all() map[string]sight {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(map[string]sight, len(r.seen))
	for key, s := range r.seen {
		c := *s
		c.UIDs, c.Statuses, c.Contents = slices.Clone(s.UIDs), slices.Clone(s.Statuses), maps.Clone(s.Contents)
		found[key] = c
	}
	return found
}

// contentOf reads back what a HelmRelease holds.
func contentOf(obj *unstructured.Unstructured) content {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(obj.Object, fields...)
		return value
	}
	values, _, _ := unstructured.NestedMap(obj.Object, "spec", "values")
	chart := text("spec", "chart", "spec", "chart")
	return content{Chart: chart, Version: text("spec", "chart", "spec", "version"), Value: valueOf(chart, values)}
}

// valueOf finds the value that a commit has given among the values of a chart;
// what holds more than that is returned whole, so that it equals none.
func valueOf(chart string, values map[string]any) string {
	var value string
	switch chart {
	case "deployment":
		image, _ := values["image"].(string)
		value = strings.TrimPrefix(image, "chaos.invalid/pause:")
	case "podinfo":
		value, _ = values["message"].(string)
	default:
		data, _ := values["data"].(map[string]any)
		value, _ = data["value"].(string)
	}
	want, _ := json.Marshal(content{Chart: chart, Value: value}.values())
	if got, _ := json.Marshal(values); !bytes.Equal(got, want) {
		return string(got)
	}
	return value
}
