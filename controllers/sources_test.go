// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/test/controlplane"
)

func TestObservedSource(t *testing.T) {
	stored := map[string]any{"url": "http://a", "revision": "r", "digest": "sha256:d", "lastUpdateTime": "2026-01-02T03:04:05Z", "size": int64(7)}
	condition := func(kind, status, message string, generation int64) any {
		return map[string]any{"type": kind, "status": status, "message": message, "observedGeneration": generation}
	}
	artifact := &repos.Artifact{URL: "http://a", Revision: "r", Digest: "sha256:d", Size: 7}
	current := layers.Source{Generation: 2, ObservedGeneration: 2, ArtifactGeneration: 2, Revision: "r", Digest: "sha256:d", URL: "http://a", Ready: true}
	with := func(change func(*layers.Source)) layers.Source {
		changed := current
		change(&changed)
		return changed
	}
	ready := condition("Ready", "True", "stored", 2)
	inStorage := condition("ArtifactInStorage", "True", "stored", 2)
	for name, tc := range map[string]struct {
		reason   string
		kind     string
		spec     map[string]any
		status   map[string]any
		want     layers.Source
		artifact *repos.Artifact
	}{
		"git": {
			"all is as it should be", "GitRepository", nil,
			map[string]any{"observedGeneration": int64(2), "artifact": stored, "conditions": []any{inStorage, ready}},
			current, artifact,
		},
		"new": {
			"nothing has looked at it", "OCIRepository", nil,
			map[string]any{"observedGeneration": int64(-1)},
			layers.Source{Generation: 2, ObservedGeneration: -1},
			nil,
		},
		"earlier generation": {
			"the artifact is of another specification and must not be read", "Bucket", nil,
			map[string]any{"observedGeneration": int64(1), "artifact": stored, "conditions": []any{ready}},
			with(func(s *layers.Source) { s.ObservedGeneration, s.ArtifactGeneration = 1, 0 }), nil,
		},
		"suspended": {
			"source-controller counts the generation as seen and fetches nothing", "GitRepository",
			map[string]any{"suspend": true},
			map[string]any{"observedGeneration": int64(2), "artifact": stored, "conditions": []any{condition("ArtifactInStorage", "True", "stored", 1), ready}},
			with(func(s *layers.Source) { s.ArtifactGeneration, s.Suspended = 1, true }), artifact,
		},
		"failing": {
			"the last artifact is still there", "OCIRepository", nil,
			map[string]any{"observedGeneration": int64(2), "artifact": stored, "conditions": []any{inStorage, condition("Ready", "False", "no signature", 2)}},
			with(func(s *layers.Source) { s.Ready, s.Message = false, "no signature" }), artifact,
		},
		"fetching": {
			"a source that is being looked at is not failing, and its steps are no news to its layers", "OCIRepository", nil,
			map[string]any{"observedGeneration": int64(2), "artifact": stored, "conditions": []any{inStorage, condition("Ready", "Unknown", "building artifact", 2)}},
			current, artifact,
		},
		"external": {
			"its status has no observedGeneration, so what it holds is current", "ExternalArtifact", nil,
			map[string]any{"artifact": stored, "conditions": []any{ready}},
			with(func(s *layers.Source) { s.ArtifactGeneration = 0 }), artifact,
		},
		"external without conditions": {
			"they are optional", "ExternalArtifact", nil,
			map[string]any{"artifact": stored},
			with(func(s *layers.Source) { s.ArtifactGeneration = 0 }), artifact,
		},
		"external without artifact": {
			"whoever makes it has not put one there", "ExternalArtifact", nil,
			map[string]any{},
			layers.Source{Generation: 2, ObservedGeneration: 2},
			nil,
		},
		"no digest": {
			"what cannot be verified is no artifact", "ExternalArtifact", nil,
			map[string]any{"artifact": map[string]any{"url": "http://a", "revision": "r"}},
			layers.Source{Generation: 2, ObservedGeneration: 2, Revision: "r", URL: "http://a", Ready: true},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": tc.kind, "metadata": map[string]any{"name": "a", "generation": int64(2)},
				"spec": tc.spec, "status": tc.status,
			}}
			parsed, err := repos.ParseSource(obj)
			if err != nil {
				t.Fatal(err)
			}
			got, found := parsed.Observed()
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.artifact, found); diff != "" {
				t.Errorf("%s: artifact (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := repos.ParseSource(&unstructured.Unstructured{Object: map[string]any{"kind": "Bucket", "status": "gone"}}); err == nil || !strings.Contains(err.Error(), "cannot understand Bucket") {
		t.Errorf("a status that is no object: %v", err)
	}
}

