// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package atrest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// lists is how many lists are asked for side by side.
const lists = 4

// wrap sees the requests that go through a transport, and what its watches bring.
func (o *Observer) wrap(next http.RoundTripper) http.RoundTripper { return &transport{next, o} }

type transport struct {
	next http.RoundTripper
	by   *Observer
}

// RoundTrip makes a request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isWatch(req) {
		if t.by.options.Aside == nil || !t.by.options.Aside(req) {
			t.by.asks(req)
		}
		return t.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept", onlyJSON(req.Header.Get("Accept")))
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	begun := newStream(t, req)
	t.by.begin(begun)
	resp.Body = &body{ReadCloser: resp.Body, of: begun}
	return resp, nil
}

func isWatch(req *http.Request) bool {
	is, _ := strconv.ParseBool(req.URL.Query().Get("watch"))
	return is
}

// onlyJSON leaves of what a client takes what can be read here.
func onlyJSON(accept string) string {
	taken := slices.DeleteFunc(strings.Split(accept, ","), func(one string) bool { return !strings.Contains(one, "json") })
	if len(taken) == 0 {
		return "application/json"
	}
	return strings.Join(taken, ",")
}

// stream is one watch.
type stream struct {
	by *transport
	// req lists what the watch selects, and selects names that.
	req     *http.Request
	selects string

	mu sync.Mutex
	// from is the version that whoever watches knew before, and latest the last that came.
	from, latest uint64
	// versions are those of the objects as the watch has brought them, also of those that have
	// gone, which is what there says.
	versions map[string]uint64
	there    map[string]bool
	rest     []byte
	err      error
}

func newStream(by *transport, watch *http.Request) *stream {
	query := watch.URL.Query()
	s := &stream{by: by, versions: map[string]uint64{}, there: map[string]bool{}}
	s.from, _ = strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	only := url.Values{}
	for _, key := range []string{"labelSelector", "fieldSelector"} {
		if value := query.Get(key); value != "" {
			only.Set(key, value)
		}
	}
	s.req = watch.Clone(context.Background())
	s.req.URL.RawQuery = only.Encode()
	s.req.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	s.selects = s.req.URL.String() + " " + watch.Header.Get("Accept")
	return s
}

// begin notes an open watch. One that goes on where another has ended knows what that knew; one
// that begins after a list does not.
func (o *Observer) begin(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams[s] = struct{}{}
	if before := o.last[s.selects]; before != nil && s.from > 0 && s.from <= before.latest {
		s.versions, s.there = maps.Clone(before.versions), maps.Clone(before.there)
	}
}

func (o *Observer) end(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, open := o.streams[s]; open {
		delete(o.streams, s)
		o.last[s.selects] = s
	}
}

// body is what a watch brings.
type body struct {
	io.ReadCloser
	of *stream
}

// Read notes what is read before whoever reads has it.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.of.take(into[:n])
	if err != nil {
		b.of.by.by.end(b.of)
	}
	return n, err
}

// Close ends the watch.
func (b *body) Close() error {
	b.of.by.by.end(b.of)
	return b.ReadCloser.Close()
}

// take reads events, of which each is a line.
func (s *stream) take(read []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, read...)
	for {
		line, after, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return
		}
		if err := s.event(line); err != nil {
			s.err = err
		}
		s.rest = after
	}
}

// object is what is known of each.
type object struct {
	Metadata struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

func (o object) key() string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

func (o object) version() (uint64, error) {
	version, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has no version that can be compared: %w", o.key(), err)
	}
	return version, nil
}

func (s *stream) event(line []byte) error {
	var event struct {
		Type   string `json:"type"`
		Object object `json:"object"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("cannot read an event: %w", err)
	}
	if event.Type == "ERROR" {
		return nil // the watch ends
	}
	version, err := event.Object.version()
	if err != nil {
		return err
	}
	s.latest = max(s.latest, version)
	if event.Type == "BOOKMARK" {
		return nil
	}
	key := event.Object.key()
	s.versions[key] = version
	s.there[key] = event.Type != "DELETED"
	return nil
}

// caughtUp returns what the API server has, or has not any more, and a watch has yet to bring.
func (o *Observer) caughtUp(ctx context.Context) error {
	o.mu.Lock()
	open := slices.Collect(maps.Keys(o.streams))
	o.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lists)
	for _, each := range open {
		group.Go(func() error { return each.caughtUp(ctx) })
	}
	return group.Wait()
}

func (s *stream) caughtUp(ctx context.Context) error {
	resp, err := s.by.next.RoundTrip(s.req.Clone(ctx))
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", s.req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusForbidden:
		return nil // the watch is about to end, and brings nothing
	default:
		return fmt.Errorf("cannot list %s: %s", s.req.URL, resp.Status)
	}
	var list struct {
		object
		Items []object `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return fmt.Errorf("cannot list %s: %w", s.req.URL, err)
	}
	if err := s.has(list.object, list.Items); err != nil {
		return fmt.Errorf("a watch of %s has yet to bring %w", s.req.URL.Path, err)
	}
	return nil
}

// has returns what of a list the watch has not brought.
func (s *stream) has(of object, items []object) error {
	at, err := of.version()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	listed := make(map[string]bool, len(items))
	for _, item := range items {
		version, err := item.version()
		if err != nil {
			return err
		}
		listed[item.key()] = true
		if version > s.from && version > s.versions[item.key()] {
			return fmt.Errorf("%s at version %d", item.key(), version)
		}
	}
	for key, is := range s.there {
		// What is younger than the list cannot be in it.
		if is && !listed[key] && s.versions[key] <= at {
			return fmt.Errorf("that %s has gone", key)
		}
	}
	return nil
}
