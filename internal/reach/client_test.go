// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/test/hostile"
)

var (
	loopback = Allowed{Ranges: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	// held is enough for what the tests may keep.
	held       = int64(16 << 20)
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

func start(t *testing.T) *hostile.APIServer {
	t.Helper()
	s := hostile.Start()
	t.Cleanup(s.Close)
	return s
}

func configOf(s *hostile.APIServer) *rest.Config {
	return &rest.Config{Host: s.URL(), BearerToken: hostile.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.Authority()}}
}

// connect returns a connection to a server, and a client of it.
func connect(t *testing.T, s *hostile.APIServer) (*Connection, dynamic.NamespaceableResourceInterface) {
	t.Helper()
	return connectWith(t, s, held)
}

// connectWith is connect with lists and watches that may bring more, or less.
func connectWith(t *testing.T, s *hostile.APIServer, most int64) (*Connection, dynamic.NamespaceableResourceInterface) {
	t.Helper()
	c, err := connectHolding(configOf(s), loopback, nil, most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Web.CloseIdleConnections)
	client, err := dynamic.NewForConfigAndClient(c.Config, c.Web)
	if err != nil {
		t.Fatal(err)
	}
	return c, client.Resource(namespaces)
}

func get(c *Connection, path string) (int64, error) {
	answer, err := c.Web.Get(c.Config.Host + path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	return io.Copy(io.Discard, answer.Body)
}

// No request of any kind goes where a redirect leads, and no credentials do.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	s := start(t)
	c, client := connect(t, s)
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a"}}}
	for _, to := range []string{elsewhere.URL, s.URL() + "/elsewhere", "/elsewhere", "//" + strings.TrimPrefix(elsewhere.URL, "http://")} {
		for _, code := range []int{301, 302, 303, 307, 308, 300, 399} {
			s.Do("/", hostile.Redirect(code, to))
			s.Do("/elsewhere", func(http.ResponseWriter, *http.Request) { followed.Add(1) })
			for what, ask := range map[string]func(context.Context) error{
				"a look": func(context.Context) error { _, err := get(c, "/version"); return err },
				"get":    func(ctx context.Context) error { _, err := client.Get(ctx, "a", metav1.GetOptions{}); return err },
				"list":   func(ctx context.Context) error { _, err := client.List(ctx, metav1.ListOptions{}); return err },
				"watch":  func(ctx context.Context) error { _, err := client.Watch(ctx, metav1.ListOptions{}); return err },
				"create": func(ctx context.Context) error { _, err := client.Create(ctx, obj, metav1.CreateOptions{}); return err },
				"patch": func(ctx context.Context) error {
					_, err := client.Patch(ctx, "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
					return err
				},
				"delete": func(ctx context.Context) error { return client.Delete(ctx, "a", metav1.DeleteOptions{}) },
			} {
				if err := ask(t.Context()); !errors.Is(err, ErrRedirect) {
					t.Errorf("%s, with %d to %s: the error is %v", what, code, to, err)
				}
			}
		}
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// allocated returns how much was allocated meanwhile, in MiB.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20
}

// A cluster that answers without an end costs no more than the limit of what was
// asked for, also where a few bytes unpack to many.
func TestFloodsAreNotRead(t *testing.T) {
	const flood = 256 << 20
	s := start(t)
	c, client := connectWith(t, s, maxHeld)
	// Without the limits it does cost that.
	bare, err := rest.HTTPClientFor(configOf(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bare.CloseIdleConnections)
	s.Do("/", hostile.Flood(`{"items":[`, " ", flood/4))
	if took := allocated(func() {
		if answer, err := bare.Get(s.URL() + "/version"); err == nil {
			_, _ = io.ReadAll(answer.Body)
			_ = answer.Body.Close()
		}
	}); took < flood/4>>20 {
		t.Fatalf("without limits %d MiB were allocated: the server does no harm", took)
	}
	s.Do("/", hostile.Flood(`{"items":[`, " ", flood))
	list := func(ctx context.Context) error { _, err := client.List(ctx, metav1.ListOptions{}); return err }
	for _, test := range []struct {
		what  string
		ask   func(context.Context) error
		limit string
		most  uint64 // MiB that reading up to the limit may allocate
	}{
		{"a version", func(context.Context) error { _, err := get(c, "/version"); return err }, "64 KiB", 16},
		{"kinds", func(context.Context) error { _, err := get(c, "/apis/example.com/v1"); return err }, "16384 KiB", 48},
		{"an object", func(ctx context.Context) error { _, err := client.Get(ctx, "a", metav1.GetOptions{}); return err }, "3072 KiB", 64},
		{"a page", list, "32768 KiB", 256},
	} {
		took := allocated(func() { err = test.ask(t.Context()) })
		if !errors.As(err, new(*TooLargeError)) || !strings.Contains(err.Error(), test.limit) {
			t.Errorf("%s: the error is %v", test.what, err)
		}
		if took > test.most {
			t.Errorf("%s: %d MiB were allocated of an answer of %d MiB, want %d at most", test.what, took, flood>>20, test.most)
		}
		t.Logf("%s: %d MiB", test.what, took)
	}
	s.Do("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<40))
		w.WriteHeader(http.StatusOK)
	})
	if _, err := get(c, "/version"); !errors.As(err, new(*TooLargeError)) || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("an answer that says to be a TiB gives %v", err)
	}
}

// What a cluster says of an error is short and printable, wherever it goes.
func TestErrorsAreShort(t *testing.T) {
	s := start(t)
	_, client := connect(t, s)
	s.Do("/", hostile.Failure(http.StatusUnprocessableEntity, "Invalid", "no\n\x1b[31mforged\u202E "+strings.Repeat("x", 1<<20)))
	_, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if !apierrors.IsInvalid(err) || len(err.Error()) > maxErrorText || !strings.HasPrefix(err.Error(), "no [31mforged xxx") {
		t.Errorf("the error has %d bytes: %.60q", len(err.Error()), err.Error())
	}
	s.Do("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "INTERNAL\n\x1b[2J"+strings.Repeat("y", 1<<20))
	})
	if _, err = client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "INTERNAL") || len(err.Error()) > 2*maxErrorText || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("the error has %d bytes: %.90q", len(err.Error()), err.Error())
	}
	s.Do("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "86400")
		hostile.Failure(http.StatusTooManyRequests, "TooManyRequests", "later")(w, r)
	})
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err = client.Get(patient, "a", metav1.GetOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the error is %v: a day is waited for", err)
	}
}

