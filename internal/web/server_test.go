// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
	"github.com/strata-project/strata/internal/web"
	"github.com/strata-project/strata/internal/web/webtest"
)

// layers returns a snapshot of layers that are in a state.
func layers(t testing.TB, state string, names ...string) *snapshot.Snapshot {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		ready := map[string]string{"Deployed": "True"}[state]
		if ready == "" {
			ready = "False"
		}
		fmt.Fprintf(&text, `---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %s, generation: 1}
spec: {version: "1"}
status: {state: %s, observedGeneration: 1, conditions: [{type: Ready, status: "%s", reason: X, message: %q}]}
`, name, state, ready, "message of "+name)
	}
	return snapshottest.New(t, text.String())
}

func served(t testing.TB, cluster web.Cluster) *httptest.Server {
	t.Helper()
	page, err := web.New(web.Options{Cluster: cluster, Program: webtest.Program, Name: "main"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// message is one of a stream.
type message struct {
	Set  map[string]json.RawMessage `json:"set"`
	Drop []string                   `json:"drop"`
}

// reader reads messages of a stream.
type reader struct {
	*testing.T
	lines *bufio.Scanner
}

// stream opens a stream, which ends with the test.
func stream(t *testing.T, server *httptest.Server, query string) reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/stream?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("the stream is answered with %d, %s", answer.StatusCode, kind)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	return reader{t, lines}
}

func (r reader) next() message {
	r.Helper()
	for r.lines.Scan() {
		if data, is := strings.CutPrefix(r.lines.Text(), "data: "); is {
			var m message
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				r.Fatal(err)
			}
			return m
		}
	}
	r.Fatalf("the stream has ended: %v", r.lines.Err())
	return message{}
}

// A stream has everything once, and then what differs alone.
func TestStreamHasChangesOnly(t *testing.T) {
	cluster := webtest.Play(layers(t, "Deployed", "a", "b"), nil)
	r := stream(t, served(t, cluster), "")
	first := r.next()
	for _, part := range []string{"verdict", "graph", "cluster", "node/a", "node/b"} {
		if first.Set[part] == nil {
			t.Errorf("at first there is no %s: %v", part, first)
		}
	}
	cluster.Set(layers(t, "Deployed", "a", "c"))
	second := r.next()
	if len(second.Set) != 2 || second.Set["node/c"] == nil || second.Set["graph"] == nil || fmt.Sprint(second.Drop) != "[node/b]" {
		t.Errorf("then: %v", second)
	}
	cluster.Break(&live.Break{Since: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Err: errors.New("no route")})
	if third := r.next(); len(third.Set) != 1 || string(third.Set["stale"]) != `{"since":"2026-12-01T12:00:00Z","error":"no route"}` {
		t.Errorf("a cluster that is away: %v", third)
	}
	cluster.Break(nil)
	if fourth := r.next(); fmt.Sprint(fourth.Drop) != "[stale]" {
		t.Errorf("one that is back: %v", fourth)
	}
}

// However many layers there are, and however long what they say, what is sent has an end.
func TestStreamsAreBounded(t *testing.T) {
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("layer-%05d", i))
	}
	s := layers(t, "Failed", names...)
	long := strings.Repeat("<script>x</script>", 6000)
	for _, layer := range s.Layers {
		layer.Status.Conditions[0].Message = long
	}
	for i := range 1000 {
		s.Layers[7].Status.Resources = append(s.Layers[7].Status.Resources, v1alpha1.Resource{
			Namespace: "ns", Name: fmt.Sprintf("r-%d", i), Kind: "helmreleases.helm.toolkit.fluxcd.io", Status: "Deployed",
		})
	}
	cluster := webtest.Play(s, nil)
	first := stream(t, served(t, cluster), "layer=layer-00007").next()
	nodes, size := 0, 0
	for name, text := range first.Set {
		size += len(name) + len(text)
		if strings.HasPrefix(name, "node/") {
			nodes++
		}
	}
	if nodes != 200 || size > 300_000 {
		t.Errorf("%d layers and %d bytes are sent", nodes, size)
	}
	if text := string(first.Set["layer"]); !strings.Contains(text, `"left":["900 releases"]`) {
		t.Errorf("the releases that are left out are not said: %.300s", text)
	}
	if text := string(first.Set["graph"]); !strings.Contains(text, "and 9800 more: 9800 failed") {
		t.Errorf("what is left out is not said: %s", text)
	}
}

// At most so many tabs are served, and one that goes makes room.
func TestStreamsAreCounted(t *testing.T) {
	server := served(t, webtest.Play(layers(t, "Deployed", "a"), nil))
	var cancels []context.CancelFunc
	open := func() int {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		end := func() { cancel(); _ = answer.Body.Close() }
		if answer.StatusCode != http.StatusOK {
			end()
		}
		cancels = append(cancels, end)
		return answer.StatusCode
	}
	served := 0
	for open() == http.StatusOK {
		served++
		if served > 1000 {
			t.Fatal("there is no end to it")
		}
	}
	if served != 256 {
		t.Errorf("%d tabs are served", served)
	}
	for _, cancel := range cancels[:10] {
		cancel()
	}
	for deadline := time.Now().Add(time.Minute); open() != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("tabs that have gone leave no room")
		}
	}
	for _, cancel := range cancels {
		cancel()
	}
}

