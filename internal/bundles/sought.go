// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// Sought is an object of a bundle's waitFor that templates of a layer read.
type Sought struct {
	// As is its name in templates, and Layer the layer of the bundle that waits for it.
	As, Layer string
	// WaitFor names the object, with its templates filled.
	v1alpha1.WaitFor
	// Cluster that it is on; the zero value is the cluster that Strata runs in.
	Cluster types.NamespacedName
	// Elsewhere is true where that is not the cluster of the layer that reads it, and
	// Unknown where it is not known which one it is.
	Elsewhere, Unknown bool
}

// Seen is an object that was sought.
type Seen struct {
	// Content is what templates may read of it; nil where it is not as it is waited for.
	Content map[string]any
	// Version names what was seen; it is another one for another content.
	Version string
	// Waits says what it lacks, and Refused why it is not read; at most one is not empty.
	Waits, Refused string
}

// Sought returns the objects that templates of the layer may read. None where it reads of
// none, or where Render says what is wrong.
func (r Request) Sought() []Sought {
	layer := LayerAt(r.Bundle, r.Path)
	if layer == nil || !namesObjects(r.Bundle) || !mentionsObjects(layer) {
		return nil
	}
	given, err := decodeObject(r.Inputs)
	if err != nil {
		return nil
	}
	inputs, _ := Resolve(r.Bundle, given)
	var found []Sought
	for i := range r.Bundle.Spec.Layers {
		of := &r.Bundle.Spec.Layers[i]
		waits, _, err := Hooks(of, cmp.Or(r.Instance, r.Layer), inputs)
		if err != nil {
			return nil
		}
		for at, wait := range waits {
			if as := of.WaitFor[at].As; as != "" {
				one := Sought{As: as, Layer: of.Name, WaitFor: wait}
				one.Cluster, one.Unknown = r.clusterOf(layer, of)
				one.Elsewhere = !one.Unknown && one.Cluster != r.Cluster.Name
				found = append(found, one)
			}
		}
	}
	return found
}

// ID returns the object, and the version of its API. The error says that APIVersion is
// none.
func (s Sought) ID() (objects.ID, string, error) {
	return s.wait().ID(placement.ClusterName(s.Cluster))
}

func (s Sought) wait() hooks.Wait {
	return hooks.Wait{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Condition: s.ReadyExpr}
}

// Refusal says why the object is not read for a layer; empty where it is. An account has
// the rights that somebody has given it on the other cluster: without one the controller
// would read there what the layer then writes here.
func (s Sought) Refusal(hasAccount bool) string {
	switch {
	case s.Unknown:
		return fmt.Sprintf("objects.%s is %s on the cluster of layer %s, and which one that is only layers of Platforms know", s.As, named(s.WaitFor), s.Layer)
	case s.Elsewhere && !hasAccount:
		return fmt.Sprintf("objects.%s is %s on another cluster, %s: that is read only as an account, which serviceAccountName names",
			s.As, named(s.WaitFor), Cluster{Name: s.Cluster})
	}
	return ""
}

// See returns what templates see of the object; nil where there is none.
func (s Sought) See(live *unstructured.Unstructured, unserved bool) Seen {
	switch {
	case unserved:
		return Seen{Waits: fmt.Sprintf("the cluster does not serve %s %s", s.APIVersion, s.Kind)}
	case live == nil:
		return Seen{Waits: "it does not exist"}
	}
	seen := Seen{Version: string(live.GetUID()) + "@" + live.GetResourceVersion(), Waits: s.wait().Unmet(live)}
	if seen.Waits == "" {
		// What comes of it is changed, and the object is the cache's own.
		seen.Content = runtime.DeepCopyJSON(hooks.Shown(live))
	}
	return seen
}

// clusterOf returns the cluster of another layer of the bundle.
func (r Request) clusterOf(layer, of *v1alpha1.BundleLayer) (cluster types.NamespacedName, unknown bool) {
	if of.On == layer.On {
		return r.Cluster.Name, false
	}
	if of.On == "" {
		return r.Base.Cluster, !r.Base.Known
	}
	found, known := r.clustersMade()[of.On]
	return found, !known
}

// namesObjects tells whether templates of a bundle can read any object.
func namesObjects(bundle *v1alpha1.ApplicationBundle) bool {
	return slices.ContainsFunc(bundle.Spec.Layers, func(layer v1alpha1.BundleLayer) bool {
		return slices.ContainsFunc(layer.WaitFor, func(wait v1alpha1.BundleWaitFor) bool { return wait.As != "" })
	})
}

// mentionsObjects tells whether templates of a layer may read objects of waitFor.
func mentionsObjects(layer *v1alpha1.BundleLayer) bool {
	text, err := json.Marshal(layer)
	return err == nil && (bytes.Contains(text, []byte(varObjects+".")) || bytes.Contains(text, []byte(varObjects+"[")))
}

// seen adds the objects that templates read. What was sought and not seen is waited for.
func (f *filler) seen(sought []Sought, all map[string]Seen) {
	known := map[string]any{}
	for _, one := range sought {
		at := all[one.As]
		switch {
		case at.Content != nil:
			known[one.As] = at.Content
		case at.Refused != "":
			f.unknown = append(f.unknown, lacking{varObjects, one.As, errors.New(at.Refused)})
		default:
			f.unknown = append(f.unknown, lacking{varObjects, one.As, &Waiting{Reason: fmt.Sprintf(
				"waits for %s, which layer %s waits for: %s", named(one.WaitFor), one.Layer, cmp.Or(at.Waits, "it has yet to be looked at"),
			)}})
		}
	}
	f.data[varObjects] = known
}

// lacking is a field of a variable that cannot be read, and why.
type lacking struct {
	variable, field string
	why             error
}

func named(wait v1alpha1.WaitFor) string {
	if wait.Namespace == "" {
		return wait.Kind + " " + wait.Name
	}
	return wait.Kind + " " + wait.Namespace + "/" + wait.Name
}

// objectNames returns the names by which templates of a bundle read objects.
func objectNames(bundle *v1alpha1.ApplicationBundle) []string {
	names := map[string]bool{}
	for _, layer := range bundle.Spec.Layers {
		for _, wait := range layer.WaitFor {
			if wait.As != "" {
				names[wait.As] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
