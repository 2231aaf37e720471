// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package atrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// server stands for an API server that has ConfigMaps and nothing else.
type server struct {
	mu      sync.Mutex
	version int
	there   map[string]int
	watches map[chan string]bool
	// held keeps back what watches bring.
	held chan struct{}
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if req.URL.Query().Get("watch") == "" {
		s.list(w)
		return
	}
	s.mu.Lock()
	events := make(chan string, 100)
	s.watches[events] = true
	if req.URL.Query().Get("sendInitialEvents") == "true" {
		for name, version := range s.there {
			events <- eventOf("ADDED", name, version)
		}
		events <- fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`, s.version)
	}
	s.mu.Unlock()
	w.(http.Flusher).Flush()
	for {
		select {
		case <-req.Context().Done():
			return
		case text := <-events:
			s.mu.Lock()
			held := s.held
			s.mu.Unlock()
			if held != nil {
				<-held
			}
			_, _ = fmt.Fprintln(w, text)
			w.(http.Flusher).Flush()
		}
	}
}

func (s *server) list(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	list.ResourceVersion = fmt.Sprint(s.version)
	for name, version := range s.there {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: fmt.Sprint(version)}})
	}
	_ = json.NewEncoder(w).Encode(list)
}

func eventOf(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":%q,"resourceVersion":"%d"}}}`, kind, name, version)
}

// write changes an object, or makes it go.
func (s *server) write(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.there[name] = s.version
	if kind == "DELETED" {
		delete(s.there, name)
	}
	for events := range s.watches {
		events <- eventOf(kind, name, s.version)
	}
}

// hold keeps back what watches bring until what it returns is called.
func (s *server) hold() func() {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = nil
		close(held)
	})
}

// bed is a controller of ConfigMaps.
type bed struct {
	*testing.T
	*server
	observer *Observer
	client   client.Client
	wakes    chan event.GenericEvent
	mu       sync.Mutex
	do       func(name string) (time.Duration, error)
	looked   []string
}

// newBed runs a controller, of which do is the look; it may be changed by will.
func newBed(t *testing.T, options Options, priorities bool) *bed {
	t.Helper()
	b := &bed{T: t, server: &server{version: 1, there: map[string]int{"one": 1}, watches: map[chan string]bool{}}, wakes: make(chan event.GenericEvent, 100)}
	b.will(func(string) (time.Duration, error) { return 0, nil })
	serves := httptest.NewServer(b.server)
	b.observer = New(options)
	config := b.observer.Config(&rest.Config{Host: serves.URL})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	yes := true
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: clientgoscheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	b.must(err)
	mgr = b.observer.Over(mgr)
	b.client = mgr.GetClient()
	c, err := controller.New("bed", mgr, controller.Options{
		SkipNameValidation: &yes, UsePriorityQueue: &priorities,
		Reconciler: reconcile.Func(func(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
			b.mu.Lock()
			b.looked = append(b.looked, req.Name)
			do := b.do
			b.mu.Unlock()
			after, err := do(req.Name)
			return ctrl.Result{RequeueAfter: after}, err
		}),
	})
	b.must(err)
	b.must(c.Watch(source.Kind(mgr.GetCache(), client.Object(&corev1.ConfigMap{}), &handler.EnqueueRequestForObject{})))
	b.must(c.Watch(source.Channel(b.wakes, &handler.EnqueueRequestForObject{})))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		serves.CloseClientConnections()
		serves.Close()
	})
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// will says what a look does from now on.
func (b *bed) will(do func(name string) (time.Duration, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.do = do
}

// taken returns what was looked at since the last call.
func (b *bed) taken() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	looked := b.looked
	b.looked = nil
	return strings.Join(looked, " ")
}

// rests waits until the controller is at rest.
func (b *bed) rests() {
	b.Helper()
	b.eventually(func() error { return b.observer.Check(b.Context()) })
}

// works waits until the controller is said to be at work, for a reason.
func (b *bed) works(why string) {
	b.Helper()
	b.eventually(func() error {
		if err := b.observer.Check(b.Context()); err == nil || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("it is said: %w", err)
		}
		return nil
	})
}

func (b *bed) eventually(check func() error) {
	b.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.Fatal(err)
		}
	}
}

// What is written is looked at before there is rest, whichever queue the controller has.
func TestRestComesAfterWhatWasWritten(t *testing.T) {
	for _, priorities := range []bool{false, true} {
		t.Run(fmt.Sprintf("priorities %t", priorities), func(t *testing.T) {
			b := newBed(t, Options{}, priorities)
			b.rests()
			if got := b.taken(); got != "one" {
				t.Errorf("looked at are %q, want what was there", got)
			}
			for range 50 {
				for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
					b.write(kind, "two")
					b.rests()
					if got := b.taken(); got != "two" {
						t.Fatalf("looked at are %q after it was %s", got, kind)
					}
				}
			}
		})
	}
}

// What a watch has yet to bring is work, also where it is that something has gone.
func TestNoRestBeforeAWatchHasBroughtAll(t *testing.T) {
	b := newBed(t, Options{}, false)
	b.rests()
	b.taken()
	release := b.hold()
	b.write("ADDED", "two")
	b.works("has yet to bring default/two at version 2")
	release()
	b.rests()
	release = b.hold()
	b.write("DELETED", "two")
	b.works("has yet to bring that default/two has gone")
	release()
	b.rests()
	if got := b.taken(); got != "two two" {
		t.Errorf("looked at are %q", got)
	}
}