// A list that never ends is given up, whether its pages hold something or not.
func TestEndlessListsEnd(t *testing.T) {
	for what, size := range map[string]int{"small pages": 0, "large pages": 1 << 20} {
		t.Run(what, func(t *testing.T) {
			s := start(t)
			_, client := connect(t, s)
			s.Do("/api/v1/namespaces", hostile.EndlessList(func(page int64) string {
				return hostile.Object("v1", "Namespace", fmt.Sprint("a", page), size)
			}))
			_, err := listPaged(t.Context(), metav1.ListOptions{}, func(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
				return client.List(ctx, options)
			})
			if !errors.As(err, new(*TooLargeError)) || !strings.Contains(err.Error(), "lists and watches of more than 16384 KiB") {
				t.Errorf("the error is %v", err)
			}
			if asked := s.Asked("/api/v1/namespaces"); int64(asked) > held/minPage+2 {
				t.Errorf("%d pages were asked for", asked)
			}
		})
	}
}

// A watch brings events of a limited size, and as many as may be kept.
func TestWatchesEnd(t *testing.T) {
	s := start(t)
	_, client := connect(t, s)
	for _, test := range []struct {
		what string
		size int
		most int64
		says string
	}{
		{"a large event", 4 << 20, 0, "an event of more than 3072 KiB"},
		{"events without an end", 1 << 20, held >> 20, "lists and watches of more than 16384 KiB"},
	} {
		var sent atomic.Int64
		s.Do("/api/v1/namespaces?watch", hostile.Events(func(event int64) string {
			sent.Store(event)
			return hostile.Object("v1", "Namespace", fmt.Sprint("a", event), test.size)
		}))
		watching, err := client.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		taken, failure := int64(0), ""
		for event := range watching.ResultChan() {
			if failure = ""; event.Type == "ERROR" {
				failure = fmt.Sprint(event.Object)
			} else {
				taken++
			}
		}
		if !strings.Contains(failure, test.says) || taken > test.most || taken < test.most/2 {
			t.Errorf("%s: %d were taken, want up to %d; an error at the end: %q", test.what, taken, test.most, failure)
		}
	}
	// Whoever lists again, as a reflector then does, counts anew.
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	s.Do("/api/v1/namespaces?watch", hostile.Events(func(event int64) string {
		if event > 2 {
			return ""
		}
		return hostile.Object("v1", "Namespace", "a", 1000)
	}))
	watching, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for event := range watching.ResultChan() {
		if event.Type == "ERROR" {
			t.Errorf("after a list the watch brings %v", event.Object)
		}
	}
}

// An address that is not allowed is not dialled, whatever name leads there.
func TestOnlyAllowedAddressesAreDialled(t *testing.T) {
	s := start(t)
	named := strings.Replace(s.URL(), "127.0.0.1", "localhost", 1)
	config := configOf(s)
	const refusal = "is a loopback address, which is refused"
	for _, allowed := range []Allowed{{}, {Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, {Ranges: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}} {
		var refused *RefusedError
		config.Host = s.URL()
		if _, err := Connect(config, allowed, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%v: the error is %v", allowed, err)
		}
		config.Host = named
		c, err := Connect(config, allowed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Locate(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%v: the error of looking is %v", allowed, err)
		}
		if _, err := get(c, "/version"); !errors.As(err, &refused) || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%v: the error of asking is %v", allowed, err)
		}
	}
	if n := s.Dials(); n > 0 {
		t.Errorf("%d connections came", n)
	}
	c, err := Connect(config, loopback, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Locate(t.Context()); err != nil {
		t.Error(err)
	}
	_, _ = get(c, "/version") // its certificate is for another name
	if s.Dials() == 0 {
		t.Error("no connection came, though it is allowed")
	}
}
