// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// receiver keeps the events that it gets, and answers as it is told.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string
	answer func(w http.ResponseWriter, r *http.Request, n int)
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.handle))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *receiver) handle(w http.ResponseWriter, req *http.Request) {
	event := eventv1.Event{}
	decoder := json.NewDecoder(req.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&event); err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.got = append(r.got, event.Message)
	n := len(r.got)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, req, n)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (r *receiver) messages() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// quick are options with which a test need not wait for long.
func quick(url string) SenderOptions {
	return SenderOptions{URL: url, Queue: 100, Timeout: patience, Attempts: 3, Wait: time.Millisecond, Drain: patience / 2, Log: logr.Discard()}
}

// started returns a sender that runs until the test ends, and a function that stops it
// and waits for its end. What is to happen once the stop has begun may be given.
func started(t *testing.T, options SenderOptions, stopping ...func()) (*Sender, func()) {
	t.Helper()
	s, err := NewSender(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, do := range stopping {
		context.AfterFunc(ctx, do)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Start returns %v", err)
			}
		case <-time.After(patience):
			t.Error("the sender does not stop")
		}
	})
	t.Cleanup(stop)
	return s, stop
}

func event(message string) eventv1.Event { return eventv1.Event{Message: message, Severity: "info"} }

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// counts returns what the sender has counted; reasons without events are left
// out.
func counts(s *Sender) map[string]float64 {
	found := map[string]float64{}
	if n := testutil.ToFloat64(s.sent); n > 0 {
		found["sent"] = n
	}
	for _, reason := range []string{DroppedFull, DroppedUnreachable, DroppedRefused, DroppedRateLimited, DroppedStopped} {
		if n := testutil.ToFloat64(s.dropped.WithLabelValues(reason)); n > 0 {
			found[reason] = n
		}
	}
	return found
}

func TestAnswers(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(code) }
	}
	elsewhere := newReceiver(t, nil)
	tests := map[string]struct {
		reason string
		answer func(http.ResponseWriter, *http.Request, int)
		posts  int
		want   map[string]float64
	}{
		"accepted":   {"notification-controller says 202", status(202), 1, map[string]float64{"sent": 1}},
		"ok":         {"other receivers say 200", status(200), 1, map[string]float64{"sent": 1}},
		"refused":    {"an event that is not understood will not be the next time", status(400), 1, map[string]float64{DroppedRefused: 1}},
		"no such":    {"the URL is wrong", status(404), 1, map[string]float64{DroppedRefused: 1}},
		"rate limit": {"the same event a short time ago: it is known already", status(429), 1, map[string]float64{DroppedRateLimited: 1}},
		"broken":     {"it is tried as often as the options say", status(500), 3, map[string]float64{DroppedUnreachable: 1}},
		"broken once": {"it is only restarting", func(w http.ResponseWriter, _ *http.Request, n int) {
			if n == 1 {
				w.WriteHeader(503)
			}
		}, 2, map[string]float64{"sent": 1}},
		"hangs up": {"the connection breaks in the middle", func(w http.ResponseWriter, _ *http.Request, n int) {
			if n < 3 {
				panic(http.ErrAbortHandler)
			}
		}, 3, map[string]float64{"sent": 1}},
		"redirect": {"an event goes nowhere else", func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 1, map[string]float64{DroppedRefused: 1}},
		"endless answer": {"no more of it is read than is needed", func(w http.ResponseWriter, r *http.Request, _ int) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<16))
			}
		}, 1, map[string]float64{"sent": 1}},
		"endless headers": {"they are bounded", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("X-Much", strings.Repeat("x", 1<<20))
		}, 3, map[string]float64{DroppedUnreachable: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, test.answer)
			s, _ := started(t, quick(r.URL))
			s.Send(event("a"))
			eventually(t, test.reason, func() bool { return cmp.Equal(test.want, counts(s)) })
			if got := len(r.messages()); got != test.posts {
				t.Errorf("%s: posted %d times, want %d", test.reason, got, test.posts)
			}
		})
	}
	if got := elsewhere.messages(); len(got) > 0 {
		t.Errorf("a redirect was followed with %q", got)
	}
}

func TestNobodyWaits(t *testing.T) {
	free := make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request, _ int) {
		select {
		case <-free:
		case <-req.Context().Done():
		}
	})
	options := quick(r.URL)
	options.Queue, options.Timeout = 4, 2*patience // so that nobody who waits for it is done in time
	s, _ := started(t, options)
	s.Send(event("under way"))
	eventually(t, "the first event is under way", func() bool { return len(r.messages()) == 1 })
	for i := range 100 {
		s.Send(event(fmt.Sprint(i)))
	}
	if diff := cmp.Diff(map[string]float64{DroppedFull: 96}, counts(s)); diff != "" {
		t.Errorf("counts while the receiver hangs (-want +got):\n%s", diff)
	}
	close(free)
	eventually(t, "the newest arrive", func() bool { return counts(s)["sent"] == 5 })
	if diff := cmp.Diff([]string{"under way", "96", "97", "98", "99"}, r.messages()); diff != "" {
		t.Errorf("events, in order (-want +got):\n%s", diff)
	}
}