// A look that is under way is work, and so is what waits behind it.
func TestNoRestWhileSomethingIsLookedAt(t *testing.T) {
	for _, priorities := range []bool{false, true} {
		t.Run(fmt.Sprintf("priorities %t", priorities), func(t *testing.T) {
			b := newBed(t, Options{}, priorities)
			b.rests()
			goOn := make(chan struct{})
			b.will(func(string) (time.Duration, error) {
				<-goOn
				return 0, nil
			})
			b.write("ADDED", "two")
			b.works("looks at default/two")
			b.write("ADDED", "three")
			b.works("1 wait in the queue of bed")
			goOn <- struct{}{}
			b.works("looks at default/three")
			close(goOn)
			b.rests()
			if got := b.taken(); got != "one two three" {
				t.Errorf("looked at are %q", got)
			}
		})
	}
}

// What was put off for a moment is work, and for longer it is rest.
func TestRestKnowsShortPausesFromLongOnes(t *testing.T) {
	for _, priorities := range []bool{false, true} {
		t.Run(fmt.Sprintf("priorities %t", priorities), func(t *testing.T) {
			b := newBed(t, Options{Soon: time.Minute}, priorities)
			b.rests()
			after := time.Hour
			b.will(func(string) (time.Duration, error) { return after, nil })
			b.write("ADDED", "two")
			b.rests()
			after = time.Minute / 2
			b.write("MODIFIED", "two")
			b.works("bed looks at default/two again in 29.")
		})
	}
}

// What fails is looked at again at once, which is work, and then later and later, which is rest.
func TestNoRestWhileAMistakeIsTriedAgain(t *testing.T) {
	for _, priorities := range []bool{false, true} {
		t.Run(fmt.Sprintf("priorities %t", priorities), func(t *testing.T) {
			b := newBed(t, Options{Soon: 50 * time.Millisecond}, priorities)
			b.rests()
			b.taken()
			b.will(func(string) (time.Duration, error) { return 0, errors.New("no") })
			b.write("ADDED", "two")
			b.rests()
			// 5 ms, 10, 20, 40; the next pause is longer than what is soon.
			if got := strings.Count(b.taken(), "two"); got < 5 {
				t.Errorf("it was looked at %d times", got)
			}
		})
	}
}

// A safety net that comes again and again after a short pause is no work, once it has come and
// found nothing to do. One that does something each time is.
func TestRestBesidesASafetyNet(t *testing.T) {
	b := newBed(t, Options{Soon: time.Minute}, false)
	b.will(func(string) (time.Duration, error) { return 50 * time.Millisecond, nil })
	b.rests()
	if got := strings.Count(b.taken(), "one"); got < 2 {
		t.Errorf("it was looked at %d times, so the net has not come", got)
	}
	b.will(func(string) (time.Duration, error) {
		return 50 * time.Millisecond, client.IgnoreNotFound(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}}))
	})
	b.write("MODIFIED", "one")
	for range 20 {
		b.works("bed looks at default/one again in ")
	}
}

// What is on its way to the queue, from a channel, counts as well as what is in the queue.
func TestNoRestBeforeAChannelIsEmpty(t *testing.T) {
	b := newBed(t, Options{}, false)
	b.rests()
	for i := range 200 {
		b.taken()
		name := fmt.Sprintf("woken-%d", i)
		b.wakes <- event.GenericEvent{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		b.rests()
		if got := b.taken(); got != name {
			t.Fatalf("looked at are %q, want %s", got, name)
		}
	}
}

// A goroutine that waits for another process is at work where the suite says so.
func TestNoRestInWhatASuiteNames(t *testing.T) {
	b := newBed(t, Options{Working: []string{"atrest.waitsFor("}}, false)
	b.rests()
	goOn := make(chan struct{})
	b.will(func(string) (time.Duration, error) {
		go waitsFor(goOn)
		return 0, nil
	})
	b.write("MODIFIED", "one")
	b.works("in atrest.waitsFor(")
	close(goOn)
	b.rests()
}

func waitsFor(c chan struct{}) { <-c }

// A manager that is not observed is never said to be at rest.
func TestNoRestOfWhatIsNotSeen(t *testing.T) {
	if err := New(Options{}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no controller is observed") {
		t.Errorf("the error is %v", err)
	}
	if err := New(Options{}).parked(); err == nil || !strings.Contains(err.Error(), "no goroutine is observed") {
		t.Errorf("the error is %v", err)
	}
}

// Of two moments the earlier one counts, and what was put off again while it was looked at is not
// forgotten.
func TestTheEarlierMomentCounts(t *testing.T) {
	b := newBed(t, Options{Soon: time.Minute}, false)
	b.rests()
	q := b.observer.queues[0]
	item := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	until := func() time.Duration {
		q.mu.Lock()
		defer q.mu.Unlock()
		return time.Until(q.delays[item].until)
	}
	q.AddAfter(item, time.Hour)
	q.AddAfter(item, 2*time.Hour)
	if left := until(); left > time.Hour {
		t.Errorf("it comes in %s", left)
	}
	q.AddAfter(item, time.Minute/2)
	if left := until(); left > time.Minute/2 {
		t.Errorf("it comes in %s", left)
	}
	b.works("bed looks at /a again in 29.")
	b.taken()
	q.AddAfter(item, time.Millisecond)
	b.rests()
	if got := b.taken(); got != "a" {
		t.Errorf("looked at are %q", got)
	}
}
