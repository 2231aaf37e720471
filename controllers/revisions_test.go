// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/repos"
)

// gaveUp plays helm-controller once it has seen a release with an interval: it
// will not try again.
func (f *fixture) gaveUp(name, interval string) {
	f.Helper()
	release := f.interval(name, interval)
	release.Status.ObservedGeneration = release.Generation
	release.Status.Conditions = nil
	for kind, status := range map[string]metav1.ConditionStatus{"Ready": metav1.ConditionFalse, "Stalled": metav1.ConditionTrue} {
		release.Status.Conditions = append(release.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: "UpgradeFailed", Message: "it is meant to fail",
			ObservedGeneration: release.Generation, LastTransitionTime: metav1.Now(),
		})
	}
	f.must(f.client.Status().Update(f.ctx, release))
}

// interval waits until a release has an interval, by which the tests tell what
// was applied.
func (f *fixture) interval(name, interval string) *helmv2.HelmRelease {
	f.Helper()
	release := &helmv2.HelmRelease{}
	f.eventually(fmt.Sprintf("release %s has the interval %s", name, interval), func() error {
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, release); err != nil {
			return err
		}
		if got := release.Spec.Interval.Duration.String(); got != interval {
			return fmt.Errorf("it has %s", got)
		}
		return nil
	})
	return release
}

// reason waits until a layer's Ready condition gives a reason, with words.
func (f *fixture) reason(layer, reason string, words ...string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("layer %s says %s", layer, reason), func() error {
		found = f.get(layer)
		ready := meta.FindStatusCondition(found.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("it says %+v", ready)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, ready.Message)
			}
		}
		return nil
	})
	return found
}

// A layer can go back although nothing of what it had is cached and its source
// has moved on, and says so where it cannot.
func TestRollbackAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// change happens while no controller runs.
		change func(*fixture, *corev1.Secret)
		words  string // of the failure; none where it goes back
	}{
		"kept in the cluster": {
			reason: "the source has lost it, the cluster has not",
			change: func(f *fixture, _ *corev1.Secret) { f.lose("main@sha1:1") },
		},
		"kept by the source": {
			reason: "somebody has removed the Secret, but the artifact is still served",
			change: func(f *fixture, secret *corev1.Secret) { f.must(f.client.Delete(f.ctx, secret)) },
		},
		"kept by nobody": {
			reason: "both are gone",
			change: func(f *fixture, secret *corev1.Secret) {
				f.lose("main@sha1:1")
				f.must(f.client.Delete(f.ctx, secret))
			},
			words: "cannot go back to version 1.0.0: what it held cannot be read: cannot read Secret",
		},
		"changed by somebody": {
			reason: "what was not deployed is not applied",
			change: func(f *fixture, secret *corev1.Secret) {
				f.lose("main@sha1:1")
				f.must(f.client.Delete(f.ctx, secret))
				other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
				other.Data = map[string][]byte{repos.RevisionKey: []byte("something else")}
				f.must(f.client.Create(f.ctx, other))
			},
			words: "it is not what Strata has kept of this layer",
		},
		"changed by somebody who knows how": {
			reason: "its digest is not that of what was deployed",
			change: func(f *fixture, secret *corev1.Secret) {
				f.lose("main@sha1:1")
				f.must(f.client.Delete(f.ctx, secret))
				other := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels, OwnerReferences: secret.OwnerReferences},
					Type:       secret.Type, Data: map[string][]byte{repos.RevisionKey: []byte("something else")},
				}
				f.must(f.client.Create(f.ctx, other))
			},
			words: "cannot unpack the revision",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
			f.layer("base")
			f.must(f.client.Patch(f.ctx, f.get("base"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollback":true}}`))))
			f.ready("a")
			f.deployed("base", "main@sha1:1")
			secret := f.revision("base")

			f.cancel()
			f.stopped()
			f.must(<-f.ended)
			tc.change(f, secret)
			f.start(nil)
			f.publish("main@sha1:2", map[string]string{"base/a.yaml": strings.Replace(f.release("a"), "interval: 1m", "interval: 2m", 1)})
			f.gaveUp("a", "2m0s")
			if tc.words != "" {
				f.reason("base", v1alpha1.ReasonReleaseFailed, "it is meant to fail", tc.words)
				f.interval("a", "2m0s")
				return
			}
			f.reason("base", v1alpha1.ReasonRollingBack, "version 1.0.0")
			f.interval("a", "1m0s")
			f.ready("a")
			if status := f.reason("base", v1alpha1.ReasonRolledBack, "it is meant to fail").Status; status.Revision != "main@sha1:1" {
				t.Errorf("%s: revision %s counts as deployed", tc.reason, status.Revision)
			}
		})
	}
}

