// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// origin is a source of some kind, with the server that it is fetched from.
type origin struct {
	*fixture
	kind, name string
	// object is the source, to be created as often as the test likes.
	object func() client.Object
	// store makes files all that the server has.
	store func(files map[string]string)
	// put is set for a source that nobody fetches.
	put func()
}

// kindsOfSources are all that a layer may come from.
var kindsOfSources = map[string]func(f *fixture, name string) *origin{
	"GitRepository": (*fixture).gitOrigin, "OCIRepository": (*fixture).ociOrigin,
	"Bucket": (*fixture).bucketOrigin, "ExternalArtifact": (*fixture).externalOrigin,
}

func (f *fixture) gitOrigin(name string) *origin {
	f.Helper()
	repo, err := stack.git.NewRepo(f.prefix + "-" + name)
	f.must(err)
	return &origin{
		fixture: f, kind: "GitRepository", name: name,
		object: func() client.Object {
			return &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{
				URL: repo.URL(), Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
			}}
		},
		store: func(files map[string]string) {
			_, err := repo.Remove("remove", "addons")
			f.must(err)
			_, err = repo.Commit("change", files)
			f.must(err)
		},
	}
}

func (f *fixture) ociOrigin(name string) *origin {
	f.Helper()
	repository := f.prefix + "/" + name
	return &origin{
		fixture: f, kind: "OCIRepository", name: name,
		object: func() client.Object {
			return &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{
				URL: stack.oci.URL(repository), Interval: metav1.Duration{Duration: time.Hour}, Insecure: true,
				Reference: &sourcev1.OCIRepositoryRef{Tag: "latest"},
			}}
		},
		store: func(files map[string]string) {
			_, err := stack.oci.Push(f.ctx, repository, "latest", files)
			f.must(err)
		},
	}
}

func (f *fixture) bucketOrigin(name string) *origin {
	f.Helper()
	bucket := f.prefix + "-" + name
	f.must(stack.buckets.NewBucket(bucket))
	f.must(client.IgnoreAlreadyExists(stack.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "bucket-keys"},
		StringData: map[string]string{"accesskey": "tests", "secretkey": "tests-only"},
	})))
	var keys []string
	return &origin{
		fixture: f, kind: "Bucket", name: name,
		object: func() client.Object {
			return &sourcev1.Bucket{Spec: sourcev1.BucketSpec{
				Provider: "generic", BucketName: bucket, Endpoint: stack.buckets.Endpoint(), Insecure: true, Region: "us-east-1",
				Interval: metav1.Duration{Duration: time.Hour}, SecretRef: &fluxmeta.LocalObjectReference{Name: "bucket-keys"},
			}}
		},
		store: func(files map[string]string) {
			if len(keys) > 0 {
				f.must(stack.buckets.Delete(bucket, keys...))
			}
			keys = nil
			for key := range files {
				keys = append(keys, key)
			}
			f.must(stack.buckets.Put(bucket, files))
		},
	}
}

// externalOrigin is an ExternalArtifact: the test is the controller that makes
// it, and serves its artifacts.
func (f *fixture) externalOrigin(name string) *origin {
	f.Helper()
	var mu sync.Mutex
	var archive []byte
	revision := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(archive)
	}))
	f.Cleanup(server.Close)
	o := &origin{
		fixture: f, kind: "ExternalArtifact", name: name,
		object: func() client.Object { return &sourcev1.ExternalArtifact{} },
		store: func(files map[string]string) {
			packed, err := controlplane.Archive(files)
			f.must(err)
			mu.Lock()
			defer mu.Unlock()
			archive = packed
			revision++
		},
	}
	o.put = func() {
		mu.Lock()
		defer mu.Unlock()
		size := int64(len(archive))
		f.putArtifact(name, &fluxmeta.Artifact{
			URL: fmt.Sprintf("%s/%d.tar.gz", server.URL, revision), Path: fmt.Sprintf("%d.tar.gz", revision),
			Revision: fmt.Sprintf("rev-%d", revision), Digest: digestOf(archive), Size: &size, LastUpdateTime: metav1.Now(),
		})
	}
	return o
}

// putArtifact gives an ExternalArtifact an artifact.
func (f *fixture) putArtifact(name string, artifact *fluxmeta.Artifact) {
	f.Helper()
	f.eventually("the artifact of "+name+" is put up", func() error {
		external := &sourcev1.ExternalArtifact{}
		if err := stack.client.Get(f.ctx, client.ObjectKey{Namespace: f.prefix, Name: name}, external); err != nil {
			return err
		}
		external.Status.Artifact = artifact
		meta.SetStatusCondition(&external.Status.Conditions, metav1.Condition{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "stored " + artifact.Revision, ObservedGeneration: external.Generation,
		})
		return stack.client.Status().Update(f.ctx, external)
	})
}

// create makes the source.
func (o *origin) create() {
	o.Helper()
	obj := o.object()
	obj.SetNamespace(o.prefix)
	obj.SetName(o.name)
	o.must(stack.client.Create(o.ctx, obj))
	if o.put != nil {
		o.put()
	}
}

// delete removes the source.
func (o *origin) delete() {
	o.Helper()
	obj := o.object()
	obj.SetNamespace(o.prefix)
	obj.SetName(o.name)
	o.must(stack.client.Delete(o.ctx, obj))
}

// publish makes files all that the source has, has it fetched, and returns the
// revision.
func (o *origin) publish(files map[string]string) string {
	o.Helper()
	o.store(files)
	return o.fetched()
}

// fetched has the source fetched and returns its revision.
func (o *origin) fetched() string {
	o.Helper()
	if o.put != nil {
		o.put()
	}
	return o.revision()
}

// revision asks for a reconciliation, waits until it has succeeded, and returns
// what the source is at.
func (o *origin) revision() string {
	o.Helper()
	asked := time.Now().Format(time.RFC3339Nano)
	obj := o.object()
	obj.SetNamespace(o.prefix)
	obj.SetName(o.name)
	o.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, asked))
	found := ""
	o.eventually(o.kind+" "+o.name+" is fetched", func() error {
		live := &unstructured.Unstructured{}
		live.SetAPIVersion(sourcev1.GroupVersion.String())
		live.SetKind(o.kind)
		if err := stack.client.Get(o.ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return err
		}
		handled, _, _ := unstructured.NestedString(live.Object, "status", "lastHandledReconcileAt")
		if o.put == nil && handled != asked {
			return fmt.Errorf("the status is %v", live.Object["status"])
		}
		found, _, _ = unstructured.NestedString(live.Object, "status", "artifact", "revision")
		if found == "" {
			return errors.New("there is no artifact")
		}
		return nil
	})
	return found
}

// from makes a layer come from the source, from a directory of its own name
// below ./addons.
func (o *origin) from(layer *v1alpha1.AddonsLayer) {
	layer.Spec.Source = v1alpha1.SourceSpec{
		Kind: o.kind, Name: o.name, Namespace: o.prefix, Path: "./addons/" + strings.TrimPrefix(layer.Name, o.prefix+"-"),
	}
}

// sortedKinds are the kinds of sources in order.
func sortedKinds() []string {
	var kinds []string
	for kind := range kindsOfSources {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}
