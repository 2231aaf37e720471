// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// Defaults of SenderOptions.
const (
	defaultQueue    = 512
	defaultTimeout  = 5 * time.Second
	defaultAttempts = 6
	defaultWait     = 500 * time.Millisecond
	defaultDrain    = 5 * time.Second
)

// maxAnswer is how much of an answer is read, so that the connection can be
// used again.
const maxAnswer = 4096

// Why an event is dropped: the values of the label reason.
const (
	// DroppedFull made room for a newer event.
	DroppedFull = "full"
	// DroppedUnreachable was tried as often as SenderOptions says.
	DroppedUnreachable = "unreachable"
	// DroppedRefused is one that the receiver does not take.
	DroppedRefused = "refused"
	// DroppedRateLimited is one that the receiver has had a short time ago.
	DroppedRateLimited = "rate_limited"
	// DroppedStopped was left when the controller ended.
	DroppedStopped = "stopped"
)

// SenderOptions of a Sender. What is zero has a default, but for URL.
type SenderOptions struct {
	// URL that events are posted to.
	URL string
	// Queue is how many events may wait; the oldest makes room for a newer one.
	Queue int
	// Timeout of one request.
	Timeout time.Duration
	// Attempts is how often one event is tried.
	Attempts int
	// Wait before the second attempt; each further one waits twice as long.
	Wait time.Duration
	// Drain is how long what waits may take after the signal to stop.
	Drain time.Duration
	// Log receives when the receiver goes away and comes back.
	Log logr.Logger
}

func (o SenderOptions) withDefaults() SenderOptions {
	if o.Queue <= 0 {
		o.Queue = defaultQueue
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Attempts <= 0 {
		o.Attempts = defaultAttempts
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	return o
}

// Sender posts events, one after the other and in the order in which they
// came. It is a runnable of a manager, and a collector of its own metrics. Send
// may be called at any time, from anywhere.
type Sender struct {
	options SenderOptions
	client  *http.Client
	queue   chan eventv1.Event
	sent    prometheus.Counter
	dropped *prometheus.CounterVec
	// away is true since an event could not be handed over; the worker's own.
	away bool
}

// NewSender returns a Sender that has yet to be started. Its error says what is wrong
// with the URL.
func NewSender(options SenderOptions) (*Sender, error) {
	options = options.withDefaults()
	if err := CheckURL(options.URL); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	s := &Sender{
		options: options,
		queue:   make(chan eventv1.Event, options.Queue),
		client: &http.Client{
			Transport: transport,
			// An event goes where it was sent to, and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "strata_notifications_sent_total",
			Help: "How many events the notification-controller has taken.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strata_notifications_dropped_total",
			Help: "How many events the notification-controller did not get, by reason.",
		}, []string{"reason"}),
	}
	// A counter that begins with its first event hides that event from rate().
	for _, reason := range []string{DroppedFull, DroppedUnreachable, DroppedRefused, DroppedRateLimited, DroppedStopped} {
		s.dropped.WithLabelValues(reason)
	}
	return s, nil
}

// CheckURL refuses what cannot be posted to.
func CheckURL(text string) error {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is no URL")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("it must begin with http:// or https://")
	case parsed.Hostname() == "":
		return errors.New("it names no host")
	default:
		return nil
	}
}

// Describe names the metrics.
func (s *Sender) Describe(descriptions chan<- *prometheus.Desc) {
	s.sent.Describe(descriptions)
	s.dropped.Describe(descriptions)
}

// Collect reads the metrics.
func (s *Sender) Collect(metrics chan<- prometheus.Metric) {
	s.sent.Collect(metrics)
	s.dropped.Collect(metrics)
}

// NeedLeaderElection says no: what a leader has left to say when it stops being
// one is said.
func (s *Sender) NeedLeaderElection() bool { return false }

// Send puts an event into the queue and returns at once. Where the queue is
// full the oldest event goes: the newest says how things are.
func (s *Sender) Send(event eventv1.Event) {
	for {
		select {
		case s.queue <- event:
			return
		default:
		}
		select {
		case <-s.queue:
			s.dropped.WithLabelValues(DroppedFull).Inc()
		default:
		}
	}
}

// Start posts what is sent until the context ends, and what is still in the
// queue for a short time after that.
func (s *Sender) Start(ctx context.Context) error {
	// Requests under way outlive ctx, for as long as draining may take.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(s.options.Drain, end) })()
	for {
		select {
		case event := <-s.queue:
			s.deliver(life, ctx.Done(), event)
		case <-ctx.Done():
			s.drain(life, ctx.Done())
			return nil
		}
	}
}

func (s *Sender) drain(life context.Context, stopped <-chan struct{}) {
	for {
		select {
		case event := <-s.queue:
			s.deliver(life, stopped, event)
		default:
			return
		}
	}
}

// deliver posts an event until it is taken or refused, or has been tried often
// enough. Once the controller stops it is tried once more.
func (s *Sender) deliver(life context.Context, stopped <-chan struct{}, event eventv1.Event) {
	body, err := json.Marshal(event)
	if err != nil {
		s.drop(DroppedRefused, event, err)
		return
	}
	for attempt := 1; ; attempt++ {
		reason, err := s.post(life, body)
		switch {
		case err == nil:
			s.arrived()
			return
		case reason == DroppedRateLimited:
			s.dropped.WithLabelValues(reason).Inc()
			return
		case reason == DroppedRefused || attempt >= s.options.Attempts:
			s.drop(reason, event, err)
			return
		}
		select {
		case <-stopped:
			s.drop(DroppedStopped, event, err)
			return
		default:
		}
		timer := time.NewTimer(s.options.Wait << (attempt - 1))
		select {
		case <-timer.C:
		case <-stopped:
			timer.Stop()
		}
	}
}

// post sends a request. Where it fails the reason is what the event is dropped
// for, should it not be tried again.
func (s *Sender) post(life context.Context, body []byte) (reason string, err error) {
	ctx, cancel := context.WithTimeout(life, s.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.options.URL, bytes.NewReader(body))
	if err != nil {
		return DroppedRefused, fmt.Errorf("cannot make the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return DroppedUnreachable, err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return "", nil
	case code == http.StatusTooManyRequests:
		return DroppedRateLimited, errors.New(response.Status)
	case code >= 500 || code == http.StatusRequestTimeout:
		return DroppedUnreachable, fmt.Errorf("it answers %s", response.Status)
	default:
		return DroppedRefused, fmt.Errorf("it answers %s", response.Status)
	}
}

// arrived notes that the receiver is there.
func (s *Sender) arrived() {
	s.sent.Inc()
	if s.away {
		s.away = false
		s.options.Log.Info("events are taken again")
	}
}

// drop counts an event that is lost, and logs the first of a row.
func (s *Sender) drop(reason string, event eventv1.Event, err error) {
	s.dropped.WithLabelValues(reason).Inc()
	if s.away {
		return
	}
	s.away = true
	s.options.Log.Error(err, "an event was not taken; further ones are counted in strata_notifications_dropped_total",
		"reason", reason, "object", event.InvolvedObject.Name, "event", event.Reason)
}
