// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/test/forged"
)

func keyOf(t testing.TB, first string) digests.Key {
	t.Helper()
	key, err := digests.NewKey([]byte(first + "123456789abcdefghijklmnopqrstuv"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// keeper returns one that notes of whom it has refused a status.
func keeper(t testing.TB, key digests.Key, unsigned bool) (*Keeper, *[]string) {
	t.Helper()
	refused := &[]string{}
	k := &Keeper{}
	k.Use(key, unsigned, func(object Object, by string) { *refused = append(*refused, object.GetName()+" by "+by) })
	return k, refused
}

// kept are objects with a status each, as the controller writes it.
func kept(t testing.TB, key digests.Key) []Object {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "base", UID: "1", Generation: 2, ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "strata", Subresource: "status", Time: &metav1.Time{}}, {Manager: "kubectl-edit", Subresource: "status"}, {Manager: "git"},
	}}
	ready := []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeployed, Message: "all is well"}}
	objects := []Object{
		&v1alpha1.AddonsLayer{ObjectMeta: meta, Status: v1alpha1.AddonsLayerStatus{
			State: v1alpha1.StateDeployed, Version: "1.0.0", Digest: "sha256:1", ObservedGeneration: 2, Conditions: ready, LastHandledReconcileAt: "x",
			Resources: []v1alpha1.Resource{{Kind: "Secret", Name: "a", Status: "Deployed", Digest: "d"}},
			Attempt:   &v1alpha1.Attempt{Version: "1.0.0"},
		}},
		&v1alpha1.Platform{ObjectMeta: meta, Status: v1alpha1.PlatformStatus{Version: "1.0.0", ObservedGeneration: 2, Conditions: ready, Available: "1.1.0"}},
		&v1alpha1.RemoteCluster{ObjectMeta: meta, Status: v1alpha1.RemoteClusterStatus{Version: "v1.31.0", Endpoint: "https://x", Conditions: ready, ClusterUID: "u"}},
		&v1alpha1.HelmApplication{ObjectMeta: meta, Status: v1alpha1.HelmApplicationStatus{
			Published: []v1alpha1.PublishedVersion{{Version: "1.0.0", Digest: "sha256:1"}}, Latest: "1.0.0", Conditions: ready,
		}},
		&v1alpha1.ApplicationBundle{ObjectMeta: meta, Status: v1alpha1.ApplicationBundleStatus{Digest: "sha256:1", Layers: 3, Conditions: ready}},
	}
	for _, object := range objects {
		mac, _, err := macOf(key, object)
		if err != nil {
			t.Fatal(err)
		}
		*object.SignedStatus().MAC = mac
	}
	return objects
}

func copied(object Object) Object { return object.(client.Object).DeepCopyObject().(Object) }

// plain returns the fields of an object's status.
func plain(t testing.TB, object Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.SignedStatus().Status)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// forgeries returns an object with each field of its status forged in turn.
func forgeries(t testing.TB, object Object, path string) []Object {
	t.Helper()
	switch of := object.(type) {
	case *v1alpha1.AddonsLayer:
		return with(forged.Of(t, v1alpha1.AddonsLayerKind, path, of.Status, func(s v1alpha1.AddonsLayerStatus) v1alpha1.AddonsLayerStatus { return *s.DeepCopy() }),
			func(s v1alpha1.AddonsLayerStatus) Object { c := of.DeepCopy(); c.Status = s; return c })
	case *v1alpha1.Platform:
		return with(forged.Of(t, v1alpha1.PlatformKind, path, of.Status, func(s v1alpha1.PlatformStatus) v1alpha1.PlatformStatus { return *s.DeepCopy() }),
			func(s v1alpha1.PlatformStatus) Object { c := of.DeepCopy(); c.Status = s; return c })
	case *v1alpha1.RemoteCluster:
		return with(forged.Of(t, v1alpha1.RemoteClusterKind, path, of.Status, func(s v1alpha1.RemoteClusterStatus) v1alpha1.RemoteClusterStatus { return *s.DeepCopy() }),
			func(s v1alpha1.RemoteClusterStatus) Object { c := of.DeepCopy(); c.Status = s; return c })
	case *v1alpha1.HelmApplication:
		return with(forged.Of(t, v1alpha1.HelmApplicationKind, path, of.Status, func(s v1alpha1.HelmApplicationStatus) v1alpha1.HelmApplicationStatus { return *s.DeepCopy() }),
			func(s v1alpha1.HelmApplicationStatus) Object { c := of.DeepCopy(); c.Status = s; return c })
	case *v1alpha1.ApplicationBundle:
		return with(forged.Of(t, v1alpha1.ApplicationBundleKind, path, of.Status, func(s v1alpha1.ApplicationBundleStatus) v1alpha1.ApplicationBundleStatus { return *s.DeepCopy() }),
			func(s v1alpha1.ApplicationBundleStatus) Object { c := of.DeepCopy(); c.Status = s; return c })
	}
	t.Fatalf("nobody knows how to forge a %T", object)
	return nil
}

