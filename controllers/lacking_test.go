// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/ownwrites"
)

// lacking is a cache that has nothing.
type lacking struct{ client.Reader }

func (lacking) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
}

// unreachable reads nothing.
type unreachable struct{ client.Reader }

func (unreachable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no route to host")
}

// What a layer does not list any more is not forgotten because a cache of another
// cluster lacks it: that may not have been told since the object was written.
func TestObjectThatACacheLacks(t *testing.T) {
	f := newBareFixture(t)
	gk := schema.GroupKind{Kind: "ConfigMap"}
	idOf := func(name string) objects.ID {
		return objects.ID{Cluster: "fleet/prod", Kind: "ConfigMap", Namespace: f.namespace, Name: name}
	}
	for name, labels := range map[string]map[string]string{"owned": {v1alpha1.LayerLabel: "base"}, "bare": nil} {
		f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels}}))
	}
	lists := &directories.Directory{Manifests: []directories.Manifest{{Cluster: "fleet/prod", Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": f.namespace, "name": "owned"},
	}}}}}
	for name, test := range map[string]struct {
		reason      string
		object      string
		past        client.Reader
		away        error
		directory   *directories.Directory
		live, stale bool
	}{
		"there":           {"it has yet to be removed", "owned", f.client, nil, &directories.Directory{}, true, false},
		"gone":            {"it can be forgotten", "gone", f.client, nil, &directories.Directory{}, false, false},
		"nobody's":        {"the cache would not have it", "bare", f.client, nil, &directories.Directory{}, false, false},
		"cannot be asked": {"nothing is known", "owned", unreachable{}, nil, &directories.Directory{}, false, true},
		"known to be away": {
			"nobody waits for an answer", "owned", f.client, errors.New("connection refused"), &directories.Directory{}, false, true,
		},
		"listed": {"whoever writes it looks by himself", "owned", unreachable{}, nil, lists, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			id := idOf(test.object)
			r := &AddonsLayerReconciler{Process: &Process{remembered: remembered{recent: ownwrites.NewObjects()}}}
			r.remotes = informers.NewRemotes(informers.Options{})
			k := informers.NewKinds(informers.Cluster{Reader: lacking{}, Past: test.past}, informers.Wiring{})
			k.Serves(gk.WithVersion("v1"))
			r.remotes.Adopt("fleet/prod", k).SetError(test.away)
			layer := &v1alpha1.AddonsLayer{}
			layer.Name = "base"
			layer.Status.Resources = layers.Resources([]dependents.Entry{{ID: id}})
			o := &observer{r: r, reads: &reader{from: r, answers: map[question]string{}}, Observation: &layers.Observation{
				Now: time.Now(), Layer: layer,
				ObservedContents: layers.ObservedContents{Directory: test.directory},
				ObservedObjects:  layers.ObservedObjects{Live: map[objects.ID]*unstructured.Unstructured{}, Stale: map[objects.ID]bool{}},
			}}
			if err := o.readObject(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if live := o.Live[id] != nil; live != test.live || o.Stale[id] != test.stale {
				t.Errorf("%s: it is there: %t, it is not known: %t", test.reason, live, o.Stale[id])
			}
		})
	}
}
