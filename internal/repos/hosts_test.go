// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
)

func TestParseHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, hosts string
		good, bad     []string
		err           string
	}{
		"a Service": {
			reason: "any port of it, by the names that it has in the cluster, and nothing that looks like it", hosts: "source-controller.flux-system.svc",
			good: []string{
				"http://source-controller.flux-system.svc.cluster.local./gitrepository/a/b/c.tar.gz", "http://source-controller.flux-system.svc/x",
				"http://SOURCE-controller.flux-system.svc.cluster.local:9090/x", "https://source-controller.flux-system.svc/x",
			},
			bad: []string{
				"http://source-controller.tenant.svc.cluster.local./x", "http://source-controller.flux-system.svc.evil.example/x",
				"http://source-controller.flux-system/x", "http://user@evil.example/source-controller.flux-system.svc",
				"http://source-controller.flux-system.svc@evil.example/", "http://evil.example#source-controller.flux-system.svc",
				"ftp://source-controller.flux-system.svc/x", "file:///etc/passwd", "http://10.0.0.1/x", "http:///x", "/x", "",
			},
		},
		"a port": {
			reason: "that port alone", hosts: "127.0.0.1:8080,files.example:80",
			good: []string{"http://127.0.0.1:8080/x", "http://files.example/x", "http://files.example:80/x"},
			bad:  []string{"http://127.0.0.1:8081/x", "http://127.0.0.1/x", "https://files.example/x"},
		},
		"an address of version 6": {
			reason: "with and without a port", hosts: "[::1]:80,fd00::1",
			good: []string{"http://[::1]/x", "http://[fd00::1]:99/x"}, bad: []string{"http://[::1]:81/x", "http://[fd00::2]/x"},
		},
		"every host":     {reason: "as one wants", hosts: "*", good: []string{"http://anything.example/x"}},
		"none":           {reason: "nothing could be fetched", err: "it is empty"},
		"every and some": {reason: "one of them was not meant", hosts: "*,a.example", err: "given beside others"},
		"an address":     {reason: "a host has no scheme", hosts: "http://a.example", err: "is no host"},
		"a path":         {reason: "nor a path", hosts: "a.example/x", err: "is no host"},
		"a bad port":     {reason: "a port is a number", hosts: "a.example:http", err: "has a port that is none"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, err := ParseHosts(strings.FieldsFunc(tc.hosts, func(r rune) bool { return r == ',' }))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range tc.good {
				if err := hosts.checkText(address); err != nil {
					t.Errorf("%s: %s: %v", tc.reason, address, err)
				}
			}
			for _, address := range tc.bad {
				want := "artifacts are fetched from " + strings.Join(hosts.list, ", ") + " alone"
				if !strings.HasPrefix(address, "http") {
					want = "the address of the artifact is none of HTTP"
				}
				if err := hosts.checkText(address); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s: %v, want %q", tc.reason, address, err, want)
				}
			}
		})
	}
}

// An artifact at another host than those that are listed is never asked for, be it
// by its address or by a redirect; the next source with the same digest is not
// refused for it.
func TestArtifactsOfOtherHostsAreNotFetched(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	origin := newOrigin(t)
	good := origin.serve("a.tar.gz", archive(t, "base/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"))
	moved := httptest.NewServer(http.RedirectHandler(other.URL+"/a.tar.gz", http.StatusFound))
	t.Cleanup(moved.Close)
	at := func(server string) string { return strings.TrimPrefix(server, "http://") }
	hosts, err := ParseHosts([]string{at(origin.URL), at(moved.URL)})
	if err != nil {
		t.Fatal(err)
	}
	store := newStore(t, Options{Hosts: hosts})
	for _, server := range []string{other.URL, moved.URL} {
		forged := good
		forged.URL = server + "/a.tar.gz"
		_, err := store.Directory(t.Context(), forged, "./base", builds.Build{})
		var content *directories.ContentError
		if !errors.As(err, &content) || content.Reason != v1alpha1.ReasonArtifactRefused {
			t.Fatalf("%s: %v", server, err)
		}
		for _, word := range []string{at(other.URL), "--artifact-hosts"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the message lacks %q: %v", word, err)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the other host was asked %d times", n)
	}
	if _, err := store.Directory(t.Context(), good, "./base", builds.Build{}); err != nil {
		t.Errorf("the same digest at a host that is listed: %v", err)
	}
}

// A source that names the digest of another's artifact at a host that is not listed is refused
// alone, also while the artifact is fetched.
func TestRefusedHostIsItsSourcesAlone(t *testing.T) {
	data := archive(t, "base/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n")
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	hosts, err := ParseHosts([]string{strings.TrimPrefix(server.URL, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	store := newStore(t, Options{Hosts: hosts})
	good := Artifact{URL: server.URL + "/a.tar.gz", Digest: digest.FromBytes(data).String(), Size: int64(len(data))}
	forged := good
	forged.URL = "http://other.example/a.tar.gz"
	fetched := make(chan error, 1)
	go func() {
		_, err := store.Directory(t.Context(), good, "./base", builds.Build{})
		fetched <- err
	}()
	<-asked
	var content *directories.ContentError
	if _, err := store.Directory(t.Context(), forged, "./base", builds.Build{}); !errors.As(err, &content) || !strings.Contains(err.Error(), `the artifact is at the host "other.example"`) {
		t.Errorf("the forged one: %v", err)
	}
	close(answer)
	if err := <-fetched; err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestIsBeside(t *testing.T) {
	present := &Artifact{URL: "http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/b.tar.gz"}
	for address, want := range map[string]bool{
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/a.tar.gz":            true,
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/x/a.tar.gz":          false,
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/other/a.tar.gz":             false,
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/../other/a.tar.gz":   false,
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/..%2fother/a.tar.gz": false,
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons%2fa.tar.gz":          false,
		"https://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/a.tar.gz":           false,
		"http://source-controller.flux-system.svc.cluster.local.:81/gitrepository/flux-system/addons/a.tar.gz":         false,
		"http://me@source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/addons/a.tar.gz":         false,
		"http://evil.example/gitrepository/flux-system/addons/a.tar.gz":                                                false,
		"": false, "://": false,
	} {
		if got := IsBeside(&v1alpha1.ArtifactReference{URL: address, Path: "./base/"}, "./base", present); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	same := &v1alpha1.ArtifactReference{URL: present.URL, Path: "./other"}
	if IsBeside(same, "./base", present) || IsBeside(nil, "./base", present) || IsBeside(same, "./other", nil) {
		t.Error("another directory, no artifact, or no source")
	}
}