func with[S any](forgeries []forged.Forgery[S], object func(S) Object) []Object {
	var all []Object
	for _, one := range forgeries {
		all = append(all, object(one.Status))
	}
	return all
}

// What others act on counts as the controller has written it, for the very object. Whatever else is
// there is left out, all of it, and what only reports stays.
func TestSignedFieldsCannotBeForged(t *testing.T) {
	key := keyOf(t, "0")
	for _, object := range kept(t, key) {
		kind := object.SignedStatus().Kind
		k, refused := keeper(t, key, false)
		honest := copied(object)
		k.judge(honest)
		if len(*refused) > 0 || !reflect.DeepEqual(honest, object) {
			t.Fatalf("%s: what the controller has written does not count: %s", kind, cmp.Diff(object, honest))
		}
		forgedFields := 0
		for path, class := range v1alpha1.StatusFields(kind) {
			if path == "mac" {
				continue
			}
			for _, one := range forgeries(t, object, path) {
				if cmp.Equal(plain(t, one), plain(t, object)) {
					continue // it was empty, and is
				}
				forgedFields++
				k.judge(one)
				top := strings.Split(strings.TrimSuffix(strings.Split(path, ".")[0], "[]"), ".")[0]
				foreign := v1alpha1.IsForeign(*one.SignedStatus().Conditions)
				if want := class == v1alpha1.Signed || isBeside(kind, top); foreign != want {
					t.Errorf("%s: %s was forged, and the status is refused: %t, want %t", kind, path, foreign, want)
				}
			}
		}
		if forgedFields < 4 {
			t.Errorf("%s: no more than %d fields were forged", kind, forgedFields)
		}
	}
}

// isBeside tells whether a field has parts that are signed, with which all of it is.
func isBeside(kind, top string) bool {
	for _, field := range plans()[kind].fields {
		if field == top {
			return true
		}
	}
	return false
}

func TestJudge(t *testing.T) {
	key, other := keyOf(t, "0"), keyOf(t, "z")
	for i, object := range kept(t, key) {
		unmade := func(change func(Object)) Object {
			changed := copied(object)
			change(changed)
			return changed
		}
		noMAC := unmade(func(o Object) { *o.SignedStatus().MAC = "" })
		for _, tc := range []struct {
			reason   string
			object   Object
			key      digests.Key
			unsigned bool
			counts   bool
		}{
			{"it is the controller's", copied(object), key, false, true},
			{"without a key nothing is judged", copied(noMAC), digests.Key{}, false, true},
			{"the key is another one", copied(object), other, false, false},
			{"it is that of another object", unmade(func(o Object) { o.SetUID("2") }), key, false, false},
			{"it has no MAC", copied(noMAC), key, false, false},
			{"it is older than MACs", copied(noMAC), key, true, true},
			{"a wrong MAC is not an old one", copied(object), other, true, false},
			{"it is new", fresh(object, nil), key, false, true},
			{"it is empty, and a controller has begun to look after it", looked(fresh(object, nil)), key, false, false},
			{"it is new, as the API server makes it", fresh(object, map[string]any{"observedGeneration": int64(-1)}), key, false, true},
			{"it was judged before", refusedOnce(t, copied(noMAC), key), key, false, false},
		} {
			k, refused := keeper(t, tc.key, tc.unsigned)
			k.judge(tc.object)
			if foreign := v1alpha1.IsForeign(*tc.object.SignedStatus().Conditions); foreign == tc.counts {
				t.Errorf("object %d: %s: it counts: %t", i, tc.reason, !foreign)
			}
			if tc.counts && len(*refused) > 0 {
				t.Errorf("object %d: %s: it is refused: %v", i, tc.reason, *refused)
			}
		}
	}
}

func fresh(object Object, status map[string]any) Object {
	made := reflect.New(reflect.TypeOf(object).Elem()).Interface().(Object)
	made.SetUID("1")
	if status != nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(status, made.SignedStatus().Status)
	}
	return made
}

func refusedOnce(t testing.TB, object Object, key digests.Key) Object {
	t.Helper()
	k, refused := keeper(t, key, false)
	k.judge(object)
	if len(*refused) != 1 || (*refused)[0] != "base by strata" {
		t.Fatalf("it is refused %v", *refused)
	}
	return object
}

