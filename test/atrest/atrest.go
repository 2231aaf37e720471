// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package atrest tells when controllers that run in the process of a test have nothing left to do.
// It looks at four facts, and none of them is that time has passed:
//
//   - Queues. Nothing waits in the queue of a controller, no worker is under way, and nothing that
//     was put off is due soon. What was put off for longer is rest: that is a deadline or a safety
//     net. So is what comes again and again after a short pause, once a look that nothing but the
//     clock has begun made no request and did not fail.
//   - Watches. Everything that the API server holds now has arrived by each open watch, and
//     everything that it does not hold any more has arrived as gone. The API server is asked for a
//     list of what each watch selects, which it answers from its newest state.
//   - Goroutines. The runtime stops the process, and shows each goroutine that the controllers have
//     begun, directly or not, waiting for something. A goroutine that has anything left to hand on,
//     to a store, a handler, a channel or a recorder of events, is running or about to.
//   - Stillness. From before the first look at these facts until after the last one, no request was
//     made and no queue has moved, but for looks that nothing but the clock has begun and that
//     neither made a request nor failed.
//
// Together they are a proof, and not a guess. As nothing was written meanwhile, the lists say what
// the API server holds at the end, too. All of it had arrived before the goroutines were looked at,
// and none of them was at work on it, so all that follows from it was in the queues, which are
// empty. What is left are clocks, of which the queues' own are known, and whatever others do next.
//
// What is not seen is what is on its way from other API servers than that of the manager, whose
// watches have transports of their own, and what an informer misses that is between two watches,
// as one is whose kind is not served. What has arrived of these is seen as all else is.
package atrest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options say what is rest in a suite of tests.
type Options struct {
	// Soon is how far ahead something that was put off still counts as work; 0 is 2 seconds.
	Soon time.Duration
	// Aside tells which requests are made now and then whatever happens. They do not count as
	// something that has happened; nil for none.
	Aside func(*http.Request) bool
	// Working are functions that work although their goroutines wait, as for the answer of another
	// process: parts of how a stack names them.
	Working []string
}

// Observer sees what the controllers of one manager do. It is safe for concurrent use.
type Observer struct {
	options Options
	label   string
	// moves counts whatever queues and requests do.
	moves atomic.Int64

	mu sync.Mutex
	// seen is what moves was when Check was called last. The lists of the API server and the
	// stacks of the process are not looked at before until: they cost those who are at work.
	// failed is why the last proof failed.
	seen   int64
	pause  time.Duration
	until  time.Time
	failed error

	queues  []*queue
	added   int
	streams map[*stream]struct{}
	// last is what the watches that have ended knew, by what they select.
	last map[string]*stream
}

var observers atomic.Int64

// New returns an observer of one manager, which is to be made with the configuration that Config
// returns. Its controllers are to be made with what Over returns, which is then to be started.
func New(options Options) *Observer {
	if options.Soon == 0 {
		options.Soon = 2 * time.Second
	}
	return &Observer{
		options: options, label: fmt.Sprintf("observed-%d", observers.Add(1)),
		streams: map[*stream]struct{}{}, last: map[string]*stream{},
	}
}

// Config returns a configuration whose requests are observed, below all that wraps its transport:
// what the observer asks itself goes through none of that.
func (o *Observer) Config(of *rest.Config) *rest.Config {
	made := rest.CopyConfig(of)
	made.WrapTransport = nil
	made.Wrap(o.wrap)
	if of.WrapTransport != nil {
		made.Wrap(of.WrapTransport)
	}
	return made
}

// Over returns a manager whose goroutines are observed, and the queues of its controllers.
func (o *Observer) Over(mgr manager.Manager) manager.Manager { return &observed{mgr, o} }

type observed struct {
	manager.Manager
	by *Observer
}

// Start runs the manager. Its goroutines have the observer's label, and all that these begin.
func (m *observed) Start(ctx context.Context) (err error) {
	pprof.Do(ctx, pprof.Labels(labelKey, m.by.label), func(ctx context.Context) { err = m.Manager.Start(ctx) })
	return err
}

// newQueue makes the queue of a controller.
type newQueue = func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// Add has the queue and the looks of a controller observed. A controller is a type that
// controller-runtime keeps to itself, but the fields with what makes its queue and with what looks
// have names: so no controller needs to know of its observer.
func (m *observed) Add(runnable manager.Runnable) error {
	makes, is := field[newQueue](runnable, "NewQueue")
	does, has := field[reconcile.Reconciler](runnable, "Do")
	if is && has {
		m.by.mu.Lock()
		m.by.added++
		m.by.mu.Unlock()
		looks := &reconciler{Reconciler: *does}
		*does = looks
		inner := *makes
		*makes = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return looks.observe(m.by, name, limiter, inner)
		}
	}
	return m.Manager.Add(runnable)
}

// field returns a field of the struct that something points to, if it has that type.
func field[T any](of any, name string) (*T, bool) {
	value := reflect.ValueOf(of)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	found := value.Elem().FieldByName(name)
	if !found.IsValid() {
		return nil, false
	}
	typed, is := found.Addr().Interface().(*T)
	return typed, is
}

// Check returns nil where the controllers are at rest, and otherwise what they still have to do. It
// is to be called again and again: it looks at all facts where nothing has happened since the call
// before, and after each time in vain at longer intervals, up to a second.
func (o *Observer) Check(ctx context.Context) error {
	before := o.moves.Load()
	if err := o.idle(); err != nil {
		return err
	}
	if err := o.worthwhile(before); err != nil {
		return err
	}
	err := o.prove(ctx, before)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed = err; err != nil {
		o.pause = min(max(2*o.pause, 50*time.Millisecond), time.Second)
		o.until = time.Now().Add(o.pause)
	}
	return err
}

// worthwhile returns why it is too early for a proof.
func (o *Observer) worthwhile(moves int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if moves != o.seen {
		o.seen, o.pause, o.until = moves, 0, time.Time{}
		return errors.New("something has happened since the last question")
	}
	if time.Now().Before(o.until) {
		return o.failed
	}
	return nil
}

// prove looks at all facts but the queues, and at those again.
func (o *Observer) prove(ctx context.Context, before int64) error {
	if err := o.caughtUp(ctx); err != nil {
		return err
	}
	if err := o.parked(); err != nil {
		return err
	}
	if err := o.idle(); err != nil {
		return err
	}
	if o.moves.Load() != before {
		return errors.New("something has happened meanwhile")
	}
	return nil
}

// idle returns what the queues still have.
func (o *Observer) idle() error {
	o.mu.Lock()
	queues, added := o.queues, o.added
	o.mu.Unlock()
	if added == 0 {
		return errors.New("no controller is observed")
	}
	if len(queues) < added {
		return fmt.Errorf("%d of %d controllers have started", len(queues), added)
	}
	for _, each := range queues {
		if err := each.idle(o.options.Soon); err != nil {
			return err
		}
	}
	return nil
}
