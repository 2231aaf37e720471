// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/pkg/primary"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"of": name}}
}

// chain is a kind whose things have a ConfigMap for each of their names, each after the one
// before.
func chain() primary.Kind[*Thing] {
	return primary.Kind[*Thing]{Wants: func(thing *Thing, _ primary.Seen) ([]primary.Dependent, error) {
		var all []primary.Dependent
		for i, name := range thing.Spec.Names {
			of := primary.Dependent{ID: fmt.Sprintf("n%d", i), Object: configMap(name)}
			if i > 0 {
				of.DependsOn = []string{fmt.Sprintf("n%d", i-1)}
			}
			all = append(all, of)
		}
		return all, nil
	}}
}

// An engine that dies of any write leaves nothing that its successor does not find, and one at
// rest asks for nothing.
func TestKilledAtEveryWrite(t *testing.T) {
	f := newFixture(t)
	for at := int64(1); ; at++ {
		name := fmt.Sprintf("t%d", at)
		thing := f.thing(name, name+"-a", name+"-b")
		died := f.dies(at, name+" is ready", func() error {
			f.must(f.client.Get(f.ctx, f.key(name), thing))
			if !meta.IsStatusConditionTrue(thing.Status.Conditions, "Ready") {
				return fmt.Errorf("it says %+v", thing.Status)
			}
			return nil
		})
		if got := f.maps(); got != name+"-a "+name+"-b" || len(thing.Status.Objects) != 2 {
			t.Errorf("write %d: there are %s, and the status is %+v", at, got, thing.Status)
		}
		f.must(f.client.Delete(f.ctx, thing))
		died = f.dies(at, name+" is gone", func() error {
			if err := f.client.Get(f.ctx, f.key(name), thing); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		}) || died
		if got := f.maps(); got != "" {
			t.Errorf("write %d: %s are left", at, got)
		}
		f.goesHalfMade(at)
		if !died {
			if at < 5 {
				t.Errorf("it has made %d writes", at)
			}
			return
		}
	}
}

// goesHalfMade has a thing deleted that an engine has begun, before the next one looks.
func (f *fixture) goesHalfMade(at int64) {
	f.Helper()
	thing := f.thing(fmt.Sprintf("half%d", at), "half-a", "half-b")
	f.start(at, chain())
	f.eventually("it has made what it can", func() error {
		f.must(f.client.Get(f.ctx, f.key(thing.Name), thing))
		if f.left.Load() != 0 && !meta.IsStatusConditionTrue(thing.Status.Conditions, "Ready") {
			return fmt.Errorf("it says %+v", thing.Status)
		}
		return nil
	})
	f.end()
	f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, thing)))
	f.start(-1, chain())
	f.gone(&Thing{}, thing.Name)
	f.end()
	if got := f.maps(); got != "" {
		f.Errorf("write %d, half made: %s are left", at, got)
	}
}

// dies runs an engine that dies of a write, and its successor, until something is done.
func (f *fixture) dies(at int64, what string, done func() error) (died bool) {
	f.Helper()
	f.start(at, chain())
	f.eventually(what, func() error {
		if f.left.Load() == 0 {
			died = true
			f.end()
			f.start(-1, chain())
		}
		return done()
	})
	f.end()
	return died
}

