// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// death says at which of its calls a controller dies.
type death struct {
	// call counts from 1; 0 is never.
	call int
	// reached says that the call takes effect and its answer is lost; without
	// it, the API server never hears of it.
	reached bool
	// reads counts reads and watches too, and questions for rights and versions, once
	// the caches have begun: before that a controller has done nothing, and a manager
	// that is told to stop then never returns.
	reads bool
}

func (d death) String() string {
	what, how := "write", "is never heard of"
	if d.reads {
		what = "call"
	}
	if d.reached {
		how = "loses its answer"
	}
	return fmt.Sprintf("%s %d %s", what, d.call, how)
}

// mortal is one life of a controller. It dies at one of its calls: from then on
// nothing that it does gets through to the API server, and no answer to it.
type mortal struct {
	death
	ended chan struct{}

	mu    sync.Mutex
	calls int
	dead  bool
	// begun is true once the caches have begun.
	begun bool
	// last is the call at which it died.
	last string
	// done holds the calls that the API server has answered, in order.
	done []answered
	kill context.CancelFunc
}

// answered is a call of which the API server knows.
type answered struct {
	what   string
	status int
}

var errDead = errors.New("this controller is dead")

// isWrite tells calls that change something. Events are told beside the
// roll-out and change nothing of it; a question for a right is posted, too.
func isWrite(req *http.Request) bool {
	return req.Method != http.MethodGet && !strings.HasPrefix(req.URL.Path, "/apis/events.k8s.io/") &&
		!strings.HasSuffix(req.URL.Path, "/selfsubjectaccessreviews")
}

// wrap lets calls through as long as the controller lives.
func (m *mortal) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		what := req.Method + " " + req.URL.Path
		dies, err := m.begin(req, what)
		if err != nil {
			return nil, err
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if req.Method != http.MethodGet {
			m.done = append(m.done, answered{what, resp.StatusCode})
		}
		if dies || m.dead {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			m.dead = true
			m.kill()
			return nil, errDead
		}
		return resp, nil
	})
}

// begin counts a call, and tells whether the controller dies of it.
func (m *mortal) begin(req *http.Request, what string) (dies bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, errDead
	}
	if !m.reads && !isWrite(req) || m.reads && !m.begun {
		return false, nil
	}
	m.calls++
	if m.calls != m.call {
		return false, nil
	}
	m.last = what
	if m.reached && req.URL.Query().Get("watch") != "true" {
		return true, nil
	}
	m.dead = true
	m.kill()
	return false, errDead
}

// dieOf counts from now on, up to another death.
func (m *mortal) dieOf(d death) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.death, m.calls = d, 0
}

// counted returns how many calls were counted since then.
func (m *mortal) counted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// atWork notes that the caches have begun.
func (m *mortal) atWork() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = true
}

// died tells whether the controller has come as far as its death.
func (m *mortal) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// live starts a controller with nothing but what the API server knows. It ends
// with its death, or with the test.
func (f *fixture) live(d death) *mortal {
	f.Helper()
	m := &mortal{death: d, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(f.ctx)
	m.kill = cancel
	config := plane.Config()
	config.Wrap(m.wrap)
	f.run(ctx, m, func() (ctrl.Manager, *AddonsLayerReconciler) { return f.assemble(config, f.narrowOptions(), time.Hour) })
	f.Cleanup(func() {
		cancel()
		<-m.ended
	})
	return m
}

// run starts a controller and follows it to its end.
func (f *fixture) run(ctx context.Context, m *mortal, assemble func() (ctrl.Manager, *AddonsLayerReconciler)) {
	f.Helper()
	mgr, reconciler := assemble()
	f.must(reconciler.Setup(ctx, mgr))
	f.must(reconciler.SetupWithManager(mgr))
	go func() {
		select {
		case <-mgr.Elected():
			m.atWork()
		case <-ctx.Done():
		}
	}()
	go func() {
		defer close(m.ended)
		if err := mgr.Start(ctx); err != nil && !m.died() {
			f.Errorf("the controller has stopped: %v", err)
		}
	}()
}

// narrowOptions are the manager's with a cache of nothing but this test's
// namespace and layers: many controllers share one API server, and each would
// hold what the others do.
func (f *fixture) narrowOptions() ctrl.Options {
	options := managerOptions()
	options.Cache.DefaultNamespaces = map[string]cache.Config{f.namespace: {}}
	own, err := labels.Parse("test=" + f.namespace)
	f.must(err)
	for obj := range options.Cache.ByObject {
		switch obj.(type) {
		case *v1alpha1.AddonsLayer:
			options.Cache.ByObject[obj] = cache.ByObject{Label: own}
		case *v1alpha1.RemoteCluster:
			// A layer's Namespace may be one of RemoteClusters, wherever it is.
			options.Cache.ByObject[obj] = cache.ByObject{
				Label: labels.Everything(), Namespaces: map[string]cache.Config{cache.AllNamespaces: {}},
			}
		}
	}
	// A process that is dead finishes nothing.
	soon := time.Second
	options.GracefulShutdownTimeout = &soon
	options.Client = client.Options{Cache: options.Client.Cache}
	return options
}
