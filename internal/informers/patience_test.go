// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/strata-project/strata/internal/objects"
)

// outage lists as steady does, but for the time in which the cluster is away.
type outage struct {
	steady
	away  atomic.Bool
	asked atomic.Int32
}

var errRefused = errors.New("connection refused")

// List returns the ConfigMap, or an error.
func (o *outage) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	o.asked.Add(1)
	if o.away.Load() {
		return nil, errRefused
	}
	return o.steady.List(ctx, options)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// A watch of a cluster that does not answer asks it once, has it be found out whether that is
// so, and goes on with the answer: what it would wait by itself does not count.
func TestWatchesWaitForTheAnswer(t *testing.T) {
	o, c := &outage{}, &Connection{}
	o.away.Store(true)
	informer := toolscache.NewSharedIndexInformer(c.patiently(&toolscache.ListWatch{
		ListWithContextFunc: o.List, WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return o.Watch(ctx, options)
		},
	}), &unstructured.Unstructured{}, 0, toolscache.Indexers{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go informer.RunWithContext(ctx)
	<-c.doubts()
	c.SetError(errRefused)
	// The request that has begun may have been let through before.
	eventually(t, "it waits", func() bool { return o.asked.Load() >= 1 })
	before := o.asked.Load()
	o.away.Store(false)
	c.SetError(nil)
	eventually(t, "it has synced", informer.HasSynced)
	if after := o.asked.Load(); after > before+2 {
		t.Errorf("the cluster was asked %d times, and %d before it was back", after, before)
	}
}

// Nobody waits at once for what is followed on a cluster that does not answer, and it is there
// when that does.
func TestFollowsWaitForTheAnswer(t *testing.T) {
	o, c := &outage{}, &Connection{}
	c.SetError(errRefused)
	all := NewFollows(nil, func([]Follower) {})
	all.Connections = func(string) *Connection { return c }
	all.listerOf = func(followKey, schema.GroupVersionResource) lister { return o }
	id := objects.ID{Cluster: "fleet/prod", Kind: "ConfigMap", Namespace: "default", Name: "one"}
	who := Follower{Kind: "AddonsLayer", NamespacedName: types.NamespacedName{Name: "reader"}}
	if found, err := all.Get(t.Context(), who, id); !errors.Is(err, errRefused) {
		t.Fatalf("got %v, %v", found, err)
	}
	if asked := o.asked.Load(); asked > 0 {
		t.Errorf("a cluster that does not answer was asked %d times", asked)
	}
	c.SetError(nil)
	eventually(t, "it is read", func() bool {
		found, err := all.Get(t.Context(), who, id)
		return err == nil && found != nil
	})
	if asked := o.asked.Load(); asked != 1 {
		t.Errorf("the cluster was asked %d times", asked)
	}
}

// What an API server that is well says casts no doubt on it.
func TestDoubts(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":       {nil, false},
		"the end":       {fmt.Errorf("cannot list: %w", context.Canceled), false},
		"forbidden":     {apierrors.NewForbidden(resource, "", errors.New("no")), false},
		"expired":       {apierrors.NewResourceExpired("too old"), false},
		"no connection": {errRefused, true},
		"a timeout":     {context.DeadlineExceeded, true},
		"an error":      {apierrors.NewInternalError(errors.New("etcd is away")), true},
		"overloaded":    {apierrors.NewTooManyRequestsError("later"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Connection{}
			c.doubt(test.err)
			c.doubt(test.err) // which waits for nobody
			if got := len(c.doubts()) > 0; got != test.want {
				t.Errorf("it is in doubt: %t", got)
			}
		})
	}
	c := &Connection{}
	c.SetError(errRefused)
	c.doubt(errRefused)
	if len(c.doubts()) > 0 {
		t.Error("what is known is in doubt")
	}
}