// What is not wanted any more goes, in reverse order and whatever it was called; and what
// others change or delete comes back.
func TestWhatIsWanted(t *testing.T) {
	f := newFixture(t)
	thing := f.thing("x", "a", "b", "c")
	f.start(-1, chain())
	f.says("x", primary.ReasonReady)
	f.wants(thing, "a", "z")
	f.eventually("what is wanted is there", func() error {
		if got := f.maps(); got != "a z" {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
	f.says("x", primary.ReasonReady)
	f.eventually("it is at rest", func() error { return f.seen.Check(f.ctx) })
	changed := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, f.key("a"), changed))
	f.must(f.client.Patch(f.ctx, changed, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"of":"somebody"}}`))))
	f.must(f.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "z"}}))
	f.eventually("all is as it was", func() error {
		f.must(f.client.Get(f.ctx, f.key("a"), changed))
		if got := f.maps(); got != "a z" || changed.Data["of"] != "a" {
			return fmt.Errorf("there are %s, and a is %v", got, changed.Data)
		}
		return nil
	})
}

// What is made once is left to others, and with Keeps what is not wanted any more stays until
// the primary goes.
func TestWhatStays(t *testing.T) {
	f := newFixture(t)
	kind := chain()
	plain := kind.Wants
	kind.Keeps = true
	kind.Wants = func(thing *Thing, seen primary.Seen) ([]primary.Dependent, error) {
		all, err := plain(thing, seen)
		all[0].Mode = primary.CreateOnce
		return all, err
	}
	thing := f.thing("x", "once", "b")
	f.start(-1, kind)
	f.says("x", primary.ReasonReady)
	once := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "once"}}
	f.must(f.client.Patch(f.ctx, once, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"of":"somebody"}}`))))
	f.wants(thing, "once", "c")
	f.eventually("what is wanted is there", func() error {
		if got := f.maps(); got != "b c once" {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
	f.says("x", primary.ReasonReady)
	f.must(f.client.Get(f.ctx, f.key("once"), once))
	if once.Data["of"] != "somebody" {
		t.Errorf("what is made once is taken back: %v", once.Data)
	}
	f.must(f.client.Delete(f.ctx, thing))
	f.gone(&Thing{}, "x")
	if got := f.maps(); got != "" {
		t.Errorf("%s are left", got)
	}
}

// Nothing is taken over, what others make is neither written nor deleted, and mistakes are
// said.
func TestHostilePrimaries(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"theirs", "observed"} {
		f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: map[string]string{"of": "them"}}))
	}
	kind := chain()
	plain := kind.Wants
	kind.Validate = func(thing *Thing) error {
		if thing.Name == "invalid" {
			return errors.New("spec.names: are wrong")
		}
		return nil
	}
	kind.Wants = func(thing *Thing, seen primary.Seen) ([]primary.Dependent, error) {
		switch thing.Name {
		case "observes":
			ready := func(live *unstructured.Unstructured) string {
				if live.GetAnnotations()["up"] != "yes" {
					return "is not up"
				}
				return ""
			}
			all := []primary.Dependent{{ID: "theirs", Object: configMap("observed"), Mode: primary.Observe, Ready: ready}}
			if live, there := primary.As[corev1.ConfigMap](seen, "theirs"); there {
				return append(all, primary.Dependent{ID: "of", Object: configMap("of-" + live.Name), DependsOn: []string{"theirs"}}), nil
			}
			return append(all, primary.Dependent{ID: "of", Waits: "waits for what they make"}), nil
		case "twice":
			return []primary.Dependent{{ID: "a", Object: configMap("twice")}, {ID: "a", Object: configMap("twice2")}}, nil
		case "nothing":
			return []primary.Dependent{{ID: "a"}}, nil
		case "panics":
			return nil, errors.New("spec: cannot be understood")
		case "unserved":
			return []primary.Dependent{{ID: "a", Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v9", "kind": "Nothing", "metadata": map[string]any{"name": "x"},
			}}}}, nil
		case "elsewhere":
			object := configMap("x")
			object.Namespace = "gone"
			return []primary.Dependent{{ID: "a", Object: object}}, nil
		}
		return plain(thing, seen)
	}
	f.start(-1, kind)
	for _, each := range []struct{ name, reason, words string }{
		{"invalid", primary.ReasonInvalid, "spec.names: are wrong"},
		{"takes", primary.ReasonObjectFailed, "ConfigMap " + f.namespace + "/theirs is there already, and somebody else's"},
		{"observes", primary.ReasonProgressing, "ConfigMap " + f.namespace + "/observed is not up"},
		{"twice", primary.ReasonInvalid, `has the ID "a"`},
		{"nothing", primary.ReasonInvalid, "a: it has neither Object nor Waits"},
		{"panics", primary.ReasonInvalid, "spec: cannot be understood"},
		{"unserved", primary.ReasonProgressing, "Nothing.example.com"},
		{"elsewhere", primary.ReasonObjectFailed, "gone"},
	} {
		f.thing(each.name, "theirs")
		f.says(each.name, each.reason, each.words)
	}
	observed := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, f.key("observed"), observed))
	f.must(f.client.Patch(f.ctx, observed, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"up":"yes"}}}`))))
	observes := f.says("observes", primary.ReasonReady)
	if got := f.maps(); got != "of-observed" {
		t.Errorf("there are %s", got)
	}
	f.must(f.client.Delete(f.ctx, observes))
	f.gone(&Thing{}, "observes")
	f.gone(&corev1.ConfigMap{}, "of-observed")
	takes := f.says("takes", primary.ReasonObjectFailed)
	f.must(f.client.Delete(f.ctx, takes))
	f.gone(&Thing{}, "takes")
	for _, name := range []string{"theirs", "observed"} {
		f.must(f.client.Get(f.ctx, f.key(name), observed))
		if observed.Data["of"] != "them" || observed.Labels["test.example.com/primary"] != "" {
			t.Errorf("%s is %+v", name, observed)
		}
	}
}