// What does not count leaves the rest as it was, in the object and in what shares its memory.
func TestStripKeepsTheRest(t *testing.T) {
	key := keyOf(t, "0")
	k, _ := keeper(t, key, false)
	layer := kept(t, key)[0].(*v1alpha1.AddonsLayer)
	shared := layer.Status.Resources
	layer.Status.Version = "2.0.0"
	k.judge(layer)
	want := v1alpha1.AddonsLayerStatus{
		ObservedGeneration: -1, LastHandledReconcileAt: "x", Conditions: layer.Status.Conditions,
		Resources: []v1alpha1.Resource{{Kind: "Secret", Name: "a", Digest: "d"}},
	}
	if diff := cmp.Diff(want, layer.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if shared[0].Status != "Deployed" {
		t.Error("what others read was changed")
	}
	app := kept(t, key)[3].(*v1alpha1.HelmApplication)
	app.Status.Published[0].Digest = "sha256:2"
	k.judge(app)
	if len(app.Status.Published) > 0 {
		t.Errorf("what is published is %v", app.Status.Published)
	}
}

// looked returns an object with the finalizer that a controller adds before it does anything.
func looked(object Object) Object {
	object.SetFinalizers([]string{v1alpha1.Finalizer})
	return object
}

// A status that cannot be encoded again counts for nothing, and keeps no other object out of the
// cache: what a transformation fails for is not shown.
func TestStatusThatCannotBeEncoded(t *testing.T) {
	key := keyOf(t, "0")
	k, refused := keeper(t, key, false)
	layer := kept(t, key)[0].(*v1alpha1.AddonsLayer)
	late := metav1.NewTime(time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)))
	layer.Status.History = []v1alpha1.HistoryEntry{{ID: "1", Started: late}}
	layer.Status.MAC = "x"
	got, err := k.Transform(func(in any) (any, error) { return in, nil })(layer)
	if err != nil || got != any(layer) || !v1alpha1.IsForeign(layer.Status.Conditions) || len(*refused) != 1 {
		t.Errorf("%v: it is %+v, refused %v", err, layer.Status, *refused)
	}
}

// Whoever writes what a status looks like that does not count is told of as well.
func TestStrippedStatusCannotBeWritten(t *testing.T) {
	key := keyOf(t, "0")
	stripped := refusedOnce(t, func() Object { o := kept(t, key)[0]; *o.SignedStatus().MAC = "x"; return o }(), key)
	for _, change := range []func(*v1alpha1.AddonsLayer){
		func(l *v1alpha1.AddonsLayer) { l.Status.MAC = "x" },
		func(l *v1alpha1.AddonsLayer) { l.Status.Conditions[0].LastTransitionTime = metav1.Unix(1, 0) }, // as the API server demands
		func(l *v1alpha1.AddonsLayer) { l.Status.Conditions[0].Message = "other" },
	} {
		written := stripped.(*v1alpha1.AddonsLayer).DeepCopy()
		change(written)
		k, refused := keeper(t, key, false)
		k.judge(written)
		if len(*refused) != 1 {
			t.Errorf("%+v is told of %d times", written.Status, len(*refused))
		}
	}
}

// Objects without a type are judged as those with one, and what shares their maps is not changed.
func TestObjectsWithoutATypeAreJudged(t *testing.T) {
	key := keyOf(t, "0")
	for _, object := range kept(t, key) {
		kind := object.SignedStatus().Kind
		untyped := func() *unstructured.Unstructured {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: content}
			u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			return u
		}
		k, refused := keeper(t, key, false)
		honest := untyped()
		k.judgeAny(honest)
		if len(*refused) > 0 || !cmp.Equal(honest.Object, untyped().Object) {
			t.Errorf("%s: what the controller has written does not count: %s", kind, cmp.Diff(untyped().Object, honest.Object))
		}
		changed := untyped()
		shared := changed.Object
		_ = unstructured.SetNestedField(changed.Object, "x", "status", "mac")
		k.judgeAny(changed)
		if len(*refused) != 1 {
			t.Errorf("%s: it is refused %d times", kind, len(*refused))
		}
		generation, _, _ := unstructured.NestedInt64(changed.Object, "status", "observedGeneration")
		if mac, _, _ := unstructured.NestedString(shared, "status", "mac"); generation != -1 || mac != "x" {
			t.Errorf("%s: it is at generation %d, and what shares its maps has %q", kind, generation, mac)
		}
	}
}

// A status that the API server has dropped the MAC of, because its CustomResourceDefinition is of an
// earlier version, is known again by the process that has seen it with one, as it was and not otherwise.
func TestDroppedMACIsKnownAgain(t *testing.T) {
	key := keyOf(t, "0")
	for _, object := range kept(t, key) {
		k, refused := keeper(t, key, false)
		k.judge(copied(object))
		dropped := copied(object)
		*dropped.SignedStatus().MAC = ""
		k.judge(dropped)
		if len(*refused) > 0 || v1alpha1.IsForeign(*dropped.SignedStatus().Conditions) {
			t.Errorf("%s is not known again", dropped.SignedStatus().Kind)
		}
		other := copied(object)
		*other.SignedStatus().MAC = ""
		other.SetUID("2")
		k.judge(other)
		if len(*refused) != 1 {
			t.Errorf("%s is taken for another one's", other.SignedStatus().Kind)
		}
	}
	k, refused := keeper(t, key, false)
	layer := kept(t, key)[0].(*v1alpha1.AddonsLayer)
	k.judge(layer.DeepCopy())
	layer.Status.Version, layer.Status.MAC = "2.0.0", ""
	k.judge(layer)
	if len(*refused) != 1 || layer.Status.Version != "" {
		t.Errorf("what was changed counts: %+v", layer.Status)
	}
}