// revision waits for the Secret that keeps what a layer has deployed.
func (f *fixture) revision(layer string) *corev1.Secret {
	f.Helper()
	list := &corev1.SecretList{}
	f.eventually("the cluster keeps what is deployed", func() error {
		if err := f.client.List(f.ctx, list, client.InNamespace(f.namespace), client.MatchingLabels{v1alpha1.RevisionOfLabel: f.name(layer)}); err != nil {
			return err
		}
		if len(list.Items) != 1 || !f.get(layer).Status.History[0].Kept {
			return fmt.Errorf("there are %d Secrets, the history is %+v", len(list.Items), f.get(layer).Status.History)
		}
		return nil
	})
	secret := &list.Items[0]
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != f.get(layer).UID || secret.Immutable == nil || !*secret.Immutable {
		f.Errorf("the Secret is of %v and immutable %v, want it to go with its layer and to stay as it is", owners, secret.Immutable)
	}
	if _, owned := secret.Labels[v1alpha1.LayerLabel]; owned {
		f.Error("the Secret counts as an object of the layer")
	}
	return secret
}

// lose makes the source forget a revision.
func (f *fixture) lose(revision string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.artifacts, "/"+revision+".tar.gz")
}

// No more is kept than a layer can need, and nothing without spec.rollback.
func TestKeptRevisionsAreFew(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:0", map[string]string{"base/a.yaml": f.release("a")})
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:0")
	count := func() int {
		list := &corev1.SecretList{}
		f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace), client.MatchingLabels{v1alpha1.RevisionOfLabel: f.name("base")}))
		return len(list.Items)
	}
	if n := count(); n != 0 {
		t.Errorf("%d revisions are kept without spec.rollback", n)
	}
	rollback := func(on bool) {
		f.must(f.client.Patch(f.ctx, f.get("base"), client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"rollback":%v}}`, on)))))
	}
	rollback(true)
	for i := 1; i <= 12; i++ {
		interval := fmt.Sprintf("%dm0s", i+1)
		f.publish(fmt.Sprintf("main@sha1:%d", i), map[string]string{"base/a.yaml": strings.Replace(f.release("a"), "interval: 1m", "interval: "+interval, 1)})
		f.interval("a", interval)
		f.ready("a")
		f.deployed("base", fmt.Sprintf("main@sha1:%d", i))
	}
	f.eventually("the last three are kept", func() error {
		if n := count(); n != 3 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	status := f.get("base").Status
	if len(status.History) != 10 || status.History[0].ID != "13" || status.History[9].ID != "4" {
		t.Errorf("the history has %d entries, from %s to %s", len(status.History), status.History[0].ID, status.History[len(status.History)-1].ID)
	}
	rollback(false)
	f.eventually("nothing is kept any more", func() error {
		if n := count(); n != 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// What an earlier layer of the same name has left goes with that layer; the one
// that is there now has its own.
func TestRevisionOfAnEarlierLayerIsReplaced(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layer("base")
	rollback := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollback":true,"orphanGrace":"0s"}}`))
	f.must(f.client.Patch(f.ctx, f.get("base"), rollback))
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	before := f.revision("base")
	first := f.get("base")
	f.must(f.client.Delete(f.ctx, first))
	f.eventually("the first layer is gone", func() error {
		if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(first), &v1alpha1.AddonsLayer{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there, or: %w", err)
		}
		return nil
	})
	second := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Labels: first.Labels}, Spec: first.Spec}
	f.must(f.client.Create(f.ctx, second))
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	if after := f.revision("base"); after.Name != before.Name || after.UID == before.UID {
		t.Errorf("Secret %s (%s) stands for %s (%s)", after.Name, after.UID, before.Name, before.UID)
	}
}
