// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/strata"
)

// canaries are words that are in Secrets and nowhere else, by where each was planted.
type canaries map[string]string

// plant makes a word that nothing else says, for one place.
func (c canaries) plant(place string) string {
	letters := make([]byte, 24)
	for i := range letters {
		letters[i] = byte('A' + rand.IntN(26))
	}
	if _, planted := c[place]; planted {
		panic("two canaries are planted in " + place)
	}
	c[place] = string(letters)
	return c[place]
}

// head is how much of a word is enough to know it: YAML's own errors end a value after
// so many letters.
const head = 7

// guises returns how a word may look in a text, by what makes it so.
func guises(word string) map[string]string {
	found := map[string]string{
		"as it is": word[:head],
		"in hex":   hex.EncodeToString([]byte(word)),
		"as bytes": strings.Trim(fmt.Sprintf("%d", []byte(word)), "[]"),
	}
	// In base64 a word looks in three ways, by how many bytes come before it. What
	// stands at its ends is made of its neighbours, too.
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + word + "--"))
		found[fmt.Sprintf("in base64 after %d bytes", before)] = text[4 : 4+len(word)]
	}
	return found
}

// in returns which of the canaries a text has, and how they look there.
func (c canaries) in(text string) []string {
	var found []string
	for place, word := range c {
		for guise, looks := range guises(word) {
			if at := strings.Index(text, looks); at >= 0 {
				found = append(found, fmt.Sprintf("%s, %s: ...%s...", place, guise, text[max(0, at-200):min(len(text), at+200)]))
			}
		}
	}
	slices.Sort(found)
	return found
}

// The control: a canary is found in whatever guise it leaves.
func TestCanariesAreFound(t *testing.T) {
	c := canaries{}
	word := c.plant("a Secret")
	encoded := base64.StdEncoding.EncodeToString
	for name, text := range map[string]string{
		"plain":               `cannot use "` + word + `"`,
		"cut by YAML":         "cannot unmarshal !!str `" + word[:head] + "...` into map",
		"alone":               `{"data":{"password":"` + encoded([]byte(word)) + `"}}`,
		"in a kubeconfig":     encoded([]byte("users: [{user: {token: " + word + "}}]")),
		"one byte further":    encoded([]byte("users: [{user: {token:  " + word + "}}]")),
		"two bytes further":   encoded([]byte("users: [{user: {token:   " + word + "}}]")),
		"a map that is shown": fmt.Sprint(map[string][]byte{"password": []byte(word)}),
		"bytes in hex":        fmt.Sprintf("%x", word),
	} {
		if got := c.in(text); len(got) == 0 {
			t.Errorf("%s: nothing is found in %s", name, text)
		}
	}
	if got := c.in(strings.ToLower(word) + canaries{}.plant("another")); len(got) > 0 {
		t.Errorf("found is what is not there: %v", got)
	}
}

// aviary is a controller as it ships, whose log says all that it can be made to say,
// with a second API server.
type aviary struct {
	*fleet
	canaries
	controller *strata.Controller
	box        *postbox
	files      map[string]string
}

// newAviary makes all but the controller, which start brings.
func newAviary(t *testing.T) *aviary {
	t.Helper()
	a := &aviary{fleet: newIdleFleet(t), canaries: canaries{}, files: map[string]string{}}
	a.box, _ = newPostbox(a.fixture)
	return a
}

// start runs the controller until the test ends.
func (a *aviary) start() {
	a.Helper()
	binary, err := strata.Build(a.ctx, a.TempDir())
	a.must(err)
	a.controller, err = strata.Prepare(strata.Options{
		Binary: binary, Kubeconfig: plane.Kubeconfig(), Dir: a.TempDir(),
		Args: []string{
			"--log-level=trace", "--sync-period=1s", "--watch-label-selector=test=" + a.namespace, "--runtime-namespace=" + a.namespace,
			"--layer-kinds=*", "--events-addr=" + strings.Replace(a.box.URL, "://", "://robot:"+a.plant("the receiver's password")+"@", 1) + "/?token=" + a.plant("the receiver's token"),
		},
	})
	a.must(err)
	a.Cleanup(a.controller.Close)
	a.must(a.controller.Start(a.ctx))
	stopped := false
	a.cancel = func() {
		if stopped {
			return
		}
		stopped = true
		a.ended <- a.controller.Stop(patience)
	}
	a.Cleanup(func() { a.cancel(); a.stopped() })
}

// shownKinds are what people are shown, and what the controller writes beside Secrets.
var shownKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("AddonsLayer"), v1alpha1.GroupVersion.WithKind("RemoteCluster"), v1alpha1.GroupVersion.WithKind("HelmApplication"),
	v1alpha1.GroupVersion.WithKind("ApplicationBundle"), v1alpha1.GroupVersion.WithKind("Platform"),
	{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmRepository"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Namespace"},
}

// listed returns all objects of a kind as JSON.
func (a *aviary) listed(kind schema.GroupVersionKind) string {
	a.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	a.must(a.client.List(a.ctx, list))
	text, err := json.Marshal(list)
	a.must(err)
	return string(text)
}

// collect returns all that has left the controller but in Secrets, by where it went.
func (a *aviary) collect() map[string]string {
	a.Helper()
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.controller.MetricsURL, http.NoBody)
	a.must(err)
	response, err := http.DefaultClient.Do(request)
	a.must(err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	a.must(err)
	a.cancel() // what is still to be said is said before it ends
	a.stopped()
	log, err := os.ReadFile(a.controller.Log())
	a.must(err)
	left := map[string]string{
		"metrics": string(metrics), "log": string(log), "notifications": a.box.text(),
		"events": a.listed(schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}),
	}
	for _, kind := range shownKinds {
		left[kind.Kind] = a.listed(kind)
	}
	return left
}

// manifest adds a file to the directory of a layer.
func (a *aviary) manifest(layer, text string) {
	a.Helper()
	a.files[layer+"/"+fmt.Sprintf("%d.yaml", len(a.files))] = text
}

// secretWith is the manifest of a Secret of a layer's name, with more lines.
func (a *aviary) secretWith(name, lines string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: %s}\n%s\n", a.namespace, name, lines)
}
