// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

// What is settled costs nothing, and a revision that leaves the directories as
// they were costs one small write per layer.
func TestCost(t *testing.T) {
	f := newSerialFixture(t, nil)
	files := map[string]string{
		"base/releases.yaml": f.release("ingress"),
		"base/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: " + f.namespace + ", name: settings}\ndata: {a: b}\n",
		"apps/web.yaml":      f.release("web"),
		"apps/api.yaml":      f.release("api"),
	}
	f.publish("main@sha1:1", files)
	f.layer("base")
	f.layer("apps", "base")
	f.ready("ingress")
	f.ready("web")
	f.ready("api")
	f.deployed("base", "main@sha1:1")
	f.deployed("apps", "main@sha1:1")

	f.settle()
	f.taken()
	f.silent()

	files["README.md"] = "touches no layer"
	f.publish("main@sha1:2", files)
	f.deployed("base", "main@sha1:2")
	f.deployed("apps", "main@sha1:2")
	f.settle()
	requests, _ := f.taken()
	status := "PATCH /apis/kraan.io/v1alpha1/addonslayers/"
	want := []string{status + f.name("apps") + "/status", status + f.name("base") + "/status"}
	var got []string
	for _, request := range requests {
		got = append(got, request.what)
		if strings.HasPrefix(request.what, status) && request.size > 2048 {
			t.Errorf("%s has %d bytes", request.what, request.size)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests of a revision that touches no layer (-want +got):\n%s", diff)
	}
	t.Logf("another revision: %v", requests)
}

// cancelling is a client that cancels when a release is created.
type cancelling struct {
	client.Client
	once   sync.Once
	cancel func()
}

func (c *cancelling) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == "HelmRelease" {
		c.once.Do(c.cancel)
	}
	return c.Client.Create(ctx, obj, opts...)
}

// A controller that is told to stop while it writes finishes the write, and
// says so in the status: nothing that it has done is unknown to the next one.
func TestStopInTheMiddle(t *testing.T) {
	var f *fixture
	started := make(chan struct{})
	f = newSerialFixture(t, func(c client.Client) client.Client {
		return &cancelling{Client: c, cancel: func() { <-started; f.cancel() }}
	})
	close(started)
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("ingress")})
	f.layer("base")
	f.stopped()

	release := &unstructured.Unstructured{}
	release.SetGroupVersionKind(schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"})
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "ingress"}, release))
	resources := f.get("base").Status.Resources
	if len(resources) != 1 || resources[0].Digest == "" || resources[0].Generation != release.GetGeneration() {
		t.Errorf("the inventory is %+v, want the release at generation %d with its digest", resources, release.GetGeneration())
	}
	if state := f.get("base").Status.State; state != v1alpha1.StateApplying {
		t.Errorf("the state is %s", state)
	}
}

// What was withheld is told when the controller stops.
func TestStopTellsWhatWasWithheld(t *testing.T) {
	withheld := make(chan struct{})
	var once sync.Once
	f := newSerialFixture(t, nil, func(r *AddonsLayerReconciler) {
		r.spacing = func(last, next v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
			if layers.Spacing(last, next, wrote) == 0 {
				return 0
			}
			if wrote {
				once.Do(func() { close(withheld) })
			}
			return time.Hour
		}
	})
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("ingress")})
	f.layer("base")
	select {
	case <-withheld:
	case <-time.After(patience):
		t.Fatal("nothing is withheld")
	}
	f.settle()
	if resources := f.get("base").Status.Resources; len(resources) != 1 || resources[0].Digest != "" {
		t.Errorf("the inventory is %+v before the controller stops", resources)
	}
	f.cancel()
	f.stopped()
	if resources := f.get("base").Status.Resources; len(resources) != 1 || resources[0].Digest == "" || resources[0].Generation != 1 {
		t.Errorf("the inventory is %+v after the controller has stopped", resources)
	}
}

// Every change is told once.
func TestEventsOfARollOut(t *testing.T) {
	f := newSerialFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("ingress")})
	f.layer("base")
	f.ready("ingress")
	f.deployed("base", "main@sha1:1")
	f.settle()
	if diff := cmp.Diff(map[string]int{"Applying": 1, "Deployed": 1}, f.told("base")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