// put makes files the artifact of an ExternalArtifact, as another controller
// does.
func (f *fixture) put(name, revision string, files map[string]string) {
	f.Helper()
	path := "/" + name + revision + ".tar.gz"
	digest, size := f.pack(path, files)
	external := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	f.must(client.IgnoreAlreadyExists(f.client.Create(f.ctx, external)))
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(external), external))
	external.Status.Artifact = &fluxmeta.Artifact{
		URL: f.files.URL + path, Path: path, Revision: revision, Digest: digest, LastUpdateTime: metav1.Now(), Size: &size,
	}
	f.must(f.client.Status().Update(f.ctx, external))
}

// says waits until a layer's Ready message contains words.
func (f *fixture) says(layer string, words ...string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("layer %s says %q", layer, words), func() error {
		found = f.get(layer)
		ready := meta.FindStatusCondition(found.Status.Conditions, "Ready")
		for _, word := range words {
			if ready == nil || !strings.Contains(ready.Message, word) {
				return fmt.Errorf("it is %+v", ready)
			}
		}
		return nil
	})
	return found
}

// withdrawable returns what takes the definition of ExternalArtifacts away, and what
// brings it back, which the end of the test does at the latest.
func withdrawable(t *testing.T) (withdraw, restore func()) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	crds, err := controlplane.FluxCRDs()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(crds, "*externalartifacts*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the definition is in %v, %v", files, err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("externalartifacts.source.toolkit.fluxcd.io")
	admin, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	withdraw = func() {
		t.Helper()
		if err := admin.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		if err := controlplane.WaitFor(t.Context(), patience, func(ctx context.Context) error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); client.IgnoreNotFound(err) != nil {
				return err
			} else if err == nil {
				return fmt.Errorf("the definition is still there")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	restore = func() {
		t.Helper()
		if err := plane.InstallCRDs(context.Background(), files...); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(restore)
	return withdraw, restore
}

// A Flux that does not know a kind of source stops neither the controller nor
// the layers of other kinds. The layer that names it says so, and goes on by
// itself when the kind comes.
func TestKindOfSourceThatIsNotServed(t *testing.T) {
	withdraw, restore := withdrawable(t)
	withdraw()

	f := newSerialFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"git/release.yaml": f.release("git")})
	f.layer("git")
	f.layerFrom(sources.ExternalArtifact, "external")
	f.ready("git")
	f.deployed("git", "main@sha1:1")
	found := f.says("external", "waits for ExternalArtifact", "does not serve the kind ExternalArtifact")
	if found.Status.State != v1alpha1.StatePending {
		t.Errorf("the layer is %s", found.Status.State)
	}

	restore()
	f.says("external", "waits for ExternalArtifact "+f.namespace+"/addons, which does not exist")
	f.put("addons", "rev-1", map[string]string{"external/release.yaml": f.release("external")})
	f.ready("external")
	f.deployed("external", "rev-1")

	// It may go again, and come back.
	withdraw()
	f.says("external", "does not serve the kind ExternalArtifact")
	restore()
	f.says("external", "waits for ExternalArtifact "+f.namespace+"/addons, which does not exist")
	f.put("addons", "rev-2", map[string]string{"external/release.yaml": f.release("external")})
	f.deployed("external", "rev-2")
}

// renamed makes ExternalArtifacts of the Buckets in an answer, which is JSON in lines.
type renamed struct {
	io.Closer
	lines *bufio.Scanner
	left  *bytes.Buffer
}

func (r renamed) Read(into []byte) (int, error) {
	if r.left.Len() == 0 {
		if !r.lines.Scan() {
			if err := r.lines.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		r.left.Write(bytes.ReplaceAll(r.lines.Bytes(), []byte(`"kind":"Bucket`), []byte(`"kind":"ExternalArtifact`)))
		r.left.WriteByte('\n')
	}
	return r.left.Read(into)
}

// An API server that has yet to hear that a definition is gone serves its kind for a
// while. The controller begins a watch of it, and is never told.
func TestKindOfSourceThatGoesUnseen(t *testing.T) {
	withdraw, restore := withdrawable(t)
	f := newSerialBareFixture(t)
	questions, err := rest.HTTPClientFor(plane.Config())
	f.must(err)
	const group, plural = "/apis/source.toolkit.fluxcd.io/v1", "/externalartifacts"
	answer, err := questions.Get(plane.Config().Host + group)
	f.must(err)
	discovery, err := io.ReadAll(answer.Body)
	f.must(errors.Join(err, answer.Body.Close()))
	withdraw()

	// Until it ends, discovery is what it was, and there are as many of the kind as
	// there are Buckets.
	lagging, end := context.WithCancel(f.ctx)
	defer end()
	f.between = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			switch {
			case lagging.Err() != nil:
			case req.URL.Path == group:
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
					Body: io.NopCloser(bytes.NewReader(discovery)), ContentLength: int64(len(discovery)),
				}, nil
			case strings.HasSuffix(req.URL.Path, plural):
				ctx, cancel := context.WithCancel(req.Context())
				context.AfterFunc(lagging, cancel)
				req = req.Clone(ctx)
				req.URL.Path = group + "/buckets"
				resp, err := next.RoundTrip(req)
				if err == nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
					resp.Body = renamed{resp.Body, bufio.NewScanner(resp.Body), &bytes.Buffer{}}
					resp.ContentLength = -1
				}
				return resp, err
			}
			return next.RoundTrip(req)
		})
	}
	f.start(nil)
	f.layerFrom(sources.ExternalArtifact, "external")
	f.says("external", "waits for ExternalArtifact "+f.namespace+"/addons, which does not exist")
	end()
	f.says("external", "does not serve the kind ExternalArtifact")
	restore()
	f.says("external", "waits for ExternalArtifact "+f.namespace+"/addons, which does not exist")
	f.put("addons", "rev-1", map[string]string{"external/release.yaml": f.release("external")})
	f.ready("external")
	f.deployed("external", "rev-1")
}

