// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package looks makes the controllers of Strata. It is the only place that does, so that a
// look that panics is told by all of them in the same way: as a condition of its object, an
// event, a metric, and a stack in the log.
package looks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/strata-project/strata/api/v1alpha1"
)

// recorder is the name by which events of panics are told.
const recorder = "strata"

// tellWithin bounds how long it may take to tell of a panic.
const tellWithin = 10 * time.Second

// panics counts looks that have ended in a panic. It is in the registry of
// controller-runtime, so that programs with controllers of pkg/primary export it, too.
var panics = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "strata_reconcile_panics_total",
	Help: "How many looks have ended in a panic, by the controller.",
}, []string{"controller"})

func init() { metrics.Registry.MustRegister(panics) }

// Meter returns the metric of panics, which is registered already.
func Meter() prometheus.Collector { return panics }

// NewController returns a controller for objects of a kind. Where one of its looks panics,
// the object says so until a look has ended well. Where people decide by annotations on objects
// of the kind, these are kept from being dropped by Flux.
func NewController(name string, mgr manager.Manager, of client.Object, options controller.Options) (controller.Controller, error) {
	gvk, err := apiutil.GVKForObject(of, mgr.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("cannot tell the kind of the controller %s: %w", name, err)
	}
	c, err := newGuarded(name, mgr, of, gvk, options)
	if err != nil {
		return nil, err
	}
	if gvk.Group == v1alpha1.GroupVersion.Group && len(v1alpha1.ActsOn(gvk.Kind)) > 0 {
		if err := keepActs(name+"-acts", mgr, of, gvk, options); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newGuarded returns a controller whose panics are told on its objects.
func newGuarded(name string, mgr manager.Manager, of client.Object, gvk schema.GroupVersionKind, options controller.Options) (controller.Controller, error) {
	panics.WithLabelValues(name) // it stands at zero before the first one
	options.Reconciler = &guarded{
		inner: options.Reconciler, name: name, of: gvk, client: mgr.GetClient(), reader: mgr.GetAPIReader(), events: mgr.GetEventRecorder(recorder),
		fresh: func() client.Object { return of.DeepCopyObject().(client.Object) },
	}
	made, err := controller.New(name, mgr, options)
	if err != nil {
		return nil, fmt.Errorf("cannot make the controller %s: %w", name, err)
	}
	return made, nil
}

// guarded is a reconciler whose panics are told.
type guarded struct {
	inner  reconcile.Reconciler
	name   string
	of     schema.GroupVersionKind
	client client.Client
	reader client.Reader
	events events.EventRecorder
	// fresh returns an object of the kind.
	fresh func() client.Object
}

// Reconcile looks at one object. A panic is an error, which backs off.
func (g *guarded) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			result, err = ctrl.Result{}, g.tell(ctx, req, value)
		}
	}()
	return g.inner.Reconcile(ctx, req)
}

// tell makes a state of a panic. What was panicked with is told nowhere but where the
// runtime says it, since anything else may hold a value of a Secret.
func (g *guarded) tell(ctx context.Context, req ctrl.Request, value any) error {
	hash := hashOf(callers())
	panics.WithLabelValues(g.name).Inc()
	err := &panicError{hash: hash}
	of := fmt.Sprintf("%T", value)
	if wrong, is := value.(runtime.Error); is {
		of = wrong.Error()
	}
	logger := log.FromContext(ctx)
	logger.Error(err, "a look has ended in a panic", "hash", hash, "panic", of, "stack", string(debug.Stack()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
	defer cancel()
	if failed := g.report(ctx, req, err.message(), metav1.Now()); failed != nil {
		logger.Error(failed, "a panic cannot be told in the status", "hash", hash)
	}
	return err
}

// panicError says that a look has ended in a panic.
type panicError struct{ hash string }

// Error names the hash under which the log has the stack.
func (e *panicError) Error() string { return "the look has ended in a panic (" + e.hash + ")" }

func (e *panicError) message() string {
	return fmt.Sprintf("the last look has ended in a panic, which is a mistake in Strata: the controller's log has its stack under the hash %s; "+
		"what is there stays as it is, and it is looked at again", e.hash)
}

// callers returns the functions and lines that have led to a panic, beginning with the one
// that has panicked.
func callers() []string {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	var found []string
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "runtime.") && strings.Contains(frame.Function, "panic") {
			found = nil // what came after it is how it is told
		} else {
			found = append(found, fmt.Sprintf("%s:%d", frame.Function, frame.Line))
		}
		if !more {
			return found
		}
	}
}

// hashOf returns what tells one stack from others. It has no addresses: the same mistake has
// the same hash, in each run of one build.
func hashOf(stack []string) string {
	sum := sha256.Sum256([]byte(strings.Join(stack, "\n")))
	return hex.EncodeToString(sum[:4])
}
