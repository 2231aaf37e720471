// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Content returns what a layer at a version wants from a directory: objects
// with its label, in stages, with the order among releases taken out of the
// hands of Flux, which would poll for it. Their digests are plain. The error is a
// ContentError.
func Content(dir *directories.Directory, layer, version string, scopes map[objects.ServedKind]objects.Scope) ([]dependents.Dependent, error) {
	watched := valuesOf(dir)
	own := make(map[objects.ID]bool, len(dir.Manifests))
	for _, manifest := range dir.Manifests {
		own[manifest.ID()] = true
	}
	wanted := make([]dependents.Dependent, 0, len(dir.Manifests))
	for _, manifest := range dir.Manifests {
		if watched[manifest.ID()] && !manifest.AsFlux && !manifest.Observed {
			manifest.Object = watchedByFlux(manifest.Object)
		}
		dependent, err := contentOf(manifest, layer, version, own, scopes)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, dependent)
	}
	if err := checkReleaseOrder(wanted); err != nil {
		return nil, err
	}
	return wanted, nil
}

// valuesOf returns the ConfigMaps and Secrets that the releases of a directory take values
// from.
func valuesOf(dir *directories.Directory) map[objects.ID]bool {
	found := map[objects.ID]bool{}
	for _, manifest := range dir.Manifests {
		if manifest.Object != nil && manifest.ID().GroupKind() == kinds.HelmReleaseKind {
			for _, id := range kinds.ValuesOf(manifest.Object) {
				found[id] = true
			}
		}
	}
	return found
}

// watchedByFlux returns an object with the label by which helm-controller sees its changes
// at once, where it says nothing about it.
func watchedByFlux(obj *unstructured.Unstructured) *unstructured.Unstructured {
	labels := obj.GetLabels()
	if _, says := labels[kinds.WatchLabel]; says || obj.Object == nil {
		return obj
	}
	watched := obj.DeepCopy()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kinds.WatchLabel] = kinds.WatchEnabled
	watched.SetLabels(labels)
	return watched
}

func contentOf(
	manifest directories.Manifest,
	layer, version string,
	own map[objects.ID]bool,
	scopes map[objects.ServedKind]objects.Scope,
) (dependents.Dependent, error) {
	obj := manifest.Object.DeepCopy()
	id := manifest.ID()
	scope := scopes[id.ServedKind()]
	if err := CheckScope(manifest, scope); err != nil {
		return dependents.Dependent{}, err
	}
	if scope == objects.ScopeCluster && id.Namespace != "" {
		obj.SetNamespace("") // as the API server does
		id.Namespace = ""
	}
	if manifest.Ensured {
		return dependents.Dependent{
			ID: id, Object: dependents.ContentOf(obj), Digest: digests.Key{}.OfObject(obj, false), Stage: kinds.StageOf(id.GroupKind()), Assess: objects.AssessExistence,
			Mode: dependents.ModeCreateOnce, Shared: true, Origin: manifest.File,
		}, nil
	}
	if manifest.Observed {
		return dependents.Dependent{
			ID: id, Mode: dependents.ModeObserve, Assess: objects.AssessExistence, Optional: manifest.Optional, Withheld: manifest.Withheld, Origin: manifest.File,
		}, nil
	}
	setMarks(manifest, obj, layer)
	kinds.LeaveToFillers(obj)
	dependent := dependents.Dependent{
		ID: id, Object: dependents.ContentOf(obj), Stage: kinds.StageOf(id.GroupKind()), Assess: kinds.AssessOf(obj), Origin: manifest.File,
		Confidential: manifest.Confidential, Decrypted: manifest.Decrypted,
		Detached: kinds.StageOf(id.GroupKind()) == kinds.StageCustom, NotesOrigin: kinds.TakesAlong(id.GroupKind()),
	}
	if objects.IsReleaseKind(id.GroupKind()) {
		said, found, _ := unstructured.NestedFieldCopy(obj.Object, "spec", "dependsOn")
		dependent.DependsOn = takeDependsOn(obj, own)
		if manifest.AsFlux && found {
			_ = unstructured.SetNestedField(obj.Object, said, "spec", "dependsOn") // it was there
		}
	}
	dependent.DependsOn = append(dependent.DependsOn, manifest.Needs...)
	dependent.LeftAlone = kinds.LeftAlone(obj)
	annotations := obj.GetAnnotations()
	if strings.EqualFold(annotations[v1alpha1.FluxSSAAnnotation], "IfNotPresent") {
		dependent.Mode = dependents.ModeCreateOnce
	}
	dependent.Merges = merges(obj)
	dependent.Recreate = strings.EqualFold(annotations[v1alpha1.FluxForceAnnotation], "enabled") && kinds.MayRecreate(id.GroupKind())
	if id.GroupKind() == kinds.HelmReleaseKind {
		dependent.Exclusive = kinds.HelmReleaseIdentity(obj)
		if obj.GetAnnotations()[v1alpha1.UpdateVersionAnnotation] == "true" {
			if err := setVersion(obj, version); err != nil {
				return dependents.Dependent{}, &directories.ContentError{
					Reason: v1alpha1.ReasonInvalidManifest, File: manifest.File, Line: manifest.Line, Field: "spec.values",
					Message: "must be a mapping, because the annotation " + v1alpha1.UpdateVersionAnnotation + " adds a value to it",
				}
			}
		}
	}
	dependent.Digest = digests.Key{}.OfObject(obj, false)
	return dependent, nil
}

