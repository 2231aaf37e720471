// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/terminal"
)

func TestEventsAreGolden(t *testing.T) {
	server := seen(t)
	for _, test := range []struct {
		name, args string
		screen     terminal.Screen
	}{
		{"events.txt", "events mesh", terminal.Screen{}},
		{"events-warnings.json", "events mesh --types Warning -o json", terminal.Screen{}},
		{"events-40.txt", "events mesh", narrow},
		{"events-none.txt", "events ml", terminal.Screen{}},
		{"events-none.yaml", "events ml -o yaml", terminal.Screen{}},
	} {
		code, out, errOut := commandLine(t, server, test.screen, test.args)
		if code != exitFine || errOut != "" {
			t.Errorf("%s: exit code %d: %s", test.args, code, errOut)
		}
		golden(t, test.name, out)
		if test.screen == narrow {
			fits(t, out)
		}
	}
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "events edge"); code != exitFine || !strings.Contains(errOut, "what is on fleet/prod are not shown") {
		t.Errorf("of another cluster: exit code %d: %s", code, errOut)
	}
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "events mesh --types Wrong"); code != exitError || !strings.Contains(errOut, "it must be Normal or Warning") {
		t.Errorf("a wrong type: exit code %d: %s", code, errOut)
	}
	server.Refuse["events"] = http.StatusForbidden
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "events mesh"); code != exitError || !strings.Contains(errOut, "get, list and watch on events") {
		t.Errorf("without rights: exit code %d: %s", code, errOut)
	}
}

// shared is a buffer that is written while it is read.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(data)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A watch goes on after the server has forgotten where it was, and tells nothing
// twice.
func TestEventsAreFollowed(t *testing.T) {
	server := seen(t)
	const event = `{"type":"%TYPE","object":{"apiVersion":"v1","kind":"Event","metadata":{"name":"%NAME","namespace":"mesh","uid":"%NAME","resourceVersion":"%VERSION"},"involvedObject":{"kind":"Pod","namespace":"mesh","name":"%POD"},"type":"Warning","reason":"BackOff","message":"%NAME","lastTimestamp":"2026-12-01T12:00:00Z"}}`
	happens := func(kind, name, version, pod string) string {
		return strings.NewReplacer("%TYPE", kind, "%NAME", name, "%VERSION", version, "%POD", pod).Replace(event)
	}
	server.Watch["events"] = []string{
		happens("ADDED", "new", "8", "istiod-7d9c5b8f6-n2n4v"),
		happens("ADDED", "foreign", "9", "istiod-other"),
		happens("DELETED", "gone", "10", "istiod-7d9c5b8f6-n2n4v"),
		happens("MODIFIED", "changed", "11", "istiod-7d9c5b8f6-n2n4v"),
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`,
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	out, done := &shared{}, make(chan int, 1)
	with := newTool(out, &bytes.Buffer{})
	go func() { done <- with.run(ctx, []string{"events", "mesh", "--watch", "--server", server.URL}) }()
	watches := func() (n int) {
		for _, request := range server.Requests() {
			if strings.Contains(request, "/events?") && strings.Contains(request, "watch=") {
				n++
			}
		}
		return n
	}
	for watches() < 2 {
		select {
		case code := <-done:
			t.Fatalf("it ended with %d: %s", code, out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if code := <-done; code != exitFine {
		t.Errorf("exit code %d", code)
	}
	text := out.String()
	for word, times := range map[string]int{"new": 1, "changed": 1, "foreign": 0, "gone": 0, "Failed to pull image": 1} {
		if got := strings.Count(text, "  "+word); got != times {
			t.Errorf("%q is told %d times:\n%s", word, got, text)
		}
	}
}
