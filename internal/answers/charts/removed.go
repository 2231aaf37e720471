// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/strata-project/strata/internal/objects"
)

// RemovedAPI is an object whose API version a Kubernetes version does not serve.
type RemovedAPI struct {
	ID         objects.ID
	APIVersion string
	// RemovedIn is the first Kubernetes version without it, such as 1.25; empty where
	// that was so long ago that the client library does not know it any more, or
	// where the version has yet to come.
	RemovedIn string
	// IntroducedIn is the first Kubernetes version with it, where the one asked for
	// is older; empty otherwise.
	IntroducedIn string
	// Replacement is group/version/kind of what takes its place, with no group and
	// slash for the core; empty where nothing does.
	Replacement string
}

// RemovedAPIs returns the objects whose API versions a Kubernetes version, such as
// 1.34 or v1.34.2, does not serve, in the order of their IDs. It knows what the
// client library knows: the API lifecycle that Kubernetes' own types carry. For
// Kubernetes versions newer than the library those are the removals that had been
// announced; what is introduced in them is not known, and not taken for removed
// where its version is newer than all that are known. Only Kubernetes' own groups
// are judged, and of them not apiregistration.k8s.io; nor what a CRD among the
// objects defines.
func RemovedAPIs(objs []*unstructured.Unstructured, kubeVersion string) ([]RemovedAPI, error) {
	at, err := parseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	defined := map[string]bool{}
	for _, object := range objs {
		if object.GroupVersionKind().GroupKind() == crdKind {
			for _, version := range versionsOf(object) {
				defined[version] = true
			}
		}
	}
	var removed []RemovedAPI
	for _, object := range objs {
		gvk := object.GroupVersionKind()
		if defined[gvk.GroupVersion().String()+"/"+gvk.Kind] {
			continue
		}
		if found, is := lifecycles().judge(gvk, at); is {
			found.ID, found.APIVersion = objects.IDOf(object), object.GetAPIVersion()
			removed = append(removed, found)
		}
	}
	slices.SortStableFunc(removed, func(a, b RemovedAPI) int {
		return cmp.Or(a.ID.Compare(b.ID), strings.Compare(a.APIVersion, b.APIVersion))
	})
	return removed, nil
}

// minor is a minor version of Kubernetes.
type minor struct{ major, minor int }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

func (m minor) before(other minor) bool {
	return m.major < other.major || m.major == other.major && m.minor < other.minor
}

// parseKubeVersion reads a version of Kubernetes down to its minor version.
func parseKubeVersion(text string) (minor, error) {
	version, err := utilversion.ParseGeneric(text)
	if err != nil || version.Major() != 1 {
		return minor{}, fmt.Errorf("%q is no version of Kubernetes: it must be such as 1.34 or v1.34.2", text)
	}
	return minor{1, int(version.Minor())}, nil
}

// lifecycle says in which versions a kind is served; zero where that has no bounds.
type lifecycle struct {
	introduced, removed minor
	replacement         schema.GroupVersionKind
}

// knownKinds are the kinds of Kubernetes with their lifecycles.
type knownKinds struct {
	kinds map[schema.GroupVersionKind]lifecycle
	// newest version of each group.
	newest map[string]string
}

// lifecycles reads what the types of the client library carry.
var lifecycles = sync.OnceValue(func() *knownKinds {
	// The scheme of the library is left as it is: others add to it.
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme} {
		utilruntime.Must(add(all))
	}
	known := &knownKinds{kinds: map[schema.GroupVersionKind]lifecycle{}, newest: map[string]string{}}
	for gvk, of := range all.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		known.kinds[gvk] = lifecycleOf(of)
		if newest := known.newest[gvk.Group]; newest == "" || apiversion.CompareKubeAwareVersionStrings(gvk.Version, newest) > 0 {
			known.newest[gvk.Group] = gvk.Version
		}
	}
	return known
})

func lifecycleOf(of reflect.Type) lifecycle {
	var found lifecycle
	object := reflect.New(of).Interface()
	if has, is := object.(interface{ APILifecycleIntroduced() (int, int) }); is {
		found.introduced.major, found.introduced.minor = has.APILifecycleIntroduced()
	}
	if has, is := object.(interface{ APILifecycleRemoved() (int, int) }); is {
		found.removed.major, found.removed.minor = has.APILifecycleRemoved()
	}
	if has, is := object.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); is {
		found.replacement = has.APILifecycleReplacement()
	}
	return found
}

// judge tells whether a kind is not served in a version of Kubernetes.
func (k *knownKinds) judge(gvk schema.GroupVersionKind, at minor) (RemovedAPI, bool) {
	newest, builtIn := k.newest[gvk.Group]
	if !builtIn {
		return RemovedAPI{}, false
	}
	known, is := k.kinds[gvk]
	switch {
	case !is:
		// Newer than what is known: perhaps it has come since.
		if apiversion.CompareKubeAwareVersionStrings(gvk.Version, newest) > 0 {
			return RemovedAPI{}, false
		}
		return RemovedAPI{Replacement: k.replacement(gvk, at)}, true
	case known.removed != minor{} && !at.before(known.removed):
		return RemovedAPI{RemovedIn: known.removed.String(), Replacement: cmp.Or(written(known.replacement), k.replacement(gvk, at))}, true
	case at.before(known.introduced):
		return RemovedAPI{IntroducedIn: known.introduced.String(), Replacement: k.replacement(gvk, at)}, true
	}
	return RemovedAPI{}, false
}

// replacement returns the newest version of a kind that is served: in its group, or
// in another where it has left its group, as those of extensions have.
func (k *knownKinds) replacement(of schema.GroupVersionKind, at minor) string {
	var best schema.GroupVersionKind
	for gvk, known := range k.kinds {
		gone := known.removed != minor{} && !at.before(known.removed)
		if gvk.Kind != of.Kind || gone || at.before(known.introduced) || gvk.Group != of.Group && of.Group != "extensions" {
			continue
		}
		better := cmp.Or(
			apiversion.CompareKubeAwareVersionStrings(gvk.Version, best.Version),
			// events.k8s.io and the core have some kinds both: by name, to say one thing.
			strings.Compare(gvk.Group, best.Group),
		)
		if best.Empty() || better > 0 {
			best = gvk
		}
	}
	return written(best)
}

// written returns a kind as RemovedAPI has it.
func written(gvk schema.GroupVersionKind) string {
	if gvk.Empty() {
		return ""
	}
	return gvk.GroupVersion().String() + "/" + gvk.Kind
}

// servedVersions returns the API versions that a Kubernetes version serves by
// default, as group/version and group/version/Kind: all that are known and no alpha.
func servedVersions(kubeVersion string) ([]string, error) {
	at, err := parseKubeVersion(kubeVersion)
	if err != nil {
		return nil, problem(RenderFailed, nil, "%s", err)
	}
	var served []string
	for gvk, known := range lifecycles().kinds {
		gone := known.removed != minor{} && !at.before(known.removed)
		if gone || at.before(known.introduced) || strings.Contains(gvk.Version, "alpha") {
			continue
		}
		served = append(served, gvk.GroupVersion().String(), written(gvk))
	}
	slices.Sort(served)
	return slices.Compact(served), nil
}