// merges tells whether an object asks by Flux's annotation to keep what people add to it.
func merges(obj *unstructured.Unstructured) bool {
	return strings.EqualFold(obj.GetAnnotations()[v1alpha1.FluxSSAAnnotation], "Merge")
}

// Takes returns by which rule fields of a live object are taken over from others when it is
// applied again. What git says of replicas is not known.
func Takes(live *unstructured.Unstructured) fields.Rule {
	return fields.Rule{Strict: objects.IsStrict(live.GroupVersionKind().GroupKind()), Merges: merges(live)}
}

// setVersion puts the layer's version into the values of a HelmRelease, which
// may be left out or be written as nothing.
func setVersion(obj *unstructured.Unstructured, version string) error {
	if values, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "values"); found && values == nil {
		unstructured.RemoveNestedField(obj.Object, "spec", "values")
	}
	return unstructured.SetNestedField(obj.Object, version, "spec", "values", "kraanVersion")
}

// CheckScope says of an object that it has no namespace, and needs one for its kind. The
// error is a ContentError. A namespace too many is no mistake: the API server drops it.
func CheckScope(manifest directories.Manifest, scope objects.Scope) error {
	id := manifest.ID()
	if scope != objects.ScopeNamespaced || id.Namespace != "" {
		return nil
	}
	return &directories.ContentError{
		Reason: v1alpha1.ReasonInvalidManifest, File: manifest.File, Line: manifest.Line,
		Field: "metadata.namespace", Message: fmt.Sprintf("%s has none: name the namespace it belongs in, or spec.targetNamespace of its layer", id),
	}
}

// InScope returns a directory without the namespaces of objects whose kinds have none, as
// the API server takes them: what it lists is named as it is in the cluster. The reader has
// taken those of Kubernetes' own kinds. It may be nil, and is not changed.
func InScope(dir *directories.Directory, scopes map[objects.ServedKind]objects.Scope) *directories.Directory {
	if dir == nil {
		return nil
	}
	var within *directories.Directory
	for i, manifest := range dir.Manifests {
		if id := manifest.ID(); id.Namespace == "" || scopes[id.ServedKind()] != objects.ScopeCluster {
			continue
		}
		if within == nil {
			copied := *dir
			copied.Manifests = slices.Clone(dir.Manifests)
			within = &copied
		}
		object := manifest.Object.DeepCopy()
		object.SetNamespace("")
		within.Manifests[i].Object = object
	}
	return cmp.Or(within, dir)
}

// takeDependsOn takes the releases of this very layer out of spec.dependsOn
// and returns them. What asks for more than readiness stays for Flux, too.
func takeDependsOn(obj *unstructured.Unstructured, own map[objects.ID]bool) []objects.ID {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "dependsOn")
	list, _ := value.([]any)
	var taken []objects.ID
	var left []any
	for _, item := range list {
		entry, _ := item.(map[string]any)
		name, _ := entry["name"].(string)
		namespace, _ := entry["namespace"].(string)
		id := objects.IDOf(obj)
		id.Name = name
		if namespace != "" {
			id.Namespace = namespace
		}
		if own[id] {
			taken = append(taken, id)
		}
		if !own[id] || entry["readyExpr"] != nil {
			left = append(left, item)
		}
	}
	switch {
	case len(taken) == 0:
	case len(left) == 0:
		unstructured.RemoveNestedField(obj.Object, "spec", "dependsOn")
	default:
		spec, _ := obj.Object["spec"].(map[string]any)
		spec["dependsOn"] = left
	}
	return objects.SortIDs(taken)
}

// checkReleaseOrder refuses releases that wait for each other.
func checkReleaseOrder(wanted []dependents.Dependent) error {
	if isOrdered(wanted) {
		return nil
	}
	byName := map[string]*dependents.Dependent{}
	for i := range wanted {
		byName[wanted[i].ID.String()] = &wanted[i]
	}
	for i := range wanted {
		cycle := dependencies.Cycle(wanted[i].ID.String(), func(name string) []string {
			var next []string
			if d := byName[name]; d != nil {
				for _, id := range d.DependsOn {
					next = append(next, id.String())
				}
			}
			return next
		})
		if cycle != nil {
			return &directories.ContentError{
				Reason: v1alpha1.ReasonInvalidManifest, File: wanted[i].Origin, Field: "spec.dependsOn",
				Message: "releases wait for each other: " + strings.Join(cycle, " -> "),
			}
		}
	}
	return nil
}

