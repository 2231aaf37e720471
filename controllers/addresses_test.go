// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/signals"
)

// postbox is a notification-controller, which keeps what it is sent.
type postbox struct {
	*httptest.Server
	mu   sync.Mutex
	sent strings.Builder
}

// newPostbox returns one that a controller sends to.
func newPostbox(f *fixture) (*postbox, func(*AddonsLayerReconciler)) {
	f.Helper()
	box := &postbox{}
	box.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		box.mu.Lock()
		defer box.mu.Unlock()
		box.sent.Write(body)
	}))
	f.Cleanup(box.Close)
	sender, err := signals.NewSender(signals.SenderOptions{URL: box.URL, Log: logr.Discard()})
	f.must(err)
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	go func() { _ = sender.Start(ctx) }()
	return box, func(r *AddonsLayerReconciler) { r.Notifier = sender }
}

func (b *postbox) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent.String()
}

// eventsOf returns all events of a layer as the API server has them.
func (f *fixture) eventsOf(layer string) string {
	f.Helper()
	list := &eventsv1.EventList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace("default")))
	var text strings.Builder
	for _, event := range list.Items {
		if event.Regarding.Name == f.name(layer) {
			data, err := json.Marshal(event)
			f.must(err)
			text.Write(data)
		}
	}
	return text.String()
}

// signature signs the addresses of these tests.
const signature = "X-Amz-Signature=s3cr3t-s1gn4tur3"

// sign has the source's artifact lie at another address.
func (f *fixture) sign(url string) {
	f.Helper()
	source := &sourcev1.GitRepository{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "addons"}, source))
	source.Status.Artifact.URL = url
	f.must(f.client.Status().Update(f.ctx, source))
}

// Whatever goes wrong at an address that is signed, neither the status of the layer,
// nor its events, nor what people are sent have the signature, or a password.
func TestSignedAddressesStayInside(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	leads := func(to string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, url := range map[string]string{
		"nobody answers":          gone.URL + "/a.tar.gz?" + signature,
		"a redirect for ever":     leads("?"+signature) + "/a.tar.gz?" + signature,
		"a redirect to nobody":    leads(gone.URL+"/b?"+signature) + "/a.tar.gz",
		"a redirect that is none": leads("http://u:s3cr3t-s1gn4tur3/%zz?"+signature) + "/a.tar.gz",
		"a password":              strings.Replace(gone.URL, "://", "://robot:s3cr3t-s1gn4tur3@", 1) + "/a.tar.gz",
		"no address":              "http://[::1/a?" + signature,
	} {
		t.Run(name, func(t *testing.T) {
			f := newBareFixture(t)
			box, option := newPostbox(f)
			f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
			f.sign(url)
			f.start(nil, option)
			f.layer("base")
			f.reason("base", v1alpha1.ReasonArtifactFailed, "cannot fetch artifact")
			f.eventually("it is told", func() error {
				if told := f.eventsOf("base"); !strings.Contains(told, v1alpha1.ReasonArtifactFailed) && !strings.Contains(told, "cannot fetch artifact") {
					return fmt.Errorf("the events are %s", told)
				}
				if !strings.Contains(box.text(), "cannot fetch artifact") {
					return fmt.Errorf("what was sent is %s", box.text())
				}
				return nil
			})
			status, err := json.Marshal(f.get("base"))
			f.must(err)
			for what, text := range map[string]string{"status": string(status), "events": f.eventsOf("base"), "notifications": box.text()} {
				if strings.Contains(text, "s3cr3t") {
					t.Errorf("the %s have the secret: %s", what, text)
				}
			}
		})
	}
}

// What was deployed from a signed address is not found by it again: the status keeps
// what identifies the artifact, and no address.
func TestSignedAddressesAreNotKept(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.sign(f.files.URL + "/main@sha1:1.tar.gz?" + signature)
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	layer := f.get("base")
	data, err := json.Marshal(layer)
	f.must(err)
	if strings.Contains(string(data), "s3cr3t") {
		t.Errorf("the status has the signature: %s", data)
	}
	if entry := layer.Status.History[0]; entry.Artifact == nil || entry.Artifact.URL != "" || entry.Artifact.Digest == "" || entry.Artifact.Path != "./base" {
		t.Errorf("the history says of the artifact %+v", entry.Artifact)
	}
}