// Two sources of different kinds are two sources, also under one name: what
// happens to one does not wake the layers of the other, and a dependency is
// compared with the artifact of its own source.
func TestSourcesOfOneName(t *testing.T) {
	f := newSerialFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/release.yaml": f.release("base")})
	f.put("addons", "rev-1", map[string]string{"base/release.yaml": f.release("other"), "apps/release.yaml": f.release("apps")})
	f.layer("base")
	f.layerFrom(sources.ExternalArtifact, "apps", "base")
	f.ready("base")
	f.ready("apps")
	f.deployed("base", "main@sha1:1")
	// Were it one source, apps would wait for base to deploy what the
	// ExternalArtifact holds below ./base.
	f.deployed("apps", "rev-1")
	f.settle()
	before := map[string]string{"base": f.get("base").ResourceVersion}
	f.put("addons", "rev-2", map[string]string{"base/release.yaml": f.release("another"), "apps/release.yaml": f.release("apps")})
	f.deployed("apps", "rev-2")
	f.settle()
	if diff := cmp.Diff(before, map[string]string{"base": f.get("base").ResourceVersion}); diff != "" {
		t.Errorf("the layer of the GitRepository was written (-before +after):\n%s", diff)
	}
}

// layerFrom is layer for another kind of source, without a resync that could
// rescue it.
func (f *fixture) layerFrom(kind, name string, dependsOn ...string) {
	f.Helper()
	f.layerWith(name, func(l *v1alpha1.AddonsLayer) {
		l.Spec.Source.Kind = kind
		l.Spec.Interval = &metav1.Duration{Duration: time.Hour}
	}, dependsOn...)
}