// A tab that reads slowly gets fewer and larger changes, and what there is in the end:
// nothing is kept for it meanwhile.
func TestSlowTabGetsFewerChanges(t *testing.T) {
	names := make([]string, 150)
	for i := range names {
		names[i] = fmt.Sprintf("layer-%03d-%s", i, strings.Repeat("x", 40))
	}
	states := []*snapshot.Snapshot{layers(t, "Failed", names...), layers(t, "ApplyPending", names...)}
	cluster := webtest.Play(layers(t, "Deployed", names...), nil)
	server := served(t, cluster)
	line, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = line.Close() }()
	if err := line.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(line, "GET /stream HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(line)
	if _, err := read.ReadString('{'); err != nil { // The first message has begun.
		t.Fatal(err)
	}
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	const changes = 400
	for i := range changes {
		cluster.Set(states[i%2])
		if i%20 == 0 {
			time.Sleep(20 * time.Millisecond) // As long as it takes to make what is shown.
		}
	}
	grown := int64(held()) - int64(before)
	cluster.Set(layers(t, "Hold", names...))
	if err := line.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	messages, last := 0, ""
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			messages++
			if strings.Contains(lines.Text(), `"state":"Hold"`) {
				last = "Hold"
				break
			}
		}
	}
	if last != "Hold" || messages > changes/4 || grown > 8<<20 {
		t.Errorf("after %d changes it gets %d messages, the last of state %q (%v); %d bytes are held", changes, messages, last, lines.Err(), grown)
	}
}

func TestFilesAndPaths(t *testing.T) {
	server := served(t, webtest.Play(layers(t, "Deployed", "a"), nil))
	get := func(method, path string, headers ...string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Opaque = "//" + request.URL.Host + path // As it is: a client would tidy the path up.
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, body
	}
	for path, want := range map[string]int{
		"/": 200, "/layers/a": 200, "/layers/" + strings.Repeat("x", 300): 200, "/app.js": 200, "/app.css": 200, "/icon-well.svg": 200, "/clusters": 200,
		"/server.go": 404, "/dist/app.js": 404, "/../server.go": 404, "/..%2fserver.go": 404, "/%2e%2e/%2e%2e/etc/passwd": 404, "//etc/passwd": 404,
		"/stream?layer=" + strings.Repeat("x", 300): 400,
	} {
		answer, body := get(http.MethodGet, path)
		if answer.StatusCode != want {
			t.Errorf("%s is answered with %d, want %d", path, answer.StatusCode, want)
		}
		for header, words := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if !strings.Contains(answer.Header.Get(header), words) {
				t.Errorf("%s has no %s", path, header)
			}
		}
		if bytes.Contains(body, []byte("root:x:")) || bytes.Contains(body, []byte("package web")) {
			t.Errorf("%s shows a file of this machine", path)
		}
	}
	if answer, _ := get(http.MethodPost, "/"); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d", answer.StatusCode)
	}
	answer, body := get(http.MethodGet, "/app.js", "Accept-Encoding", "gzip")
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil || answer.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("the script is not compressed: %v", err)
	}
	if text, err := io.ReadAll(plain); err != nil || len(text) < 10_000 {
		t.Errorf("the script has %d bytes: %v", len(text), err)
	}
	// What a page on a slow line has to load is bounded.
	if len(body) > 60_000 {
		t.Errorf("the script has %d bytes", len(body))
	}
	if again, _ := get(http.MethodGet, "/app.js", "Accept-Encoding", "gzip", "If-None-Match", answer.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("what has not changed is sent again: %d", again.StatusCode)
	}
}

// A search finds what is shown: layers with other labels are none of it.
func TestSearch(t *testing.T) {
	s := layers(t, "Deployed", "mesh", "a-mesh", "base", "mesh-of-others")
	for _, layer := range s.Layers {
		layer.Labels = map[string]string{"mine": strconv.FormatBool(layer.Name != "mesh-of-others")}
	}
	cluster := webtest.Play(s, nil)
	cluster.Want(labels.SelectorFromSet(labels.Set{"mine": "true"}))
	server := served(t, cluster)
	for query, want := range map[string]string{
		"MES":  `[{"name":"mesh","fares":"Well"},{"name":"a-mesh","fares":"Well"}]`,
		"":     `[{"name":"a-mesh","fares":"Well"},{"name":"base","fares":"Well"},{"name":"mesh","fares":"Well"}]`,
		"none": `[]`,
	} {
		answer, err := http.Get(server.URL + "/search?q=" + query)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("%q finds %s, want %s", query, body, want)
		}
	}
}
