// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"encoding/base64"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
)

// without returns an object that lacks an annotation.
func without(obj *unstructured.Unstructured, key string) *unstructured.Unstructured {
	return annotatedWith(obj, key, "")
}

// annotatedWith returns an object with an annotation, or without it where that is empty.
func annotatedWith(obj *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	changed := obj.DeepCopy()
	annotations := changed.GetAnnotations()
	if annotations[key] = value; value == "" {
		delete(annotations, key)
	}
	changed.SetAnnotations(annotations)
	return changed
}

// A copy of a kubeconfig is used without its source only as Strata has written it, for
// that RemoteCluster and with that key.
func TestCopyVerified(t *testing.T) {
	holds := func(o *Observation, text string) {
		o.Live = o.Live.DeepCopy()
		o.Live.Object["data"] = map[string]any{placement.KubeConfigKey: base64.StdEncoding.EncodeToString([]byte(text))}
	}
	for name, tc := range map[string]struct {
		change func(*Observation)
		want   bool
	}{
		"as it was written":               {func(*Observation) {}, true},
		"with a label of somebody's":      {func(o *Observation) { o.Live.SetLabels(map[string]string{"a": "b"}) }, true},
		"no copy":                         {func(o *Observation) { o.Live = nil }, false},
		"of an earlier version":           {func(o *Observation) { o.Live = without(o.Live, v1alpha1.CopyMACAnnotation) }, false},
		"of another cluster":              {func(o *Observation) { o.Live = annotatedWith(o.Live, v1alpha1.ClusterUIDAnnotation, secondUID) }, false},
		"of any cluster":                  {func(o *Observation) { o.Live = without(o.Live, v1alpha1.ClusterUIDAnnotation) }, false},
		"with another kubeconfig":         {func(o *Observation) { holds(o, "token: evil") }, false},
		"empty":                           {func(o *Observation) { o.Live.Object["data"] = nil }, false},
		"with no base64":                  {func(o *Observation) { o.Live.Object["data"] = map[string]any{placement.KubeConfigKey: 7} }, false},
		"of a RemoteCluster that is gone": {func(o *Observation) { o.Cluster.UID = "anew" }, false},
		"of another installation":         {func(o *Observation) { o.Key = keyOf(9) }, false},
		"without a key": {func(o *Observation) {
			o.Key = digests.Key{}
			o.Live = without(o.Live, v1alpha1.CopyMACAnnotation)
		}, false},
		"with a MAC of nothing": {func(o *Observation) {
			o.Live = annotatedWith(o.Live, v1alpha1.CopyMACAnnotation, o.Key.MAC(macPurpose))
		}, false},
		"with a MAC for something else": {func(o *Observation) {
			encoded := base64.StdEncoding.EncodeToString(o.Access.KubeConfig)
			o.Live = annotatedWith(o.Live, v1alpha1.CopyMACAnnotation, o.Key.MAC("object", o.macParts(encoded, firstUID)...))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := observation(tc.change)
			if got := o.CopyVerified(); got != tc.want {
				t.Errorf("it is verified: %t, want %t", got, tc.want)
			}
		})
	}
}

// The releases of a cluster whose copy is not used are suspended, as Flux would go on
// with it, and nothing is written to the copy.
func TestUnverifiedCopyStops(t *testing.T) {
	o := observation(func(o *Observation) {
		o.Source.Found, o.Access, o.Unverified, o.Identity, o.Answer = false, nil, true, Identity{}, Answer{}
	})
	if v := Judge(o); !v.Stops || !v.Keeps || v.Open || v.Record != firstUID {
		t.Errorf("the verdict is %+v", v)
	}
	o.Cluster.Status = Decide(o).Status
	if layers.IsMistaken(o.Cluster) == "" {
		t.Error("its layers cannot be given up")
	}
	o.Source.Known = false
	if v := Judge(o); v.Stops || v.Open {
		t.Errorf("while the Secret is not known the verdict is %+v", v)
	}
}

// What follows its source while it is being deleted can be used without that, too.
func TestRefreshedCopyIsVerified(t *testing.T) {
	o := observation(func(o *Observation) {
		deleted := metav1.NewTime(now)
		o.Live = without(o.Live, v1alpha1.CopyMACAnnotation)
		o.Live.SetDeletionTimestamp(&deleted)
	})
	if o.Live = Refreshed(o); !o.CopyVerified() {
		t.Errorf("it is %+v", o.Live)
	}
	if again := Refreshed(o); again != nil {
		t.Errorf("it is written again: %+v", again)
	}
}
