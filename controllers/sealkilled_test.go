// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/signed"
)

// mortalWriter is a client that dies at a write, before or after that takes effect.
type mortalWriter struct {
	at, writes int
	after      bool
}

var errDied = errors.New("this process is dead")

func (m *mortalWriter) write(do func() error) error {
	m.writes++
	switch {
	case m.at > 0 && m.writes > m.at, m.writes == m.at && !m.after:
		return errDied
	case m.writes == m.at:
		_ = do() // nobody hears of it
		return errDied
	}
	return do()
}

func (m *mortalWriter) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return m.write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return m.write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return m.write(func() error { return c.SubResource(name).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// A process that is killed at any write of the signing at an upgrade, before or after the write
// takes effect, leaves nothing behind that the next one does not end: each decision and each status is
// signed once, as it was, for the object that it is on, and then it is noted that it was done.
func TestKilledAtEveryWriteOfTheSigningOfDecisions(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	key, err := digests.NewKey([]byte("0123456789abcdefghijklmnopqrstuv"))
	if err != nil {
		t.Fatal(err)
	}
	const rollout, rollback = `{"rollout":{"target":"1.0.0","since":"2026-01-02T03:04:05Z"}}`, `{"rollback":{"to":"3"}}`
	meta := func(name, decided string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: "uid-of-" + "x", Annotations: map[string]string{v1alpha1.DecidedAnnotation: decided}}
	}
	deployed := v1alpha1.AddonsLayerStatus{State: v1alpha1.StateDeployed, Version: "1.0.0", ObservedGeneration: 1}
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			objects := []client.Object{
				&v1alpha1.AddonsLayer{ObjectMeta: meta("base", rollback), Status: deployed}, &v1alpha1.AddonsLayer{ObjectMeta: meta("apps", rollback)},
				&v1alpha1.Platform{ObjectMeta: meta("shop", rollout)}, &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: "undecided", UID: "none"}},
			}
			server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build()
			run := func(m *mortalWriter) error {
				statuses := &signed.Keeper{}
				c := statuses.Client(m.wrap(server))
				p := &Process{Client: c, Reader: c, Statuses: statuses}
				p.Settings.DigestKey, p.Settings.Namespace = key, "strata-system"
				if err := p.setupSeal(t.Context()); err != nil {
					t.Fatal(err)
				}
				return p.signAll(t.Context())
			}
			first := &mortalWriter{at: at, after: after}
			died := run(first) != nil
			note := &corev1.Secret{}
			noted := server.Get(t.Context(), client.ObjectKey{Namespace: "strata-system", Name: v1alpha1.DecisionsSignedName}, note) == nil
			second := &mortalWriter{}
			if err := run(second); err != nil {
				t.Fatalf("write %d: the next process: %v", at, err)
			}
			if third := (&mortalWriter{}); run(third) != nil || third.writes > 0 {
				t.Errorf("write %d: a third process has written %d times", at, third.writes)
			}
			for _, object := range objects {
				if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				text := object.GetAnnotations()[v1alpha1.DecidedAnnotation]
				kind := v1alpha1.AddonsLayerKind
				if _, is := object.(*v1alpha1.Platform); is {
					kind = v1alpha1.PlatformKind
				}
				seal := decisions.Seal{Key: key}
				if _, again := decisions.Sign(object, kind, seal); object.GetName() == "undecided" && text != "" || again {
					t.Errorf("write %d: %s has %s", at, object.GetName(), text)
				}
				if layer, is := object.(*v1alpha1.AddonsLayer); is && layer.Name == "base" {
					want := deployed
					if want.MAC = layer.Status.MAC; want.MAC == "" || !equality.Semantic.DeepEqual(want, layer.Status) {
						t.Errorf("write %d: the status is %+v", at, layer.Status)
					}
				}
				if noted && object.GetName() != "undecided" && text == "" {
					t.Errorf("write %d: it is noted that %s is signed", at, object.GetName())
				}
			}
			if wrote := min(first.writes, at) + second.writes; !died && wrote != 5 || died && (wrote < 5 || wrote > 6) {
				t.Errorf("write %d: three decisions, a status and a note were %d writes", at, wrote)
			}
			if !died {
				if at != 6 {
					t.Errorf("it has died %d times", at-1)
				}
				break
			}
		}
	}
}