// isOrdered tells whether no release waits for itself, by whatever way. It looks
// at each once, where Cycle looks at all of them for each.
func isOrdered(wanted []dependents.Dependent) bool {
	needs := make(map[objects.ID][]objects.ID, len(wanted))
	for _, d := range wanted {
		needs[d.ID] = d.DependsOn
	}
	// Those on the way are in here as false, those behind as true.
	ends := map[objects.ID]bool{}
	var circles func(id objects.ID) bool
	circles = func(id objects.ID) bool {
		if done, seen := ends[id]; seen {
			return !done
		}
		ends[id] = false
		if slices.ContainsFunc(needs[id], circles) {
			return true
		}
		ends[id] = true
		return false
	}
	return !slices.ContainsFunc(wanted, func(d dependents.Dependent) bool { return circles(d.ID) })
}

// rivals returns what is known of live HelmReleases: which are idle and do not install
// what they stand for by themselves, and which are apart, in another namespace than that
// in which Helm stores it. A suspended release is idle, and so is one that is apart and has an account.
// Without an account helm-controller installs with its own rights, unless it is told
// otherwise.
func (o Observation) rivals() (idle, apart map[objects.ID]bool) {
	idle, apart = map[objects.ID]bool{}, map[objects.ID]bool{}
	for _, ids := range o.Exclusive {
		for _, id := range ids {
			live := o.Live[id]
			if live == nil {
				continue
			}
			account, _, _ := unstructured.NestedString(live.Object, "spec", "serviceAccountName")
			_, namespace := kinds.HelmName(live)
			apart[id] = namespace != live.GetNamespace()
			idle[id] = objects.IsSuspended(live) || apart[id] && account != ""
		}
	}
	return idle, apart
}

// contestedMessage says which releases of a layer somebody else's HelmReleases
// stand for, up to a few; empty where there are none.
func contestedMessage(contested []dependents.Contest) string {
	const most = 3
	var messages []string
	for i, c := range contested {
		if i == most {
			messages = append(messages, fmt.Sprintf("and %d more", len(contested)-most))
			break
		}
		message := fmt.Sprintf("%s, which no layer has, stands for the same Helm release as %s (%s)", c.With, c.ID, c.Origin)
		if c.Waits {
			message += ", which waits for it"
		}
		messages = append(messages, message)
	}
	return strings.Join(messages, "; ")
}

// timeoutOf returns how long a layer may be Applying: what it says itself, or
// the larger of its interval and its releases' longest timeout plus a minute.
func timeoutOf(layer *v1alpha1.AddonsLayer, interval time.Duration, wanted []dependents.Dependent) time.Duration {
	if layer.Spec.Timeout != nil {
		return layer.Spec.Timeout.Duration
	}
	longest := interval
	for _, d := range wanted {
		release, written := d.Object.Get()
		if !written || !objects.IsReleaseKind(d.ID.GroupKind()) {
			continue
		}
		longest = max(longest, dependents.TimeoutOf(release)+time.Minute)
	}
	return longest
}

// Listing is what a directory lists, without the objects.
type Listing struct {
	// Files by the object they list.
	Files map[objects.ID]string
	// Exclusive holds the objects by what only one of them may stand for.
	Exclusive map[string][]objects.ID
}

// ListingOf returns what a directory lists. Whether a kind that others define has namespaces, only
// a cluster knows, and it may not serve the kind yet: an object of such a kind is listed by its name
// without the namespace that is written, too. There is nothing else that could have that name.
func ListingOf(dir *directories.Directory) Listing {
	listing := Listing{Files: make(map[objects.ID]string, len(dir.Manifests)), Exclusive: map[string][]objects.ID{}}
	for _, manifest := range dir.Manifests {
		if manifest.Ensured || manifest.Observed {
			continue
		}
		id := manifest.ID()
		listing.Files[id] = manifest.File
		if id.Namespace != "" && !kinds.HasKnownScope(id.GroupKind()) {
			bare := id
			bare.Namespace = ""
			listing.Files[bare] = manifest.File
		}
		if id.GroupKind() == kinds.HelmReleaseKind {
			exclusive := kinds.HelmReleaseIdentity(manifest.Object)
			listing.Exclusive[exclusive] = objects.SortIDs(append(slices.Clone(listing.Exclusive[exclusive]), id))
		}
	}
	return listing
}
