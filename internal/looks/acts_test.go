// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/heldacts"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/trim"
)

// kindsWithActs has the kinds on which people decide by annotations.
func kindsWithActs() []string {
	var found []string
	for kind := range scheme().KnownTypes(v1alpha1.GroupVersion) {
		if len(v1alpha1.ActsOn(kind)) > 0 {
			found = append(found, kind)
		}
	}
	return found
}

// startBusy runs a controller of each kind with acts whose looks do not end before the test
// does, as those of a HostCluster do not while its hosts are upgraded. It returns a channel of
// the kinds that are looked at.
func startBusy(t *testing.T) (client.Client, chan string) {
	t.Helper()
	yes := true
	mgr, err := ctrl.NewManager(plane.Config(), ctrl.Options{
		Scheme: scheme(), Cache: cache.Options{DefaultTransform: trim.Object},
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	busy := make(chan string, 100)
	for _, kind := range kindsWithActs() {
		made, err := mgr.GetScheme().New(v1alpha1.GroupVersion.WithKind(kind))
		must(t, err)
		of := made.(client.Object)
		c, err := looks.NewController(strings.ToLower(kind), mgr, of, controller.Options{
			Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				busy <- kind
				<-ctx.Done()
				return reconcile.Result{}, nil
			}),
		})
		must(t, err)
		must(t, c.Watch(source.Kind(mgr.GetCache(), of, &handler.EnqueueRequestForObject{})))
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme()})
	must(t, err)
	return c, busy
}

// patchAs writes annotations as a manager; nil takes one off.
func patchAs(t *testing.T, c client.Client, object client.Object, manager string, annotations map[string]any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	must(t, err)
	must(t, c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, data), client.FieldOwner(manager)))
}

// awaitOwned waits until Strata owns exactly some acts of an object.
func awaitOwned(t *testing.T, c client.Client, object client.Object, want map[string]any) {
	t.Helper()
	var seen string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		owned := map[string]any{}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == heldacts.Manager {
				var fields struct {
					Metadata struct {
						Annotations map[string]any `json:"f:annotations"`
					} `json:"f:metadata"`
				}
				must(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
				owned = fields.Metadata.Annotations
			}
		}
		wanted := map[string]any{}
		for act := range want {
			wanted["f:"+act] = map[string]any{}
		}
		delete(owned, ".")
		if cmp.Equal(owned, wanted, cmpopts.EquateEmpty()) {
			return
		}
		seen = fmt.Sprint(owned)
	}
	t.Fatalf("Strata owns %s of %s, and not %v", seen, object.GetName(), want)
}

// What people decide by kubectl is owned at once on each kind, however long the look takes that
// is under way, and for as long as it is there.
func TestActsAreOwnedWhileALookIsUnderWay(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	c, busy := startBusy(t)
	for _, kind := range kindsWithActs() {
		t.Run(kind, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal([]byte(objects[kind]), &object.Object))
			object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			object.SetName("busy")
			if namespaced, err := c.IsObjectNamespaced(object); err != nil || namespaced {
				must(t, err)
				object.SetNamespace(metav1.NamespaceDefault)
			}
			must(t, c.Create(t.Context(), object))
			t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
			if is := <-busy; is != kind {
				t.Fatalf("a %s is looked at", is)
			}
			acts, off := map[string]any{}, map[string]any{}
			for _, act := range v1alpha1.ActsOn(kind) {
				acts[act.Annotation], off[act.Annotation] = "a", nil
			}
			patchAs(t, c, object, "kubectl-annotate", acts)
			awaitOwned(t, c, object, acts)
			patchAs(t, c, object, "kubectl-annotate", off)
			awaitOwned(t, c, object, nil)
			patchAs(t, c, object, "strata-cli", acts)
			patchAs(t, c, object, "kubectl-annotate", map[string]any{"example.com/note": "x"})
			awaitOwned(t, c, object, nil)
		})
	}
}