func TestReceiverIsAway(t *testing.T) {
	r := newReceiver(t, nil)
	url := r.URL
	r.Close()
	s, _ := started(t, quick(url))
	s.Send(event("a"))
	s.Send(event("b"))
	eventually(t, "both are given up", func() bool { return counts(s)[DroppedUnreachable] == 2 })
	if !cmp.Equal(map[string]float64{DroppedUnreachable: 2}, counts(s)) {
		t.Errorf("counts are %v", counts(s))
	}
}

func TestSlowReceiverTimesOut(t *testing.T) {
	r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request, n int) {
		if n == 1 {
			<-req.Context().Done()
		}
	})
	options := quick(r.URL)
	// A slow machine may be late for more than the first attempt.
	options.Timeout, options.Attempts = 100*time.Millisecond, 1000
	s, _ := started(t, options)
	s.Send(event("a"))
	eventually(t, "another attempt arrives", func() bool { return counts(s)["sent"] == 1 })
}

func TestStop(t *testing.T) {
	t.Run("what waits is still said", func(t *testing.T) {
		hold := make(chan struct{})
		r := newReceiver(t, func(_ http.ResponseWriter, _ *http.Request, n int) {
			if n == 1 {
				<-hold
			}
		})
		s, stop := started(t, quick(r.URL), func() { close(hold) })
		for i := range 20 {
			s.Send(event(fmt.Sprint(i)))
		}
		eventually(t, "the first is under way", func() bool { return len(r.messages()) == 1 })
		stop()
		if counts(s)["sent"] != 20 {
			t.Errorf("counts are %v, want 20 that were sent", counts(s))
		}
	})
	t.Run("sent before it starts", func(t *testing.T) {
		r := newReceiver(t, nil)
		s, err := NewSender(quick(r.URL))
		if err != nil {
			t.Fatal(err)
		}
		s.Send(event("early"))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Start(ctx); err != nil || counts(s)["sent"] != 1 {
			t.Errorf("error %v, counts %v", err, counts(s))
		}
	})
	t.Run("a receiver that hangs keeps nobody", func(t *testing.T) {
		r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request, _ int) { <-req.Context().Done() })
		options := quick(r.URL)
		options.Timeout, options.Drain = 2*patience, 200*time.Millisecond
		s, stop := started(t, options)
		for i := range 50 {
			s.Send(event(fmt.Sprint(i)))
		}
		eventually(t, "the first is under way", func() bool { return len(r.messages()) == 1 })
		stop()
		if diff := cmp.Diff(map[string]float64{DroppedStopped: 50}, counts(s)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	})
	t.Run("a back-off is cut short", func(t *testing.T) {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500) })
		options := quick(r.URL)
		options.Wait = time.Hour
		s, stop := started(t, options)
		s.Send(event("a"))
		eventually(t, "the first attempt", func() bool { return len(r.messages()) == 1 })
		stop()
		if diff := cmp.Diff(map[string]float64{DroppedStopped: 1}, counts(s)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	})
}

func TestManySendAtOnce(t *testing.T) {
	r := newReceiver(t, nil)
	options := quick(r.URL)
	options.Queue = 1000
	s, stop := started(t, options)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			for i := range 50 {
				s.Send(event(fmt.Sprint(i)))
			}
		})
	}
	group.Wait()
	eventually(t, "all have arrived", func() bool { return counts(s)["sent"] == 500 })
	stop()
	if diff := cmp.Diff(map[string]float64{"sent": 500}, counts(s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://notification-controller.flux-system.svc.cluster.local./": "",
		"https://events.example:8443/strata":                             "",
		"":                                                               "must begin with http",
		"notification-controller":                                        "must begin with http",
		"ftp://a":                                                        "must begin with http",
		"http://":                                                        "names no host",
		"http://:80/":                                                    "names no host",
		"http://user:secret\x7f@a":                                       "it is no URL",
		"http://user:secret@[broken:80/x":                                "it is no URL",
	} {
		_, err := NewSender(SenderOptions{URL: url})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s is refused: %v", url, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error is %v, want %q in it", url, err, want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error holds the password: %v", url, err)
		}
	}
}

func TestMetricsOfASenderAreConventional(t *testing.T) {
	s, err := NewSender(quick("http://a"))
	if err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.CollectAndLint(s)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint says %v, %v", problems, err)
	}
	if got := testutil.CollectAndCount(s); got != 6 {
		t.Errorf("%d series before the first event, want all 6", got)
	}
}

// A URL with a password must not come into the log.
func TestLogHoldsNoPassword(t *testing.T) {
	r := newReceiver(t, nil)
	url := strings.Replace(r.URL, "http://", "http://user:secret@", 1)
	r.Close()
	log := &lines{}
	options := quick(url)
	options.Log = logr.New(log)
	s, stop := started(t, options)
	s.Send(event("a"))
	s.Send(event("b"))
	eventually(t, "both are given up", func() bool { return counts(s)[DroppedUnreachable] == 2 })
	stop()
	if len(log.written) != 1 || strings.Contains(log.written[0], "secret") {
		t.Errorf("the log is %q, want one line without the password", log.written)
	}
}

// lines is a logger that keeps errors.
type lines struct {
	logr.LogSink
	written []string
}

func (l *lines) Init(logr.RuntimeInfo) {}

func (l *lines) Enabled(int) bool { return true }

func (l *lines) Error(err error, message string, values ...any) {
	l.written = append(l.written, fmt.Sprintln(err, message, values))
}
