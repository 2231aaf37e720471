// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// mostStreams is how many tabs are served at a time.
	mostStreams = 256
	// looked is how often what is shown is looked at although nothing has changed: a hold may
	// have ended, and what lies below a cause is watched only while somebody looks.
	looked = 20 * time.Second
	// alive is how often a stream says that it is there, so that neither side waits for one
	// that is gone. No script of the page sees it.
	alive = 15 * time.Second
	// rest is how many times as long as it took to make what a board shows nothing is made
	// anew, so that what takes long does not keep a machine busy while much changes.
	rest = 4
	// written is how long a tab may take to read one message.
	written = 30 * time.Second
)

// boards make what tabs show, once for all that show the same.
type boards struct {
	o Options

	mu      sync.Mutex
	streams int
	// making has one board be made at a time, so that many tabs keep one core busy at most.
	making sync.Mutex
	// made has what was made at a version, for each query that a tab has.
	made map[query]*board
}

// board is what tabs with the same query show.
type board struct {
	mu      sync.Mutex
	version uint64
	at      time.Time
	parts   map[string]json.RawMessage
	// next is when parts may be made anew.
	next time.Time
	// tabs counts who shows it.
	tabs int
}

func newBoards(o Options) *boards { return &boards{o: o, made: map[query]*board{}} }

// join returns the board of a query, for one more tab.
func (b *boards) join(q query) (*board, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams >= mostStreams {
		return nil, false
	}
	b.streams++
	if b.made[q] == nil {
		b.made[q] = &board{}
	}
	b.made[q].tabs++
	return b.made[q], true
}

func (b *boards) leave(q query) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams--
	b.made[q].tabs--
	if b.made[q].tabs == 0 {
		delete(b.made, q)
	}
}

// parts returns what a board shows at a version, each part as JSON.
func (b *boards) parts(at *board, q query, version uint64) (map[string]json.RawMessage, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.parts != nil && at.version == version && time.Since(at.at) < looked/2 {
		return at.parts, nil
	}
	b.making.Lock()
	defer b.making.Unlock()
	began := time.Now()
	parts := map[string]json.RawMessage{}
	for name, value := range sections(b.o, q) {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("cannot write %s: %w", name, err)
		}
		parts[name] = text
	}
	at.parts, at.version, at.at = parts, version, time.Now()
	at.next = at.at.Add(rest * at.at.Sub(began))
	return parts, nil
}

// change is one message of a stream.
type change struct {
	// Set has the parts that are new or differ, and Drop names those that are gone.
	Set  map[string]json.RawMessage `json:"set,omitempty"`
	Drop []string                   `json:"drop,omitempty"`
}

// changeOf returns what leads from what a tab has to what there is; false for nothing.
func changeOf(had, is map[string]json.RawMessage) (change, bool) {
	c := change{Set: map[string]json.RawMessage{}}
	for name, text := range is {
		if last, known := had[name]; !known || !bytes.Equal(last, text) {
			c.Set[name] = text
		}
	}
	for name := range had {
		if _, known := is[name]; !known {
			c.Drop = append(c.Drop, name)
		}
	}
	return c, len(c.Set)+len(c.Drop) > 0
}

// stream sends a tab what it shows, and then what changes. A tab that reads slowly gets
// fewer and larger changes: nothing waits for it in memory.
func (b *boards) stream(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	shown, free := b.join(q)
	if !free {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d tabs are open already: close some", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer b.leave(q)
	if err := b.o.Cluster.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if r.URL.Query().Get("once") != "" {
		w.WriteHeader(http.StatusNoContent) // A stream would be served.
		return
	}
	out := newMessages(w, r)
	defer out.close()
	_ = b.send(r.Context(), out, shown, q) // The tab is gone.
}

func (b *boards) send(ctx context.Context, out *messages, shown *board, q query) error {
	var had map[string]json.RawMessage
	sent := time.Now()
	for {
		if err := shown.pause(ctx); err != nil {
			return err
		}
		version, changed := b.o.Cluster.Version()
		is, err := b.parts(shown, q, version)
		if err != nil {
			return err
		}
		if c, differs := changeOf(had, is); differs {
			if err := out.send(c); err != nil {
				return err
			}
			had, sent = is, time.Now()
		} else if time.Since(sent) >= alive {
			if err := out.write(": alive\n\n"); err != nil {
				return err
			}
			sent = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(alive):
		}
	}
}

// pause waits until what the board shows may be made anew.
func (b *board) pause(ctx context.Context) error {
	b.mu.Lock()
	wait := time.Until(b.next)
	b.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// messages writes a stream of events.
type messages struct {
	to     io.Writer
	zip    *gzip.Writer
	answer *http.ResponseController
}

func newMessages(w http.ResponseWriter, r *http.Request) *messages {
	m := &messages{to: w, answer: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		m.zip = gzip.NewWriter(w)
		m.to = m.zip
	}
	w.WriteHeader(http.StatusOK)
	return m
}

func (m *messages) send(c change) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return m.write("data: " + string(text) + "\n\n")
}

func (m *messages) write(text string) error {
	if err := m.answer.SetWriteDeadline(time.Now().Add(written)); err != nil {
		return err
	}
	if _, err := io.WriteString(m.to, text); err != nil {
		return err
	}
	if m.zip != nil {
		if err := m.zip.Flush(); err != nil {
			return err
		}
	}
	return m.answer.Flush()
}

func (m *messages) close() {
	if m.zip != nil {
		_ = m.zip.Close()
	}
}
