// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/repos"
)

// All processes have the one key that the first of them has made.
func TestDigestKeyIsMadeOnce(t *testing.T) {
	f := newBareFixture(t)
	const processes = 8
	keys, group := make([]digests.Key, processes), sync.WaitGroup{}
	for i := range keys {
		group.Go(func() {
			var err error
			if keys[i], err = DigestKey(f.ctx, f.client, f.client, f.namespace); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, key := range keys {
		if !key.Equal(keys[0]) || key.Equal(digests.Key{}) {
			t.Error("the processes have several keys, or none")
		}
	}
	secret := &corev1.Secret{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: v1alpha1.DigestKeyName}, secret))
	if secret.Immutable == nil || !*secret.Immutable || secret.Type != v1alpha1.DigestKeyType {
		t.Errorf("the Secret is of type %s, immutable %v", secret.Type, secret.Immutable)
	}
}

// A key that somebody else has put there, or that is none, is not used.
func TestDigestKeyThatIsNoneIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		kind corev1.SecretType
		key  string
		want string
	}{
		"another's Secret": {corev1.SecretTypeOpaque, strings.Repeat("0123456789abcdef", 2), `is of the type "Opaque"`},
		"too short":        {v1alpha1.DigestKeyType, "0123456789", "has 10"},
		"not random":       {v1alpha1.DigestKeyType, strings.Repeat("x", 32), "1 different bytes"},
		"nothing":          {v1alpha1.DigestKeyType, "", "has 0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newBareFixture(t)
			f.must(f.client.Create(f.ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: v1alpha1.DigestKeyName}, Type: tc.kind, Data: map[string][]byte{digestKeyField: []byte(tc.key)},
			}))
			_, err := DigestKey(f.ctx, f.client, f.client, f.namespace)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "delete the Secret") {
				t.Errorf("the error is %v, want %q and what to do", err, tc.want)
			}
		})
	}
}

// A lost key costs one look at each Secret: nothing is deployed anew, and no object
// changes.
func TestAnotherKeyChangesNothing(t *testing.T) {
	f := newSerialBareFixture(t)
	with := func(first byte) func(*AddonsLayerReconciler) {
		key := f.keyOf(first)
		artifacts, err := repos.New(repos.Options{Dir: f.TempDir(), Log: logr.Discard(), DigestKey: key})
		f.must(err)
		return func(r *AddonsLayerReconciler) { r.Artifacts, r.Settings.DigestKey = artifacts, key }
	}
	f.start(nil, with(7))
	// A Secret that was only created is claimed by its first apply; this one was applied.
	for i, pin := range []string{"NDcxMA==", "NDcxMQ=="} {
		revision := fmt.Sprintf("1.0.%d", i)
		f.publish(revision, map[string]string{
			"base/release.yaml": f.release("one"),
			"base/pin.yaml":     fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: pin}\ndata: {pin: %s}\n", f.namespace, pin),
		})
		if i == 0 {
			f.layer("base")
			f.ready("one")
		}
		f.deployed("base", revision)
	}
	f.settle()
	before := f.get("base")
	if !digests.IsKeyed(before.Status.Digest) {
		t.Fatalf("the digest is %s", before.Status.Digest)
	}
	objects := func() (helmv2.HelmRelease, corev1.Secret) {
		var release helmv2.HelmRelease
		var secret corev1.Secret
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "one"}, &release))
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "pin"}, &secret))
		return release, secret
	}
	releaseBefore, secretBefore := objects()

	f.cancel()
	f.stopped()
	f.must(<-f.ended)
	f.taken()
	f.start(nil, with(9))
	f.eventually("the status has the digests of the other key", func() error {
		if status := f.get("base").Status; status.Digest == before.Status.Digest || !digests.IsKeyed(status.Digest) || status.State != v1alpha1.StateDeployed {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
	f.settle()
	after := f.get("base")
	if len(after.Status.History) != len(before.Status.History) || after.Status.History[0].ID != before.Status.History[0].ID {
		t.Errorf("it was deployed anew: %+v", after.Status.History)
	}
	release, secret := objects()
	if release.ResourceVersion != releaseBefore.ResourceVersion || release.Generation != releaseBefore.Generation || secret.ResourceVersion != secretBefore.ResourceVersion {
		t.Errorf("objects have changed: %+v\n%+v", release.ObjectMeta, secret.ObjectMeta)
	}
	applies, requests := 0, []string{}
	taken, _ := f.taken()
	for _, request := range taken {
		if strings.HasPrefix(request.what, "PATCH /api/v1/namespaces/"+f.namespace+"/secrets/") {
			applies++
		}
		if strings.HasPrefix(request.what, "PATCH ") {
			requests = append(requests, request.what)
		}
	}
	if applies != 1 {
		t.Errorf("%d applies of the Secret: %q", applies, requests)
	}
}
